#include "prove/foreign/explain.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/core/collectives.h"
#include "prove/evaluation/evaluator.h"
#include "prove/foreign/call_diagnosis.h"
#include "prove/foreign/causes.h"
#include "prove/foreign/contracts.h"
#include "prove/foreign/lineage.h"

namespace strata::prove {
namespace {

constexpr std::string_view kCollectives = "_c10d_functional.";
constexpr size_t kMaxNames = 3;

/// All that is known of an attempt that failed.
struct Evidence {
  const ForeignSetup& setup;
  const CompiledProgram& single;
  std::span<const CompiledProgram> ranks;
  const Attempt& attempt;
  SingleValues values;
  ValueTable table;
  std::map<Place, Value> of_single;
  std::map<Place, std::vector<Value>> of_ranks;
};

/// Evaluates both sides again, and keeps all values.
Status Collect(Evidence& evidence, Lineage& lineage, uint64_t seed) {
  const auto keep = [&](Part part, NodeId node, std::span<Value> results) {
    evidence.table.Add(part, node, results);
    for (size_t i = 0; i < results.size(); ++i)
      evidence.of_single[{part, node, i}] = CopyOf(results[i]);
  };
  STRATA_TRY(evidence.values, EvaluateSingle(evidence.single, seed, keep));
  const auto look = [&](Part part, NodeId node, std::span<Values> results) {
    lineage.Add(part, node, results);
    for (size_t i = 0; i < results[0].size(); ++i)
      for (const Values& of_rank : results)
        evidence.of_ranks[{part, node, i}].push_back(CopyOf(of_rank[i]));
  };
  STRATA_RETURN_IF_ERROR(
      Try(evidence.setup, evidence.ranks, evidence.values, evidence.attempt.setting, seed, look));
  return Ok();
}

class Explanation {
 public:
  Explanation(const Evidence& evidence, const Lineage& lineage)
      : evidence_(evidence),
        setup_(evidence.setup),
        lineage_(lineage),
        finder_(evidence.single, evidence.ranks[0], lineage) {}

  /// One finding for each cause: an error reaches many outputs.
  std::vector<Finding> All() {
    std::vector<std::string> keys;
    for (const ComparedOutput& output : evidence_.attempt.outputs) {
      if (!output.difference) continue;
      const std::optional<Cause> cause = CauseOf(output);
      const auto found = std::ranges::find_if(
          causes_, [&](const Group& group) { return cause && group.cause == cause; });
      if (found != causes_.end()) {
        found->keys.push_back(output.key);
      } else {
        causes_.push_back({cause, &output, {output.key}});
      }
    }
    std::vector<Finding> findings;
    for (const Group& group : causes_)
      findings.push_back(FindingOf(group));
    return findings;
  }

 private:
  struct Group {
    std::optional<Cause> cause;
    const ComparedOutput* output;  ///< the first that it reaches
    std::vector<std::string> keys;
  };

  /// None: an input, which is written to.
  std::optional<ValueId> ValueOf(const ComparedOutput& output) const {
    if (!output.index) return std::nullopt;
    const Graph& graph = GraphOf(evidence_.ranks[0], output.part);
    return graph.operands(graph.output())[*output.index];
  }

  std::optional<Cause> CauseOf(const ComparedOutput& output) const {
    if (const std::string factor = FactorIn(*output.difference); !factor.empty())
      if (const auto cause = CauseOfFactor(output.part, factor)) return cause;
    const auto value = ValueOf(output);
    return value ? finder_.CauseOf(output.part, *value) : std::nullopt;
  }

  /// "1/2" of "rank 0: 1/2 of the expected value"; "": no factor.
  static std::string FactorIn(std::string_view difference) {
    const size_t end = difference.find(kMultiple);
    if (end == difference.npos) return "";
    const size_t begin = difference.rfind(": ", end) + 2;
    return std::string(difference.substr(begin, end - begin));
  }

  /// The first node whose values are that multiple of what they should be: of values of one device
  /// or, of gradients whose mean is taken outside of the graphs, of as many times these.
  std::optional<Cause> CauseOfFactor(Part part, std::string_view text) const {
    const Residue factor = ResidueOf(text);
    Residue count = 1;
    for (size_t axis = 0; axis < setup_.mesh.axes().size(); ++axis)
      if (evidence_.attempt.setting.outside[axis] == Term::Kind::kMean)
        count = Mul(count, FromInteger(setup_.mesh.axes()[axis].size));
    if (part == Part::kBackward && count != 1) {
      const std::set<NodeId> gradients = GradientsOf(GraphOf(evidence_.ranks[0], part));
      const auto is_gradient = [&](NodeId node) { return gradients.contains(node); };
      if (auto cause = FirstMultiple(part, Mul(factor, count), is_gradient)) return cause;
    }
    return FirstMultiple(
        part, factor, [&](NodeId node) { return lineage_.OriginOf({part, node, 0}) == nullptr; });
  }

