#include "tlparse-export/exchange/exchange_record.h"

#include <algorithm>
#include <array>

#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

constexpr std::string_view kSchemaKey = "\"strata.exchange/";
constexpr std::string_view kSchema = "strata.exchange/1";
constexpr int64_t kMaxId = int64_t{1} << 48;
/// Nodes of one body; a range of more would only be an attack on memory.
constexpr int64_t kMaxOrder = int64_t{1} << 24;

constexpr std::array<std::pair<std::string_view, ExchangeKind>, 10> kKinds = {{
    {"head", ExchangeKind::kHead},
    {"text", ExchangeKind::kText},
    {"graph", ExchangeKind::kGraph},
    {"begin", ExchangeKind::kBegin},
    {"snap", ExchangeKind::kSnap},
    {"edge", ExchangeKind::kEdge},
    {"end", ExchangeKind::kEnd},
    {"artifact", ExchangeKind::kArtifact},
    {"drop", ExchangeKind::kDrop},
    {"tail", ExchangeKind::kTail},
}};

Error WrongField(std::string_view key) {
  return Error("wrong value of '{}'", key);
}

Status ReadString(const JsonField& field, std::string& out) {
  std::optional<std::string> text = ReadJsonString(field.value);
  if (!text) return WrongField(field.key);
  out = *std::move(text);
  return Ok();
}

Status ReadNumber(const JsonField& field, int64_t max, int64_t& out) {
  const std::optional<int64_t> number = ReadJsonInt(field.value);
  if (!number || *number < 0 || *number > max) return WrongField(field.key);
  out = *number;
  return Ok();
}

Status ReadIds(const JsonField& field, std::vector<int64_t>& out) {
  const auto elements = ReadJsonArray(field.value);
  if (!elements) return WrongField(field.key);
  for (std::string_view element : *elements) {
    const std::optional<int64_t> id = ReadJsonInt(element);
    if (!id || *id <= 0 || *id > kMaxId) return WrongField(field.key);
    out.push_back(*id);
  }
  return Ok();
}

/// `[id, "n", "text", comment, "alias"]`; the last two may be missing.
Result<ExchangeNode> ReadNode(std::string_view text) {
  const auto parts = ReadJsonArray(text);
  if (!parts || parts->size() < 3) return WrongField("nodes");
  ExchangeNode node;
  const std::optional<int64_t> id = ReadJsonInt((*parts)[0]);
  const std::optional<std::string> kind = ReadJsonString((*parts)[1]);
  std::optional<std::string> statement = ReadJsonString((*parts)[2]);
  if (!id || *id <= 0 || *id > kMaxId || !kind || !statement) return WrongField("nodes");
  node.id = *id;
  node.text = *std::move(statement);
  if (*kind == "p") {
    node.kind = ExchangeNode::Kind::kInput;
  } else if (*kind == "o") {
    node.kind = ExchangeNode::Kind::kOutput;
  } else if (*kind != "n") {
    return WrongField("nodes");
  }
  if (parts->size() > 3) {
    const std::optional<int64_t> comment = ReadJsonInt((*parts)[3]);
    if (!comment || *comment < 0) return WrongField("nodes");
    node.comment = *comment;
  }
  if (parts->size() > 4) {
    std::optional<std::string> alias = ReadJsonString((*parts)[4]);
    if (!alias) return WrongField("nodes");
    node.alias = *std::move(alias);
  }
  return node;
}

/// `["path", [[first, count], …]]`
Result<ExchangeBody> ReadBody(std::string_view text) {
  const auto parts = ReadJsonArray(text);
  if (!parts || parts->size() < 2) return WrongField("bodies");
  ExchangeBody body;
  std::optional<std::string> path = ReadJsonString((*parts)[0]);
  const auto ranges = ReadJsonArray((*parts)[1]);
  if (!path || !ranges) return WrongField("bodies");
  body.path = *std::move(path);
  int64_t nodes = 0;
  for (std::string_view range : *ranges) {
    const auto pair = ReadJsonArray(range);
    if (!pair || pair->size() != 2) return WrongField("bodies");
    const std::optional<int64_t> first = ReadJsonInt((*pair)[0]), count = ReadJsonInt((*pair)[1]);
    if (!first || !count || *first <= 0 || *first > kMaxId || *count <= 0 || *count > kMaxOrder) {
      return WrongField("bodies");
    }
    nodes += *count;
    if (nodes > kMaxOrder) return WrongField("bodies");
    body.order.emplace_back(*first, *count);
  }
  return body;
}

