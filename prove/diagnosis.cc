#include "prove/diagnosis.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "passes/placement/redistribution.h"
#include "prove/compare.h"
#include "prove/ops/elementwise.h"

namespace strata::prove {
namespace {

constexpr size_t kMaxCone = 2000;

/// A collective as one word: "all_reduce", "tp", "sum".
struct Exchange {
  std::string kind, group, reduce;
  friend auto operator<=>(const Exchange&, const Exchange&) = default;

  std::string Text() const {
    return fmt::format("{}{} over {}", kind, reduce.empty() ? "" : fmt::format("({})", reduce),
                       group);
  }
};

/// What makes a value, back to nodes that the other graph has, too.
struct Cone {
  std::vector<NodeId> inner;                      // not in the other graph
  std::vector<StableId> roots;                    // in order of the operands, with repetition
  std::set<std::pair<StableId, size_t>> results;  // of roots
  std::vector<Exchange> exchanges;                // sorted
  std::vector<std::string> shards;                // "0 tp" of axis_shard, sorted
  bool is_lowered_operator = false;               // has operators that a pass replaced by others
  std::vector<std::string> computed;  // "mul", "pow": of nodes that compute numbers, sorted
  bool computes = false;              // has redistributions that are more than collectives
};

std::string_view KindText(CollectiveKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"all_gather", "reduce_scatter", "all_reduce",
                                                      "all_to_all", "broadcast"};
  return kNames[static_cast<size_t>(kind)];
}

std::string WithoutSuffix(std::string_view group) {
  return std::string(group.substr(0, group.find('#')));
}

/// Whether a node computes numbers, and does not only move or make them.
bool ComputesNumbers(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return false;
  const std::string_view op = graph.op(node), base = BaseName(op);
  constexpr std::array<std::string_view, 13> kMoves = {
      "cat",  "split",    "split_with_sizes", "split_with_sizes_copy", "clone",  "copy",
      "full", "new_full", "_to_copy",         "constant_pad_nd",       "arange", "new_zeros",
      "empty"};
  if (TraitsOf(op).view || TraitsOf(op).collective || IsWait(graph, node)) return false;
  if (op == "strata.axis_index.default") return true;
  if (CollectiveOf(graph, node) || !op.starts_with("aten.")) return false;
  return std::ranges::find(kMoves, base) == kMoves.end();
}

class ConeMaker {
 public:
  ConeMaker(const Graph& graph, const std::set<StableId>& others, const Mesh& mesh)
      : graph_(graph), others_(others), mesh_(mesh) {}

  /// REQUIRES: a collective.
  static Exchange ExchangeOf(const Graph& graph, NodeId node) {
    const CollectiveKind kind = *CollectiveOf(graph, node);
    const bool reduces =
        kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
    return {std::string(KindText(kind)), WithoutSuffix(GroupOf(graph, node)),
            reduces ? std::string(ReduceOpOf(graph, node)) : ""};
  }

  Cone Of(NodeId node, bool includes_node) {
    if (includes_node) {
      Visit(node);
    } else {
      for (const ValueId operand : graph_.operands(node))
        VisitValue(operand);
    }
    std::ranges::sort(cone_.exchanges);
    std::ranges::sort(cone_.shards);
    std::ranges::sort(cone_.computed);
    return std::move(cone_);
  }

 private:
  void Visit(NodeId node) {
    const StableId id = graph_.node(node).stable_id;
    const bool is_end = graph_.node(node).kind != NodeKind::kCall;
    if (others_.contains(id) || is_end) {
      cone_.roots.push_back(id);
      return;
    }
    if (!seen_.insert(node.index).second || cone_.inner.size() > kMaxCone) return;
    cone_.inner.push_back(node);
    Add(node);
    for (const ValueId operand : graph_.operands(node))
      VisitValue(operand);
  }

  void VisitValue(ValueId value) {
    const NodeId def = graph_.value(value).def;
    const StableId id = graph_.node(def).stable_id;
    if (others_.contains(id)) cone_.results.emplace(id, graph_.value(value).index);
    Visit(def);
  }

  void Add(NodeId node) {
    const std::string_view op = graph_.op(node);
    if (ComputesNumbers(graph_, node)) cone_.computed.emplace_back(BaseName(op));
    if (CollectiveOf(graph_, node)) {
      cone_.exchanges.push_back(ExchangeOf(graph_, node));
    } else if (op == "strata.axis_shard.default") {
      cone_.shards.push_back(fmt::format("{} {}", graph_.args(node)[1].as_int(),
                                         graph_.module().str(graph_.args(node)[2].str())));
    } else if (op == kRedistributeOp) {
      AddRedistribution(node);
    } else if (!IsWait(graph_, node)) {
      cone_.is_lowered_operator = true;
    }
  }

