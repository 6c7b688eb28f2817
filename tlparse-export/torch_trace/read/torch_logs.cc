#include "tlparse-export/torch_trace/read/torch_logs.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/md5.h"

namespace strata {
namespace {

constexpr std::string_view kTraced = "TRACED GRAPH";
/// In the metadata of a record.
constexpr std::string_view kTorchLogsKey = "torch_logs";

/// A line without what terminals, editors and loggers put around it.
struct LogsLine {
  std::string content;
  bool has_prefix = false;
  std::string place;  ///< the prefix up to `path:line] `
  std::string compile, tag;
  int32_t rank = -1;
};

std::string WithoutColours(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (IsDigit(line[i]) || line[i] == ';'))
        ++i;
      continue;
    }
    if (line[i] != '\r') out += line[i];
  }
  return out;
}

/// Takes `[text] ` off the front; none when there is none.
std::optional<std::string> TakeBrackets(std::string_view& rest) {
  if (!rest.starts_with('[')) return std::nullopt;
  const size_t end = rest.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  std::string inside(rest.substr(1, end - 1));
  rest.remove_prefix(end + 1);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return inside;
}

LogsLine ReadLine(std::string_view raw) {
  const std::string clean = WithoutColours(raw);
  std::string_view line = clean;
  if (line.starts_with("> ")) line.remove_prefix(2);
  LogsLine read;
  if (line.starts_with("[rank")) {
    size_t at = 5;
    int32_t rank = 0;
    for (; at < line.size() && IsDigit(line[at]) && at < 12; ++at)
      rank = rank * 10 + (line[at] - '0');
    if (line.substr(at).starts_with("]:")) {
      read.rank = rank;
      line.remove_prefix(at + 2);
      if (line.starts_with(' ')) line.remove_prefix(1);
    }
  }
  const size_t tag = line.find("] [__");
  const std::optional<LogHeader> header =
      ReadHeader(line.substr(0, std::min(line.size(), tag + 5)));
  if (tag == std::string_view::npos || !header) {
    read.content = line;
    return read;
  }
  read.has_prefix = true;
  size_t end = line.find("] ");
  while (end < tag && !IsDigit(line[end - 1]))
    end = line.find("] ", end + 1);
  read.place = line.substr(0, end + 2);
  std::string_view rest = line.substr(end + 2);
  std::optional<std::string> inside = TakeBrackets(rest);
  if (inside && !inside->starts_with("__")) {
    read.compile = *inside;
    inside = TakeBrackets(rest);
  }
  read.tag = inside.value_or("");
  read.content = rest;
  return read;
}

/// `aot_forward_graph` of `Forward graph 0`, `before_post_grad_graph` of `BEFORE POST GRAD`.
std::string RecordName(std::string_view title, std::string_view tag) {
  if (tag == "__graph_code" || title.starts_with("__compiled_fn")) return "dynamo_output_graph";
  if (title == "AFTER POST GRAD") return "inductor_post_grad_graph";
  std::string name;
  for (const char c : title)
    name += c == ' ' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view part : {"forward", "backward", "joint"}) {
    if (name.starts_with(fmt::format("{}_graph", part))) return fmt::format("aot_{}_graph", part);
  }
  return name.ends_with("_grad") ? name + "_graph" : name;
}

/// The keys of a header that say `0/1_2` or `!3/0/1`.
void WriteCompile(std::string_view compile, JsonWriter& json) {
  std::vector<int64_t> numbers = {0};
  const bool is_autograd = compile.starts_with('!');
  if (is_autograd) compile.remove_prefix(1);
  int64_t attempt = 0;
  if (const size_t under = compile.find('_'); under != std::string_view::npos) {
    for (const char c : compile.substr(under + 1))
      attempt = IsDigit(c) ? attempt * 10 + (c - '0') : attempt;
    compile = compile.substr(0, under);
  }
  for (const char c : compile) {
    if (c == '/') numbers.push_back(0);
    if (IsDigit(c)) numbers.back() = numbers.back() * 10 + (c - '0');
  }
  size_t next = 0;
  if (is_autograd) json.Field("compiled_autograd_id", numbers[next++]);
  if (next + 1 < numbers.size()) {
    json.Field("frame_id", numbers[next]).Field("frame_compile_id", numbers[next + 1]);
    json.Field("attempt", attempt);
  }
}