  /// Calls that read tangents, or what was computed of them.
  static std::set<NodeId> GradientsOf(const Graph& graph) {
    std::set<NodeId> read;
    for (const NodeId node : graph.nodes()) {
      const bool is_tangent = graph.attribute(node, "descriptor").starts_with("Tangent");
      const std::vector<ValueId> operands = graph.operands(node);
      if (is_tangent || std::ranges::any_of(operands, [&](ValueId operand) {
            return read.contains(graph.value(operand).def);
          }))
        read.insert(node);
    }
    return read;
  }

  template <class Pred>
  std::optional<Cause> FirstMultiple(Part part, Residue factor, Pred&& may_be) const {
    const Graph& graph = GraphOf(evidence_.ranks[0], part);
    const Residue inverse = Inverse(factor);
    for (const NodeId node : graph.nodes()) {
      const auto parts = evidence_.of_ranks.find({part, node, 0});
      if (graph.node(node).kind != NodeKind::kCall || parts == evidence_.of_ranks.end()) continue;
      if (!may_be(node)) continue;
      if (const auto twin = lineage_.OriginOfMultiple(parts->second, inverse))
        return Cause{part, node, twin->place};
    }
    return std::nullopt;
  }

  static Residue ResidueOf(std::string_view fraction) {
    const size_t slash = fraction.find('/');
    const auto number = [](std::string_view text) {
      int64_t value = 1;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return FromInteger(value);
    };
    if (slash == fraction.npos) return number(fraction);
    return Div(number(fraction.substr(0, slash)), number(fraction.substr(slash + 1)));
  }

  Finding FindingOf(const Group& group) const {
    const ComparedOutput& output = *group.output;
    const Part part = group.cause ? group.cause->part : output.part;
    const Graph& graph = GraphOf(evidence_.ranks[0], part);
    const auto value = ValueOf(output);
    const NodeId node = group.cause ? group.cause->node
                        : value     ? graph.value(*value).def
                                    : graph.output();
    Finding finding{
        .node = std::string(graph.name(node)),
        .reference = ReferenceOf(group),
        .graph = std::string(graph.name_text()),
        .reference_graph = std::string(GraphOf(evidence_.single, part).name_text()),
        .module = Shortened(group.keys),
        .what = WhatDiffers(group),
        .diagnosis = group.cause ? DiagnosisOf(*group.cause, output) : DiagnosisOf(output),
        .from = {}};
    if (group.cause) {
      for (const ValueId operand : graph.operands(node))
        finding.from.push_back(OperandText(graph, part, operand));
    }
    return finding;
  }

  std::string WhatDiffers(const Group& group) const {
    const ComparedOutput& output = *group.output;
    const std::string what = fmt::format("not {}: {}{}", RelationText(output.relation, setup_.mesh),
                                         *output.difference, WeightsText(output));
    if (!group.cause) return what;
    return fmt::format("the difference begins here; {} is {}", output.key, what);
  }

  /// "; the ranks' values add up to it with the weights 3/7, 4/7"; "": with none.
  std::string WeightsText(const ComparedOutput& output) const {
    const auto value = ValueOf(output);
    const auto expected = SingleValueOf(output);
    if (!value || !expected) return "";
    const auto parts = evidence_.of_ranks.find(finder_.PlaceOf(output.part, *value));
    const Graph& single = GraphOf(evidence_.single, output.part);
    const auto whole = evidence_.of_single.find(
        {output.part, single.value(*expected).def, single.result_index(*expected)});
    if (parts == evidence_.of_ranks.end() || whole == evidence_.of_single.end()) return "";
    const std::vector<std::string> weights = WeightsOf(whole->second, parts->second);
    // Equal ones are a missing sum, or a factor.
    if (weights.empty() || std::ranges::count(weights, weights[0]) == std::ssize(weights))
      return "";
    return fmt::format("; the ranks' values add up to it with the weights {}",
                       fmt::join(weights, ", "));
  }

