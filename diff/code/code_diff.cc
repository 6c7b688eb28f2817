#include "diff/code/code_diff.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "diff/graph/hash.h"
#include "diff/graph/sequence.h"

namespace strata {
namespace {

struct Kernel {
  std::string name;  // "": what is around kernels
  std::vector<std::string> nodes, lines;
};

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view FirstWord(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && IsWord(text[end]))
    ++end;
  return text.substr(0, end);
}

/// Without the folders of a compiler's cache, which differ from user to user and run to run.
std::string WithoutCacheFolder(std::string_view line) {
  constexpr std::string_view kFolder = "/torchinductor_";
  std::string out;
  for (size_t at = line.find(kFolder); at != std::string_view::npos; at = line.find(kFolder)) {
    size_t begin = at;
    while (begin > 0 && line[begin - 1] != '"' && line[begin - 1] != '\'' && line[begin - 1] != ' ')
      --begin;
    const size_t end = line.find('/', at + kFolder.size());
    if (end == std::string_view::npos) break;
    out += line.substr(0, begin);
    line.remove_prefix(end + 1);
  }
  return out + std::string(line);
}

std::vector<std::string> LinesOf(std::string_view text) {
  constexpr std::string_view kPath = "# kernel path:";  // a hash of the text that follows
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (!line.starts_with(kPath)) lines.push_back(WithoutCacheFolder(line));
  }
  return lines;
}

/// The kernel whose text begins here: `name = async_compile.triton(…` in Python, `void name(` of
/// C++, whose code would be inside a Python string otherwise.
std::optional<std::string> KernelOf(std::string_view line) {
  const std::string_view word = FirstWord(line);
  if (!word.empty() && line.substr(word.size()).starts_with(" = async_compile.")) {
    const std::string_view call = line.substr(word.size() + 17);
    const bool is_kernel = call.starts_with("triton(") || call.starts_with("cpp") ||
                           call.starts_with("cuda(") || call.starts_with("halide(");
    return is_kernel ? std::optional(std::string(word)) : std::nullopt;
  }
  for (const std::string_view prefix : {"extern \"C\"  void ", "extern \"C\" void ", "void "}) {
    if (!line.starts_with(prefix)) continue;
    const std::string_view name = FirstWord(line.substr(prefix.size()));
    const bool is_definition =
        !line.ends_with(';') && line.substr(prefix.size() + name.size()).starts_with('(');
    if (is_definition && name.find("fused") != std::string_view::npos) return std::string(name);
  }
  return std::nullopt;
}

bool EndsKernel(std::string_view line, bool is_python) {
  return is_python ? line.starts_with("''')") || line.starts_with("''', ") : line == "}";
}

/// Nodes of the comment above a kernel: `#   %add : [num_users=1] = call_function[…`.
void AddNodesOf(std::string_view line, std::vector<std::string>& nodes) {
  constexpr std::string_view kNode = "#   %";
  if (!line.starts_with(kNode)) return;
  const std::string_view name = FirstWord(line.substr(kNode.size()));
  const bool is_call = line.find(" = call_function[") != std::string_view::npos;
  if (is_call && std::ranges::find(nodes, name) == nodes.end()) nodes.emplace_back(name);
}