  const Placements& PlacementsOf(ValueId value) const {
    return graph_.module().types()[graph_.value(value).type].placements;
  }

  /// What a redistribution computes beside its collective.
  void AddComputed(std::string_view reduce, bool is_partial_after) {
    std::vector<std::string> more;
    if (reduce.starts_with("norm")) more = {"pow", "sqrt"};
    if (reduce == "avg") more = {"div"};
    if (is_partial_after) more = {"axis_index", "eq", "mul"};
    cone_.computes = cone_.computes || !more.empty();
    cone_.computed.insert(cone_.computed.end(), more.begin(), more.end());
  }

  /// The collectives that it becomes.
  void AddRedistribution(NodeId node) {
    if (!graph_.args(node)[0].is_value()) return;
    const Placements &from = PlacementsOf(graph_.args(node)[0].value()),
                     &to = PlacementsOf(graph_.result(node));
    if (from.size() != to.size() || from.size() != mesh_.axes().size()) return;
    const std::vector<AxisChange> changes = PlanRedistribution(from, to);
    for (size_t i = 0; i < changes.size();) {
      MeshAxis group;
      const size_t joined = CountJoined(changes, i, mesh_, group);
      const AxisChange& change = changes[i];
      i += joined;
      const std::string reduce =
          IsPartial(change.from) ? std::string(graph_.module().str(change.from.reduce)) : "";
      AddComputed(reduce, IsPartial(change.to));
      if (IsCut(change.from) && IsCut(change.to)) {
        cone_.exchanges.push_back({"all_to_all", group.name, ""});
      } else if (IsCut(change.from)) {
        cone_.exchanges.push_back({"all_gather", group.name, ""});
      } else if (IsPartial(change.from)) {
        const bool is_order = reduce == "max" || reduce == "min";
        cone_.exchanges.push_back({IsCut(change.to) && !is_order ? "reduce_scatter" : "all_reduce",
                                   group.name, is_order ? reduce : "sum"});
      } else if (IsCut(change.to)) {
        cone_.shards.push_back(fmt::format("{} {}", change.to.dim, group.name));
      }
    }
  }

  const Graph& graph_;
  const std::set<StableId>& others_;
  const Mesh& mesh_;
  std::set<int32_t> seen_;
  Cone cone_;
};

/// Elements of `a` that `b` has not as often.
template <class T>
std::vector<T> Without(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> rest;
  std::ranges::set_difference(a, b, std::back_inserter(rest));
  return rest;
}

std::set<StableId> IdsIn(const Graph& graph) {
  std::set<StableId> ids;
  for (const NodeId node : graph.nodes())
    ids.insert(graph.node(node).stable_id);
  return ids;
}

NodeId NodeWithId(const Graph& graph, StableId id) {
  for (const NodeId node : graph.nodes())
    if (graph.node(node).stable_id == id) return node;
  return {};
}

class Comparison {
 public:
  Comparison(const Graph& before, NodeId expected, const Graph& after, NodeId node,
             const ValueFacts& facts)
      : before_(before),
        expected_(expected),
        after_(after),
        node_(node),
        facts_(facts),
        mesh_(MeshOf(after)),
        before_ids_(IdsIn(before)),
        after_ids_(IdsIn(after)),
        is_same_(before.node(expected).stable_id == after.node(node).stable_id) {
    // Of a node that both have, its operands matter; else it is part of what differs.
    was_ = ConeMaker(before, after_ids_, mesh_).Of(expected, !is_same_);
    is_ = ConeMaker(after, before_ids_, mesh_).Of(node, !is_same_);
  }

  Diagnosis Run() const {
    using Rule = std::optional<Diagnosis> (Comparison::*)() const;
    constexpr Rule kRules[] = {
        &Comparison::InFlight,     &Comparison::Overwritten,  &Comparison::OwnCollective,
        &Comparison::OwnArguments, &Comparison::Early,        &Comparison::FirstParts,
        &Comparison::LostRoots,    &Comparison::NewOperation, &Comparison::Exchanges,
        &Comparison::Parts,        &Comparison::Roots,        &Comparison::OtherResult,
        &Comparison::OfValues,     &Comparison::Order};
    for (const Rule rule : kRules)
      if (std::optional<Diagnosis> found = (this->*rule)()) return *std::move(found);
    return {};
  }

