#include "passes/comm/bucketing.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

#include "passes/core/collectives.h"

namespace strata {

/// A collective that becomes a part of a bucket.
struct BucketMerger::Member {
  NodeId launch, wait;
  ValueId operand, result;  // of the launch, of the wait
  DimId part;               // elements that a rank gives to a gather, or has of a reduction
};

/// Creates the nodes of one bucket.
class BucketMerger::Builder {
 public:
  Builder(BucketMerger& merger, const Bucket& bucket)
      : merger_(merger),
        rewriter_(merger.rewriter_),
        graph_(merger.graph_),
        module_(graph_.module()),
        bucket_(bucket),
        kind_(*CollectiveOf(graph_, bucket.launches.front())) {
    const NodeId first = bucket.launches.front();
    if (kind_ != CollectiveKind::kAllReduce) ranks_ = GroupSizeOf(graph_, first);
    for (const NodeId launch : bucket.launches) {
      Member member{.launch = launch,
                    .wait = OnlyWaitOf(graph_, launch),
                    .operand = graph_.args(launch)[0].value(),
                    .result = {},
                    .part = {}};
      member.result = graph_.result(member.wait);
      member.part =
          Elements(kind_ == CollectiveKind::kReduceScatter ? member.result : member.operand);
      members_.push_back(member);
      launches_.push_back(launch);
      waits_.push_back(member.wait);
    }
  }

  const std::vector<Member>& members() const { return members_; }
  bool is_gather() const { return kind_ == CollectiveKind::kAllGather; }
  MergedBucket merged() const { return merged_; }

  /// Nodes are created directly before `node`.
  void InsertBefore(NodeId node) {
    before_ = node;
    rewriter_.SetCursorBefore(node);
  }

  /// The operands one after the other; of a reduce-scatter for each rank its parts of all.
  ValueId Packed() {
    const bool by_rank = kind_ == CollectiveKind::kReduceScatter;
    std::vector<Arg> pieces;
    DimId total = Const(0);
    for (const Member& member : members_) {
      const std::vector<DimId> sizes =
          by_rank ? std::vector{Const(ranks_), member.part} : std::vector{member.part};
      pieces.emplace_back(View(member.operand, sizes, From{member.launch}));
      total = module_.dims().Add(total, member.part);
    }
    const std::vector<DimId> sizes =
        by_rank ? std::vector{Const(ranks_), total} : std::vector{total};
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, pieces);
    const TypeId type = Contiguous(members_.front().operand, sizes);
    const From from{std::span<const NodeId>(launches_)};
    if (!by_rank) return Call("aten.cat.default", {list}, type, from);
    const ValueId packed = Call("aten.cat.default", {list, Arg::Int(1)}, type, from);
    return View(packed, std::vector{module_.dims().Mul(Const(ranks_), total)}, from);
  }

  /// One collective of the members' kind.
  ValueId Launch(ValueId packed) {
    const NodeId like = members_.front().launch;
    std::vector<Arg> args(graph_.args(like).begin(), graph_.args(like).end());
    args[0] = Arg(packed);
    DimId total = Elements(packed);
    if (is_gather()) total = module_.dims().Mul(total, Const(ranks_));
    if (kind_ == CollectiveKind::kReduceScatter) total = SumOfParts();
    const ValueId launched = Call(graph_.op(like), args, Contiguous(packed, std::vector{total}),
                                  From(launches_, Origin::kReplaced));
    merged_.launch = graph_.value(launched).def;
    return launched;
  }

  ValueId Wait(ValueId launched) {
    const ValueId complete = Call(graph_.op(members_.front().wait), {Arg(launched)},
                                  graph_.value(launched).type, From(waits_, Origin::kReplaced));
    rewriter_.SetAlias(complete, launched);
    merged_.wait = graph_.value(complete).def;
    return complete;
  }

  /// The members' results in the result of the bucket, one for each.
  std::vector<ValueId> Unpacked(ValueId complete) {
    std::vector<TypeId> types;
    std::vector<Arg> sizes;
    for (const Member& member : members_) {
      types.push_back(Contiguous(complete, is_gather() ? std::vector{Const(ranks_), member.part}
                                                       : std::vector{member.part}));
      sizes.push_back(SizeArg(member.part));
    }
    std::vector<Arg> args;
    if (is_gather())
      complete = View(complete, std::vector{Const(ranks_), SumOfParts()},
                      From{std::span<const NodeId>(waits_)});
    args.emplace_back(complete);
    args.push_back(rewriter_.MakeSpan(ArgKind::kList, sizes));
    if (is_gather()) args.push_back(Arg::Int(1));
    const NodeId split = Added(rewriter_.Create(
        {.op = is_gather() ? "aten.split_with_sizes_copy.default" : "aten.split_with_sizes.default",
         .args = args,
         .results = types,
         .returns_tuple = true},
        From{std::span<const NodeId>(waits_)}));
    std::vector<ValueId> results;
    for (size_t i = 0; i < members_.size(); ++i) {
      const ValueId part = graph_.result(split, i);
      if (!is_gather()) rewriter_.SetAlias(part, complete);
      const Type& type = module_.types()[graph_.value(members_[i].result).type];
      results.push_back(View(part, std::vector<DimId>(type.sizes), From{members_[i].wait}));
    }
    return results;
  }

 private:
  DimId Const(int64_t value) { return module_.dims().Const(value); }

