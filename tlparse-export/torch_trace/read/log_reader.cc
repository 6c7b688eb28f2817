#include "tlparse-export/torch_trace/read/log_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/text.h"
#include "tlparse-export/torch_trace/read/log_graphs.h"
#include "tlparse-export/torch_trace/read/md5.h"

namespace strata {
namespace {

/// Keys of an envelope that are about the event, not the event.
bool IsContextKey(std::string_view key) {
  constexpr std::array<std::string_view, 13> kKeys = {"rank",         "compiled_autograd_id",
                                                      "frame_id",     "frame_compile_id",
                                                      "attempt",      "stack",
                                                      "has_payload",  "severity",
                                                      "timestamp",    "pathname",
                                                      "thread",       "lineno",
                                                      "subgraph_name"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

/// As PyTorch writes compile ids: `!autograd/frame/compile_attempt`, missing parts as `-`.
std::string CompileId(const std::vector<JsonField>& envelope) {
  const auto part = [&](std::string_view key) -> std::string {
    const JsonField* field = FindField(envelope, key);
    if (field == nullptr || field->value == "null") return "-";
    const std::optional<int64_t> number = ReadJsonInt(field->value);
    if (number) return std::to_string(*number);
    return ReadJsonString(field->value).value_or("?");
  };
  const std::string autograd = part("compiled_autograd_id");
  const std::string frame = part("frame_id"), compile = part("frame_compile_id");
  const std::string attempt = part("attempt");
  if (autograd == "-" && frame == "-" && compile == "-") return "";
  std::string id;
  if (autograd != "-") id += fmt::format("!{}/", autograd);
  id += fmt::format("{}/{}", frame, compile);
  if (attempt != "-" && attempt != "0") id += "_" + attempt;
  return id;
}

std::string NameOf(const JsonField& event) {
  const auto metadata = ReadJsonObject(event.value);
  const JsonField* name = metadata ? FindField(*metadata, "name") : nullptr;
  const std::optional<std::string> text = name ? ReadJsonString(name->value) : std::nullopt;
  if (!text || text->empty()) return event.key;
  // tlparse names these files so too: the name alone says little.
  return event.key == "optimize_ddp_split_child" ? event.key + "_" + *text : *text;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// Takes away the carriage return at the end of each line.
std::string WithoutReturns(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool at_end = i + 1 == text.size() || text[i + 1] == '\n';
    if (text[i] != '\r' || !at_end) out += text[i];
  }
  return out;
}

bool AllLinesEndWithReturn(std::string_view text) {
  while (!text.empty()) {
    if (!TakeLine(text).ends_with('\r')) return false;
  }
  return true;
}

}  // namespace

void LogReader::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      partial_ += bytes;
      return;
    }
    if (partial_.empty()) {
      TakeLine(bytes.substr(0, end));
    } else {
      partial_ += bytes.substr(0, end);
      TakeLine(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void LogReader::Finish() {
  if (!partial_.empty()) TakeLine(std::exchange(partial_, {}));
  FinishRecord();
  Deliver();
}

void LogReader::FinishWholeRecord() {
  const auto is_whole = [&] {
    if (!partial_.empty()) return false;
    if (!open_->has_payload || open_->is_broken) return true;
    const std::string_view text(open_->payload);
    return !text.empty() && Md5Hex(text.substr(0, text.size() - 1)) == open_->md5;
  };
  if (is_open_ && is_whole()) FinishRecord();
  Deliver();
}

void LogReader::Restart() {
  partial_.clear();
  FinishRecord();
  Deliver();
  line_ = 0;
}

void LogReader::TakeLine(std::string_view line) {
  ++line_;
  if (line.starts_with('\t')) {
    TakePayloadLine(line.substr(1));
    return;
  }
  if (line.empty() || line == "\r") {
    // Editors strip the lone tab of an empty payload line.
    if (is_open_ && open_->has_payload) open_->blanks.push_back(open_->payload.size());
    return;
  }
  const std::optional<LogHeader> header = ReadHeader(line);
  if (!header) {
    Diagnose(line_, "not a record of a trace: the line is passed over");
    return;
  }
  FinishRecord();
  OpenRecord(line, *header);
}

void LogReader::TakePayloadLine(std::string_view line) {
  if (is_open_ && open_->has_payload) {
    open_->payload.append(line).push_back('\n');
    return;
  }
  if (is_open_ && open_->is_broken) return;  // reported already
  if (stray_from_ != 0 && stray_from_ + strays_ == line_) {
    ++strays_;
    return;
  }
  stray_from_ = line_;
  strays_ = 1;
  Diagnose(line_, "payload of a record that has none: the lines are passed over");
}

void LogReader::OpenRecord(std::string_view line, const LogHeader& header) {
  is_open_ = true;
  open_->line = line_;
  open_->header = line;
  const auto moved = [&](std::string_view part) {
    return std::string_view(open_->header)
        .substr(static_cast<size_t>(part.data() - line.data()), part.size());
  };
  open_->prefix = moved(header.prefix);
  open_->thread = moved(header.thread);
  open_->json = moved(header.json);
  std::optional<std::vector<JsonField>> envelope = ReadJsonObject(open_->json);
  if (!envelope) {
    open_->is_broken = true;
    Diagnose(line_, "the JSON of this record cannot be read: the record is passed over");
    return;
  }
  open_->envelope = std::move(*envelope);
  const JsonField* md5 = FindField(open_->envelope, "has_payload");
  if (md5 != nullptr && md5->value != "null") {
    open_->has_payload = true;
    open_->md5 = Lower(ReadJsonString(md5->value).value_or(""));
  }
  if (auto wrapped = UnwrapRecord(open_->envelope)) Unwrap(*std::move(wrapped));
}

/// Continues with the record that an export put into the opened artifact.
void LogReader::Unwrap(WrappedRecord record) {
  open_->wrapped = std::move(record);
  const std::optional<LogHeader> header = ReadHeader(open_->wrapped->header);
  auto envelope = header ? ReadJsonObject(header->json) : std::nullopt;
  if (!envelope) {
    open_->wrapped.reset();
    return;
  }
  open_->prefix = header->prefix;
  open_->thread = header->thread;
  open_->json = header->json;
  open_->envelope = std::move(*envelope);
}

void LogReader::FinishRecord() {
  // Enough to fill the lanes of Md5HexOfAll; a log of small records is delivered by numbers.
  constexpr size_t kMostBytes = size_t{4} << 20, kMost = 512;
  if (!is_open_) return;
  is_open_ = false;
  if (open_->is_broken) {
    *open_ = Open{};
    return;
  }
  if (open_->has_payload && !open_->is_for_people()) FinishPayload(*open_);
  finished_bytes_ += open_->payload.size();
  finished_.push_back(std::move(open_));
  if (unused_.empty()) unused_.push_back(std::make_unique<Open>());
  open_ = std::move(unused_.back());
  unused_.pop_back();
  if (finished_bytes_ >= kMostBytes || finished_.size() >= kMost) Deliver();
}

void LogReader::FinishPayload(Open& record) {
  if (!record.payload.empty()) record.payload.pop_back();
  if (record.wrapped && record.wrapped->payload == WrappedRecord::Payload::kBase64) {
    if (auto bytes = FromBase64(record.payload)) {
      record.payload = *std::move(bytes);
      record.md5 = Md5Hex(record.payload);
    }
  }
  record.hash = HashBytes(record.payload);
}

void LogReader::Deliver() {
  // What payloads allocated is used again, up to this much.
  constexpr size_t kKeptBytes = size_t{8} << 20;
  size_t kept = 0;
  for (const std::unique_ptr<Open>& record : unused_)
    kept += record->payload.capacity();
  SumPayloads();
  for (std::unique_ptr<Open>& record : finished_) {
    DeliverRecord(*record);
    std::string payload = std::move(record->payload);
    *record = Open{};
    if (kept + payload.capacity() <= kKeptBytes) {
      kept += payload.capacity();
      payload.clear();
      record->payload = std::move(payload);
    }
    unused_.push_back(std::move(record));
  }
  finished_.clear();
  finished_bytes_ = 0;
}

bool LogReader::IsKnown(const Open& record) const {
  const Known& known = known_[record.hash.lo % kKnown];
  return known.hash == record.hash && known.md5 == record.md5;
}

/// Computes the md5 of each text among the finished payloads that is not known, once.
void LogReader::SumPayloads() {
  std::vector<Open*> summed;
  std::vector<std::string_view> texts;
  FlatMap<Hash128, bool> seen;
  for (const std::unique_ptr<Open>& record : finished_) {
    const bool is_verified = record->has_payload && !record->is_for_people();
    if (!is_verified || IsKnown(*record) || !seen.Emplace(record->hash, true).second) continue;
    summed.push_back(record.get());
    texts.push_back(record->payload);
  }
  std::vector<std::string> sums = Md5HexOfAll(texts);
  for (size_t i = 0; i < sums.size(); ++i)
    summed[i]->actual_md5 = std::move(sums[i]);
}

void LogReader::DeliverRecord(Open& open) {
  std::optional<ReadPayload> payload;
  if (open.has_payload && !open.is_for_people()) payload = Verify(open);
  const JsonField* rank_field = FindField(open.envelope, "rank");
  const std::optional<int64_t> number = rank_field ? ReadJsonInt(rank_field->value) : std::nullopt;
  std::optional<int32_t> rank;
  if (number && *number >= 0 && *number <= INT32_MAX) rank = static_cast<int32_t>(*number);
  std::string_view json = open.json;
  while (json.ends_with('\r'))
    json.remove_suffix(1);
  size_t events = 0;
  for (const JsonField& field : open.envelope) {
    if (IsContextKey(field.key)) continue;
    ++events;
    if (field.key == "str") {
      AddString(open.line, field.value);
      continue;
    }
    LogRecord record;
    record.line = open.line;
    record.kind = field.key;
    record.name = NameOf(field);
    record.compile = CompileId(open.envelope);
    record.envelope = json;
    record.prefix = open.prefix;
    record.has_graph = payload && payload->is_graph && field.key != "dump_file";
    record.takes_tangents = record.has_graph && TakesTangents(payload->text);
    sink_.OnRecord(std::move(record), rank, open.thread, payload ? &*payload : nullptr);
  }
  if (events == 0) sink_.OnDiagnostic({open.line, "a record without an event"});
}

void LogReader::AddString(size_t line, std::string_view value) {
  const auto pair = ReadJsonArray(value);
  const auto text = pair && pair->size() == 2 ? ReadJsonString((*pair)[0]) : std::nullopt;
  const auto id = text ? ReadJsonInt((*pair)[1]) : std::nullopt;
  if (!id) {
    sink_.OnDiagnostic({line, "a string record that is not [\"text\", id]"});
    return;
  }
  sink_.OnString(*id, *text);
}

/// Of a line that is read: what stands before it is delivered first.
void LogReader::Diagnose(size_t line, std::string what) {
  Deliver();
  sink_.OnDiagnostic({line, std::move(what)});
}

ReadPayload LogReader::Verify(Open& record) {
  std::string& payload = record.payload;
  if (IsKnown(record)) return {payload, record.hash, known_[record.hash.lo % kKnown].is_graph};
  std::string actual = std::move(record.actual_md5);
  if (actual.empty()) actual = Md5Hex(payload);
  if (actual != record.md5) {
    if (Repair(record.blanks, payload, record.md5)) {
      actual = record.md5;
    } else {
      sink_.OnDiagnostic(
          {record.line, "the payload is not what its md5 says: it was cut or changed"});
      if (AllLinesEndWithReturn(payload)) payload = WithoutReturns(payload);
      actual = Md5Hex(payload);
    }
    record.hash = HashBytes(payload);
  }
  Known& entry = known_[record.hash.lo % kKnown];
  entry = {std::move(actual), record.hash, LooksLikeFxGraph(payload)};
  return {payload, record.hash, entry.is_graph};
}

/// Undoes what editors and transports do to a file, where the checksum says so. `blanks`: see Open.
bool LogReader::Repair(const std::vector<size_t>& blanks, std::string& text,
                       const std::string& md5) {
  std::string with_blanks;
  size_t from = 0;
  for (const size_t blank : blanks) {
    if (blank > text.size()) break;  // behind the last line
    with_blanks.append(text, from, blank - from).push_back('\n');
    from = blank;
  }
  with_blanks.append(text, from);
  for (const std::string& repaired :
       {with_blanks, WithoutReturns(text), WithoutReturns(with_blanks)}) {
    if (Md5Hex(repaired) != md5) continue;
    text = repaired;
    return true;
  }
  return false;
}

}  // namespace strata