 private:
  static Mesh MeshOf(const Graph& graph) {
    if (!graph.output().valid()) return {};
    auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
    return mesh ? *std::move(mesh) : Mesh();
  }

  std::string NameIn(const Graph& graph, StableId id) const {
    const NodeId node = NodeWithId(graph, id);
    return node.valid() ? std::string(graph.name(node)) : std::string("?");
  }

  /// A launch that something else than a wait reads.
  std::optional<Diagnosis> InFlight() const {
    if (!is_same_ && CollectiveOf(after_, node_))
      return Diagnosis{BugKind::kInFlight,
                       fmt::format("{} is returned before a wait", after_.name(node_))};
    std::vector<NodeId> readers = is_.inner;
    readers.push_back(node_);
    for (const NodeId reader : readers) {
      if (IsWait(after_, reader)) continue;
      for (const ValueId operand : after_.operands(reader)) {
        const NodeId def = after_.value(operand).def;
        if (!CollectiveOf(after_, def)) continue;
        return Diagnosis{BugKind::kInFlight, fmt::format("{} reads {} before a wait",
                                                         after_.name(reader), after_.name(def))};
      }
    }
    return std::nullopt;
  }

  /// A collective, or a part of a rank, that both graphs have.
  std::optional<Diagnosis> OwnCollective() const {
    if (!is_same_) return std::nullopt;
    const std::string_view was = before_.op(expected_), is = after_.op(node_);
    const std::string text = fmt::format("{} instead of {}", is, was);
    if (was == "strata.axis_shard.default" && is != was) {
      return Diagnosis{
          CollectiveOf(after_, node_) ? BugKind::kExtraCollective : BugKind::kWrongPart, text};
    }
    if (!CollectiveOf(before_, expected_)) return std::nullopt;
    if (is != was) return Diagnosis{BugKind::kMissingCollective, text};
    const auto changed = [&](BugKind kind, std::string_view a, std::string_view b) {
      return Diagnosis{kind, fmt::format("{} instead of {} in {}", b, a, after_.name(node_))};
    };
    const std::string_view a = ReduceOpOf(before_, expected_), b = ReduceOpOf(after_, node_);
    if (a != b) return changed(BugKind::kWrongReduction, a, b);
    const std::string_view from = GroupOf(before_, expected_), to = GroupOf(after_, node_);
    if (WithoutSuffix(from) != WithoutSuffix(to)) return changed(BugKind::kWrongGroup, from, to);
    return std::nullopt;
  }

  static bool IsNumber(const Arg& arg) {
    return arg.kind() == ArgKind::kInt || arg.kind() == ArgKind::kFloat ||
           arg.kind() == ArgKind::kBool;
  }
  static double NumberOf(const Arg& arg) {
    if (arg.kind() == ArgKind::kInt) return static_cast<double>(arg.as_int());
    if (arg.kind() == ArgKind::kBool) return arg.as_bool() ? 1 : 0;
    return arg.as_float();
  }

  /// Operators whose integers are dimensions or places, not sizes.
  static bool IsPlace(std::string_view op) {
    constexpr std::array<std::string_view, 15> kBases = {
        "select", "axis_shard", "transpose", "unsqueeze", "cat",    "stack", "softmax",     "slice",
        "gather", "sort",       "topk",      "permute",   "cumsum", "amax",  "index_select"};
    return std::ranges::find(kBases, BaseName(op)) != kBases.end();
  }

