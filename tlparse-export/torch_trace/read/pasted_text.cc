#include "tlparse-export/torch_trace/read/pasted_text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "ir/fx/fx.h"
#include "tlparse-export/torch_trace/read/graph_listing.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/log.h"
#include "tlparse-export/torch_trace/read/md5.h"
#include "tlparse-export/torch_trace/read/torch_logs.h"
#include "tlparse-export/torch_trace/read/unwrap.h"

namespace strata {
namespace {

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::string_view kUtf16Little = "\xff\xfe", kUtf16Big = "\xfe\xff";
constexpr std::string_view kClass = "class ", kBase = "(torch.nn.Module):";
constexpr std::string_view kMethod = "def forward(";
constexpr std::string_view kFence = "```";
constexpr size_t kHead = size_t{1} << 20;

/// Whether one of the first lines is a record of TORCH_TRACE.
bool HoldsRecords(std::string_view head) {
  for (int i = 0; i < 50 && !head.empty(); ++i) {
    const std::optional<LogHeader> header = ReadHeader(TakeLine(head));
    if (header && header->json.starts_with('{')) return true;
  }
  return false;
}

/// Pairs of surrogates are one character; a lone one becomes U+FFFD.
std::string FromUtf16(std::string_view bytes, bool is_big) {
  std::string text;
  const auto unit = [&](size_t i) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    const auto second = static_cast<unsigned char>(bytes[i + 1]);
    return static_cast<uint32_t>(is_big ? first << 8U | second : second << 8U | first);
  };
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint32_t code = unit(i);
    const bool is_first = code >= 0xd800 && code < 0xdc00 && i + 3 < bytes.size();
    const uint32_t low = is_first ? unit(i + 2) : 0;
    if (low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
      i += 2;
    } else if (code >= 0xd800 && code < 0xe000) {
      code = 0xfffd;
    }
    AppendUtf8(code, text);
  }
  return text;
}

std::string Decoded(std::string text) {
  if (text.starts_with(kUtf8Mark)) return text.substr(kUtf8Mark.size());
  if (text.starts_with(kUtf16Little) || text.starts_with(kUtf16Big))
    return FromUtf16(std::string_view(text).substr(2), text.starts_with(kUtf16Big));
  return text;
}

std::string_view Trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t'))
    line.remove_suffix(1);
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// Lines without quotes (`> `), and which of them stand between fences.
struct Lines {
  std::vector<std::string_view> all;
  std::vector<bool> is_fence;
  bool has_fences = false;

  explicit Lines(std::string_view text) {
    bool is_inside = false;
    while (!text.empty()) {
      std::string_view line = TakeLine(text);
      while (line.starts_with('>'))
        line.remove_prefix(line.starts_with("> ") ? 2 : 1);
      const bool is_mark = Trimmed(line).starts_with(kFence);
      if (is_mark) is_inside = !is_inside;
      has_fences |= is_mark;
      all.push_back(line);
      is_fence.push_back(is_mark);
    }
  }
};

/// Lines [begin, end) that are a graph.
struct Block {
  enum class Kind : uint8_t { kClass, kMethod, kGraph, kTable };
  Kind kind = Kind::kClass;
  size_t begin = 0, end = 0;
  std::string name;
};

bool IsFx(const Block& block) {
  return block.kind == Block::Kind::kClass || block.kind == Block::Kind::kMethod;
}

/// The end of what is indented deeper than the line `begin`, without empty lines behind it.
size_t EndOfIndented(const Lines& lines, size_t begin) {
  const size_t indent = IndentOf(lines.all[begin]);
  size_t end = begin + 1;
  for (size_t i = end; i < lines.all.size() && !lines.is_fence[i]; ++i) {
    if (Trimmed(lines.all[i]).empty()) continue;
    const bool closes = IndentOf(lines.all[i]) == indent && Trimmed(lines.all[i]).starts_with(')');
    if (IndentOf(lines.all[i]) <= indent && !closes) break;
    end = i + 1;
  }
  return end;
}