  /// The output of one device; none: it has no such output.
  std::optional<ValueId> SingleValueOf(const ComparedOutput& output) const {
    const Graph& graph = GraphOf(evidence_.single, output.part);
    for (const KeyedOutput& other : OutputsOf(graph, setup_.names))
      if (other.key == output.key) return graph.operands(graph.output())[other.index];
    return std::nullopt;
  }

  static std::string Shortened(const std::vector<std::string>& keys) {
    if (keys.size() <= kMaxNames) return fmt::format("{}", fmt::join(keys, ", "));
    return fmt::format("{} and {} more", fmt::join(std::span(keys).first(kMaxNames - 1), ", "),
                       keys.size() - kMaxNames + 1);
  }

  /// "mm_1 (P(sum) on tp)"
  std::string OperandText(const Graph& graph, Part part, ValueId operand) const {
    const Lineage::Origin* origin = lineage_.OriginOf(finder_.PlaceOf(part, operand));
    if (origin == nullptr) return std::string(graph.value_name(operand));
    return fmt::format("{} ({})", graph.value_name(operand),
                       RelationText(origin->relation, setup_.mesh));
  }

  std::string ReferenceOf(const Group& group) const {
    if (group.cause) {
      if (group.cause->twin) return NameOf(*group.cause->twin);
      const auto origin = OperandOrigin(*group.cause);
      return origin == nullptr ? "none" : NameOf(origin->place);
    }
    const auto value = SingleValueOf(*group.output);
    return value ? std::string(GraphOf(evidence_.single, group.output->part).value_name(*value))
                 : "none";
  }

  std::string NameOf(const Place& place) const {
    return std::string(GraphOf(evidence_.single, place.part).name(place.node));
  }

  /// What the first operand of a cause is of one device; null: it has none.
  const Lineage::Origin* OperandOrigin(const Cause& cause) const {
    const Graph& graph = GraphOf(evidence_.ranks[0], cause.part);
    const std::vector<ValueId> operands = graph.operands(cause.node);
    return operands.empty() ? nullptr : lineage_.OriginOf(finder_.PlaceOf(cause.part, operands[0]));
  }

  Diagnosis DiagnosisOf(const Cause& cause, const ComparedOutput& output) const {
    const Graph& graph = GraphOf(evidence_.ranks[0], cause.part);
    if (graph.op(cause.node).starts_with(kCollectives)) {
      if (auto diagnosis = OfCollective(cause)) return *std::move(diagnosis);
    }
    if (const std::string factor = FactorIn(*output.difference); !factor.empty())
      return {.kind = BugKind::kFactor, .reason = "a factor " + factor};
    if (auto diagnosis = OfTwin(cause)) return *std::move(diagnosis);
    if (auto diagnosis = DiagnoseEarlySum(evidence_.ranks[0], finder_, lineage_, cause))
      return *std::move(diagnosis);
    for (const ValueId operand : graph.operands(cause.node)) {
      const Lineage::Origin* origin = lineage_.OriginOf(finder_.PlaceOf(cause.part, operand));
      if (origin == nullptr || std::ranges::none_of(origin->relation, &Term::is_partial)) continue;
      return {.kind = BugKind::kMissingCollective,
              .reason = fmt::format("reads {}, which is {}", graph.value_name(operand),
                                    RelationText(origin->relation, setup_.mesh))};
    }
    return DiagnoseCall(evidence_.single, evidence_.ranks[0], finder_, lineage_, cause)
        .value_or(Diagnosis());
  }

  /// Whether the ranks of a group differ on an axis.
  bool Spans(const std::vector<int64_t>& members, size_t axis) const {
    return std::ranges::any_of(members, [&](int64_t member) {
      return setup_.mesh.Coordinates(member)[axis] !=
             setup_.mesh.Coordinates(members.front())[axis];
    });
  }

  std::optional<Diagnosis> OfCollective(const Cause& cause) const {
    const Graph& graph = GraphOf(evidence_.ranks[0], cause.part);
    const Lineage::Origin* origin = OperandOrigin(cause);
    const auto members = setup_.groups.MembersOf(GroupOf(graph, cause.node));
    if (origin == nullptr || !members) return std::nullopt;
    for (size_t axis = 0; axis < origin->relation.size(); ++axis) {
      const std::string& name = setup_.mesh.axes()[axis].name;
      const Term& term = origin->relation[axis];
      if (term.is_partial() && !Spans(*members, axis)) {
        return Diagnosis{
            .kind = BugKind::kWrongGroup,
            .reason = fmt::format("its operand is {} on {}, along which ranks {} do not "
                                  "lie",
                                  TermText(term), name, fmt::join(*members, ", "))};
      }
      if (term.kind == Term::Kind::kReplicate && Spans(*members, axis)) {
        return Diagnosis{.kind = BugKind::kExtraCollective,
                         .reason = fmt::format("its operand is R on {}", name)};
      }
    }
    return std::nullopt;
  }