  std::optional<Diagnosis> OwnArguments() const {
    if (!is_same_ || after_.node(node_).kind != NodeKind::kCall) return std::nullopt;
    const std::string_view was = before_.op(expected_), is = after_.op(node_);
    if (was != is)
      return Diagnosis{BugKind::kWrongOperation, fmt::format("{} instead of {}", is, was)};
    const auto a = before_.args(expected_), b = after_.args(node_);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!IsNumber(a[i]) || !IsNumber(b[i]) || NumberOf(a[i]) == NumberOf(b[i])) continue;
      const std::string what =
          fmt::format("{} instead of {} in {}", NumberOf(b[i]), NumberOf(a[i]), after_.name(node_));
      if (i == 1 && IsPlace(is)) return Diagnosis{BugKind::kWrongDim, "dimension " + what};
      const bool is_begin = BaseName(is) == "slice" || BaseName(is) == "select";
      if (i == 2 && is_begin) return Diagnosis{BugKind::kWrongPart, "begin " + what};
      // Sizes are those of a rank, and attention by position has a mask instead of a flag.
      const bool may_be_local = a[i].kind() == ArgKind::kBool ||
                                (a[i].kind() == ArgKind::kInt && i >= 2 && is_lowering());
      if (!may_be_local) return Diagnosis{BugKind::kLiteral, what};
    }
    if (std::optional<Diagnosis> found = OwnKeywords()) return found;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].is_value() && b[i].kind() == ArgKind::kNone)
        return Diagnosis{BugKind::kMissingOperation,
                         fmt::format("argument {} of {} is left out", i, after_.name(node_))};
    }
    return SwappedOperands();
  }

  std::optional<Diagnosis> OwnKeywords() const {
    const size_t count =
        std::min<size_t>(before_.node(expected_).num_kwargs, after_.node(node_).num_kwargs);
    for (size_t i = 0; i < count; ++i) {
      const NamedArg a = before_.kwarg(expected_, i), b = after_.kwarg(node_, i);
      if (a.value.kind() != ArgKind::kFloat || b.value.kind() != ArgKind::kFloat) continue;
      if (a.value.as_float() == b.value.as_float()) continue;
      return Diagnosis{BugKind::kLiteral, fmt::format("{} instead of {} in {}", b.value.as_float(),
                                                      a.value.as_float(), after_.name(node_))};
    }
    return std::nullopt;
  }

  bool is_lowering() const { return mesh_.num_ranks() > 1; }

  std::vector<StableId> RootsOfOperand(const Graph& graph, ValueId operand,
                                       const std::set<StableId>& others) const {
    std::vector<StableId> roots =
        ConeMaker(graph, others, mesh_).Of(graph.value(operand).def, true).roots;
    std::ranges::sort(roots);
    roots.erase(std::ranges::unique(roots).begin(), roots.end());
    return roots;
  }

  std::optional<Diagnosis> SwappedOperands() const {
    const auto a = before_.operands(expected_), b = after_.operands(node_);
    if (a.size() != b.size()) return std::nullopt;
    std::vector<std::vector<StableId>> was, is;
    for (size_t i = 0; i < a.size(); ++i) {
      was.push_back(RootsOfOperand(before_, a[i], after_ids_));
      is.push_back(RootsOfOperand(after_, b[i], before_ids_));
    }
    if (was == is) return std::nullopt;
    auto sorted_was = was, sorted_is = is;
    std::ranges::sort(sorted_was);
    std::ranges::sort(sorted_is);
    if (sorted_was != sorted_is) return std::nullopt;
    return Diagnosis{BugKind::kExchanged,
                     fmt::format("operands of {} are exchanged", after_.name(node_))};
  }

  /// A sum or function of a rank's summand, before the sum over the ranks, or a summand of a rank
  /// that is added after it.
  std::optional<Diagnosis> Early() const {
    if (was_.is_lowered_operator || was_.computes) return std::nullopt;
    for (const NodeId node : is_.inner) {
      if (BaseName(after_.op(node)) == "add" && AddsToSum(node))
        return Diagnosis{
            BugKind::kPartialOperand,
            fmt::format("{} adds a rank's summand to a sum over the ranks", after_.name(node))};
      if (!IsCollective(after_, node, CollectiveKind::kAllReduce) &&
          !IsCollective(after_, node, CollectiveKind::kReduceScatter))
        continue;
      const NodeId summand = after_.value(after_.operands(node)[0]).def;
      const bool is_new = !before_ids_.contains(after_.node(summand).stable_id);
      const bool is_made = BaseName(after_.op(summand)).ends_with("_like");
      if (!is_new || !ComputesNumbers(after_, summand) || is_made || IsScaling(summand)) continue;
      return Diagnosis{BugKind::kPartialOperand,
                       fmt::format("{} {} on every rank before {}", after_.name(summand),
                                   BaseName(after_.op(summand)) == "add" ? "adds" : "computes",
                                   after_.name(node))};
    }
    return std::nullopt;
  }

  bool AddsToSum(NodeId add) const {
    int sums = 0, others = 0;
    for (const ValueId operand : after_.operands(add)) {
      const NodeId def = after_.value(operand).def;
      const bool is_sum =
          IsWait(after_, def) && IsCollective(after_, after_.value(after_.operands(def)[0]).def,
                                              CollectiveKind::kAllReduce);
      ++(is_sum ? sums : others);
    }
    return sums == 1 && others == 1;
  }

  /// x·c or x/c with a number c, or with a value that depends on the rank.
  bool IsScaling(NodeId node) const {
    const std::string_view base = BaseName(after_.op(node));
    return base == "mul" || base == "div";
  }

  /// A new node that computes something: a factor, what depends on the rank, another operator.
  std::optional<Diagnosis> NewOperation() const {
    if (was_.is_lowered_operator) return std::nullopt;
    const std::vector<std::string> extra = Without(is_.computed, was_.computed);
    const auto is_extra = [&](std::string_view base) {
      return std::ranges::find(extra, base) != extra.end();
    };
    for (const NodeId node : is_.inner) {
      const std::string_view base = BaseName(after_.op(node));
      if (!is_extra(base) || !ComputesNumbers(after_, node)) continue;
      if (is_extra("axis_index"))
        return Diagnosis{BugKind::kSomeRanks,
                         fmt::format("{} depends on the rank", after_.name(node))};
      const auto args = after_.args(node);
      const bool is_factor = IsScaling(node) && args.size() > 1 && IsNumber(args[1]);
      return Diagnosis{is_factor ? BugKind::kFactor : BugKind::kExtraOperation,
                       fmt::format("{} ({}) was not there", after_.name(node), after_.op(node))};
    }
    return std::nullopt;
  }

  /// Memory of an operand to which a new node writes.
  std::optional<Diagnosis> Overwritten() const {
    std::set<ValueId> read;
    std::vector<NodeId> readers = is_.inner;
    readers.push_back(node_);
    for (const NodeId reader : readers)
      for (const ValueId operand : after_.operands(reader))
        read.insert(OwnerOf(after_, operand));
    for (const NodeId reader : readers) {
      if (!IsWait(after_, reader)) continue;
      const NodeId launch = after_.value(after_.operands(reader)[0]).def;
      for (const ValueId sent : after_.operands(launch))
        read.insert(OwnerOf(after_, sent));
    }
    for (const NodeId node : after_.nodes()) {
      if (before_ids_.contains(after_.node(node).stable_id) || !Mutates(after_, node)) continue;
      if (std::ranges::find(is_.inner, node) != is_.inner.end()) continue;
      for (const ValueId operand : after_.operands(node)) {
        if (!read.contains(OwnerOf(after_, operand))) continue;
        return Diagnosis{
            facts_.is_undefined ? BugKind::kInFlight : BugKind::kOverwritten,
            fmt::format("{} writes to {}", after_.name(node), after_.value_name(operand))};
      }
    }
    return std::nullopt;
  }

  /// Of collectives that both graphs have, and that one of them does not read here any more, too.
  std::vector<Exchange> ExchangesOf(const Graph& graph, const std::set<StableId>& others,
                                    const Cone& cone, const Cone& other) const {
    constexpr int kMaxDepth = 4;
    std::vector<Exchange> exchanges = cone.exchanges;
    std::vector<StableId> roots = cone.roots;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      std::vector<StableId> next;
      for (const StableId id : roots) {
        const NodeId node = NodeWithId(graph, id);
        const bool is_lost = std::ranges::find(other.roots, id) == other.roots.end();
        if (!is_lost || !node.valid() || !IsWait(graph, node)) continue;
        const NodeId launch = graph.value(graph.operands(node)[0]).def;
        if (!CollectiveOf(graph, launch)) continue;
        exchanges.push_back(ConeMaker::ExchangeOf(graph, launch));
        const Cone more = ConeMaker(graph, others, mesh_).Of(launch, false);
        exchanges.insert(exchanges.end(), more.exchanges.begin(), more.exchanges.end());
        next.insert(next.end(), more.roots.begin(), more.roots.end());
      }
      roots = std::move(next);
    }
    std::ranges::sort(exchanges);
    return exchanges;
  }

  std::optional<Diagnosis> Exchanges() const {
    if (was_.is_lowered_operator && !is_lowered_before()) return std::nullopt;
    const std::vector<Exchange> from = ExchangesOf(before_, after_ids_, was_, is_),
                                to = ExchangesOf(after_, before_ids_, is_, was_);
    const auto missing = Without(from, to);
    const auto extra = Without(to, from);
    const size_t was = from.size(), is = to.size();
    if (missing.empty() && extra.empty()) return std::nullopt;
    // Buckets and shared gathers have fewer collectives: what is missing must be missing at all.
    if (extra.empty() && is_lowered_before()) {
      for (const Exchange& exchange : missing)
        if (std::ranges::find(to, exchange) == to.end())
          return Diagnosis{BugKind::kMissingCollective, "no " + exchange.Text()};
      return std::nullopt;
    }
    if (!missing.empty() && !extra.empty()) {
      for (const Exchange& m : missing) {
        for (const Exchange& e : extra) {
          if (m.kind == e.kind && m.group == e.group)
            return Diagnosis{BugKind::kWrongReduction,
                             fmt::format("{} instead of {}", e.Text(), m.Text())};
          if (m.kind != e.kind && m.group == e.group)
            return Diagnosis{BugKind::kWrongOperation,
                             fmt::format("{} instead of {}", e.Text(), m.Text())};
          if (m.kind == e.kind && m.reduce == e.reduce)
            return Diagnosis{BugKind::kWrongGroup,
                             fmt::format("{} instead of {}", e.Text(), m.Text())};
        }
      }
    }
    if (is < was || extra.empty())
      return Diagnosis{BugKind::kMissingCollective, "no " + missing.front().Text()};
    // One collective may become several; but of a kind and group that were not there is one more.
    const bool is_new = std::ranges::any_of(extra, [&](const Exchange& exchange) {
      return std::ranges::find(from, exchange) == from.end();
    });
    if (!extra.empty() && is > was && (is_new || !is_lowered_before()))
      return Diagnosis{BugKind::kExtraCollective, extra.front().Text() + " was not expected"};
    return std::nullopt;
  }

  /// Whether the graph before the pass has collectives, too.
  bool is_lowered_before() const { return IsLowered(before_); }

  std::optional<Diagnosis> FirstParts() const {
    if (!facts_.is_first_part) return std::nullopt;
    return Diagnosis{BugKind::kWrongPart, "each rank has what the first one should have"};
  }

  std::optional<Diagnosis> Parts() const {
    const auto missing = Without(was_.shards, is_.shards), extra = Without(is_.shards, was_.shards);
    if (missing.empty() || extra.empty() || was_.is_lowered_operator) return std::nullopt;
    const auto axis = [](const std::string& text) { return text.substr(text.find(' ') + 1); };
    if (axis(missing[0]) == axis(extra[0]))
      return Diagnosis{BugKind::kWrongDim,
                       fmt::format("a part of dimension {} instead of {}", extra[0], missing[0])};
    return Diagnosis{BugKind::kWrongGroup,
                     fmt::format("a part by {} instead of {}", axis(extra[0]), axis(missing[0]))};
  }

  /// As Roots, where what is not read any more computes something.
  std::optional<Diagnosis> LostRoots() const {
    const std::optional<Diagnosis> found = Roots();
    const bool is_of_collective = found && found->kind == BugKind::kMissingCollective;
    return is_of_collective || was_.is_lowered_operator ? std::nullopt : found;
  }

  /// Another result of the same node, or another operand in the same place.
  std::optional<Diagnosis> OtherResult() const {
    for (const auto& [id, index] : was_.results) {
      if (is_.results.contains({id, index})) continue;
      const auto other = std::ranges::find(is_.results, id, &std::pair<StableId, size_t>::first);
      if (other == is_.results.end()) continue;
      return Diagnosis{BugKind::kExchanged,
                       fmt::format("reads result {} of {} instead of result {}", other->second,
                                   NameIn(after_, id), index)};
    }
    if (!is_same_) return std::nullopt;
    const auto a = before_.operands(expected_), b = after_.operands(node_);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (RootsOfOperand(before_, a[i], after_ids_) == RootsOfOperand(after_, b[i], before_ids_))
        continue;
      return Diagnosis{BugKind::kExchanged,
                       fmt::format("operand {} of {} is another value", i, after_.name(node_))};
    }
    return std::nullopt;
  }

  /// Another value is read, or that which an operation that is left out reads.
  std::optional<Diagnosis> Roots() const {
    std::vector<StableId> was = was_.roots, is = is_.roots;
    for (auto* roots : {&was, &is}) {
      std::ranges::sort(*roots);
      roots->erase(std::ranges::unique(*roots).begin(), roots->end());
    }
    const std::vector<StableId> missing = Without(was, is), extra = Without(is, was);
    if (missing.empty()) return std::nullopt;
    const NodeId lost = NodeWithId(before_, missing[0]);
    const bool is_collective = IsWait(before_, lost) || CollectiveOf(before_, lost);
    if (extra.empty() && is_collective && Reads(lost, is)) return LeftOut(lost);
    if (extra.empty()) {
      // What the lost one reads is among the rest: it is left out.
      if (Reads(lost, is)) return LeftOut(lost);
      return Diagnosis{BugKind::kExchanged, fmt::format("{} is not read", before_.name(lost))};
    }
    if (Reads(lost, extra)) return LeftOut(lost);
    return Diagnosis{
        BugKind::kExchanged,
        fmt::format("reads {} where {} was read", NameIn(after_, extra[0]), before_.name(lost))};
  }

  Diagnosis LeftOut(NodeId lost) const {
    if (IsWait(before_, lost) || CollectiveOf(before_, lost))
      return {BugKind::kMissingCollective, fmt::format("{} is left out", before_.name(lost))};
    return {BugKind::kMissingOperation,
            fmt::format("{} ({}) is left out", before_.name(lost), before_.op(lost))};
  }

  /// Whether an operand of `node`, maybe a redistribution, comes from one of `ids`.
  bool Reads(NodeId node, const std::vector<StableId>& ids) const {
    if (!node.valid()) return false;
    if (IsWait(before_, node)) node = before_.value(before_.operands(node)[0]).def;
    const Cone cone = ConeMaker(before_, after_ids_, mesh_).Of(node, false);
    return std::ranges::any_of(
        cone.roots, [&](StableId id) { return std::ranges::find(ids, id) != ids.end(); });
  }

  std::optional<Diagnosis> OfValues() const {
    if (!facts_.summand_of.empty())
      return Diagnosis{BugKind::kMissingCollective,
                       fmt::format("ranks of {} have summands", facts_.summand_of)};
    if (!facts_.factor_of.empty()) {
      const bool is_multiple = facts_.factor.find('/') == std::string::npos;
      const BugKind kind = is_multiple ? BugKind::kExtraCollective : BugKind::kWrongReduction;
      return Diagnosis{
          kind, fmt::format("a factor {}: the ranks of {}", facts_.factor, facts_.factor_of)};
    }
    if (!facts_.factor.empty())
      return Diagnosis{BugKind::kFactor, fmt::format("a factor {}", facts_.factor)};
    if (facts_.is_other_rank)
      return Diagnosis{BugKind::kWrongPart, "each rank has what another one should have"};
    if (facts_.is_permuted)
      return Diagnosis{BugKind::kPermuted, "the elements are in another order"};
    if (facts_.is_undefined) return Diagnosis{BugKind::kUnwritten, "reads what was not written"};
    return std::nullopt;
  }

  /// The same values through the same collectives: pieces in another order.
  std::optional<Diagnosis> Order() const {
    for (const NodeId node : is_.inner) {
      const std::string_view base = BaseName(after_.op(node));
      if (base == "transpose" && !was_.is_lowered_operator)
        return Diagnosis{BugKind::kPermuted, fmt::format("{} was not there", after_.name(node))};
      if (base == "cat" || base.starts_with("split"))
        return Diagnosis{BugKind::kExchanged,
                         fmt::format("pieces of {} are in another order", after_.name(node))};
    }
    return std::nullopt;
  }

  const Graph& before_;
  const NodeId expected_;
  const Graph& after_;
  const NodeId node_;
  const ValueFacts& facts_;
  const Mesh mesh_;
  const std::set<StableId> before_ids_, after_ids_;
  const bool is_same_;
  Cone was_, is_;
};