class Converter {
 public:
  std::string Run(std::string_view text) {
    while (!text.empty())
      Add(ReadLine(TakeLine(text)));
    Finish();
    return std::move(out_);
  }

 private:
  void Add(LogsLine line) {
    if (line.content == kTraced) {
      Finish();
      state_ = State::kTitle;
      first_ = std::move(line);
    } else if (state_ == State::kTitle) {
      ReadTitle(line.content);
    } else if (state_ == State::kGraph) {
      AddToGraph(line);
    }
  }

  /// ` ===== Forward graph 0 =====`
  void ReadTitle(std::string_view text) {
    const size_t begin = text.find("===== "), end = text.rfind(" =====");
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 6) {
      state_ = State::kNone;
      return;
    }
    name_ = RecordName(text.substr(begin + 6, end - begin - 6), first_.tag);
    state_ = State::kGraph;
  }

  void AddToGraph(const LogsLine& line) {
    const std::string_view text = line.content;
    if (graph_.empty()) {  // a path may stand before the class
      const size_t at = text.find("class ");
      if (at != std::string_view::npos) graph_ = std::string(text.substr(at)) + "\n";
      return;
    }
    const bool is_indented = text.empty() || text.starts_with(' ') || text.starts_with('\t');
    const bool goes_on = line.has_prefix == first_.has_prefix && line.tag == first_.tag &&
                         line.rank == first_.rank && (line.has_prefix || is_indented);
    if (goes_on) {
      graph_ += std::string(text) + "\n";
    } else if (!first_.has_prefix || line.has_prefix) {
      Finish();
    }
  }

  void Finish() {
    state_ = State::kNone;
    if (graph_.empty()) return;
    std::string text = std::exchange(graph_, {});
    text.erase(text.find_last_not_of(" \n") + 1);
    constexpr std::string_view kPlace = "V0101 00:00:00.000000 1 torch/logs:1] ";
    const std::string_view place = first_.place;
    out_ += place.empty() ? kPlace : place;
    JsonWriter json(out_);
    json.BeginObject().Key("artifact").BeginObject().Field("name", name_);
    json.Field("encoding", "string").Field(kTorchLogsKey, true).EndObject();
    if (first_.rank >= 0) json.Field("rank", first_.rank);
    WriteCompile(first_.compile, json);
    json.Field("has_payload", Md5Hex(text)).EndObject();
    out_ += "\n\t";
    for (const char c : text) {
      out_ += c;
      if (c == '\n') out_ += '\t';
    }
    out_ += "\n";
  }

  enum class State : uint8_t { kNone, kTitle, kGraph };
  State state_ = State::kNone;
  LogsLine first_;  // `TRACED GRAPH` of the graph
  std::string name_, graph_, out_;
};

}  // namespace

bool LooksLikeTorchLogs(std::string_view head) {
  constexpr size_t kHead = size_t{1} << 20;
  head = head.substr(0, kHead);
  if (head.find(kTraced) == std::string_view::npos) return false;
  while (!head.empty()) {
    const std::string_view raw = TakeLine(head);
    if (raw.find(kTraced) != std::string_view::npos && ReadLine(raw).content == kTraced)
      return true;
    const std::optional<LogHeader> header = ReadHeader(raw);
    if (header && header->json.starts_with('{')) return false;
  }
  return false;
}

std::optional<std::string> TraceOfTorchLogs(std::string_view text) {
  std::string log = Converter().Run(text);
  if (log.empty()) return std::nullopt;
  return log;
}

bool IsOfTorchLogs(std::string_view envelope) {
  return envelope.starts_with("{\"artifact\"") &&
         envelope.find(fmt::format("\"{}\"", kTorchLogsKey)) != std::string_view::npos;
}

std::string WithTorchLogsRead(std::string text) {
  if (!LooksLikeTorchLogs(text)) return text;
  std::optional<std::string> log = TraceOfTorchLogs(text);
  return log ? std::move(*log) : std::move(text);
}

}  // namespace strata