template <class T, class Read>
Status ReadList(const JsonField& field, std::vector<T>& out, Read read) {
  const auto elements = ReadJsonArray(field.value);
  if (!elements) return WrongField(field.key);
  for (std::string_view element : *elements) {
    STRATA_TRY(T item, read(element));
    out.push_back(std::move(item));
  }
  return Ok();
}

Status ReadInner(const JsonField& field, std::vector<std::string>& out) {
  return ReadList(field, out, [&](std::string_view element) -> Result<std::string> {
    std::optional<std::string> name = ReadJsonString(element);
    if (!name) return WrongField(field.key);
    return *std::move(name);
  });
}

Status ReadField(const JsonField& field, ExchangeRecord& record) {
  const std::string_view key = field.key;
  const bool is_snap = record.kind == ExchangeKind::kSnap;
  if (key == "id") return ReadNumber(field, kMaxId, record.id);
  if (key == "g") {
    const bool is_own = is_snap || record.kind == ExchangeKind::kGraph;
    return ReadNumber(field, kMaxId, is_own ? record.id : record.graph);
  }
  if (key == "p") return ReadNumber(field, kMaxId, is_snap ? record.pass : record.id);
  if (key == "from") return ReadNumber(field, kMaxId, record.from);
  if (key == "s" || key == "name" || key == "pass" || key == "what") {
    return ReadString(field, record.name);
  }
  if (key == "when" || key == "how" || key == "status") return ReadString(field, record.when);
  if (key == "content") return ReadString(field, record.content);
  if (key == "options") return ReadString(field, record.options);
  if (key == "file") return ReadString(field, record.file);
  if (key == "error") return ReadString(field, record.error);
  if (key == "class") return ReadString(field, record.class_name);
  if (key == "source") return ReadString(field, record.source);
  if (key == "command") return ReadString(field, record.command);
  if (key == "line") return ReadNumber(field, INT32_MAX, record.line);
  if (key == "ns") return ReadNumber(field, INT64_MAX / 2, record.ns);
  if (key == "rank") return ReadNumber(field, INT32_MAX - 1, record.rank);
  if (key == "world") return ReadNumber(field, INT32_MAX, record.world);
  if (key == "count") return ReadNumber(field, INT64_MAX / 2, record.count);
  if (key == "inner") return ReadInner(field, record.inner);
  if (key == "nodes") return ReadList(field, record.nodes, ReadNode);
  if (key == "bodies") return ReadList(field, record.bodies, ReadBody);
  if (key == "new") return ReadIds(field, record.new_ids);
  if (key == "old") return ReadIds(field, record.old_ids);
  return Ok();
}

const JsonField* Find(const std::vector<JsonField>& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &JsonField::key);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

bool LooksLikeExchange(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with('{') && line.find("\"r\"") != std::string_view::npos &&
         line.find(kSchemaKey) != std::string_view::npos;
}

Result<ExchangeRecord> ReadExchangeRecord(std::string_view line) {
  const std::optional<std::vector<JsonField>> fields = ReadJsonObject(line);
  if (!fields) return Error("not a JSON object");
  ExchangeRecord record;
  const JsonField* kind = Find(*fields, "r");
  if (kind == nullptr) return Error("a record without 'r'");
  const std::optional<std::string> kind_name = ReadJsonString(kind->value);
  if (!kind_name) return WrongField("r");
  for (const auto& [name, value] : kKinds) {
    if (name == *kind_name) record.kind = value;
  }
  if (record.kind == ExchangeKind::kOther) return record;
  if (record.kind == ExchangeKind::kHead) {
    const JsonField* schema = Find(*fields, "schema");
    const auto text = schema == nullptr ? std::nullopt : ReadJsonString(schema->value);
    if (!text) return WrongField("schema");
    if (*text != kSchema) {
      return Error(ErrorCode::kUnsupported, "schema {}: this version reads {}", *text, kSchema);
    }
  }
  for (const JsonField& field : *fields)
    STRATA_RETURN_IF_ERROR(ReadField(field, record));
  return record;
}

}  // namespace strata
