#include "prove/evaluation/rank_evaluator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
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

/// One after the other along dimension 0.
Tensor Concatenated(std::span<const Tensor> parts) {
  Sizes sizes = parts[0].sizes();
  sizes[0] = 0;
  std::vector<uint64_t> words;
  for (const Tensor& part : parts) {
    const std::vector<uint64_t> more = part.Read();
    words.insert(words.end(), more.begin(), more.end());
    sizes[0] += part.sizes()[0];
  }
  return OfWords(parts[0].domain(), std::move(sizes), std::move(words));
}

/// What `move` makes of tensors whose elements it only moves: the laws that hold for all of them
/// hold for it, too.
template <class Move>
Result<Tensor> MovedWithLaws(std::span<const Tensor> parts, const Move& move) {
  STRATA_TRY(Tensor moved, move(parts));
  Laws kept;
  bool has_any = false;
  for (const Law law : kLaws) {
    std::vector<Tensor> known;
    for (const Tensor& part : parts)
      if (const Laws* laws = part.laws(); laws != nullptr && laws->*law != nullptr)
        known.push_back(*(laws->*law));
    if (known.size() != parts.size()) continue;
    STRATA_TRY(Tensor of_law, MovedWithLaws(std::span<const Tensor>(known), move));
    kept.*law = std::make_shared<const Tensor>(std::move(of_law));
    has_any = true;
  }
  if (has_any) moved.SetLaws(std::move(kept));
  return moved;
}

/// The largest of the elements.
Result<Tensor> Largest(std::span<const Tensor> parts) {
  Tensor largest = parts[0].Copy();
  for (const Tensor& part : parts.subspan(1)) {
    Call call("aten.maximum.default", {Argument{largest}, Argument{part}}, {}, 1);
    STRATA_TRY(const Values values, FindDefinition("aten.maximum.default")->evaluate(call));
    largest = std::get<Tensor>(values[0]);
  }
  return largest;
}

/// Summands that are all shifted alike have a sum that is shifted so.
Status ShiftSum(std::span<const Tensor> parts, Tensor& sum) {
  std::vector<Tensor> scaled;
  for (const Tensor& part : parts) {
    const Laws* laws = part.laws();
    if (laws == nullptr || laws->scaled == nullptr || laws->shift == nullptr) return Ok();
    if (!SameValue(Value(*laws->shift), Value(*parts[0].laws()->shift))) return Ok();
    scaled.push_back(*laws->scaled);
  }
  Tensor total = scaled[0].Copy();
  for (const Tensor& part : std::span(scaled).subspan(1)) {
    STRATA_TRY(total, Add(total, part));
  }
  Laws shifted;
  shifted.scaled = std::make_shared<const Tensor>(std::move(total));
  shifted.shift = parts[0].laws()->shift;
  sum.SetLaws(std::move(shifted));
  return Ok();
}

Result<Tensor> Reduced(std::span<const Tensor> parts, std::string_view reduce) {
  if (reduce == "max") return Largest(parts);
  if (reduce != "sum" && reduce != "avg")
    return Error(ErrorCode::kUnsupported, "a reduction by {}", reduce);
  Tensor sum = parts[0].Copy();
  for (const Tensor& part : parts.subspan(1)) {
    STRATA_TRY(sum, Add(sum, part));
  }
  if (reduce == "sum") {
    STRATA_RETURN_IF_ERROR(ShiftSum(parts, sum));
    return sum;
  }
  const Residue inverse = Inverse(FromInteger(static_cast<int64_t>(parts.size())));
  return Map(sum, sum.domain(), [&](uint64_t x) { return Mul(x, inverse); });
}

/// What a reader sees before the wait. An integer has no code for it: it is out of any range.
Tensor InFlight(const Tensor& result) {
  constexpr auto kNowhere = static_cast<uint64_t>(int64_t{1} << 40);
  const bool is_integer = result.domain() == Domain::kInteger;
  return {result.domain(), result.sizes(), is_integer ? kNowhere : kUndefined};
}

}  // namespace

GroupLookup GroupsOf(const Mesh& mesh) {
  return [&mesh](std::string_view group, int64_t rank) { return mesh.GroupOf(group, rank); };
}

RankEvaluator::RankEvaluator(const Graph& graph, const Mesh& mesh, uint64_t seed, bool rounds)
    : RankEvaluator(std::vector(static_cast<size_t>(mesh.num_ranks()), &graph), GroupsOf(mesh),
                    seed, rounds) {}

RankEvaluator::RankEvaluator(std::vector<const Graph*> graphs, GroupLookup groups, uint64_t seed,
                             bool rounds)
    : graphs_(std::move(graphs)), graph_(*graphs_[0]), groups_(std::move(groups)), rounds_(rounds) {
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
    if (name == "all_gather_into_tensor") {
      const auto gather = [](std::span<const Tensor> parts) -> Result<Tensor> {
        return Concatenated(parts);
      };
      STRATA_TRY(Tensor gathered, MovedWithLaws(std::span<const Tensor>(operands), gather));
      results.push_back({std::move(gathered)});
    } else if (name == "all_reduce") {
      STRATA_TRY(Tensor sum, Reduced(operands, ReductionOf(node, rank)));
      results.push_back({std::move(sum)});
    } else if (name == "reduce_scatter_tensor") {
      STRATA_TRY(const Tensor sum, Reduced(operands, ReductionOf(node, rank)));
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
      values[0] = InFlight(std::get<Tensor>(values[0]));
    return results;
  }
  if (op.starts_with(kCollectives) && op != kWait) return Collective(node);
  std::vector<Values> results;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const bool is_own = op == kAxisIndex || op == kAxisShard;
    auto evaluated = is_own ? OwnOp(node, rank) : ranks_[rank].Evaluate(node);
    if (!evaluated) return std::move(evaluated).error();
    results.push_back(*std::move(evaluated));
  }
  return results;
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
        values[0] = InFlight(std::get<Tensor>(values[0]));
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
    all.insert(rank.opaque_calls().begin(), rank.opaque_calls().end());
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
