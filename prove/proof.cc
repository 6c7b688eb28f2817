#include "prove/proof.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "ir/seeded_draws.h"
#include "ir/stored_inputs.h"
#include "prove/chunks.h"
#include "prove/evaluation/bounds.h"
#include "prove/evaluation/drawn_values.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/evaluation/reference_values.h"
#include "prove/evaluation/stated_constants.h"
#include "prove/evaluation/work.h"
#include "prove/evaluation/zeros.h"
#include "prove/sizes/reduce.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// How a value differs, and whether another node computes it.
std::string Describe(const Value& expected, const Value& actual, const ReferenceValues& reference) {
  const auto* tensor = std::get_if<Tensor>(&actual);
  const std::string node = tensor == nullptr ? "" : reference.NodeWith(*tensor);
  return node.empty() ? DescribeDifference(expected, actual) : fmt::format("the value of {}", node);
}

/// Makes `actual` what was expected, as far as their sizes allow it.
void SetRight(const Value& expected, const Value& actual) {
  const auto* a = std::get_if<Tensor>(&expected);
  const auto* b = std::get_if<Tensor>(&actual);
  if (a != nullptr && b != nullptr && a->sizes() == b->sizes() && a->domain() == b->domain())
    b->Write(a->Read());
}

/// Whether no element of an output is defined, of which any value is right. Memory that a graph
/// does not write to is meant to be so.
bool IsUndefined(const Graph& graph, ValueId output, const Value& value, Residue code) {
  const auto* tensor = std::get_if<Tensor>(&value);
  if (tensor == nullptr || tensor->domain() != Domain::kFloat || tensor->numel() == 0) return false;
  if (BaseName(graph.op(graph.value(output).def)).find("empty") != std::string_view::npos)
    return false;
  return std::ranges::all_of(tensor->Read(), [&](uint64_t word) { return word == code; });
}

class Prover {
 public:
  Prover(const Graph& before, const Graph& after, const ProofOptions& options)
      : before_(before), after_(after), options_(options), draws_(before, std::array{&after}) {
    // Passes of Strata keep constants; only a log can have one that became a literal.
    if (options.stable_ids) return;
    for (std::string& text : AddStatedConstants(before, after, constants_))
      proof_.assumptions.push_back({std::move(text)});
    for (const auto& [attribute, input] : StoredInputsOf(before, after)) {
      proof_.assumptions.push_back({StoredInputText(before, input, attribute)});
      stored_.emplace(input, attribute);
    }
    if (!draws_.empty()) proof_.assumptions.push_back({draws_.Text()});
  }

  Proof Run() {
    if (const Status status = Compare(); !status) {
      proof_.verdict = Verdict::kUnproven;
      proof_.reason = status.error().message();
    } else if (!proof_.findings.empty()) {
      proof_.verdict = Verdict::kDiffers;
    }
    CheckOpaqueCalls(calls_before_, calls_after_, proof_);
    return std::move(proof_);
  }

 private:
  Status Compare() {
    STRATA_RETURN_IF_ERROR(EvaluateInsideBounds(
        before_, options_.seed, [&](uint64_t seed) { return EvaluateBefore(seed); }));
    STRATA_TRY(const std::vector<Value> for_after, InputsOfAfter(inputs_));
    STRATA_TRY(const ConstantNumbers attributes, AttributesOfAfter());
    Evaluator second(after_, seed_, options_.rounds);
    second.SeedGenerator();
    second.SetConstants(attributes);
    const GivenResults drawn = drawn_.ResultsIn(after_);
    second.SetResults(drawn);
    Result<std::vector<Value>> actual =
        second.Run(for_after, [&](NodeId node, std::span<Value> results) { Check(node, results); });
    if (actual) {
      CheckOutputs(expected_, *actual);
      CheckWrittenInputs(written_, for_after);
      if (proof_.findings.empty()) STRATA_RETURN_IF_ERROR(CheckDefined());
    } else {
      const auto was_there = [&](StableId id) { return reference_.Find(id) != nullptr; };
      STRATA_RETURN_IF_ERROR(AddFailure(before_, after_, second.failed(), actual.error(), options_,
                                        was_there, proof_));
    }
    proof_.evaluations += second.evaluations();
    opaque_.insert(second.opaque().begin(), second.opaque().end());
    calls_after_ = second.opaque_calls();
    proof_.opaque.assign(opaque_.begin(), opaque_.end());
    return Ok();
  }

  Result<std::vector<Value>> Inputs(uint64_t seed) const {
    STRATA_TRY(std::vector<Value> inputs, RandomInputs(seed));
    if (options_.has_zeros) PutZeros(inputs, seed);
    return inputs;
  }