// --- Facts -------------------------------------------------------------------------------------

bool HasUndefined(const Tensor& tensor) {
  if (tensor.domain() != Domain::kFloat) return false;
  const std::vector<uint64_t> words = tensor.Read();
  return std::ranges::find(words, kUndefined) != words.end();
}

/// The factor between two tensors; none: there is none, or all elements are zero.
std::optional<Residue> FactorBetween(const Tensor& expected, const Tensor& actual) {
  if (expected.domain() != Domain::kFloat || expected.sizes() != actual.sizes() ||
      actual.domain() != Domain::kFloat)
    return std::nullopt;
  const std::vector<Residue> a = expected.Read(), b = actual.Read();
  std::optional<Residue> factor;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!IsNumber(a[i]) || !IsNumber(b[i])) return std::nullopt;
    if (!factor && a[i] != 0) factor = Div(b[i], a[i]);
    if (factor && Mul(a[i], *factor) != b[i]) return std::nullopt;
    if (!factor && b[i] != 0) return std::nullopt;
  }
  return factor;
}

/// The factor of all ranks; ranks whose elements are zero have any.
std::optional<Residue> FactorOfAll(std::span<const Tensor> expected,
                                   std::span<const Tensor> actual) {
  std::optional<Residue> factor;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const std::optional<Residue> own = FactorBetween(expected[rank], actual[rank]);
    if (!own || (factor && *factor != *own)) return std::nullopt;
    factor = own;
  }
  return factor;
}