/// The nodes of all calls of each kernel.
NodesOfKernels NodesOfCalls(const CodeText& code) {
  NodesOfKernels kernels;
  for (const KernelCall& call : code.calls) {
    std::vector<std::string>& nodes = kernels[call.name];
    for (const std::string& node : call.nodes)
      if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
  return kernels;
}

/// Splits a text into its kernels and, at the end, what is around them.
std::vector<Kernel> KernelsOf(const CodeText& code) {
  const NodesOfKernels nodes_of_calls = NodesOfCalls(code);
  std::vector<Kernel> kernels;
  Kernel around;
  std::vector<std::string> comment;  // that may belong to the next kernel
  const auto give_comment = [&](std::vector<std::string>& lines) {
    lines.insert(lines.end(), comment.begin(), comment.end());
    comment.clear();
  };
  bool is_inside = false, is_python = false;
  for (std::string& line : LinesOf(code.text)) {
    if (is_inside) {
      is_inside = !EndsKernel(line, is_python);
      kernels.back().lines.push_back(std::move(line));
    } else if (const auto name = KernelOf(line)) {
      Kernel& kernel = kernels.emplace_back();
      kernel.name = *name;
      for (const std::string& above : comment)
        AddNodesOf(above, kernel.nodes);
      give_comment(kernel.lines);
      if (const auto known = nodes_of_calls.find(*name); known != nodes_of_calls.end())
        kernel.nodes = known->second;
      is_python = line.find("async_compile") != std::string::npos;
      is_inside = !line.ends_with("})");
      kernel.lines.push_back(std::move(line));
    } else if (line.starts_with('#')) {
      comment.push_back(std::move(line));
    } else {
      give_comment(around.lines);
      if (!line.empty()) around.lines.push_back(std::move(line));
    }
  }
  give_comment(around.lines);
  kernels.push_back(std::move(around));
  return kernels;
}

std::vector<uint64_t> HashesOf(std::span<const std::string> lines) {
  std::vector<uint64_t> hashes;
  for (const std::string& line : lines)
    hashes.push_back(HashText(line));
  return hashes;
}

/// Fills lines and counts.
class LineDiff {
 public:
  LineDiff(std::span<const std::string> before, std::span<const std::string> after,
           KernelDiff& diff)
      : before_(before), after_(after), diff_(diff) {}

  void Run() {
    size_t i = 0, j = 0;
    const auto take_until = [&](size_t end_i, size_t end_j) {
      for (; i < end_i; ++i)
        Add('-', before_[i]);
      for (; j < end_j; ++j)
        Add('+', after_[j]);
    };
    for (const auto& [x, y] : CommonSubsequence(HashesOf(before_), HashesOf(after_))) {
      take_until(static_cast<size_t>(x), static_cast<size_t>(y));
      Add(' ', after_[j]);
      ++i;
      ++j;
    }
    take_until(before_.size(), after_.size());
    KeepNearChanges();
  }

 private:
  void Add(char mark, const std::string& line) {
    all_.push_back(fmt::format("{}{}", mark, line));
    diff_.deleted += mark == '-' ? 1 : 0;
    diff_.inserted += mark == '+' ? 1 : 0;
  }

  void KeepNearChanges() {
    constexpr size_t kAround = 2;
    std::vector<bool> kept(all_.size(), false);
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i][0] == ' ') continue;
      const size_t end = std::min(i + kAround + 1, all_.size());
      for (size_t k = i - std::min(i, kAround); k < end; ++k)
        kept[k] = true;
    }
    for (size_t i = 0; i < all_.size(); ++i) {
      if (kept[i]) diff_.lines.push_back(std::move(all_[i]));
      if (!kept[i] && !diff_.lines.empty() && diff_.lines.back() != "…")
        diff_.lines.emplace_back("…");
    }
    if (!diff_.lines.empty() && diff_.lines.back() == "…") diff_.lines.pop_back();
  }

  std::span<const std::string> before_, after_;
  KernelDiff& diff_;
  std::vector<std::string> all_;
};

void Compare(const Kernel* before, const Kernel* after, std::vector<KernelDiff>& diffs) {
  static const std::vector<std::string> kNothing;
  if (before != nullptr && after != nullptr && before->lines == after->lines) return;
  KernelDiff& diff = diffs.emplace_back();
  diff.kind = after == nullptr    ? KernelDiff::Kind::kOnlyBefore
              : before == nullptr ? KernelDiff::Kind::kOnlyAfter
                                  : KernelDiff::Kind::kChanged;
  const Kernel& shown = after == nullptr ? *before : *after;
  diff.name = shown.name;
  diff.nodes = shown.nodes;
  LineDiff(before == nullptr ? kNothing : before->lines, after == nullptr ? kNothing : after->lines,
           diff)
      .Run();
}

}  // namespace

NodesOfKernels FindKernels(const CodeText& code) {
  NodesOfKernels found = NodesOfCalls(code);
  for (const Kernel& kernel : KernelsOf(code)) {
    if (!kernel.name.empty()) found.try_emplace(kernel.name, kernel.nodes);
  }
  return found;
}

std::vector<KernelDiff> DiffCode(const CodeText& before, const CodeText& after) {
  std::vector<KernelDiff> diffs;
  if (before.text == after.text) return diffs;
  const std::vector<Kernel> a = KernelsOf(before), b = KernelsOf(after);
  const auto of = [](const std::vector<Kernel>& kernels, const std::string& name) -> const Kernel* {
    const auto found = std::ranges::find(kernels, name, &Kernel::name);
    return found == kernels.end() ? nullptr : &*found;
  };
  for (const Kernel& kernel : std::span(a).first(a.size() - 1))
    Compare(&kernel, of(b, kernel.name), diffs);
  for (const Kernel& kernel : std::span(b).first(b.size() - 1)) {
    if (of(a, kernel.name) == nullptr) Compare(nullptr, &kernel, diffs);
  }
  Compare(&a.back(), &b.back(), diffs);
  return diffs;
}

std::string DescribeKernel(const KernelDiff& diff) {
  constexpr size_t kShown = 4;
  std::string text =
      diff.name.empty() ? "the code around the kernels" : fmt::format("kernel {}", diff.name);
  const auto shown = std::span(diff.nodes).first(std::min(diff.nodes.size(), kShown));
  const size_t more = diff.nodes.size() - shown.size();
  if (!shown.empty()) {
    text += fmt::format(" ({}{})", fmt::join(shown, ", "),
                        more == 0 ? "" : fmt::format(" and {} more", more));
  }
  switch (diff.kind) {
    case KernelDiff::Kind::kOnlyBefore:
      return text + fmt::format(": only before, {} lines", diff.deleted);
    case KernelDiff::Kind::kOnlyAfter:
      return text + fmt::format(": only after, {} lines", diff.inserted);
    case KernelDiff::Kind::kChanged:
      break;
  }
  return text + fmt::format(": +{} −{} lines", diff.inserted, diff.deleted);
}

}  // namespace strata