  Result<std::vector<Value>> RandomInputs(uint64_t seed) const {
    if (options_.makers.empty()) return MakeInputs(before_, seed);
    // They may exchange values with other ranks, though this graph does not.
    STRATA_TRY(const Mesh mesh, MeshToEvaluate(before_));
    STRATA_TRY(std::vector<Values> ranks, InputsOnRanks(before_, mesh, seed, options_.makers));
    return std::move(ranks.front());
  }

  /// How many numbers are at their bounds.
  Result<int64_t> EvaluateBefore(uint64_t seed) {
    seed_ = seed;
    reference_.Clear();
    STRATA_TRY(inputs_, Inputs(seed));
    written_.clear();
    for (const Value& input : inputs_)
      written_.push_back(CopyOf(input));
    Evaluator first(before_, seed, options_.rounds);
    first.SeedGenerator();
    first.SetConstants(constants_);
    std::string wrong;
    STRATA_TRY(expected_, first.Run(written_, [&](NodeId node, std::span<Value> results) {
      if (options_.stable_ids) reference_.Keep(node, results);
      drawn_.Keep(node, results);
      if (options_.checks_sizes && wrong.empty() && !HasSizesOfType(before_, node, results))
        wrong = before_.name(node);
    }));
    if (!wrong.empty())
      return Error(ErrorCode::kUnsupported, "{} has other sizes than its type", wrong);
    proof_.evaluations = first.evaluations();
    opaque_ = first.opaque();
    calls_before_ = first.opaque_calls();
    return first.at_bound();
  }

