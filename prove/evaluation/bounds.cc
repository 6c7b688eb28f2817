#include "prove/evaluation/bounds.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata::prove {
namespace {

bool IsClamp(std::string_view op) {
  return BaseName(op).starts_with("clamp");
}

bool IsExtremum(std::string_view op) {
  constexpr std::array<std::string_view, 2> kBases = {"minimum", "maximum"};
  return std::ranges::find(kBases, BaseName(op)) != kBases.end();
}

/// The word of a number; none: a tensor with dimensions, or an integer.
std::optional<Residue> NumberOf(const Tensor& tensor) {
  if (tensor.domain() != Domain::kFloat || tensor.numel() != 1) return std::nullopt;
  return tensor.Read()[0];
}

/// A small integer: a random residue is one with a probability of 2^-44.
bool IsLiteral(Residue word) {
  constexpr Residue kSmall = 1 << 16;
  return word < kSmall || word > kPrime - kSmall;
}

}  // namespace

bool IsAtBound(const Call& call, const Values& results) {
  const bool is_clamp = IsClamp(call.op());
  if ((!is_clamp && !IsExtremum(call.op())) || results.empty()) return false;
  const auto* result = std::get_if<Tensor>(&results[0]);
  const std::optional<Residue> word = result == nullptr ? std::nullopt : NumberOf(*result);
  if (!word || !IsLiteral(*word)) return false;
  for (size_t i = 0; i < (is_clamp ? size_t{1} : call.num_args()); ++i) {
    const Argument* argument = call.Find(i, {});
    if (argument == nullptr || !argument->is_tensor()) continue;
    const std::optional<Residue> bounded = NumberOf(std::get<Tensor>(argument->value));
    if (bounded && *bounded != *word) return true;
  }
  return false;
}

bool HasBounds(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    for (const Arg& arg : graph.args(node))
      if (arg.kind() == ArgKind::kGraph && HasBounds(graph.module().graph(arg.graph())))
        return true;
    const Node& n = graph.node(node);
    if (n.kind != NodeKind::kCall || n.num_results != 1) continue;
    if (!IsClamp(graph.op(node)) && !IsExtremum(graph.op(node))) continue;
    const TypeId type = graph.value(graph.result(node)).type;
    if (!type.valid() || graph.module().types()[type].sizes.empty()) return true;
  }
  return false;
}

Status EvaluateInsideBounds(const Graph& graph, uint64_t seed,
                            const std::function<Result<int64_t>(uint64_t)>& evaluate) {
  constexpr uint64_t kAttempts = 16;
  uint64_t best = seed;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t tried = attempt == 0 ? seed : Mix(seed ^ attempt << 48U);
    const Result<int64_t> count = evaluate(tried);
    if (!count && attempt == 0) return count.error();
    if (!count) break;
    if (*count == 0 || !HasBounds(graph)) return Ok();
    if (*count >= fewest) continue;
    best = tried;
    fewest = *count;
  }
  const Result<int64_t> again = evaluate(best);
  return again ? Ok() : again.error();
}

}  // namespace strata::prove
