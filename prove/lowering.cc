#include "prove/lowering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "passes/placement/placement.h"
#include "prove/evaluation/bounds.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/held_values.h"
#include "prove/evaluation/inputs.h"
#include "prove/evaluation/parts.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/evaluation/shared_calls.h"
#include "prove/ops/elementwise.h"
#include "prove/ops/square_law.h"
#include "prove/sizes/reduce.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// A value of the placed graph, and how ranks should hold it.
struct Expected {
  NodeId node;
  std::vector<Value> results;
  std::vector<Placements> placements;
};

/// "S(0) on fsdp, P(sum) on tp".
std::string Relation(const Module& module, const Placements& placements, const Mesh& mesh) {
  std::string text;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    text += fmt::format("{}{} on {}", axis == 0 ? "" : ", ",
                        PlacementsText(module, {placements[axis]}), mesh.axes()[axis].name);
  }
  return text;
}

class LoweringProver {
 public:
  LoweringProver(const Graph& placed, const Graph& lowered, Mesh mesh, const ProofOptions& options)
      : placed_(placed),
        lowered_(lowered),
        mesh_(std::move(mesh)),
        held_(placed.module(), mesh_),
        options_(options) {}

  Result<Proof> Run() {
    STRATA_RETURN_IF_ERROR(CheckWork(lowered_, mesh_.num_ranks()));
    STRATA_RETURN_IF_ERROR(EvaluateInsideBounds(
        placed_, options_.seed, [&](uint64_t seed) { return EvaluatePlaced(seed); }));
    STRATA_TRY(std::vector<std::vector<Value>> parts, PartsOf(inputs_));
    RankEvaluator ranks(lowered_, mesh_, seed_, options_.rounds);
    ranks.SeedGenerators();
    const auto rank_outputs =
        ranks.Run(parts, [&](NodeId node, std::span<Values> results) { CheckNode(node, results); });
    if (rank_outputs) {
      CheckOutputs(expected_, *rank_outputs);
      CheckWritten(written_, parts);
    } else {
      const auto was_there = [&](StableId id) { return kept_.contains(id); };
      STRATA_RETURN_IF_ERROR(AddFailure(placed_, lowered_, ranks.failed(), rank_outputs.error(),
                                        options_, was_there, proof_));
    }
    proof_.evaluations += ranks.evaluations();
    opaque_.merge(ranks.opaque());
    proof_.opaque.assign(opaque_.begin(), opaque_.end());
    if (!proof_.findings.empty()) proof_.verdict = Verdict::kDiffers;
    CheckOpaqueCalls(calls_before_, ranks.opaque_calls(), proof_);
    return std::move(proof_);
  }

 private:
  /// How many numbers are at their bounds.
  Result<int64_t> EvaluatePlaced(uint64_t seed) {
    seed_ = seed;
    kept_.clear();
    STRATA_TRY(inputs_, MakeInputs(placed_, seed));
    written_.clear();
    for (const Value& input : inputs_)
      written_.push_back(CopyOf(input));
    Evaluator reference(placed_, seed, options_.rounds);
    reference.SeedGenerator();
    std::string wrong;
    STRATA_TRY(expected_, reference.Run(written_, [&](NodeId node, std::span<Value> results) {
      if (options_.stable_ids) Keep(node, results);
      if (options_.checks_sizes && wrong.empty() && !HasSizesOfType(placed_, node, results))
        wrong = placed_.name(node);
    }));
    if (!wrong.empty())
      return Error(ErrorCode::kUnsupported, "{} has other sizes than its type", wrong);
    proof_.evaluations = reference.evaluations();
    opaque_ = reference.opaque();
    calls_before_ = reference.opaque_calls();
    return reference.at_bound();
  }

  Placements PlacementsOf(ValueId value) const {
    const TypeId type = placed_.value(value).type;
    if (!type.valid()) return {};
    const Placements& placements = placed_.module().types()[type].placements;
    return placements.empty() ? Placements(mesh_.axes().size()) : placements;
  }

  void Keep(NodeId node, std::span<const Value> results) {
    Expected expected{.node = node, .results = {}, .placements = {}};
    for (size_t i = 0; i < results.size(); ++i) {
      expected.results.push_back(writes_placed_.IsWritten(node) ? CopyOf(results[i]) : results[i]);
      expected.placements.push_back(i < placed_.node(node).num_results
                                        ? PlacementsOf(placed_.result(node, i))
                                        : Placements());
    }
    kept_[placed_.node(node).stable_id] = std::move(expected);
  }