  /// What attributes of the graph after the pass hold: constants, and inputs of the graph before.
  /// Errors: the graph before writes to such an input.
  Result<ConstantNumbers> AttributesOfAfter() const {
    ConstantNumbers attributes = constants_;
    const std::vector<NodeId> inputs = before_.placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto stored = stored_.find(inputs[i]);
      const auto* const tensor = std::get_if<Tensor>(&inputs_[i]);
      if (stored == stored_.end() || tensor == nullptr) continue;
      if (!SameValue(inputs_[i], written_[i])) {
        return Error(ErrorCode::kUnsupported, "{}, which is an attribute afterwards, is written to",
                     before_.name(inputs[i]));
      }
      attributes.insert_or_assign(stored->second, *tensor);
    }
    return attributes;
  }

  /// The inputs of the graph after the pass: by StableId, else by position, without those that are
  /// attributes.
  Result<std::vector<Value>> InputsOfAfter(const std::vector<Value>& inputs) {
    const std::vector<NodeId> from = before_.placeholders(), to = after_.placeholders();
    std::map<StableId, size_t> positions;
    std::vector<size_t> passed;  // positions of inputs that are not attributes
    for (size_t i = 0; i < from.size(); ++i) {
      positions[before_.node(from[i]).stable_id] = i;
      if (!stored_.contains(from[i])) passed.push_back(i);
    }
    std::vector<Value> result;
    positions_.clear();
    for (size_t i = 0; i < to.size(); ++i) {
      size_t position = i < passed.size() ? passed[i] : from.size();
      if (options_.stable_ids) {
        const auto found = positions.find(after_.node(to[i]).stable_id);
        position = found == positions.end() ? from.size() : found->second;
      }
      if (position >= from.size())
        return Error(ErrorCode::kUnsupported, "input {} is new", after_.name(to[i]));
      positions_.push_back(position);
      result.push_back(CopyOf(inputs[position]));
    }
    if (!options_.stable_ids && passed.size() != to.size())
      return Error(ErrorCode::kUnsupported, "{} inputs become {}", passed.size(), to.size());
    return result;
  }

  void Check(NodeId node, std::span<Value> results) {
    if (!options_.stable_ids) return;
    const KeptResults::Results* kept = reference_.Find(after_.node(node).stable_id);
    if (kept == nullptr) {
      CheckJoined(node, results);
    } else if (!IsNewChunk(before_, kept->node, after_, node)) {
      for (size_t i = 0; i < std::min(NumResults(*kept), results.size()); ++i)
        CheckResult(node, results[i], *kept, i);
    }
  }

  void CheckJoined(NodeId node, std::span<Value> results) {
    const auto kept_of = [&](StableId id) {
      const KeptResults::Results* kept = reference_.Find(id);
      return kept == nullptr ? NodeId{} : kept->node;
    };
    if (const auto whole = JoinedWhole(before_, after_, node, kept_of)) {
      const StableId id = before_.node(whole->original).stable_id;
      CheckResult(node, results[0], *reference_.Find(id), whole->result);
    }
  }

  /// `actual` is a result of `node`, and result `i` of what was kept.
  void CheckResult(NodeId node, const Value& actual, const KeptResults::Results& kept, size_t i) {
    if (is_wrong_) {
      ++proof_.not_kept;
      return;
    }
    ++proof_.values;
    const Values results = {actual};
    if (IsEqual(kept, i, {&results, 1}, 0)) return;
    if (kept.values.empty()) {
      Add(node, kept.node, std::string(kOtherElements), {});
      is_wrong_ = true;
      return;
    }
    const Value& expected = kept.values[0][i];
    Add(node, kept.node, Describe(expected, actual, reference_), FactsBetween(expected, actual));
    SetRight(expected, actual);
  }

  static ValueFacts FactsBetween(const Value& expected, const Value& actual) {
    const auto* a = std::get_if<Tensor>(&expected);
    const auto* b = std::get_if<Tensor>(&actual);
    return a == nullptr || b == nullptr ? ValueFacts() : FactsOf({a, 1}, {b, 1}, Mesh());
  }

  /// `expected`: of the graph before.
  void Add(NodeId node, NodeId expected, std::string what, const ValueFacts& facts) {
    // What more there is to find is not listed, so it needs no diagnosis.
    if (proof_.findings.size() >= options_.max_findings) return;
    Add(node, before_.name(expected), std::move(what),
        options_.stable_ids ? Diagnose(before_, expected, after_, node, facts) : Diagnosis());
  }
  void Add(NodeId node, std::string_view reference, std::string what, Diagnosis diagnosis) {
    const auto was_there = [&](StableId id) { return reference_.Find(id) != nullptr; };
    AddFinding(after_, node, reference, std::move(what), std::move(diagnosis), options_, was_there,
               proof_);
  }

  void CheckOutputs(const std::vector<Value>& expected, const std::vector<Value>& actual) {
    if (expected.size() != actual.size()) {
      Add(after_.output(), before_.name(before_.output()),
          fmt::format("{} outputs, expected {}", actual.size(), expected.size()),
          {.kind = BugKind::kContract, .reason = ""});
      return;
    }
    const std::vector<ValueId> from = before_.operands(before_.output()),
                               to = after_.operands(after_.output());
    for (size_t i = 0; i < expected.size(); ++i) {
      ++proof_.values;
      if (SameValue(expected[i], actual[i])) continue;
      Add(after_.value(to[i]).def, before_.value(from[i]).def,
          fmt::format("output {}: {}", i, Describe(expected[i], actual[i], reference_)),
          FactsBetween(expected[i], actual[i]));
    }
  }

  Status CheckDefined() const {
    const std::vector<ValueId> outputs = before_.operands(before_.output());
    for (size_t i = 0; i < std::min(outputs.size(), expected_.size()); ++i) {
      if (IsUndefined(before_, outputs[i], expected_[i], kUndefined)) {
        return Error(ErrorCode::kUnsupported,
                     "output {}, {}, is undefined: an index is out of range", i,
                     before_.value_name(outputs[i]));
      }
      if (IsUndefined(before_, outputs[i], expected_[i], kNan)) {
        return Error(ErrorCode::kUnsupported,
                     "output {}, {}, is NaN on the inputs of the proof, whatever it is made of", i,
                     before_.value_name(outputs[i]));
      }
    }
    return Ok();
  }

  void CheckWrittenInputs(const std::vector<Value>& expected, const std::vector<Value>& actual) {
    const std::vector<NodeId> to = after_.placeholders(), from = before_.placeholders();
    for (size_t i = 0; i < to.size(); ++i) {
      ++proof_.values;
      const Value& wanted = expected[positions_[i]];
      if (SameValue(wanted, actual[i])) continue;
      Add(to[i], from[positions_[i]],
          fmt::format("after the graph: {}", Describe(wanted, actual[i], reference_)),
          FactsBetween(wanted, actual[i]));
    }
  }

  const Graph& before_;
  const Graph& after_;
  const ProofOptions& options_;
  ConstantNumbers constants_;
  std::map<NodeId, std::string> stored_;  // inputs that are attributes afterwards
  SeededDraws draws_;
  DrawnValues drawn_{draws_};
  ReferenceValues reference_{before_, options_.max_kept_words};
  bool is_wrong_ = false;  // a value that differs was not kept, so nothing after it is right
  // Of the last evaluation of `before`.
  uint64_t seed_ = 0;
  std::vector<Value> inputs_, written_;  // before it, and after it
  std::vector<Value> expected_;          // outputs
  std::set<std::string> opaque_;
  OpaqueCalls calls_before_, calls_after_;
  std::vector<size_t> positions_;  // by input of `after`: the input of `before`
  Proof proof_;
};

}  // namespace

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kProven:
      return "proven";
    case Verdict::kDiffers:
      return "differs";
    case Verdict::kUnproven:
      return "unproven";
  }
  return "";
}

