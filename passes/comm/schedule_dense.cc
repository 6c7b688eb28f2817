#include "passes/comm/schedule_dense.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/comm/bucketing.h"
#include "passes/comm/dense_regions.h"
#include "passes/comm/moves.h"
#include "passes/core/collectives.h"

namespace strata {
namespace {

/// Operators that only bring a reduced gradient into its shape.
constexpr std::string_view kTailOps[] = {"_to_copy",         "_unsafe_view", "alias", "clone",
                                         "detach",           "reshape",      "slice", "split",
                                         "split_with_sizes", "view"};

class DenseScheduler {
 public:
  DenseScheduler(Graph& graph, const BlockStructure& blocks, std::vector<BucketComm> comms)
      : graph_(graph),
        rewriter_(graph),
        positions_(graph),
        regions_(graph, blocks),
        comms_(std::move(comms)),
        num_layers_(blocks.num_layers) {}

  /// Returns whether a node moved. Errors: with `strict`, what could not move.
  Result<bool> Run(bool strict) {
    struct Move {
      std::vector<NodeId> chain;
      NodeId target;
    };
    std::vector<Move> moves;
    for (const BucketComm& comm : InOrder()) {
      const std::vector<NodeId>* region = RegionFor(comm);
      if (region == nullptr) continue;
      std::vector<NodeId> chain = LaunchChain(comm);
      const NodeId target = TargetIn(*region, chain);
      if (target.valid()) {
        moves.push_back({std::move(chain), target});
      } else {
        problems_.push_back(
            fmt::format("{}: what it reads comes after the region, or that is empty",
                        graph_.name(comm.launch)));
      }
    }
    if (strict && !problems_.empty()) return Failure();
    SinkWaits();
    for (const Move& move : moves)
      MoveTo(move.chain, move.target);
    if (strict && !problems_.empty()) return Failure();
    return moved_;
  }

 private:
  Error Failure() const {
    return Error("{} collectives cannot move to dense regions: graph {}:\n  {}", problems_.size(),
                 graph_.name_text(), fmt::join(problems_, "\n  "));
  }

  /// Layers ascending, all-gathers before reduce-scatters, norm and lm_head last.
  std::vector<BucketComm> InOrder() const {
    std::vector<BucketComm> ordered = comms_;
    std::ranges::stable_sort(ordered, {}, [](const BucketComm& comm) {
      return std::tuple(comm.layer, !comm.is_gather, comm.direction == Direction::kBackward);
    });
    return ordered;
  }

  /// Null: the collective stays.
  const std::vector<NodeId>* RegionFor(const BucketComm& comm) const {
    const int64_t top = num_layers_;
    const bool is_forward = comm.direction == Direction::kForward;
    if (comm.layer == BucketComm::kNoLayer) return nullptr;
    if (comm.layer == top) {
      if (comm.is_gather == is_forward) return &regions_.Of(top - 1, comm.direction);
      return nullptr;
    }
    if (comm.is_gather && !is_forward) return IfAny(comm.layer + 1, comm.direction);
    return comm.layer > 0 ? IfAny(comm.layer - 1, comm.direction) : nullptr;
  }

  const std::vector<NodeId>* IfAny(int64_t layer, Direction direction) const {
    const std::vector<NodeId>& region = regions_.Of(layer, direction);
    return region.empty() ? nullptr : &region;
  }

  /// Whether a node only prepares what a launch reads.
  bool IsInfrastructure(NodeId node, bool is_gather) const {
    if (graph_.node(node).kind != NodeKind::kCall || IsWait(graph_, node)) return false;
    if (is_gather) return true;  // it reads parameters alone
    const std::string_view base = BaseName(graph_.op(node));
    return CollectiveOf(graph_, node).has_value() || base == "slice" || base == "constant_pad_nd" ||
           !graph_.attribute(node, kBucketAttribute).empty();
  }

  /// The launch, and what prepares its operands; in program order.
  std::vector<NodeId> LaunchChain(const BucketComm& comm) const {
    std::vector<NodeId> chain = {comm.launch};
    std::set<NodeId> seen = {comm.launch};
    for (size_t i = 0; i < chain.size(); ++i) {
      for (const NodeId input : InputsOf(graph_, chain[i]))
        if (IsInfrastructure(input, comm.is_gather) && seen.insert(input).second)
          chain.push_back(input);
    }
    std::ranges::stable_sort(chain, {}, [&](NodeId node) { return positions_[node]; });
    return chain;
  }

  /// The first node of `region` that comes after all that `chain` reads; none: there is none.
  NodeId TargetIn(const std::vector<NodeId>& region, const std::vector<NodeId>& chain) const {
    const std::set<NodeId> in_chain(chain.begin(), chain.end());
    int32_t latest = -1;
    for (const NodeId node : chain)
      for (const NodeId input : InputsOf(graph_, node))
        if (!in_chain.contains(input)) latest = std::max(latest, positions_[input]);
    const auto target =
        std::ranges::find_if(region, [&](NodeId anchor) { return positions_[anchor] > latest; });
    return target == region.end() ? NodeId{} : *target;
  }