  /// By the node of one device that computes what the cause should.
  std::optional<Diagnosis> OfTwin(const Cause& cause) const {
    if (!cause.twin) return std::nullopt;
    const auto whole = evidence_.of_single.find(*cause.twin);
    const auto parts = evidence_.of_ranks.find({cause.part, cause.node, 0});
    if (whole == evidence_.of_single.end() || parts == evidence_.of_ranks.end())
      return std::nullopt;
    const auto* expected = std::get_if<Tensor>(&whole->second);
    const std::vector<Sizes> local = SizesOnRanks(parts->second);
    if (expected == nullptr || local.empty()) return std::nullopt;
    const auto candidates = CandidatesOf(expected->sizes(), local, nullptr, setup_.mesh);
    if (!candidates) return std::nullopt;
    for (const Relation& relation : candidates->relations) {
      const bool is_cut = std::ranges::any_of(
          relation, [](const Term& term) { return term.kind == Term::Kind::kShard; });
      const Tensor first = PartOf(*expected, relation, setup_.mesh, 0);
      const bool are_first = std::ranges::all_of(parts->second, [&](const Value& part) {
        const auto* tensor = std::get_if<Tensor>(&part);
        return tensor != nullptr && SameElements(first, *tensor);
      });
      if (!is_cut || !are_first) continue;
      return Diagnosis{.kind = BugKind::kWrongPart,
                       .reason = "every rank has the part of rank 0, expected " +
                                 RelationText(relation, setup_.mesh)};
    }
    return std::nullopt;
  }

  Diagnosis DiagnosisOf(const ComparedOutput& output) const {
    const std::vector<Value>& parts = evidence_.attempt.ranks.outputs.at(output.key);
    const SingleValues& values = evidence_.values;
    if (const std::string factor = FactorIn(*output.difference); !factor.empty())
      return {.kind = BugKind::kFactor, .reason = "a factor " + factor};
    if (const auto relation = RelationTo(values.outputs.at(output.key), parts, setup_.mesh))
      return OfRelation(output.relation, *relation);
    for (const auto& [key, other] : values.outputs) {
      if (key == output.key) continue;
      if (const auto relation = RelationTo(other, parts, setup_.mesh)) {
        return {
            .kind = BugKind::kExchanged,
            .reason = fmt::format("it is the {}, {}", key, RelationText(*relation, setup_.mesh))};
      }
    }
    return {};
  }

  /// What ranks hold is what they should hold, in another way.
  Diagnosis OfRelation(const Relation& expected, const Relation& found) const {
    Diagnosis diagnosis = {.kind = BugKind::kOther,
                           .reason = "it is " + RelationText(found, setup_.mesh)};
    for (size_t axis = 0; axis < found.size(); ++axis) {
      if (found[axis] == expected[axis]) continue;
      if (found[axis].is_partial() || expected[axis].kind == Term::Kind::kReplicate) {
        diagnosis.kind = BugKind::kMissingCollective;
      } else if (found[axis].kind == Term::Kind::kShard) {
        diagnosis.kind = BugKind::kWrongDim;
      }
    }
    return diagnosis;
  }

  const Evidence& evidence_;
  const ForeignSetup& setup_;
  const Lineage& lineage_;
  const CauseFinder finder_;
  std::vector<Group> causes_;
};

}  // namespace

Result<std::vector<Finding>> Explain(const ForeignSetup& setup, const CompiledProgram& single,
                                     std::span<const CompiledProgram> ranks, const Attempt& attempt,
                                     const ExplainOptions& options) {
  if (attempt.failures() == 0) return std::vector<Finding>();
  Evidence evidence{setup, single, ranks, attempt, {}, {}, {}, {}};
  Lineage lineage(evidence.table, setup.mesh);
  STRATA_RETURN_IF_ERROR(Collect(evidence, lineage, options.seed));
  std::vector<Finding> findings = Explanation(evidence, lineage).All();
  if (findings.size() > options.max_findings) findings.resize(options.max_findings);
  return findings;
}

}  // namespace strata::prove