void AddFinding(const Graph& after, NodeId node, std::string_view reference, std::string what,
                Diagnosis diagnosis, const ProofOptions& options,
                const std::function<bool(StableId)>& was_there, Proof& proof) {
  if (proof.findings.size() >= options.max_findings) return;
  Finding finding{.node = std::string(after.name(node)),
                  .reference = std::string(reference),
                  .module = std::string(after.module().str(after.node(node).module)),
                  .what = std::move(what),
                  .diagnosis = std::move(diagnosis),
                  .from = {}};
  for (const ValueId operand : after.operands(node)) {
    const NodeId def = after.value(operand).def;
    if (options.stable_ids && !was_there(after.node(def).stable_id))
      finding.from.emplace_back(after.name(def));
  }
  proof.findings.push_back(std::move(finding));
}

Status AddFailure(const Graph& before, const Graph& after, NodeId node, const Error& error,
                  const ProofOptions& options, const std::function<bool(StableId)>& was_there,
                  Proof& proof) {
  if (error.code() == ErrorCode::kInvalid && node.valid()) {
    AddFinding(after, node, after.name(node), "fails: " + error.message(),
               options.stable_ids ? DiagnoseFailure(before, after, node)
                                  : Diagnosis{BugKind::kInvalid, ""},
               options, was_there, proof);
  }
  if (proof.findings.empty()) return error;
  return Ok();
}

void CheckOpaqueCalls(const OpaqueCalls& before, const OpaqueCalls& after, Proof& proof) {
  if (proof.findings.empty()) return;
  std::set<std::string> names;
  for (const auto& [call, name] : after.names)
    if (!before.names.contains(call)) names.insert(name);
  for (const auto& [call, name] : before.names)
    if (!after.names.contains(call)) names.insert(name);
  std::string_view what = "reads other operands";
  if (names.empty()) {
    std::ranges::set_union(before.writers, after.writers, std::inserter(names, names.end()));
    what = "may write to its operands";
  }
  if (names.empty()) return;
  proof.reason = fmt::format("{} may differ: nothing is known of {}, which {}",
                             proof.findings[0].node, fmt::join(names, ", "), what);
  proof.findings.clear();
  proof.verdict = Verdict::kUnproven;
}

Proof WithSizes(std::span<const Graph* const> graphs,
                const std::function<Proof(const GraphsWithSizes&)>& prove) {
  Proof proof;
  for (size_t attempt = 0; attempt < GraphsWithSizes::kNumAttempts; ++attempt) {
    const GraphsWithSizes sized(graphs, attempt);
    Proof attempted = prove(sized);
    const bool is_decided = attempted.verdict != Verdict::kUnproven || sized.chosen().empty();
    if (attempt > 0 && !is_decided) break;
    proof = std::move(attempted);
    proof.chosen_sizes = sized.chosen();
    if (is_decided) break;
  }
  return proof;
}

namespace {

/// What was proven on one input is compared on others, where that costs little: masks of few
/// elements may be equal by chance. The first difference is the answer.
Proof ProveOnInputs(const Graph& before, const Graph& after, const ProofOptions& options) {
  Proof proof = Prover(before, after, options).Run();
  const bool asks_for_zeros = AsksForZeros(before) || AsksForZeros(after);
  const int num_inputs = (IsQuick(before) ? 4 : 1) + static_cast<int>(asks_for_zeros);
  for (int i = 1; proof.verdict == Verdict::kProven && i < num_inputs; ++i) {
    ProofOptions other = options;
    other.seed = Mix(options.seed ^ static_cast<uint64_t>(i) << 32U);
    other.has_zeros = asks_for_zeros && i + 1 == num_inputs;
    Proof again = Prover(before, after, other).Run();
    if (again.verdict == Verdict::kDiffers) return again;
  }
  return proof;
}

}  // namespace

Proof Prove(const Graph& before, const Graph& after, const ProofOptions& options) {
  const std::array<const Graph*, 2> graphs = {&before, &after};
  const auto prove = [&](const GraphsWithSizes& sized) {
    return ProveOnInputs(sized[0], sized[1], options);
  };
  Proof proof = WithSizes(graphs, prove);
  if (proof.verdict != Verdict::kProven || proof.chosen_sizes.empty() || !IsQuick(before))
    return proof;
  // 5 / 2 is 2, and 8 / 2 is not.
  const GraphsWithSizes others(graphs, GraphsWithSizes::kNumAttempts - 1);
  Proof again = prove(others);
  if (again.verdict != Verdict::kDiffers) return proof;
  again.chosen_sizes = others.chosen();
  return again;
}

}  // namespace strata::prove