bool SumsUp(std::span<const Tensor> expected, std::span<const Tensor> actual, const Mesh& mesh,
            const MeshAxis& axis) {
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const auto members = mesh.GroupOf(axis.name, static_cast<int64_t>(rank));
    if (!members) return false;
    Tensor sum = actual[static_cast<size_t>((*members)[0])];
    for (size_t i = 1; i < members->size(); ++i) {
      const auto next = Add(sum, actual[static_cast<size_t>((*members)[i])]);
      if (!next) return false;
      sum = *next;
    }
    if (!SameElements(expected[rank], sum)) return false;
  }
  return true;
}

bool IsFirstPart(std::span<const Tensor> expected, std::span<const Tensor> actual) {
  bool differs = false;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    if (!SameElements(expected[0], actual[rank])) return false;
    differs = differs || !SameElements(expected[0], expected[rank]);
  }
  return differs;
}

bool IsOtherRank(std::span<const Tensor> expected, std::span<const Tensor> actual) {
  return std::ranges::all_of(actual, [&](const Tensor& part) {
    return std::ranges::any_of(expected,
                               [&](const Tensor& other) { return SameElements(other, part); });
  });
}

/// Whether the ranks together have the expected elements, each as often.
bool IsPermuted(std::span<const Tensor> expected, std::span<const Tensor> actual) {
  std::vector<uint64_t> was, is;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const std::vector<uint64_t> a = expected[rank].Read(), b = actual[rank].Read();
    was.insert(was.end(), a.begin(), a.end());
    is.insert(is.end(), b.begin(), b.end());
  }
  std::ranges::sort(was);
  std::ranges::sort(is);
  return was.size() > 1 && was == is;
}

}  // namespace

