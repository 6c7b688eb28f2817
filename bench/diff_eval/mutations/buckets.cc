#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "bench/diff_eval/mutations/mutator.h"

namespace strata::bench {
namespace {

constexpr std::string_view kGather = "_c10d_functional.all_gather_into_tensor.default";
constexpr std::string_view kScatter = "_c10d_functional.reduce_scatter_tensor.default";
constexpr std::string_view kReduce = "_c10d_functional.all_reduce.default";
constexpr std::string_view kWait = "_c10d_functional.wait_tensor.default";

}  // namespace

/// One bucket: `members` are collectives of one operator and group.
class Mutator::Bucket {
 public:
  Bucket(Mutator& mutator, const std::vector<NodeId>& members)
      : mutator_(mutator),
        graph_(mutator.graph_),
        rewriter_(mutator.rewriter_),
        members_(members),
        op_(graph_.op(members[0])),
        args_(graph_.args(members[0]).begin(), graph_.args(members[0]).end()) {
    // Sharded buffers lie rank by rank: one row each.
    ranks_ = op_ == kReduce ? 1 : args_[op_ == kGather ? 1 : 2].as_int();
  }

  void Make() {
    mutator_.Begin();
    rewriter_.SetCursorAfter(LastOperand());
    Distribute(Launch(JoinOperands()));
    mutator_.lineage_.relations.push_back(std::move(relation_));
  }

 private:
  std::vector<int64_t> SizesOf(ValueId value) const {
    std::vector<int64_t> sizes;
    const Type type = *mutator_.TensorOf(value);
    for (DimId size : type.sizes)
      sizes.push_back(mutator_.module_.dims().AsConst(size).value_or(1));
    return sizes;
  }
  int64_t ElementsOf(ValueId value) const {
    int64_t count = 1;
    for (int64_t size : SizesOf(value))
      count *= size;
    return count;
  }
  Arg IntList(const std::vector<int64_t>& numbers) {
    std::vector<Arg> elements;
    for (int64_t number : numbers)
      elements.push_back(Arg::Int(number));
    return rewriter_.MakeSpan(ArgKind::kList, elements);
  }
  /// A contiguous tensor of one or two dimensions.
  TypeId Shaped(const std::vector<int64_t>& sizes) {
    DimTable& dims = mutator_.module_.dims();
    Type type = *mutator_.TensorOf(graph_.result(members_[0]));
    type.sizes.clear();
    type.strides.clear();
    for (int64_t size : sizes)
      type.sizes.push_back(dims.Const(size));
    for (size_t i = 0; type.has_strides && i < sizes.size(); ++i)
      type.strides.push_back(dims.Const(i + 1 < sizes.size() ? sizes[1] : 1));
    return mutator_.module_.types().Intern(type);
  }
  void AddMade(NodeId node) {
    mutator_.Mark(node);
    relation_.after.push_back(mutator_.IdOf(node));
  }
  ValueId Call(std::string_view op, std::span<const Arg> operands, TypeId type) {
    const NodeId node = mutator_.Make(op, operands, type, members_[0]);
    AddMade(node);
    return graph_.result(node);
  }
  ValueId View(ValueId value, const std::vector<int64_t>& sizes, TypeId type) {
    const Arg operands[] = {Arg(value), IntList(sizes)};
    return Call("aten.view.default", operands, type);
  }
  ValueId View(ValueId value, const std::vector<int64_t>& sizes) {
    return View(value, sizes, Shaped(sizes));
  }

  NodeId LastOperand() const;
  ValueId JoinOperands();
  ValueId Launch(ValueId joined);
  void Distribute(ValueId result);

  Mutator& mutator_;
  Graph& graph_;
  Rewriter& rewriter_;
  const std::vector<NodeId>& members_;
  const std::string op_;
  const std::vector<Arg> args_;
  int64_t ranks_ = 1;
  int64_t row_ = 0;  ///< elements per rank of the joined buffer
  Lineage::Relation relation_{RelationKind::kReplace, {}, {}};
};

/// The node behind which all operands are there: before the first result is read, see
/// CanStartTogether.
NodeId Mutator::Bucket::LastOperand() const {
  const std::vector<int32_t> order = OrderOf(graph_);
  NodeId last;
  for (NodeId id : members_) {
    const NodeId def = graph_.value(graph_.operands(id)[0]).def;
    if (!last.valid() ||
        order[static_cast<size_t>(def.index)] > order[static_cast<size_t>(last.index)]) {
      last = def;
    }
  }
  // Inputs stay together.
  while (graph_.node(graph_.node(last).next).kind == NodeKind::kPlaceholder)
    last = graph_.node(last).next;
  return last;
}

ValueId Mutator::Bucket::JoinOperands() {
  const bool rows = op_ == kScatter;
  std::vector<Arg> flat;
  for (NodeId id : members_) {
    const ValueId value = graph_.operands(id)[0];
    const int64_t count = ElementsOf(value);
    row_ += rows ? count / ranks_ : count;
    flat.emplace_back(View(value, rows ? std::vector{ranks_, count / ranks_} : std::vector{count}));
  }
  const Arg args[] = {rewriter_.MakeSpan(ArgKind::kList, flat), Arg::Int(rows ? 1 : 0)};
  return Call("aten.cat.default", args,
              Shaped(rows ? std::vector{ranks_, row_} : std::vector{row_}));
}

/// The collective on the joined buffer, and its wait.
ValueId Mutator::Bucket::Launch(ValueId joined) {
  const TypeId type = Shaped({op_ == kGather ? row_ * ranks_ : row_});
  std::vector<Arg> args = args_;
  args[0] = Arg(joined);
  const Arg wait_args[] = {Arg(Call(op_, args, type))};
  const ValueId result = Call(kWait, wait_args, type);
  return op_ == kGather ? View(result, {ranks_, row_}) : result;
}

/// Each member's users read its piece of the result.
void Mutator::Bucket::Distribute(ValueId result) {
  const bool rows = op_ == kGather;
  std::vector<int64_t> sizes;
  std::vector<TypeId> types;
  for (NodeId id : members_) {
    sizes.push_back(ElementsOf(graph_.result(id)) / (rows ? ranks_ : 1));
    types.push_back(Shaped(rows ? std::vector{ranks_, sizes.back()} : std::vector{sizes.back()}));
  }
  const Arg args[] = {Arg(result), IntList(sizes), Arg::Int(rows ? 1 : 0)};
  const NodeId split =
      mutator_.MakeSplit("aten.split_with_sizes.default", args, types, "piece", members_[0]);
  AddMade(split);
  for (size_t k = 0; k < members_.size(); ++k) {
    const NodeId launch = members_[k], wait = mutator_.OnlyUser(launch);
    const ValueId whole =
        View(graph_.result(split, k), SizesOf(graph_.result(wait)), mutator_.TypeIdOf(wait));
    for (NodeId id : {launch, wait}) {
      mutator_.Mark(id);
      relation_.before.push_back(mutator_.IdOf(id));
    }
    rewriter_.ReplaceUses(graph_.result(wait), whole);
    rewriter_.Erase(wait);
    rewriter_.Erase(launch);
  }
}

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
      if (members.size() > 1) Bucket(*this, members).Make();
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

}  // namespace strata::bench