  /// The inputs of each rank. Ranks with the same part of one that nothing writes to share it.
  Result<std::vector<std::vector<Value>>> PartsOf(const std::vector<Value>& inputs) const {
    const std::vector<NodeId> from = placed_.placeholders(), to = lowered_.placeholders();
    if (from.size() != to.size())
      return Error(ErrorCode::kUnsupported, "{} inputs become {}", from.size(), to.size());
    std::vector<std::vector<Value>> ranks(static_cast<size_t>(mesh_.num_ranks()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Placements placements = PlacementsOf(placed_.result(from[i]));
      for (int64_t rank = 0; rank < mesh_.num_ranks(); ++rank) {
        const int64_t like =
            writes_lowered_.IsWritten(to[i]) ? rank : held_.FirstWithPart(placements, rank);
        const bool is_known = like < rank;
        ranks[static_cast<size_t>(rank)].push_back(is_known ? ranks[static_cast<size_t>(like)][i]
                                                            : PartOf(inputs[i], placements, rank));
      }
    }
    return ranks;
  }

  Value PartOf(const Value& whole, const Placements& placements, int64_t rank) const {
    const auto* tensor = std::get_if<Tensor>(&whole);
    return tensor == nullptr ? whole : Value(LocalPart(*tensor, placements, mesh_, rank));
  }

  /// Parts that are rounded are compared where they are summed.
  bool IsComparable(const Placements& placements) const {
    if (options_.rounds && std::ranges::any_of(placements, IsPartial)) return false;
    return AreComparable(placed_.module(), placements);
  }

  void CheckNode(NodeId node, std::span<Values> results) {
    const auto found = kept_.find(lowered_.node(node).stable_id);
    if (found == kept_.end()) return;
    Expected& expected = found->second;
    for (size_t i = 0; i < expected.results.size() && i < results[0].size(); ++i) {
      if (!Counts(expected.results[i], expected.placements[i])) continue;
      const Placements& placements = expected.placements[i];
      const Value whole = Summed(expected.results[i], placements);
      std::vector<Value> summands;
      for (const Values& values : results)
        summands.push_back(Summed(values[i], placements));
      std::vector<const Value*> parts;
      for (const Value& summand : summands)
        parts.push_back(&summand);
      ++proof_.values;
      const auto difference = held_.Difference(whole, parts, placements);
      if (!difference) continue;
      AddFinding(node, expected.node, placements, *difference, FactsFor(whole, parts, placements));
      for (size_t rank = 0; rank < results.size(); ++rank) {
        Value& part = results[rank][i];
        if (!writes_lowered_.IsWritten(node)) part = CopyOf(part);
        SetRight(expected.results[i], placements, static_cast<int64_t>(rank), part);
      }
    }
    expected.results.clear();  // nothing else is compared with them
  }

  /// What adds up to the whole: of norms the squares.
  Value Summed(const Value& value, const Placements& placements) const {
    const auto* tensor = std::get_if<Tensor>(&value);
    const bool is_norm = tensor != nullptr && AreNorms(placed_.module(), placements);
    return is_norm ? Value(SquaresOf(*tensor)) : value;
  }

  bool Counts(const Value& whole, const Placements& placements) const {
    const auto* tensor = std::get_if<Tensor>(&whole);
    if (placements.empty() || !IsComparable(placements)) return false;
    return tensor == nullptr || tensor->domain() == Domain::kFloat ||
           held_.IsEven(*tensor, placements);
  }

  /// The part that the rank should have; of a sum the first rank has all.
  void SetRight(const Value& whole, const Placements& placements, int64_t rank, Value& part) const {
    const auto* expected = std::get_if<Tensor>(&whole);
    auto* actual = std::get_if<Tensor>(&part);
    if (expected == nullptr || actual == nullptr) return;
    Tensor right = LocalPart(*expected, placements, mesh_, rank);
    if (right.sizes() != actual->sizes() || right.domain() != actual->domain()) return;
    const std::vector<int64_t> coordinates = mesh_.Coordinates(rank);
    bool is_zero = false;
    for (size_t axis = 0; axis < placements.size(); ++axis) {
      const bool is_sum =
          IsPartial(placements[axis]) && placed_.module().str(placements[axis].reduce) != "avg";
      is_zero = is_zero || (is_sum && coordinates[axis] != 0);
    }
    if (is_zero) right = Tensor(right.domain(), right.sizes());
    actual->Write(right.Read());
    if (right.laws() != nullptr) actual->SetLaws(*right.laws());
  }

  ValueFacts FactsFor(const Value& whole, const std::vector<const Value*>& parts,
                      const Placements& placements) const {
    const auto* expected = std::get_if<Tensor>(&whole);
    std::vector<const Tensor*> tensors;
    for (const Value* part : parts)
      tensors.push_back(std::get_if<Tensor>(part));
    if (expected == nullptr || std::ranges::count(tensors, nullptr) != 0) return {};
    std::vector<Tensor> wanted, together;
    for (int64_t rank = 0; rank < mesh_.num_ranks(); ++rank) {
      const auto sum = held_.Together(tensors, placements, rank);
      if (!sum) return {};
      wanted.push_back(held_.Wanted(*expected, placements, rank));
      together.push_back(*sum);
    }
    return FactsOf(wanted, together, mesh_);
  }

  /// `reference`: of the placed graph.
  void AddFinding(NodeId node, NodeId reference, const Placements& placements,
                  const std::string& what, const ValueFacts& facts) {
    // What more there is to find is not listed, so it needs no diagnosis.
    if (proof_.findings.size() >= options_.max_findings) return;
    Add(node, placed_.name(reference),
        fmt::format("not {}: {}", Relation(placed_.module(), placements, mesh_), what),
        options_.stable_ids ? Diagnose(placed_, reference, lowered_, node, facts) : Diagnosis());
  }
  void Add(NodeId node, std::string_view reference, std::string what, Diagnosis diagnosis) {
    const auto was_there = [&](StableId id) { return kept_.contains(id); };
    prove::AddFinding(lowered_, node, reference, std::move(what), std::move(diagnosis), options_,
                      was_there, proof_);
  }

  void CheckOutputs(const std::vector<Value>& expected,
                    const std::vector<std::vector<Value>>& actual) {
    const std::vector<ValueId> from = placed_.operands(placed_.output()),
                               to = lowered_.operands(lowered_.output());
    if (from.size() != to.size()) {
      Add(lowered_.output(), placed_.name(placed_.output()),
          fmt::format("{} outputs, expected {}", to.size(), from.size()),
          {.kind = BugKind::kContract, .reason = ""});
      return;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const Placements placements = PlacementsOf(from[i]);
      if (!Counts(expected[i], placements) || AreNorms(placed_.module(), placements)) continue;
      std::vector<const Value*> parts;
      for (const std::vector<Value>& rank : actual)
        parts.push_back(&rank[i]);
      ++proof_.values;
      if (const auto difference = held_.Difference(expected[i], parts, placements)) {
        AddFinding(lowered_.value(to[i]).def, placed_.value(from[i]).def, placements,
                   fmt::format("output {}: {}", i, *difference),
                   FactsFor(expected[i], parts, placements));
      }
    }
  }

  void CheckWritten(const std::vector<Value>& wholes,
                    const std::vector<std::vector<Value>>& parts) {
    const std::vector<NodeId> from = placed_.placeholders(), to = lowered_.placeholders();
    for (size_t i = 0; i < from.size(); ++i) {
      const Placements placements = PlacementsOf(placed_.result(from[i]));
      if (!Counts(wholes[i], placements) || AreNorms(placed_.module(), placements)) continue;
      std::vector<const Value*> of_ranks;
      for (const std::vector<Value>& rank : parts)
        of_ranks.push_back(&rank[i]);
      ++proof_.values;
      if (const auto difference = held_.Difference(wholes[i], of_ranks, placements)) {
        AddFinding(to[i], from[i], placements, fmt::format("after the graph: {}", *difference),
                   FactsFor(wholes[i], of_ranks, placements));
      }
    }
  }

  const Graph& placed_;
  const Graph& lowered_;
  const Mesh mesh_;
  const HeldValues held_;
  const ProofOptions& options_;
  const SharedCalls writes_placed_{placed_}, writes_lowered_{lowered_};
  std::map<StableId, Expected> kept_;
  // Of the last evaluation of the placed graph.
  uint64_t seed_ = 0;
  std::vector<Value> inputs_, written_;  // before it, and after it
  std::vector<Value> expected_;          // outputs
  std::set<std::string> opaque_;
  OpaqueCalls calls_before_;
  Proof proof_;
};

}  // namespace

Proof ProveLowering(const Graph& placed, const Graph& lowered, const ProofOptions& options) {
  const auto unproven = [](const Error& error) {
    Proof proof;
    proof.verdict = Verdict::kUnproven;
    proof.reason = error.message();
    return proof;
  };
  auto mesh = MeshToEvaluate(lowered);
  if (!mesh) return unproven(mesh.error());
  auto proof = LoweringProver(placed, lowered, *std::move(mesh), options).Run();
  return proof ? *std::move(proof) : unproven(proof.error());
}

}  // namespace strata::prove
