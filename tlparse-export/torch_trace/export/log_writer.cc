#include "tlparse-export/torch_trace/export/log_writer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "tlparse-export/torch_trace/export/tlparse_rules.h"
#include "tlparse-export/torch_trace/read/md5.h"
#include "tlparse-export/torch_trace/read/python_json.h"
#include "tlparse-export/torch_trace/read/wrapped_record.h"

namespace strata {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

/// The header line up to its JSON as tlparse wants it, with what can be kept of `prefix`.
std::string PlainPrefix(std::string_view prefix) {
  if (IsPlainPrefix(prefix)) return std::string(prefix);
  constexpr std::string_view kTime = "0000 00:00:00";
  std::string out = "V0101 00:00:00.000000 0 strata/export:1] ";
  if (prefix.size() <= kTime.size()) return out;
  for (size_t i = 0; i < kTime.size(); ++i) {
    const char c = prefix[i + 1];
    if (kTime[i] == '0' ? !IsDigit(c) : c != kTime[i]) return out;
  }
  out.replace(1, kTime.size(), prefix.substr(1, kTime.size()));
  return out;
}

constexpr std::array<std::string_view, 4> kCompileKeys = {"compiled_autograd_id", "frame_id",
                                                          "frame_compile_id", "attempt"};

/// `, "frame_id": 0, …`: the compile id of an envelope, as far as tlparse knows its type.
std::string CompileContext(std::string_view envelope) {
  std::string out;
  const auto fields = ReadJsonObject(envelope).value_or(std::vector<JsonField>{});
  for (std::string_view key : kCompileKeys) {
    const auto field = std::ranges::find(fields, key, &JsonField::key);
    if (field == fields.end()) continue;
    const std::optional<int64_t> number = ReadJsonInt(field->value);
    if (!number || *number < 0 || *number > UINT32_MAX) continue;
    fmt::format_to(std::back_inserter(out), ", \"{}\": {}", key, *number);
  }
  return out;
}

/// What a person sees of a record that has no payload: its event.
std::string ShownEnvelope(std::string_view envelope) {
  return IsPlainPayload(envelope) ? std::string(envelope) : OneLine(envelope, envelope.size());
}

/// The name of the artifact that stands for a record.
std::string NameOf(std::string_view envelope) {
  constexpr std::array<std::string_view, 8> kContext = {
      "rank",    "compiled_autograd_id", "frame_id", "frame_compile_id",
      "attempt", "has_payload",          "stack",    "subgraph_name"};
  const auto fields = ReadJsonObject(envelope).value_or(std::vector<JsonField>{});
  for (const JsonField& field : fields) {
    if (std::ranges::find(kContext, field.key) != kContext.end()) continue;
    const auto metadata = ReadJsonObject(field.value).value_or(std::vector<JsonField>{});
    const auto name = std::ranges::find(metadata, "name", &JsonField::key);
    if (name != metadata.end()) {
      if (const auto text = ReadJsonString(name->value)) return PlainName(*text);
    }
    return PlainName(field.key);
  }
  return "record";
}

}  // namespace

std::string PlainName(std::string_view name) {
  constexpr size_t kMaxBytes = 120;
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const size_t length = std::max<size_t>(Utf8Length(name, i), 1);
    if (out.size() + length > kMaxBytes) break;
    const bool is_plain =
        IsFileName(name.substr(i, length)) && !(name[i] == '.' && out.ends_with('.'));
    out += is_plain ? name.substr(i, length) : "_";
    i += length;
  }
  return out.empty() ? "record" : out;
}

Result<LogWriter> LogWriter::Create(const std::string& path, std::optional<int32_t> rank) {
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  return LogWriter(std::move(file), rank);
}

Status LogWriter::AddString(int64_t id, std::string_view text) {
  std::string envelope;
  JsonWriter json(envelope);
  json.BeginObject().Key("str").BeginArray().String(text).Int(id).EndArray().EndObject();
  const std::string prefix = PlainPrefix({});
  if (id < 0 || id > kMaxTlparseStringId) return Wrap(prefix, envelope, std::nullopt);
  buffer_ += prefix;
  buffer_ += envelope;
  buffer_ += '\n';
  return Ok();
}

Status LogWriter::AddRecord(std::string_view prefix, std::string_view envelope,
                            std::optional<std::string_view> payload) {
  ++num_records_;
  const std::string plain = prefix.empty() ? PlainPrefix({}) : std::string(prefix);
  if (TlparseTakes(plain, envelope, payload.value_or(""))) return Write(plain, envelope, payload);
  return Wrap(plain, envelope, payload);
}

Status LogWriter::Wrap(std::string_view prefix, std::string_view envelope,
                       std::optional<std::string_view> payload) {
  ++num_wrapped_;
  WrappedRecord record;
  record.header = fmt::format("{}{}", prefix, envelope);
  std::string shown;
  std::string_view encoding = "string";
  if (!payload) {
    record.payload = WrappedRecord::Payload::kNone;
    shown = ShownEnvelope(envelope);
    encoding = "json";
  } else if (IsPlainPayload(*payload)) {
    shown = *payload;
  } else {
    record.payload = WrappedRecord::Payload::kBase64;
    shown = ToBase64(*payload);
  }
  return Write(PlainPrefix(prefix),
               fmt::format("{{\"artifact\": {}{}}}", WrapRecord(NameOf(envelope), encoding, record),
                           CompileContext(envelope)),
               shown);
}

Status LogWriter::Write(std::string_view prefix, std::string_view envelope,
                        std::optional<std::string_view> payload) {
  buffer_ += prefix;
  buffer_ += '{';
  bool has_rank = false;
  const auto separate = [&] {
    if (!buffer_.ends_with('{')) buffer_ += ", ";
  };
  const auto add_rank = [&] {
    if (!rank_ || std::exchange(has_rank, true)) return;
    separate();
    fmt::format_to(std::back_inserter(buffer_), "\"rank\": {}", *rank_);
  };
  // PyTorch writes the event, the rank, the compilation; the checksum is last.
  bool is_first = true;
  const std::vector<JsonField> fields = ReadJsonObject(envelope).value_or(std::vector<JsonField>{});
  for (const JsonField& field : fields) {
    const bool is_compile_key = std::ranges::find(kCompileKeys, field.key) != kCompileKeys.end();
    if (field.key == "rank" || (is_compile_key && !is_first)) add_rank();
    if (field.key == "rank" || field.key == "has_payload") continue;
    separate();
    AppendJsonString(field.key, buffer_);
    buffer_ += ": ";
    buffer_ += field.value;
    is_first = false;
  }
  add_rank();
  if (payload) {
    separate();
    fmt::format_to(std::back_inserter(buffer_), "\"has_payload\": \"{}\"", Md5Hex(*payload));
  }
  buffer_ += "}\n";
  if (payload) {
    std::string_view rest = *payload;
    while (true) {
      const size_t end = rest.find('\n');
      buffer_ += '\t';
      buffer_ += rest.substr(0, end);
      buffer_ += '\n';
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  if (buffer_.size() < kBufferBytes) return Ok();
  const Status appended = file_.Append(buffer_);
  buffer_.clear();
  return appended;
}

Status LogWriter::Commit() {
  STRATA_RETURN_IF_ERROR(file_.Append(buffer_));
  return file_.Commit();
}

}  // namespace strata
