#include "prove/evaluation/rank_evaluator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
#include "prove/evaluation/collective_results.h"
#include "prove/evaluation/parts.h"
#include "prove/evaluation/rounding.h"
#include "prove/ops/definitions.h"
#include "prove/ops/elementwise.h"
#include "prove/values/call.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

constexpr std::string_view kCollectives = "_c10d_functional.";
constexpr std::string_view kWait = "_c10d_functional.wait_tensor.default";
constexpr std::string_view kAxisIndex = "strata.axis_index.default";
constexpr std::string_view kAxisShard = "strata.axis_shard.default";

}  // namespace

GroupLookup GroupsOf(const Mesh& mesh) {
  return [&mesh](std::string_view group, int64_t rank) { return mesh.GroupOf(group, rank); };
}

RankEvaluator::RankEvaluator(const Graph& graph, const Mesh& mesh, uint64_t seed, bool rounds)
    : RankEvaluator(std::vector(static_cast<size_t>(mesh.num_ranks()), &graph), GroupsOf(mesh),
                    seed, rounds) {}

RankEvaluator::RankEvaluator(std::vector<const Graph*> graphs, GroupLookup groups, uint64_t seed,
                             bool rounds)
    : graphs_(std::move(graphs)),
      graph_(*graphs_[0]),
      groups_(std::move(groups)),
      rounds_(rounds),
      shared_(graph_) {
  for (const Graph* graph : graphs_)
    ranks_.emplace_back(*graph, seed, rounds);
}

Result<RankEvaluator::Group> RankEvaluator::GroupAt(NodeId node, size_t argument,
                                                    size_t rank) const {
  const Arg& name = graph(rank).args(node)[argument];
  if (name.kind() != ArgKind::kString)
    return Error(ErrorCode::kUnsupported, "{}: {} does not name its group", graph_.name(node),
                 graph_.op(node));
  const auto self = static_cast<int64_t>(rank);
  STRATA_TRY(std::vector<int64_t> members, groups_(graph(rank).module().str(name.str()), self));
  const auto found = std::ranges::find(members, self);
  if (found == members.end())
    return Error("{}: rank {} is not in its group", graph_.name(node), rank);
  const int64_t index = found - members.begin();
  return Group{std::move(members), index};
}

Result<std::vector<Values>> RankEvaluator::Collective(NodeId node) const {
  const std::string_view op = graph_.op(node);
  const auto args = graph_.args(node);
  if (!args[0].is_value())
    return Error(ErrorCode::kUnsupported, "{}: {} of no tensor", graph_.name(node), op);
  const std::string_view name = op.substr(kCollectives.size(), op.rfind('.') - kCollectives.size());
  std::vector<Values> results;
  CollectiveResults known;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    STRATA_TRY(const Group group, GroupAt(node, args.size() - 1, rank));
    const auto& [members, index] = group;
    const auto count = static_cast<int64_t>(members.size());
    std::vector<Tensor> operands;
    for (const int64_t member : members) {
      const auto at = static_cast<size_t>(member);
      const Value& value = ranks_[at].value(graph(at).args(node)[0].value());
      operands.push_back(std::get<Tensor>(value));
    }
    if (name == "all_gather_into_tensor" || name == "all_reduce") {
      const bool is_gather = name != "all_reduce";
      STRATA_TRY(const Tensor whole, known.Of(operands, is_gather ? "" : ReductionOf(node, rank)));
      results.push_back({shared_.CanShare(node) ? whole : whole.Copy()});
    } else if (name == "reduce_scatter_tensor") {
      STRATA_TRY(const Tensor sum, known.Of(operands, ReductionOf(node, rank)));
      results.push_back({Chunk(sum, 0, index, count).Copy()});
    } else if (name == "all_to_all_single") {
      const auto exchange = [&](std::span<const Tensor> parts) {
        return Exchanged(node, parts, group.members, group.index);
      };
      STRATA_TRY(Tensor received, MovedWithLaws(std::span<const Tensor>(operands), exchange));
      results.push_back({std::move(received)});
    } else {
      return Error(ErrorCode::kUnsupported, "{}: {} has no definition", graph_.name(node), op);
    }
  }
  return results;
}

std::string_view RankEvaluator::ReductionOf(NodeId node, size_t rank) const {
  return graph(rank).module().str(graph(rank).args(node)[1].str());
}