  DimId Elements(ValueId value) {
    DimId product = Const(1);
    for (const DimId size : module_.types()[graph_.value(value).type].sizes)
      product = module_.dims().Mul(product, size);
    return product;
  }

  DimId SumOfParts() {
    DimId sum = Const(0);
    for (const Member& member : members_)
      sum = module_.dims().Add(sum, member.part);
    return sum;
  }

  Arg SizeArg(DimId size) const {
    const auto constant = module_.dims().AsConst(size);
    return constant ? Arg::Int(*constant) : Arg::Dim(size);
  }

  TypeId Contiguous(ValueId like, std::vector<DimId> sizes) {
    const Type type = module_.types()[graph_.value(like).type];
    return module_.types().Intern(module_.types().Contiguous(type, std::move(sizes)));
  }

  ValueId View(ValueId value, std::vector<DimId> sizes, const From& from) {
    if (module_.types()[graph_.value(value).type].sizes == sizes) return value;
    std::vector<Arg> numbers;
    for (const DimId size : sizes)
      numbers.push_back(SizeArg(size));
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, numbers);
    const TypeId type = Contiguous(value, std::move(sizes));
    const ValueId view = Call("aten.reshape.default", std::vector{Arg(value), list}, type, from);
    rewriter_.SetAlias(view, value);
    return view;
  }

  ValueId Call(std::string_view op, std::span<const Arg> args, TypeId type, const From& from) {
    const TypeId types[] = {type};
    return graph_.result(Added(rewriter_.Create({.op = op, .args = args, .results = types}, from)));
  }
  ValueId Call(std::string_view op, std::initializer_list<Arg> args, TypeId type,
               const From& from) {
    return Call(op, std::span<const Arg>(args.begin(), args.size()), type, from);
  }

  NodeId Added(NodeId node) {
    merger_.positions_.PlaceBeside(node, before_);
    if (!bucket_.module.empty()) rewriter_.SetModule(node, bucket_.module);
    rewriter_.SetAttribute(node, kBucketAttribute, bucket_.label);
    return node;
  }

  BucketMerger& merger_;
  Rewriter& rewriter_;
  Graph& graph_;
  Module& module_;
  const Bucket& bucket_;
  const CollectiveKind kind_;
  int64_t ranks_ = 1;
  std::vector<Member> members_;
  std::vector<NodeId> launches_, waits_;
  NodeId before_;
  MergedBucket merged_;
};

MergedBucket BucketMerger::Merge(const Bucket& bucket) {
  if (bucket.launches.size() == 1) {
    const MergedBucket single{bucket.launches.front(), OnlyWaitOf(graph_, bucket.launches.front())};
    rewriter_.SetAttribute(single.launch, kBucketAttribute, bucket.label);
    rewriter_.SetAttribute(single.wait, kBucketAttribute, bucket.label);
    return single;
  }
  Builder builder(*this, bucket);
  builder.is_gather() ? MergeGathers(builder) : MergeReductions(builder);
  for (const Member& member : builder.members()) {
    rewriter_.Erase(member.wait);
    rewriter_.Erase(member.launch);
  }
  return builder.merged();
}

void BucketMerger::MergeGathers(Builder& builder) {
  const auto& members = builder.members();
  const auto before = [&](NodeId a, NodeId b) { return positions_.IsBefore(a, b); };
  const NodeId first = std::ranges::min_element(members, before, &Member::launch)->launch;
  const NodeId first_wait = std::ranges::min_element(members, before, &Member::wait)->wait;
  for (const Member& member : members)
    HoistBefore(rewriter_, positions_, graph_.value(member.operand).def, first);
  builder.InsertBefore(first);
  const ValueId launched = builder.Launch(builder.Packed());
  builder.InsertBefore(first_wait);
  const std::vector<ValueId> results = builder.Unpacked(builder.Wait(launched));
  Replace(members, results);
}

void BucketMerger::MergeReductions(Builder& builder) {
  const auto& members = builder.members();
  const auto before = [&](NodeId a, NodeId b) { return positions_.IsBefore(a, b); };
  const NodeId last = std::ranges::max_element(members, before, &Member::launch)->launch;
  NodeId first_wait;  // after the last launch
  for (const Member& member : members) {
    if (before(member.wait, last)) continue;
    if (!first_wait.valid() || before(member.wait, first_wait)) first_wait = member.wait;
  }
  builder.InsertBefore(last);
  const ValueId launched = builder.Launch(builder.Packed());
  builder.InsertBefore(first_wait);
  const std::vector<ValueId> results = builder.Unpacked(builder.Wait(launched));
  for (const Member& member : members) {
    for (const NodeId reader : ReadersBefore(graph_, positions_, member.wait, first_wait)) {
      rewriter_.MoveBefore(reader, first_wait);
      positions_.PlaceBeside(reader, first_wait);
    }
  }
  Replace(members, results);
}

/// Readers of the old results, and views of them, now read the new ones.
void BucketMerger::Replace(const std::vector<Member>& members,
                           const std::vector<ValueId>& results) {
  for (size_t i = 0; i < members.size(); ++i) {
    rewriter_.ReplaceUses(members[i].result, results[i]);
    rewriter_.SetAlias(members[i].result, {});
    // Views of the result have the memory of the launch.
    const NodeId wait = members[i].wait;
    rewriter_.SetSlot(wait, graph_.node(wait).args_begin, Arg(results[i]));
    rewriter_.ReplaceUses(graph_.result(members[i].launch), results[i]);
  }
}

}  // namespace strata
