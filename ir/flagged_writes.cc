#include "ir/flagged_writes.h"

#include <algorithm>
#include <string_view>

#include "ir/ops.h"

namespace strata {
namespace {

constexpr std::string_view kFunctional = "torch.nn.functional.";

/// Where a function of `torch.nn.functional` takes `inplace`. Source: torch/nn/functional.py.
struct InPlaceFlag {
  std::string_view function;
  size_t position;
};

constexpr InPlaceFlag kInPlaceFlags[] = {
    {"alpha_dropout", 3}, {"celu", 2},      {"dropout", 3},   {"dropout1d", 3},
    {"dropout2d", 3},     {"dropout3d", 3}, {"elu", 2},       {"feature_alpha_dropout", 3},
    {"hardsigmoid", 1},   {"hardswish", 1}, {"hardtanh", 3},  {"leaky_relu", 2},
    {"mish", 1},          {"relu", 1},      {"relu6", 1},     {"rrelu", 4},
    {"selu", 1},          {"silu", 1},      {"threshold", 3},
};

/// The argument of a name or at a position; null: absent.
const Arg* Find(const Graph& graph, NodeId node, std::string_view name, size_t position) {
  if (const Arg* named = graph.FindKwarg(node, name)) return named;
  return position < graph.args(node).size() ? &graph.args(node)[position] : nullptr;
}

bool IsTrue(const Arg* arg) {
  return arg != nullptr && arg->kind() == ArgKind::kBool && arg->as_bool();
}

/// The functions of batch norms take the statistics second, the operators fourth; both take sixth
/// whether they are in training.
bool UpdatesStatistics(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (op.find("_norm") == std::string_view::npos) return false;  // every node is asked
  const std::string_view base = BaseName(op);
  if (base != "batch_norm" && base != "native_batch_norm" && base != "instance_norm") return false;
  const Arg* mean = Find(graph, node, "running_mean", op.starts_with(kFunctional) ? 1 : 3);
  if (mean == nullptr || !mean->is_value()) return false;
  const bool is_instance_norm = base == "instance_norm";
  const Arg* training =
      Find(graph, node, is_instance_norm ? "use_input_stats" : "training", /*position=*/5);
  return training == nullptr ? is_instance_norm : IsTrue(training);
}

bool NormsTable(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (op != "torch.nn.functional.embedding" && op != "torch.nn.functional.embedding_bag")
    return false;
  const Arg* most = Find(graph, node, "max_norm", /*position=*/3);
  return most != nullptr && most->kind() != ArgKind::kNone;
}

}  // namespace

bool WritesResultByFlag(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return false;
  std::string_view function = graph.op(node);
  if (!function.starts_with(kFunctional)) return false;
  function.remove_prefix(kFunctional.size());
  const auto* flag = std::ranges::find(kInPlaceFlags, function, &InPlaceFlag::function);
  return flag != std::end(kInPlaceFlags) && IsTrue(Find(graph, node, "inplace", flag->position));
}

bool WritesByFlag(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall &&
         (WritesResultByFlag(graph, node) || UpdatesStatistics(graph, node) ||
          NormsTable(graph, node));
}

}  // namespace strata