/// What the rank at `index` of a group receives: of each member's operand the piece that is meant
/// for it. Members state how many rows they send to and receive from each member.
Result<Tensor> RankEvaluator::Exchanged(NodeId node, std::span<const Tensor> operands,
                                        std::span<const int64_t> members, int64_t index) const {
  const auto splits = [&](size_t member, size_t argument) -> Result<Sizes> {
    const Evaluator& rank = ranks_[static_cast<size_t>(members[member])];
    STRATA_TRY(Sizes sizes,
               rank.IntegersOf(graph(static_cast<size_t>(members[member])).args(node)[argument]));
    if (sizes.empty()) sizes.assign(members.size(), operands[member].size(0) / std::ssize(members));
    if (sizes.size() == members.size()) return sizes;
    return Error(ErrorCode::kInvalid, "{}: {} parts for {} ranks", graph_.name(node), sizes.size(),
                 members.size());
  };
  const auto own = static_cast<size_t>(index);
  STRATA_TRY(const Sizes received, splits(own, 1));
  std::vector<Tensor> pieces;
  for (size_t member = 0; member < operands.size(); ++member) {
    STRATA_TRY(const Sizes sent, splits(member, 2));
    const Tensor& operand = operands[member];
    int64_t begin = 0;
    for (size_t i = 0; i < own; ++i)
      begin += sent[i];
    const int64_t rows = sent[own];
    if (rows != received[member] || begin + rows > operand.size(0)) {
      return Error(ErrorCode::kInvalid, "{}: rank {} expects {} rows of rank {}, which sends {}",
                   graph_.name(node), members[own], received[member], members[member], rows);
    }
    Sizes sizes = operand.sizes();
    sizes[0] = rows;
    pieces.emplace_back(operand.domain(), operand.storage(), std::move(sizes), operand.strides(),
                        operand.offset() + begin * operand.strides()[0]);
  }
  return Concatenated(pieces);
}

/// Operators whose result depends on the rank.
Result<Values> RankEvaluator::OwnOp(NodeId node, size_t rank) const {
  const auto args = graph_.args(node);
  if (graph_.op(node) == kAxisIndex) {
    STRATA_TRY(const Group group, GroupAt(node, 0, rank));
    return Values{Tensor(Domain::kInteger, {}, static_cast<uint64_t>(group.index))};
  }
  STRATA_TRY(const Group group, GroupAt(node, 2, rank));
  const auto& whole = std::get<Tensor>(ranks_[rank].value(graph(rank).args(node)[0].value()));
  const auto cut = [&](std::span<const Tensor> wholes) -> Result<Tensor> {
    return Chunk(wholes[0], args[1].as_int(), group.index, args[3].as_int()).Copy();
  };
  STRATA_TRY(Tensor part, MovedWithLaws(std::span<const Tensor>(&whole, 1), cut));
  return Values{std::move(part)};
}

const RankEvaluator::Launched* RankEvaluator::LaunchedBefore(NodeId node) const {
  if (graph_.op(node) != kWait || !graph_.args(node)[0].is_value()) return nullptr;
  const auto found = launched_.find(graph_.value(graph_.args(node)[0].value()).def.index);
  return found == launched_.end() ? nullptr : &found->second;
}

void RankEvaluator::ForgetLaunchBefore(NodeId node) {
  if (LaunchedBefore(node) == nullptr) return;
  const ValueId result = graph_.args(node)[0].value();
  const NodeId launch = graph_.value(result).def;
  const auto readers = graph_.uses(result);
  const bool is_only_reader = std::ranges::distance(readers.begin(), readers.end()) == 1;
  if (graph_.node(launch).num_results == 1 && is_only_reader) launched_.erase(launch.index);
}

RankEvaluator::Launched RankEvaluator::LaunchedWith(NodeId node,
                                                    const std::vector<Values>& results) const {
  Launched launched{.results = results, .sent = {}};
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    graph(rank).ForEachOperand(node, [&](ValueId operand) {
      const auto* tensor = std::get_if<Tensor>(&ranks_[rank].value(operand));
      if (tensor != nullptr)
        launched.sent.emplace_back(tensor->storage(), tensor->storage()->version);
    });
  }
  return launched;
}

