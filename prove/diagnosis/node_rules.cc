#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/diagnosis/rules.h"

namespace strata::prove {
namespace {

double NumberOf(const Arg& arg) {
  if (arg.kind() == ArgKind::kInt) return static_cast<double>(arg.as_int());
  if (arg.kind() == ArgKind::kBool) return arg.as_bool() ? 1 : 0;
  return arg.as_float();
}

/// Operators whose integers are dimensions or places, not sizes.
bool IsPlace(std::string_view op) {
  constexpr std::array<std::string_view, 18> kBases = {
      "select", "axis_shard", "transpose", "unsqueeze",    "cat",         "stack",
      "slice",  "gather",     "sort",      "topk",         "permute",     "cumsum",
      "amax",   "softmax",    "_softmax",  "_log_softmax", "log_softmax", "index_select"};
  return std::ranges::find(kBases, BaseName(op)) != kBases.end();
}

bool IsLowering(const Difference& d) {
  return d.mesh.num_ranks() > 1;
}

std::optional<Diagnosis> OwnKeywords(const Difference& d) {
  const size_t count =
      std::min<size_t>(d.before.node(d.expected).num_kwargs, d.after.node(d.node).num_kwargs);
  for (size_t i = 0; i < count; ++i) {
    const NamedArg a = d.before.kwarg(d.expected, i), b = d.after.kwarg(d.node, i);
    if (a.value.kind() != ArgKind::kFloat || b.value.kind() != ArgKind::kFloat) continue;
    if (a.value.as_float() == b.value.as_float()) continue;
    return Diagnosis{BugKind::kLiteral, fmt::format("{} instead of {} in {}", b.value.as_float(),
                                                    a.value.as_float(), d.after.name(d.node))};
  }
  return std::nullopt;
}

/// Lists of dimensions, which are the same on every rank.
std::optional<Diagnosis> OwnDimensions(const Difference& d) {
  constexpr std::array<std::string_view, 10> kBases = {
      "sum",     "mean", "amax", "amin",    "linalg_vector_norm",
      "permute", "flip", "roll", "squeeze", "var"};
  if (std::ranges::find(kBases, BaseName(d.after.op(d.node))) == kBases.end()) return std::nullopt;
  const auto numbers = [](const Graph& graph, const Arg& list) {
    std::vector<int64_t> result;
    for (const Arg& element : graph.elements(list))
      if (element.kind() == ArgKind::kInt) result.push_back(element.as_int());
    return result;
  };
  const auto a = d.before.args(d.expected), b = d.after.args(d.node);
  for (size_t i = 1; i < std::min(a.size(), b.size()); ++i) {
    if (!a[i].is_span() || !b[i].is_span()) continue;
    const std::vector<int64_t> was = numbers(d.before, a[i]), is = numbers(d.after, b[i]);
    if (was == is || was.size() != is.size()) continue;
    return Diagnosis{BugKind::kWrongDim,
                     fmt::format("dimensions {} instead of {} in {}", fmt::join(is, ", "),
                                 fmt::join(was, ", "), d.after.name(d.node))};
  }
  return std::nullopt;
}

std::optional<Diagnosis> SwappedOperands(const Difference& d) {
  const auto a = d.before.operands(d.expected), b = d.after.operands(d.node);
  if (a.size() != b.size()) return std::nullopt;
  std::vector<std::vector<StableId>> was, is;
  for (size_t i = 0; i < a.size(); ++i) {
    was.push_back(RootsOfOperand(d, d.before, a[i], d.after_ids));
    is.push_back(RootsOfOperand(d, d.after, b[i], d.before_ids));
  }
  if (was == is) return std::nullopt;
  auto sorted_was = was, sorted_is = is;
  std::ranges::sort(sorted_was);
  std::ranges::sort(sorted_is);
  if (sorted_was != sorted_is) return std::nullopt;
  return Diagnosis{BugKind::kExchanged,
                   fmt::format("operands of {} are exchanged", d.after.name(d.node))};
}

/// The axis by which a rank takes its part, or its place.
std::optional<Diagnosis> OtherAxis(const Difference& d) {
  const auto axis_of = [](const Graph& graph, NodeId node) -> std::string_view {
    for (const Arg& arg : graph.args(node))
      if (arg.kind() == ArgKind::kString) return graph.module().str(arg.str());
    return "";
  };
  const std::string_view was = axis_of(d.before, d.expected), is = axis_of(d.after, d.node);
  if (was == is) return std::nullopt;
  return Diagnosis{BugKind::kWrongGroup,
                   fmt::format("{} instead of {} in {}", is, was, d.after.name(d.node))};
}

}  // namespace

bool IsNumber(const Arg& arg) {
  return arg.kind() == ArgKind::kInt || arg.kind() == ArgKind::kFloat ||
         arg.kind() == ArgKind::kBool;
}

/// A collective, or a part of a rank, that both graphs have.
std::optional<Diagnosis> OwnCollective(const Difference& d) {
  if (!d.is_same) return std::nullopt;
  const std::string_view was = d.before.op(d.expected), is = d.after.op(d.node);
  const std::string text = fmt::format("{} instead of {}", is, was);
  if (was == "strata.axis_shard.default" && is != was) {
    return Diagnosis{
        CollectiveOf(d.after, d.node) ? BugKind::kExtraCollective : BugKind::kWrongPart, text};
  }
  const bool is_place = was == "strata.axis_shard.default" || was == "strata.axis_index.default";
  if (is == was && is_place) return OtherAxis(d);
  if (!CollectiveOf(d.before, d.expected)) return std::nullopt;
  if (is != was) return Diagnosis{BugKind::kMissingCollective, text};
  const auto changed = [&](BugKind kind, std::string_view a, std::string_view b) {
    return Diagnosis{kind, fmt::format("{} instead of {} in {}", b, a, d.after.name(d.node))};
  };
  const std::string_view a = ReduceOpOf(d.before, d.expected), b = ReduceOpOf(d.after, d.node);
  if (a != b) return changed(BugKind::kWrongReduction, a, b);
  const std::string_view from = GroupOf(d.before, d.expected), to = GroupOf(d.after, d.node);
  if (WithoutNumber(from) != WithoutNumber(to)) return changed(BugKind::kWrongGroup, from, to);
  return std::nullopt;
}

std::optional<Diagnosis> OwnArguments(const Difference& d) {
  if (!d.is_same || d.after.node(d.node).kind != NodeKind::kCall) return std::nullopt;
  const std::string_view was = d.before.op(d.expected), is = d.after.op(d.node);
  if (was != is)
    return Diagnosis{BugKind::kWrongOperation, fmt::format("{} instead of {}", is, was)};
  const auto a = d.before.args(d.expected), b = d.after.args(d.node);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!IsNumber(a[i]) || !IsNumber(b[i]) || NumberOf(a[i]) == NumberOf(b[i])) continue;
    const std::string what =
        fmt::format("{} instead of {} in {}", NumberOf(b[i]), NumberOf(a[i]), d.after.name(d.node));
    if (i == 1 && IsPlace(is)) return Diagnosis{BugKind::kWrongDim, "dimension " + what};
    const bool is_begin = BaseName(is) == "slice" || BaseName(is) == "select";
    if (i == 2 && is_begin) return Diagnosis{BugKind::kWrongPart, "begin " + what};
    // Sizes are those of a rank, and attention by position has a mask, one more operand, instead of
    // a flag.
    const bool has_mask = d.before.operands(d.expected).size() != d.after.operands(d.node).size();
    const bool may_be_local = a[i].kind() == ArgKind::kBool
                                  ? has_mask
                                  : a[i].kind() == ArgKind::kInt && i >= 2 && IsLowering(d);
    if (!may_be_local) return Diagnosis{BugKind::kLiteral, what};
  }
  if (std::optional<Diagnosis> found = OwnKeywords(d)) return found;
  if (std::optional<Diagnosis> found = OwnDimensions(d)) return found;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].is_value() && b[i].kind() == ArgKind::kNone)
      return Diagnosis{BugKind::kMissingOperation,
                       fmt::format("argument {} of {} is left out", i, d.after.name(d.node))};
  }
  return SwappedOperands(d);
}

}  // namespace strata::prove