std::string_view ToString(BugKind kind) {
  constexpr std::array<std::string_view, 21> kNames = {
      "other",           "missing-collective", "extra-collective", "wrong-group",
      "wrong-reduction", "partial-operand",    "wrong-dim",        "wrong-offset",
      "exchanged",       "missing-operation",  "wrong-operation",  "literal",
      "wrong-factor",    "in-flight",          "unwritten",        "invalid-operation",
      "contract",        "permuted",           "some-ranks",       "extra-operation",
      "overwritten"};
  return kNames[static_cast<size_t>(kind)];
}

ValueFacts FactsOf(std::span<const Tensor> expected, std::span<const Tensor> actual,
                   const Mesh& mesh) {
  ValueFacts facts;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    facts.has_other_sizes = facts.has_other_sizes || expected[rank].sizes() != actual[rank].sizes();
    facts.is_undefined =
        facts.is_undefined || (HasUndefined(actual[rank]) && !HasUndefined(expected[rank]));
  }
  if (facts.has_other_sizes || facts.is_undefined || expected.empty()) return facts;
  const std::optional<Residue> factor = FactorOfAll(expected, actual);
  if (factor) facts.factor = FractionText(*factor);
  for (const MeshAxis& axis : mesh.axes()) {
    if (factor && (*factor == FromInteger(axis.size) || *factor == Inverse(FromInteger(axis.size))))
      facts.factor_of = axis.name;
    if (facts.summand_of.empty() && expected.size() > 1 && SumsUp(expected, actual, mesh, axis))
      facts.summand_of = axis.name;
  }
  if (expected.size() > 1) {
    facts.is_first_part = IsFirstPart(expected, actual);
    facts.is_other_rank = IsOtherRank(expected, actual);
  }
  facts.is_permuted = IsPermuted(expected, actual);
  return facts;
}

Diagnosis Diagnose(const Graph& before, NodeId expected, const Graph& after, NodeId node,
                   const ValueFacts& facts) {
  return Comparison(before, expected, after, node, facts).Run();
}

}  // namespace strata::prove