Result<std::vector<Values>> RankEvaluator::Evaluate(NodeId node) {
  const std::string_view op = graph_.op(node);
  if (const Launched* launched = LaunchedBefore(node)) {
    const bool is_overwritten = std::ranges::any_of(
        launched->sent, [](const auto& sent) { return sent.first->version != sent.second; });
    std::vector<Values> results = launched->results;
    if (!is_overwritten) return results;
    for (Values& values : results)
      values[0] = InFlight(node, std::get<Tensor>(values[0]));
    return results;
  }
  if (op.starts_with(kCollectives) && op != kWait) return Collective(node);
  const bool is_own = op == kAxisIndex || op == kAxisShard;
  std::vector<Values> results;
  std::vector<size_t> evaluated;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (const auto like = is_own ? std::nullopt : RankLike(node, rank, evaluated)) {
      results.push_back(results[*like]);
      continue;
    }
    auto own = is_own ? OwnOp(node, rank) : ranks_[rank].Evaluate(node);
    if (!own) return std::move(own).error();
    results.push_back(*std::move(own));
    evaluated.push_back(rank);
  }
  return results;
}

std::optional<size_t> RankEvaluator::RankLike(NodeId node, size_t rank,
                                              std::span<const size_t> evaluated) const {
  if (!shared_.CanShare(node)) return std::nullopt;
  const auto reads_same = [&](size_t other) {
    bool is_same = graphs_[other] == graphs_[rank];
    graph(rank).ForEachOperand(node, [&](ValueId value) {
      is_same = is_same && IsSameMemory(ranks_[other].value(value), ranks_[rank].value(value));
    });
    return is_same;
  };
  const auto found = std::ranges::find_if(evaluated, reads_same);
  return found == evaluated.end() ? std::nullopt : std::optional(*found);
}

/// An integer has no code for it: it is out of any range.
Tensor RankEvaluator::InFlight(NodeId node, const Tensor& result) const {
  constexpr auto kNowhere = static_cast<uint64_t>(int64_t{1} << 40);
  const uint64_t word = result.domain() == Domain::kInteger ? kNowhere : kUndefined;
  if (!shared_.CanShare(node)) return {result.domain(), result.sizes(), word};
  // Nothing writes to it: one element stands for all.
  const Tensor one(result.domain(), {}, word);
  return {result.domain(), one.storage(), result.sizes(), Sizes(result.sizes().size(), 0), 0};
}

Result<std::vector<std::vector<Value>>> RankEvaluator::Run(
    std::span<const std::vector<Value>> inputs, const Observer& observe) {
  launched_.clear();
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].Begin(inputs[rank]);
  for (const NodeId node : graph_.nodes()) {
    if (graph_.node(node).kind == NodeKind::kOutput) break;
    Result<std::vector<Values>> evaluated = Evaluate(node);
    if (!evaluated) {
      failed_ = node;
      return std::move(evaluated).error();
    }
    std::vector<Values> results = *std::move(evaluated);
    const std::string_view op = graph_.op(node);
    const bool is_collective = op.starts_with(kCollectives) && op != kWait;
    if (rounds_ && is_collective) {
      for (Values& values : results)
        RoundResults(graph_, node, values);
    }
    if (observe) observe(node, results);
    if (is_collective) {
      launched_[node.index] = LaunchedWith(node, results);
      for (Values& values : results)
        values[0] = InFlight(node, std::get<Tensor>(values[0]));
    }
    ForgetLaunchBefore(node);
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      ranks_[rank].Set(node, std::move(results[rank]));
  }
  std::vector<std::vector<Value>> outputs;
  for (const Evaluator& rank : ranks_)
    outputs.push_back(rank.Outputs());
  return outputs;
}

void RankEvaluator::SeedGenerators() {
  for (Evaluator& rank : ranks_)
    rank.SeedGenerator();
}

OpaqueCalls RankEvaluator::opaque_calls() const {
  OpaqueCalls all;
  for (const Evaluator& rank : ranks_)
    all.Add(rank.opaque_calls());
  return all;
}

std::set<std::string> RankEvaluator::opaque() const {
  std::set<std::string> all;
  for (const Evaluator& rank : ranks_)
    all.insert(rank.opaque().begin(), rank.opaque().end());
  return all;
}

int64_t RankEvaluator::evaluations() const {
  int64_t sum = 0;
  for (const Evaluator& rank : ranks_)
    sum += rank.evaluations();
  return sum;
}

int64_t RankEvaluator::at_bound() const {
  int64_t sum = 0;
  for (const Evaluator& rank : ranks_)
    sum += rank.at_bound();
  return sum;
}

}  // namespace strata::prove
