#include <algorithm>
#include <string_view>

#include "bench/diff_eval/mutations/mutator.h"

namespace strata::bench {

/// What the program of one rank may have beyond other literals (see ShardOverRanks): one more
/// operator, two collectives in another order, or the place of another pipeline stage.
void Mutator::CrossRank() {
  switch (Random(4)) {
    case 0:
      return;
    case 1:
      return OneMoreOperator();
    case 2:
      return SwapCollectives();
    default:
      return OtherStage();
  }
}

void Mutator::OneMoreOperator() {
  const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
  for (int tries = 0; tries < 100; ++tries) {
    const NodeId id = nodes[Random(nodes.size())];
    if (IsPlainCall(id) && Insert(id)) return;
  }
}

void Mutator::SwapCollectives() {
  std::vector<NodeId> launches;
  for (NodeId id : graph_.nodes()) {
    if (!IsPlainCall(id) || !graph_.op(id).starts_with("_c10d_functional.all_gather")) continue;
    // What reads an input may start at any time.
    const NodeId source = graph_.value(graph_.operands(id)[0]).def;
    if (graph_.node(source).kind == NodeKind::kPlaceholder && OnlyUser(id).valid()) {
      launches.push_back(id);
    }
  }
  if (launches.size() < 2) return;
  const size_t first = Random(launches.size() - 1);
  const NodeId later = launches[first + 1];
  Begin();
  for (NodeId id : {later, OnlyUser(later)}) {
    Mark(id);
    rewriter_.MoveBefore(id, launches[first]);
  }
}

/// The first stage computes what the others receive; the last one computes a loss.
void Mutator::OtherStage() {
  std::vector<NodeId> calls;
  for (NodeId id : graph_.nodes()) {
    if (IsPlainCall(id)) calls.push_back(id);
  }
  const size_t first = Random(10);
  for (size_t i = first; i < std::min(calls.size(), first + 20); ++i) {
    if (Offload(calls[i])) break;
  }
  if (!ReturnsList()) return;
  std::vector<Arg> results = Results();
  const auto found = std::ranges::find_if(results, [&](const Arg& arg) {
    return arg.is_value() && TensorOf(arg.value()) && !TensorOf(arg.value())->sizes.empty();
  });
  if (found == results.end()) return;
  const ValueId value = found->value();
  const NodeId def = graph_.value(value).def;
  Type scalar = *TensorOf(value);
  scalar.sizes.clear();
  scalar.strides.clear();
  Begin();
  rewriter_.SetCursorToEnd();
  const Arg square_args[] = {Arg(value), Arg::Int(2)};
  const NodeId square = Make("aten.pow.Tensor_Scalar", square_args, graph_.value(value).type, def);
  const Arg mean_args[] = {Arg(graph_.result(square))};
  const NodeId mean = Make("aten.mean.default", mean_args, module_.types().Intern(scalar), def);
  results.insert(results.begin(), Arg(graph_.result(mean)));
  Mark(square);
  Mark(mean);
  SetResults(results);
}

}  // namespace strata::bench
