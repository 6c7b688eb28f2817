#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "bench/diff_eval/mutations/mutator.h"

namespace strata::bench {
namespace {

constexpr std::string_view kGather = "_c10d_functional.all_gather_into_tensor.default";
constexpr std::string_view kScatter = "_c10d_functional.reduce_scatter_tensor.default";
constexpr std::string_view kReduce = "_c10d_functional.all_reduce.default";
constexpr std::string_view kWait = "_c10d_functional.wait_tensor.default";

}  // namespace

/// Joins the collectives of one operator and group, several at a time, on concatenated buffers:
///
///   before  a0 = all_gather(p0)  w0 = wait(a0)  …  a1 = all_gather(p1)  w1 = wait(a1)
///   after   c = cat([view(p0), view(p1)])  a = all_gather(c)  w = view(wait(a))
///           s = split_with_sizes(w)  w0 = view(s[0])  w1 = view(s[1])
void Mutator::BucketAll() {
  std::map<std::tuple<std::string, int32_t, DType>, std::vector<NodeId>> kinds;
  for (NodeId id : graph_.nodes()) {
    if (!IsPlainCall(id)) continue;
    const std::string_view op = graph_.op(id);
    if (op != kGather && op != kScatter && op != kReduce) continue;
    const NodeId wait = OnlyUser(id);
    if (!wait.valid() || graph_.op(wait) != kWait || !TensorOf(graph_.result(id))) continue;
    const Arg group = graph_.args(id).back();
    kinds[{std::string(op), group.str().index, TensorOf(graph_.result(id))->dtype}].push_back(id);
  }
  for (const auto& [kind, all] : kinds) {
    for (size_t begin = 0; begin < all.size();) {
      const size_t size = std::min(1 + Random(5), all.size() - begin);
      std::vector<NodeId> members(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                  all.begin() + static_cast<std::ptrdiff_t>(begin + size));
      begin += size;
      // What one needs before another one can start is not in one bucket with it.
      while (members.size() > 1 && !CanStartTogether(members))
        members.pop_back();
      if (members.size() > 1) Bucket(members);
    }
  }
}

/// Whether all operands are there before the first result is read.
bool Mutator::CanStartTogether(const std::vector<NodeId>& members) const {
  const std::vector<int32_t> order = OrderOf(graph_);
  const auto place = [&](NodeId id) { return order[static_cast<size_t>(id.index)]; };
  int32_t start = 0, first_read = place(graph_.output());
  for (NodeId id : members) {
    start = std::max(start, place(graph_.value(graph_.operands(id)[0]).def));
    for (Use use : UsesOf(graph_.result(OnlyUser(id))))
      first_read = std::min(first_read, place(use.user));
  }
  return start < first_read;
}

void Mutator::Bucket(const std::vector<NodeId>& members) {
  const std::string op(graph_.op(members[0]));
  const std::vector<Arg> args(graph_.args(members[0]).begin(), graph_.args(members[0]).end());
  // Sharded buffers lie rank by rank: one row each.
  const int64_t ranks = op == kReduce ? 1 : op == kGather ? args[1].as_int() : args[2].as_int();
  const auto elements_of = [&](ValueId value) {
    int64_t count = 1;
    const Type type = *TensorOf(value);
    for (DimId size : type.sizes)
      count *= module_.dims().AsConst(size).value_or(1);
    return count;
  };
  const auto shaped = [&](const std::vector<int64_t>& sizes) {
    Type type = *TensorOf(graph_.result(members[0]));
    type.sizes.clear();
    type.strides.clear();
    for (int64_t size : sizes)
      type.sizes.push_back(module_.dims().Const(size));
    for (size_t i = 0; type.has_strides && i < sizes.size(); ++i)
      type.strides.push_back(module_.dims().Const(i + 1 < sizes.size() ? sizes[1] : 1));
    return module_.types().Intern(type);
  };
  const auto sizes_of = [&](ValueId value) {
    std::vector<Arg> sizes;
    const Type type = *TensorOf(value);
    for (DimId size : type.sizes)
      sizes.push_back(Arg::Int(module_.dims().AsConst(size).value_or(1)));
    return rewriter_.MakeSpan(ArgKind::kList, sizes);
  };

  Begin();
  Lineage::Relation relation{RelationKind::kReplace, {}, {}};
  const auto make = [&](std::string_view what, std::span<const Arg> operands, TypeId type) {
    const NodeId node = Make(what, operands, type, members[0]);
    Mark(node);
    relation.after.push_back(IdOf(node));
    return graph_.result(node);
  };
  const auto view = [&](ValueId value, const std::vector<int64_t>& sizes) {
    std::vector<Arg> shape;
    for (int64_t size : sizes)
      shape.push_back(Arg::Int(size));
    const Arg operands[] = {Arg(value), rewriter_.MakeSpan(ArgKind::kList, shape)};
    return make("aten.view.default", operands, shaped(sizes));
  };

  // After the last operand; before the first result is read: see CanStartTogether.
  const std::vector<int32_t> order = OrderOf(graph_);
  NodeId last;
  for (NodeId id : members) {
    const NodeId def = graph_.value(graph_.operands(id)[0]).def;
    if (!last.valid() ||
        order[static_cast<size_t>(def.index)] > order[static_cast<size_t>(last.index)]) {
      last = def;
    }
  }
  // Inputs stay together.
  while (graph_.node(graph_.node(last).next).kind == NodeKind::kPlaceholder)
    last = graph_.node(last).next;
  rewriter_.SetCursorAfter(last);
  const bool rows = op == kScatter;
  std::vector<Arg> flat;
  int64_t all = 0;  // elements per rank
  for (NodeId id : members) {
    const ValueId value = graph_.operands(id)[0];
    const int64_t count = elements_of(value);
    all += rows ? count / ranks : count;
    flat.emplace_back(view(value, rows ? std::vector{ranks, count / ranks} : std::vector{count}));
  }
  const Arg cat_args[] = {rewriter_.MakeSpan(ArgKind::kList, flat), Arg::Int(rows ? 1 : 0)};
  ValueId joined = make("aten.cat.default", cat_args,
                        rows ? shaped({ranks, all}) : shaped(std::vector<int64_t>{all}));
  const int64_t result = op == kGather ? all * ranks : all;
  std::vector<Arg> launch_args = args;
  launch_args[0] = Arg(joined);
  joined = make(op, launch_args, shaped({result}));
  const Arg wait_args[] = {Arg(joined)};
  joined = make(kWait, wait_args, shaped({result}));
  if (op == kGather) joined = view(joined, {ranks, all});

  std::vector<Arg> sizes;
  std::vector<TypeId> types;
  for (NodeId id : members) {
    const int64_t count = elements_of(graph_.result(id)) / (op == kGather ? ranks : 1);
    sizes.push_back(Arg::Int(count));
    types.push_back(op == kGather ? shaped({ranks, count}) : shaped({count}));
  }
  const Arg split_args[] = {Arg(joined), rewriter_.MakeSpan(ArgKind::kList, sizes),
                            Arg::Int(op == kGather ? 1 : 0)};
  NodeSpec spec;
  spec.op = "aten.split_with_sizes.default";
  spec.args = split_args;
  spec.results = types;
  spec.returns_tuple = true;
  const NodeId split = rewriter_.Create(spec, From{members[0]});
  Mark(split);
  relation.after.push_back(IdOf(split));
  for (size_t k = 0; k < members.size(); ++k) {
    const NodeId launch = members[k], wait = OnlyUser(launch);
    rewriter_.SetElementName(graph_.result(split, k),
                             "piece_" + std::to_string(split.index) + "_" + std::to_string(k));
    const Arg operands[] = {Arg(graph_.result(split, k)), sizes_of(graph_.result(wait))};
    const ValueId whole = make("aten.view.default", operands, TypeIdOf(wait));
    for (NodeId id : {launch, wait}) {
      Mark(id);
      relation.before.push_back(IdOf(id));
    }
    rewriter_.ReplaceUses(graph_.result(wait), whole);
    rewriter_.Erase(wait);
    rewriter_.Erase(launch);
  }
  lineage_.relations.push_back(std::move(relation));
}

}  // namespace strata::bench
