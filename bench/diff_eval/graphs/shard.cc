#include "bench/diff_eval/graphs/shard.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/rewriter.h"

namespace strata::bench {
namespace {

/// One value in this many is cut at the rank's offset.
constexpr size_t kCutEvery = 25;

class Sharder {
 public:
  Sharder(Module& module, const RankView& view)
      : module_(module),
        graph_(module.graph({0})),
        rewriter_(graph_),
        view_(view),
        // A mesh of pairs: the neighbour shares the shards, all that have the same place in their
        // pair hold copies.
        shard_group_(Arg::String(module.Intern("shard_" + std::to_string(view.rank / 2)))),
        copy_group_(Arg::String(module.Intern("copy_" + std::to_string(view.rank % 2)))) {}

  void Run() {
    CutValues();
    GatherInputs();
    ReduceResults();
  }

 private:
  const Type* TensorOf(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    if (!type.valid() || module_.types()[type].kind != TypeKind::kTensor) return nullptr;
    return &module_.types()[type];
  }
  static bool IsFloat(const Type& type) {
    return type.dtype == DType::kF32 || type.dtype == DType::kBF16 || type.dtype == DType::kF16;
  }
  std::optional<int64_t> FirstSize(const Type& type) const {
    return type.sizes.empty() ? std::nullopt : module_.dims().AsConst(type.sizes[0]);
  }
  TypeId WithFirstSize(Type type, int64_t size) {
    type.sizes[0] = module_.dims().Const(size);
    return module_.types().Intern(type);
  }

  ValueId Make(std::string_view op, std::initializer_list<Arg> args, TypeId type, NodeId like) {
    const NodeId node = rewriter_.Create(op, args, From{like});
    rewriter_.SetType(graph_.result(node), type);
    return graph_.result(node);
  }
  ValueId Wait(ValueId value, TypeId type, NodeId like) {
    return Make("_c10d_functional.wait_tensor.default", {Arg(value)}, type, like);
  }
  ValueId Gather(ValueId shard, TypeId type, NodeId like) {
    const Arg ranks = Arg::Int(view_.ranks);
    return Wait(Make("_c10d_functional.all_gather_into_tensor.default",
                     {Arg(shard), ranks, shard_group_}, type, like),
                type, like);
  }

  std::vector<Use> UsesOf(ValueId value) const {
    const auto uses = graph_.uses(value);
    return {uses.begin(), uses.end()};
  }

  /// x becomes gather(slice(x, 0, begin, end)): what sequence parallelism does between layers.
  void CutValues() {
    size_t seen = 0;
    for (NodeId id : graph_.nodes().Snapshot()) {
      const Node& node = graph_.node(id);
      if (node.kind != NodeKind::kCall || node.returns_tuple || !graph_.HasUses(id)) continue;
      const ValueId value = graph_.result(id);
      const Type* type = TensorOf(value);
      if (type == nullptr || !IsFloat(*type)) continue;
      const std::optional<int64_t> size = FirstSize(*type);
      if (!size || *size <= view_.ranks || ++seen % kCutEvery != 0) continue;
      // The last rank has what is left.
      const int64_t part = (*size + view_.ranks - 1) / view_.ranks;
      const int64_t begin = part * view_.rank, end = std::min(*size, begin + part);
      if (part * (view_.ranks - 1) >= *size) continue;
      const std::vector<Use> uses = UsesOf(value);
      rewriter_.SetCursorAfter(id);
      const TypeId whole = graph_.value(value).type;
      const ValueId cut =
          Make("aten.slice.Tensor", {Arg(value), Arg::Int(0), Arg::Int(begin), Arg::Int(end)},
               WithFirstSize(*type, end - begin), id);
      const ValueId gathered = Gather(cut, whole, id);
      for (Use use : uses)
        rewriter_.ReplaceUse(use, gathered);
    }
  }

  void GatherInputs() {
    for (NodeId id : graph_.placeholders()) {
      const ValueId value = graph_.result(id);
      const Type* type = TensorOf(value);
      if (type == nullptr || !IsFloat(*type) || type->sizes.size() < 2 || !graph_.HasUses(id)) {
        continue;
      }
      const std::optional<int64_t> size = FirstSize(*type);
      if (!size || *size % view_.ranks != 0) continue;
      const TypeId whole = graph_.value(value).type;
      sharded_.insert(whole.index);
      const std::vector<Use> uses = UsesOf(value);
      rewriter_.SetCursorBefore(First(uses));
      rewriter_.SetType(value, WithFirstSize(*type, *size / view_.ranks));
      const ValueId gathered = Gather(value, whole, id);
      for (Use use : uses)
        rewriter_.ReplaceUse(use, gathered);
    }
  }

  NodeId First(const std::vector<Use>& uses) const {
    const std::vector<int32_t> order = OrderOf(graph_);
    return std::ranges::min_element(
               uses, {}, [&](Use use) { return order[static_cast<size_t>(use.user.index)]; })
        ->user;
  }

  void ReduceResults() {
    const NodeId output = graph_.output();
    if (!output.valid() || graph_.args(output).size() != 1) return;
    const Arg list = graph_.args(output)[0];
    if (list.kind() != ArgKind::kList && list.kind() != ArgKind::kTuple) return;
    std::vector<Arg> results(graph_.elements(list).begin(), graph_.elements(list).end());
    for (Arg& result : results) {
      if (!result.is_value()) continue;
      const NodeId def = graph_.value(result.value()).def;
      const TypeId type_id = graph_.value(result.value()).type;
      const Type* type = TensorOf(result.value());
      if (graph_.node(def).kind != NodeKind::kCall || type == nullptr || !IsFloat(*type)) continue;
      rewriter_.SetCursorAfter(def);
      const Arg mean = Arg::String(module_.Intern("avg"));
      if (type->sizes.empty()) {
        result = Wait(Make("_c10d_functional.all_reduce.default",
                           {Arg(result.value()), mean, copy_group_}, type_id, def),
                      type_id, def);
      } else if (sharded_.contains(type_id.index)) {
        const TypeId shard = WithFirstSize(*type, *FirstSize(*type) / view_.ranks);
        result =
            Wait(Make("_c10d_functional.reduce_scatter_tensor.default",
                      {Arg(result.value()), mean, Arg::Int(view_.ranks), shard_group_}, shard, def),
                 shard, def);
      }
    }
    const Arg args[] = {rewriter_.MakeSpan(list.kind(), results)};
    rewriter_.SetArgs(output, args, {});
  }

  Module& module_;
  Graph& graph_;
  Rewriter rewriter_;
  const RankView view_;
  const Arg shard_group_, copy_group_;
  std::set<int32_t> sharded_;  // types of inputs before they were sharded
};

}  // namespace

void ShardOverRanks(Module& module, const RankView& view) {
  Sharder(module, view).Run();
}

}  // namespace strata::bench
