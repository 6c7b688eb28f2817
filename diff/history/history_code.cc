#include "diff/history/history_code.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

using Key = std::pair<std::string, std::string>;  // compilation, name

/// Code of a debug folder, which names no compilations, has the key of the `other` run's code with
/// its id.
Key KeyOf(const GeneratedCode& code, const History& other) {
  if (code.compilation.empty() && !code.aot_id.empty()) {
    const auto found = std::ranges::find(other.code, code.aot_id, &GeneratedCode::aot_id);
    if (found != other.code.end()) return {found->compilation, found->name};
  }
  return {code.compilation, code.name};
}

std::map<Key, std::vector<int32_t>> ByKey(const History& history, const History& other) {
  std::map<Key, std::vector<int32_t>> by_key;
  for (size_t i = 0; i < history.code.size(); ++i)
    by_key[KeyOf(history.code[i], other)].push_back(static_cast<int32_t>(i));
  return by_key;
}

const GeneratedCode& CodeOf(const History& history, int32_t index) {
  return history.code[static_cast<size_t>(index)];
}

bool IsCached(const History& history, const std::string& compilation) {
  return !compilation.empty() && history.cached.contains(compilation);
}

/// Records of a compilation that one run alone has, `lone` in `history`.
Status AddLone(const History& history, int32_t lone, const History& other, bool is_before,
               std::vector<CodeDifference>& differences) {
  const GeneratedCode& code = CodeOf(history, lone);
  if (other.is_excerpt) return Ok();
  if (IsCached(other, code.compilation) != IsCached(history, code.compilation)) return Ok();
  CodeDifference difference;
  (is_before ? difference.a : difference.b) = lone;
  differences.push_back(std::move(difference));
  return Ok();
}

}  // namespace

Result<std::vector<CodeDifference>> DiffGeneratedCode(const History& a, const History& b) {
  std::vector<CodeDifference> differences;
  auto in_a = ByKey(a, b), in_b = ByKey(b, a);
  for (auto& [key, list] : in_b)
    in_a.try_emplace(key);
  for (const auto& [key, list_a] : in_a) {
    const std::vector<int32_t>& list_b = in_b[key];
    const size_t begin = differences.size();
    for (size_t i = 0; i < std::max(list_a.size(), list_b.size()); ++i) {
      if (i >= list_b.size()) {
        STRATA_RETURN_IF_ERROR(AddLone(a, list_a[i], b, /*is_before=*/true, differences));
        continue;
      }
      if (i >= list_a.size()) {
        STRATA_RETURN_IF_ERROR(AddLone(b, list_b[i], a, /*is_before=*/false, differences));
        continue;
      }
      if (CodeOf(a, list_a[i]).content == CodeOf(b, list_b[i]).content) continue;
      STRATA_TRY(const CodeText before, a.load_code(list_a[i]));
      STRATA_TRY(const CodeText after, b.load_code(list_b[i]));
      CodeDifference difference{
          .label = {}, .a = list_a[i], .b = list_b[i], .kernels = DiffCode(before, after)};
      if (!difference.kernels.empty()) differences.push_back(std::move(difference));
    }
    for (size_t i = begin; i < differences.size(); ++i) {
      differences[i].label =
          key.first.empty() ? key.second : fmt::format("{} [{}]", key.second, key.first);
    }
  }
  return differences;
}

std::string DescribeCode(const CodeDifference& difference, const History& a, const History& b) {
  if (difference.b < 0) return fmt::format("only in {}", a.ref);
  if (difference.a < 0) return fmt::format("only in {}", b.ref);
  const auto kernels = std::ranges::count_if(
      difference.kernels, [](const KernelDiff& kernel) { return !kernel.name.empty(); });
  if (kernels == 0) return "the code around the kernels differs";
  return fmt::format("{} kernel{}", kernels, kernels == 1 ? " differs" : "s differ");
}

}  // namespace strata