  bool IsTail(NodeId node, const std::set<NodeId>& closure) const {
    if (graph_.node(node).kind != NodeKind::kCall) return false;
    if (!graph_.attribute(node, kBucketAttribute).empty()) return true;
    if (std::ranges::binary_search(kTailOps, BaseName(graph_.op(node)))) return true;
    return BaseName(graph_.op(node)) == "add_" && IsAccumulation(node, closure);
  }

  /// `add_(total, gradient)`, where only the tail and the output read the total.
  bool IsAccumulation(NodeId node, const std::set<NodeId>& closure) const {
    const Arg& total = graph_.args(node)[0];
    if (!total.is_value()) return false;
    for (const Use use : graph_.uses(total.value()))
      if (!closure.contains(use.user) && graph_.node(use.user).kind != NodeKind::kOutput)
        return false;
    return true;
  }

  /// Waits for gradients, with what reads them, go before the output, in their order.
  void SinkWaits() {
    const NodeId output = graph_.output();
    std::set<NodeId> sunk;
    for (const BucketComm& comm : comms_) {
      if (comm.is_gather) continue;
      const std::vector<NodeId> tail = ReadersBefore(graph_, positions_, comm.wait, output);
      std::set<NodeId> closure(tail.begin(), tail.end());
      closure.insert(comm.wait);
      const auto other =
          std::ranges::find_if_not(tail, [&](NodeId node) { return IsTail(node, closure); });
      if (other == tail.end()) {
        sunk.insert(closure.begin(), closure.end());
      } else {
        problems_.push_back(fmt::format("{}: {} ({}) reads it before the output",
                                        graph_.name(comm.wait), graph_.name(*other),
                                        graph_.op(*other)));
      }
    }
    std::vector<NodeId> nodes(sunk.begin(), sunk.end());
    std::ranges::sort(nodes, {}, [&](NodeId node) { return positions_[node]; });
    for (const NodeId node : nodes) {
      moved_ |= graph_.node(node).next != output;
      rewriter_.MoveBefore(node, output);
      positions_.PlaceBeside(node, output);
    }
  }

  bool IsBefore(NodeId node, NodeId target) const {
    return node != target && positions_[node] <= positions_[target];
  }

  /// Moves what can stand directly before `target` there.
  void MoveTo(const std::vector<NodeId>& chain, NodeId target) {
    std::set<NodeId> movable(chain.begin(), chain.end());
    for (bool changed = true; changed;) {
      changed = false;
      for (const NodeId node : chain)
        if (movable.contains(node) && !CanMove(node, movable, target))
          changed = movable.erase(node) > 0;
    }
    if (movable.empty()) {
      problems_.push_back(
          fmt::format("{}: what it reads, or its wait, stands on the other side of {}",
                      graph_.name(chain.back()), graph_.name(target)));
      return;
    }
    for (const NodeId node : chain) {
      if (!movable.contains(node)) continue;
      moved_ |= graph_.node(node).next != target;
      rewriter_.MoveBefore(node, target);
      positions_.PlaceBeside(node, target);
    }
  }

  bool CanMove(NodeId node, const std::set<NodeId>& movable, NodeId target) const {
    for (const NodeId input : InputsOf(graph_, node))
      if (!movable.contains(input) && !IsBefore(input, target)) return false;
    if (!IsBefore(node, target)) return true;
    for (const NodeId user : UsersOf(graph_, node))
      if (!movable.contains(user) && IsBefore(user, target)) return false;
    return true;
  }

  Graph& graph_;
  Rewriter rewriter_;
  Positions positions_;
  const DenseRegions regions_;
  const std::vector<BucketComm> comms_;
  const int64_t num_layers_;
  std::vector<std::string> problems_;
  bool moved_ = false;
};

Result<bool> ScheduleIn(Graph& graph, const ScheduleDenseRegions::Options& options) {
  const BlockStructure blocks = BlockStructure::Of(graph);
  STRATA_TRY(std::vector<BucketComm> comms, BucketComms(graph, blocks.num_layers));
  if (comms.empty()) return false;
  if (options.strict) {
    BucketPlan plan = DefaultBuckets(blocks);
    if (!options.plan.empty()) {
      STRATA_TRY(plan, ParseBucketPlan(options.plan, blocks.num_layers));
    }
    STRATA_TRY(const auto counts, BucketCounts(plan, blocks.num_layers));
    STRATA_RETURN_IF_ERROR(CheckBucketCounts(comms, counts));
  }
  return DenseScheduler(graph, blocks, std::move(comms)).Run(options.strict);
}

}  // namespace

void ScheduleDenseRegions::Options::Bind(OptionList& list) {
  list.Add("strict", strict, "fail where a bucket is missing or a collective cannot move");
  list.Add("plan", plan, "with strict: the buckets, as for bucket-transformer-blocks");
}

Result<Changed> ScheduleDenseRegions::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const bool scheduled, ScheduleIn(module.graph(id), options_));
    changed |= scheduled;
  }
  return Changed(changed);
}

}  // namespace strata
