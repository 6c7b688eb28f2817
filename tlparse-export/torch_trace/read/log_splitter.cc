#include "tlparse-export/torch_trace/read/log_splitter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tlparse-export/torch_trace/read/log_graphs.h"

namespace strata {
namespace {

// Crowds are stored in parts of this size; all of a log together hold at most kMaxCrowdBytes.
constexpr size_t kCrowdBytes = size_t{2} << 20, kMaxCrowdBytes = size_t{12} << 20;
constexpr int64_t kMaxWarnings = 100;

/// Kinds of which a log has thousands, each of them small.
bool ComesInCrowds(const LogRecord& record, const ReadPayload* payload) {
  return payload == nullptr || record.kind == "chromium_event";
}

/// The record as it stood in the log.
void AppendLines(const LogRecord& record, const ReadPayload* payload, std::string& out) {
  out += record.prefix;
  out += record.envelope;
  out += '\n';
  if (payload == nullptr) return;
  std::string_view text = payload->text;
  while (true) {
    const size_t end = text.find('\n');
    out += '\t';
    out += text.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Whether `text` is `line` and a line end.
bool IsLine(std::string_view text, std::string_view line) {
  return text.size() == line.size() + 1 && text.back() == '\n';
}

}  // namespace

std::shared_ptr<ParsedText> ParsedTexts::Get(const Hash128& hash, std::string_view text,
                                             const FxOptions& options) {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = slots_.Emplace(hash, nullptr);
    if (is_new) *found = std::make_shared<Slot>();
    slot = *found;
  }
  std::call_once(slot->once, [&] {
    Result<FxDocument> document = ParseFx(text, options);
    if (!document) return;
    slot->text.document = std::move(*document);
    slot->text.document.module->TakeProvenance();  // a text has none
    slot->text.is_readable = true;
    slot->text.is_canonical =
        PrintsAs(slot->text.document.graph(), WithoutGraphId(text), options.known_lines);
  });
  return {slot, &slot->text};
}

Status LogSplitter::Feed(std::string_view bytes) {
  reader_.Feed(bytes);
  return status();
}

Status LogSplitter::Finish() {
  reader_.Finish();
  FlushCrowds(0);
  return status();
}

Status LogSplitter::Pause(bool with_crowds) {
  reader_.FinishWholeRecord();
  if (with_crowds) FlushCrowds(0);
  return status();
}

Status LogSplitter::Restart() {
  reader_.Restart();
  return status();
}

Status LogSplitter::AddFxText(std::string_view text, std::string_view name) {
  LogRecord record;
  record.line = 1;
  record.kind = "fx";
  record.name = name;
  record.has_graph = true;
  const ReadPayload payload{text, HashBytes(text), true};
  OnRecord(std::move(record), std::nullopt, {}, &payload);
  return status();
}

LogBatch LogSplitter::Take() {
  batch_.runs.clear();
  for (size_t i = 0; i < runs_.size(); ++i)
    batch_.runs.push_back({runs_.rank(i), starts_[i]});
  return std::exchange(batch_, {});
}

void LogSplitter::OnRecord(LogRecord record, std::optional<int32_t> rank, std::string_view thread,
                           const ReadPayload* payload) {
  if (error_) return;
  ++batch_.num_records;
  const size_t run = runs_.RunOf(rank, thread);
  if (run == starts_.size()) {
    starts_.push_back(record.prefix);
    hints_.emplace_back();
  }
  if (record.kind == "create_symbol") hints_[run].Learn(record.compile, record.envelope);
  if (record.has_graph) {
    AddGraph(run, std::move(record), *payload);
  } else if (ComesInCrowds(record, payload)) {
    AddToCrowd(run, record, payload);
  } else {
    AddRecord(run, std::move(record), payload->text);
  }
}

void LogSplitter::OnString(int64_t id, std::string text) {
  ++batch_.num_records;
  batch_.strings[id] = std::move(text);
}

void LogSplitter::OnDiagnostic(LogDiagnostic diagnostic) {
  std::string text = fmt::format("{}:{}: {}", path_, diagnostic.line, diagnostic.what);
  if (options_.strict && !error_) error_ = Error("{}", text);
  Warn(std::move(text));
}

void LogSplitter::Warn(std::string text) {
  if (++batch_.num_warnings > kMaxWarnings) return;
  batch_.warnings.push_back(std::move(text));
}

void LogSplitter::AddGraph(size_t run, LogRecord record, const ReadPayload& payload) {
  LogItem item;
  item.kind = LogItem::Kind::kGraph;
  item.run = run;
  item.hash = payload.hash;
  const std::string_view plain = WithoutGraphId(payload.text);
  item.plain_hash = plain.size() == payload.text.size() ? payload.hash : HashBytes(plain);
  if (unreadable_.Contains(item.hash)) {
    return AddRecord(run, std::move(record), payload.text);
  }
  if (seen_texts_.Emplace(item.hash, true).second) {
    FxOptions options;
    options.file = path_;
    options.known_lines = options_.known_lines;
    if (!record.prefix.empty()) options.place = {.lines = record.line, .columns = 1};
    std::shared_ptr<ParsedText> parsed = texts_.Get(item.plain_hash, payload.text, options);
    if (!parsed->is_readable) {
      unreadable_.Emplace(item.hash, true);
      Warn(fmt::format("{}:{}: {}: it looks like a graph and is none: it is kept as it stands",
                       path_, record.line, record.name));
      return AddRecord(run, std::move(record), payload.text);
    }
    if (options_.strict && parsed->document.num_diagnostics > 0) {
      options.strict = true;
      const Result<FxDocument> strict = ParseFx(payload.text, options);
      if (!strict) error_ = strict.error();
      return;
    }
    WarnOf(record, *parsed);
    const bool is_odd = !parsed->is_canonical || !IsLine(payload.text, plain) ||
                        parsed->document.num_diagnostics > 0;
    if (is_odd) item.text = payload.text;
    if (seen_plain_.Emplace(item.plain_hash, true).second) {
      item.parsed = std::move(parsed);
      item.hints = hints_[run].Of(record.compile);
    }
  }
  item.record = std::move(record);
  batch_.items.push_back(std::move(item));
}

void LogSplitter::WarnOf(const LogRecord& record, const ParsedText& parsed) {
  const FxDocument& document = parsed.document;
  const size_t lines = record.prefix.empty() ? 0 : record.line;
  const size_t columns = record.prefix.empty() ? 0 : 1;
  for (const FxDiagnostic& diagnostic : document.diagnostics) {
    Warn(fmt::format("{}:{}:{}: {}: passed over '{}' ({})", path_, lines + diagnostic.line,
                     columns + diagnostic.column, diagnostic.what, diagnostic.skipped,
                     record.name));
  }
  if (document.num_diagnostics > document.diagnostics.size()) {
    Warn(fmt::format("{}:{}: and {} more places of {} that could not be read", path_, record.line,
                     document.num_diagnostics - document.diagnostics.size(), record.name));
  }
  for (const FxDiagnostic& finding : document.findings) {
    Warn(fmt::format("{}:{}:{}: {} ({})", path_, lines + finding.line, columns + finding.column,
                     finding.what, record.name));
  }
}

void LogSplitter::AddRecord(size_t run, LogRecord record, std::string_view text) {
  LogItem item;
  item.run = run;
  item.record = std::move(record);
  item.text = text;
  batch_.items.push_back(std::move(item));
}

void LogSplitter::AddToCrowd(size_t run, const LogRecord& record, const ReadPayload* payload) {
  Crowd& crowd = crowds_[{run, record.kind}];
  const size_t before = crowd.text.size();
  AppendLines(record, payload, crowd.text);
  crowd.lines.push_back(record.line);
  crowd_bytes_ += crowd.text.size() - before;
  if (crowd.text.size() >= kCrowdBytes) FlushCrowds(kCrowdBytes);
  if (crowd_bytes_ >= kMaxCrowdBytes) FlushCrowds(0);
}

/// Makes items of the crowds with at least `limit` bytes.
void LogSplitter::FlushCrowds(size_t limit) {
  for (auto& [key, crowd] : crowds_) {
    if (crowd.text.empty() || crowd.text.size() < limit) continue;
    crowd_bytes_ -= crowd.text.size();
    LogItem item;
    item.kind = LogItem::Kind::kCrowd;
    item.run = key.first;
    item.record.kind = key.second;
    item.text = std::exchange(crowd.text, {});
    item.lines = std::exchange(crowd.lines, {});
    batch_.items.push_back(std::move(item));
  }
}

}  // namespace strata