std::vector<Block> FindBlocks(const Lines& lines) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < lines.all.size(); ++i) {
    const std::string_view line = Trimmed(lines.all[i]);
    Block block{.kind = Block::Kind::kClass, .begin = i, .end = i, .name = {}};
    if (line.starts_with(kClass) && line.ends_with(kBase)) {
      block.name = line.substr(kClass.size(), line.size() - kClass.size() - kBase.size());
    } else if (line.starts_with(kMethod)) {
      block.kind = Block::Kind::kMethod;
      block.name = "forward";
    } else if (line == "graph():") {
      block.kind = Block::Kind::kGraph;
      block.name = "graph";
    } else if (IsTableHead(line)) {
      block.kind = Block::Kind::kTable;
      block.name = "graph";
    } else {
      continue;
    }
    if (block.kind == Block::Kind::kTable) {
      block.end = i + 1;
      while (block.end < lines.all.size() && IsTableRow(Trimmed(lines.all[block.end])))
        ++block.end;
    } else {
      block.end = EndOfIndented(lines, i);
    }
    i = block.end - 1;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// A program in Python: its classes are not graphs, and it may hold graphs in strings.
bool IsProgram(const Lines& lines) {
  return std::ranges::any_of(lines.all, [](std::string_view line) {
    return line.starts_with("import ") || line.starts_with("from ");
  });
}

std::span<const std::string_view> LinesOf(const Lines& lines, const Block& block) {
  return std::span(lines.all).subspan(block.begin, block.end - block.begin);
}

std::string TextOf(const Lines& lines, const Block& block) {
  if (block.kind == Block::Kind::kGraph) return FxOfGraphText(LinesOf(lines, block));
  if (block.kind == Block::Kind::kTable) return FxOfTable(LinesOf(lines, block));
  std::string text;
  const size_t indent = IndentOf(lines.all[block.begin]);
  for (const std::string_view line : LinesOf(lines, block)) {
    const std::string_view rest = line.substr(std::min(indent, IndentOf(line)));
    text += fmt::format("{}\n", rest.ends_with('\r') ? rest.substr(0, rest.size() - 1) : rest);
  }
  return text;
}

/// What the reader of FX text knows itself: comments, imports, an ExportedProgram around the class.
bool IsKnownAround(const Lines& lines, const Block& block) {
  for (size_t i = 0; i < block.begin; ++i) {
    const std::string_view line = Trimmed(lines.all[i]);
    const bool is_known = line.empty() || line.starts_with('#') || line.starts_with("import ") ||
                          line.starts_with("from ") || line == "ExportedProgram:";
    if (!is_known) return false;
  }
  const bool is_exported =
      block.begin > 0 &&
      std::ranges::find(lines.all, std::string_view("ExportedProgram:")) != lines.all.end();
  for (size_t i = block.end; i < lines.all.size() && !is_exported; ++i) {
    const std::string_view line = Trimmed(lines.all[i]);
    if (!line.empty() && !line.starts_with('#')) return false;
  }
  return true;
}

/// One graph, its lines where they were.
PastedText Single(const Lines& lines, const Block& block) {
  PastedText pasted;
  pasted.text = std::string(block.begin, '\n') + TextOf(lines, block);
  size_t skipped = 0;
  for (size_t i = 0; i < lines.all.size(); ++i) {
    const bool is_outside = i < block.begin || i >= block.end;
    if (is_outside && !lines.is_fence[i] && !Trimmed(lines.all[i]).empty()) ++skipped;
  }
  if (skipped > 0)
    pasted.warnings.push_back(fmt::format("{} lines around the graph are skipped", skipped));
  if (!IsFx(block)) pasted.warnings.emplace_back("the text has no types: sizes are not known");
  return pasted;
}

/// Several graphs, each a record of a log.
PastedText Several(const Lines& lines, const std::vector<Block>& blocks) {
  PastedText pasted;
  std::map<std::string, int> seen;
  for (const Block& block : blocks) {
    std::string text = TextOf(lines, block);
    text.erase(text.find_last_not_of(" \n") + 1);
    const int number = seen[block.name]++;
    const std::string name = number == 0 ? block.name : fmt::format("{}_{}", block.name, number);
    pasted.text += "V0101 00:00:00.000000 1 torch/pasted:1] ";
    JsonWriter json(pasted.text);
    json.BeginObject().Key("artifact").BeginObject().Field("name", name);
    json.Field("encoding", "string").EndObject().Field("has_payload", Md5Hex(text)).EndObject();
    pasted.text += "\n\t";
    for (const char c : text) {
      pasted.text += c;
      if (c == '\n') pasted.text += '\t';
    }
    pasted.text += '\n';
  }
  return pasted;
}

}  // namespace

PastedText ReadPasted(std::string text) {
  text = Decoded(std::move(text));
  if (!LooksPasted(text)) return {std::move(text), {}};
  text = Unwrapped(std::move(text));
  if (LooksLikeTorchLogs(text)) return {WithTorchLogsRead(std::move(text)), {}};
  if (LooksLikeLog(text)) return {std::move(text), {}};
  const Lines lines(text);
  const std::vector<Block> blocks = FindBlocks(lines);
  if (blocks.empty() || (!lines.has_fences && IsProgram(lines))) return {std::move(text), {}};
  if (blocks.size() > 1) return Several(lines, blocks);
  const bool is_plain = IsFx(blocks[0]) && !lines.has_fences && !Trimmed(text).starts_with('>');
  if (is_plain && IsKnownAround(lines, blocks[0])) return {std::move(text), {}};
  return Single(lines, blocks[0]);
}

bool LooksPasted(std::string_view head) {
  head = head.substr(0, kHead);
  for (const std::string_view mark : {kUtf8Mark, kUtf16Little, kUtf16Big}) {
    if (head.starts_with(mark)) return true;
  }
  if (head.find('\0') != std::string_view::npos || HoldsRecords(head)) return false;
  return head.find(kBase) != std::string_view::npos ||
         head.find(kMethod) != std::string_view::npos ||
         head.find("graph():") != std::string_view::npos ||
         head.find("] [__") != std::string_view::npos || HasTableHead(head);
}

}  // namespace strata
