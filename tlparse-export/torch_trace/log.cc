#include "tlparse-export/torch_trace/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/base64.h"
#include "tlparse-export/torch_trace/header.h"
#include "tlparse-export/torch_trace/log_graphs.h"
#include "tlparse-export/torch_trace/md5.h"
#include "tlparse-export/torch_trace/python_json.h"
#include "tlparse-export/torch_trace/wrapped_record.h"

namespace strata {
namespace {

constexpr size_t kMaxDiagnostics = 100;

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

const JsonField* Find(const std::vector<JsonField>& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &JsonField::key);
  return found == fields.end() ? nullptr : &*found;
}

/// As PyTorch writes compile ids: `!autograd/frame/compile_attempt`, missing parts as `-`.
std::string CompileId(const std::vector<JsonField>& envelope) {
  const auto part = [&](std::string_view key) -> std::string {
    const JsonField* field = Find(envelope, key);
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

std::optional<int32_t> RankOfPath(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view kRank = "rank_";
  const size_t at = file.find(kRank);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = file.substr(at + kRank.size());
  int32_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc() || rank < 0) return std::nullopt;
  return rank;
}

/// A record whose payload is being read.
struct PendingRecord {
  size_t line = 0;
  std::string_view prefix, thread, json;
  std::vector<JsonField> envelope;
  std::shared_ptr<const WrappedRecord> wrapped;  // what the views above are of, if there is one
  bool is_broken = false;  // its JSON cannot be read; its payload is passed over
  bool has_payload = false;
  std::string md5;
  std::vector<std::string_view> lines;
  std::vector<size_t> blanks;  // positions in `lines` where an empty line of the file stood
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view path, const LogOptions& options)
      : text_(text), options_(options) {
    content_.path = path;
  }

  Result<LogContent> Run() {
    size_t line_number = 0;
    for (std::string_view rest = text_; !rest.empty() && !error_;) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      TakeLine(++line_number, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    FinishRecord();
    if (error_) return *std::move(error_);
    SplitByRank();
    for (LogRun& run : content_.runs)
      FindGraphs(content_.payloads, run);
    return std::move(content_);
  }

 private:
  struct Ranked {
    LogRecord record;
    std::optional<int32_t> rank;
    std::string_view thread;
  };

  void Diagnose(size_t line, std::string what) {
    if (options_.strict && !error_) error_ = Error("{}:{}: {}", content_.path, line, what);
    if (++content_.num_diagnostics > kMaxDiagnostics) return;
    content_.diagnostics.push_back({line, std::move(what)});
  }

  void TakeLine(size_t number, std::string_view line) {
    if (line.starts_with('\t')) {
      TakePayloadLine(number, line.substr(1));
      return;
    }
    if (line.empty() || line == "\r") {
      // Editors strip the lone tab of an empty payload line.
      if (open_ && open_->has_payload) open_->blanks.push_back(open_->lines.size());
      return;
    }
    const std::optional<LogHeader> header = ReadHeader(line);
    if (!header) {
      Diagnose(number, "not a record of a trace: the line is passed over");
      return;
    }
    FinishRecord();
    OpenRecord(number, *header);
  }

  void TakePayloadLine(size_t number, std::string_view line) {
    if (open_ && open_->has_payload) {
      open_->lines.push_back(line);
      return;
    }
    if (open_ && open_->is_broken) return;  // told already
    if (stray_from_ != 0 && stray_from_ + strays_ == number) {
      ++strays_;
      return;
    }
    stray_from_ = number;
    strays_ = 1;
    Diagnose(number, "payload of a record that has none: the lines are passed over");
  }

  void OpenRecord(size_t number, const LogHeader& header) {
    open_.emplace();
    open_->line = number;
    open_->prefix = header.prefix;
    open_->thread = header.thread;
    open_->json = header.json;
    std::optional<std::vector<JsonField>> envelope = ReadJsonObject(header.json);
    if (!envelope) {
      open_->is_broken = true;
      Diagnose(number, "the JSON of this record cannot be read: the record is passed over");
      return;
    }
    open_->envelope = std::move(*envelope);
    const JsonField* md5 = Find(open_->envelope, "has_payload");
    if (md5 != nullptr && md5->value != "null") {
      open_->has_payload = true;
      open_->md5 = ReadJsonString(md5->value).value_or("");
    }
    if (auto wrapped = UnwrapRecord(open_->envelope)) Unwrap(*std::move(wrapped));
  }

  /// Goes on with the record that an export put into the artifact that was opened.
  void Unwrap(WrappedRecord record) {
    auto wrapped = std::make_shared<const WrappedRecord>(std::move(record));
    const std::optional<LogHeader> header = ReadHeader(wrapped->header);
    auto envelope = header ? ReadJsonObject(header->json) : std::nullopt;
    if (!envelope) return;
    open_->prefix = header->prefix;
    open_->thread = header->thread;
    open_->json = header->json;
    open_->envelope = std::move(*envelope);
    open_->wrapped = std::move(wrapped);
  }

  void FinishRecord() {
    if (!open_) return;
    PendingRecord open = std::move(*open_);
    open_.reset();
    if (open.is_broken) return;
    const bool is_for_people =
        open.wrapped != nullptr && open.wrapped->payload == WrappedRecord::Payload::kNone;
    const int32_t payload = open.has_payload && !is_for_people ? AddPayload(open) : -1;
    const JsonField* rank = Find(open.envelope, "rank");
    const std::optional<int64_t> rank_number = rank ? ReadJsonInt(rank->value) : std::nullopt;
    size_t events = 0;
    for (const JsonField& field : open.envelope) {
      if (IsContextKey(field.key)) continue;
      ++events;
      if (field.key == "str") {
        AddString(open.line, field.value);
        continue;
      }
      Ranked ranked;
      ranked.thread = open.thread;
      if (rank_number && *rank_number >= 0 && *rank_number <= INT32_MAX) {
        ranked.rank = static_cast<int32_t>(*rank_number);
      }
      ranked.record.line = open.line;
      ranked.record.kind = field.key;
      ranked.record.name = NameOf(field);
      ranked.record.compile = CompileId(open.envelope);
      ranked.record.envelope = open.json;
      ranked.record.prefix = open.prefix;
      ranked.record.payload = payload;
      ranked.record.has_graph =
          payload >= 0 && Payload(payload).is_graph && field.key != "dump_file";
      while (ranked.record.envelope.ends_with('\r'))
        ranked.record.envelope.pop_back();
      records_.push_back(std::move(ranked));
    }
    if (events == 0) Diagnose(open.line, "a record without an event");
    content_.num_records += events;
  }

  static std::string NameOf(const JsonField& event) {
    const auto metadata = ReadJsonObject(event.value);
    const JsonField* name = metadata ? Find(*metadata, "name") : nullptr;
    const std::optional<std::string> text = name ? ReadJsonString(name->value) : std::nullopt;
    if (!text || text->empty()) return event.key;
    // tlparse names these files so too: the name alone says little.
    return event.key == "optimize_ddp_split_child" ? event.key + "_" + *text : *text;
  }

  void AddString(size_t line, std::string_view value) {
    const auto pair = ReadJsonArray(value);
    const auto text = pair && pair->size() == 2 ? ReadJsonString((*pair)[0]) : std::nullopt;
    const auto id = text ? ReadJsonInt((*pair)[1]) : std::nullopt;
    if (!id) {
      Diagnose(line, "a string record that is not [\"text\", id]");
      return;
    }
    content_.strings[*id] = *text;
  }

  /// The lines of a payload, each as `transform` wants it, joined. Blank lines of the file count as
  /// lines when `with_blanks`.
  static std::string Join(const PendingRecord& open, bool with_blanks, bool strip_returns) {
    std::string text;
    size_t blank = 0;
    bool first = true;
    const auto add = [&](std::string_view line) {
      if (!first) text += '\n';
      first = false;
      if (strip_returns && line.ends_with('\r')) line.remove_suffix(1);
      text += line;
    };
    for (size_t i = 0; i < open.lines.size(); ++i) {
      for (; blank < open.blanks.size() && open.blanks[blank] <= i; ++blank) {
        if (with_blanks) add("");
      }
      add(open.lines[i]);
    }
    return text;
  }

  int32_t AddPayload(const PendingRecord& open) {
    const bool has_blanks = !open.blanks.empty();
    const bool has_returns =
        std::ranges::any_of(open.lines, [](std::string_view line) { return line.ends_with('\r'); });
    std::string md5 = open.md5;
    std::ranges::transform(md5, md5.begin(), [](char c) {
      return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    std::string text = Join(open, false, false);
    if (open.wrapped != nullptr && open.wrapped->payload == WrappedRecord::Payload::kBase64) {
      if (auto bytes = FromBase64(text)) {
        text = *std::move(bytes);
        md5 = Md5Hex(text);
      }
    }
    if (const auto known = payload_index_.find(md5);
        known != payload_index_.end() && Payload(known->second).text == text) {
      return known->second;
    }
    std::string actual = Md5Hex(text);
    // What editors and transports do to a file, undone where the checksum says so.
    for (const auto& [blanks, returns] : {std::pair(true, false), {false, true}, {true, true}}) {
      if (actual == md5) break;
      if ((blanks && !has_blanks) || (returns && !has_returns)) continue;
      std::string repaired = Join(open, blanks, returns);
      std::string repaired_md5 = Md5Hex(repaired);
      if (repaired_md5 != md5) continue;
      text = std::move(repaired);
      actual = std::move(repaired_md5);
    }
    if (actual != md5) {
      Diagnose(open.line, "the payload is not what its md5 says: it was cut or changed");
      if (has_returns && std::ranges::all_of(open.lines, [](std::string_view line) {
            return line.ends_with('\r');
          })) {
        text = Join(open, false, true);
        actual = Md5Hex(text);
      }
    }
    const auto [entry, inserted] =
        payload_index_.try_emplace(actual, static_cast<int32_t>(content_.payloads.size()));
    if (!inserted && Payload(entry->second).text == text) return entry->second;

    LogPayload payload;
    payload.is_graph = LooksLikeFxGraph(text);
    payload.text = std::move(text);
    const auto index = static_cast<int32_t>(content_.payloads.size());
    content_.payloads.push_back(std::move(payload));
    return index;
  }
  const LogPayload& Payload(int32_t index) const {
    return content_.payloads[static_cast<size_t>(index)];
  }

  /// A process learns its rank late: its records before that are the rank's too.
  void SplitByRank() {
    std::unordered_map<std::string_view, int32_t> rank_of_thread;
    std::optional<int32_t> first;
    for (const Ranked& ranked : records_) {
      if (!ranked.rank) continue;
      rank_of_thread.try_emplace(ranked.thread, *ranked.rank);
      if (!first) first = ranked.rank;
    }
    const int32_t fallback = RankOfPath(content_.path).value_or(first.value_or(0));
    std::map<int32_t, LogRun> runs;
    for (Ranked& ranked : records_) {
      const auto known = rank_of_thread.find(ranked.thread);
      const int32_t rank =
          ranked.rank.value_or(known == rank_of_thread.end() ? fallback : known->second);
      LogRun& run = runs[rank];
      run.rank = rank;
      run.records.push_back(std::move(ranked.record));
    }
    for (auto& [rank, run] : runs)
      content_.runs.push_back(std::move(run));
  }

  std::string_view text_;
  const LogOptions& options_;
  LogContent content_;
  std::optional<Error> error_;
  std::optional<PendingRecord> open_;
  size_t stray_from_ = 0, strays_ = 0;  // payload lines without a record, told once
  std::vector<Ranked> records_;
  std::unordered_map<std::string, int32_t> payload_index_;  // by md5
};

}  // namespace

Result<LogContent> ReadLog(std::string_view text, std::string_view path,
                           const LogOptions& options) {
  return Reader(text, path, options).Run();
}

LogContent LogOfFxText(std::string_view text, std::string_view path, std::string_view name) {
  LogContent log;
  log.path = path;
  log.num_records = 1;
  log.payloads.push_back({.text = std::string(text), .is_graph = true});
  LogRecord record;
  record.line = 1;
  record.kind = "fx";
  record.name = name;
  record.payload = 0;
  record.has_graph = true;
  LogRun run;
  run.rank = RankOfPath(path).value_or(0);
  run.records.push_back(std::move(record));
  FindGraphs(log.payloads, run);
  log.runs.push_back(std::move(run));
  return log;
}

bool LooksLikeLog(std::string_view text) {
  constexpr int kLines = 50;
  for (int i = 0; i < kLines && !text.empty(); ++i) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (ReadHeader(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::string LogContent::Place(const LogRun& run, const LogMoment& moment) const {
  const LogRecord& record = run.records[moment.record];
  return fmt::format("{}:{} ({})", path, record.line, record.name);
}

Result<FxDocument> LogContent::Parse(const LogRun& run, const LogGraph& graph,
                                     const LogMoment& moment, FxOptions options) const {
  const std::string place = Place(run, moment);
  options.file = place;
  options.graph_name = graph.name;
  return ParseFx(payloads[static_cast<size_t>(moment.payload)].text, options);
}

}  // namespace strata
