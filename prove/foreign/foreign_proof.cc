#include "prove/foreign/foreign_proof.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "prove/foreign/aligned_ranks.h"
#include "prove/foreign/attempt.h"
#include "prove/foreign/collective_order.h"
#include "prove/foreign/contracts.h"
#include "prove/foreign/explain.h"
#include "prove/foreign/setup.h"

namespace strata::prove {
namespace {

constexpr size_t kMaxSettings = 64;

/// An input of the ranks, and how they may hold it.
struct Choice {
  std::string key;
  bool is_parameter = false;
  Candidates candidates;
};

class ForeignProver {
 public:
  ForeignProver(const CompiledProgram& single, std::span<const CompiledProgram> ranks,
                const ForeignOptions& options)
      : single_(single), ranks_(ranks), options_(options) {}

  Result<Proof> Run() {
    if (auto finding = FindOtherOrder(ranks_)) {
      Proof proof;
      proof.verdict = Verdict::kDiffers;
      proof.findings.push_back(*std::move(finding));
      return proof;
    }
    // Ranks that have other nodes for other reasons are refused below, with what they are.
    if (auto aligned = AlignRanks(ranks_)) {
      aligned_ = *std::move(aligned);
      ranks_ = aligned_.programs;
    }
    STRATA_TRY(setup_, SetUp(single_, ranks_));
    STRATA_TRY(values_, EvaluateSingle(single_, options_.seed, {}));
    STRATA_RETURN_IF_ERROR(FindChoices());
    std::optional<Attempt> best;
    for (Setting& setting : Settings()) {
      STRATA_TRY(Attempt attempt, Try(setup_, ranks_, values_, std::move(setting), options_.seed));
      evaluations_ += attempt.ranks.evaluations;
      const bool is_better =
          !best || attempt.failures() < best->failures() ||
          (attempt.failures() == best->failures() && attempt.setting.is_outside_likely);
      if (is_better) best = std::move(attempt);
      if (best->failures() == 0) break;
    }
    return Conclude(*best);
  }

 private:
  Status FindChoices() {
    for (const Part part : {Part::kForward, Part::kBackward}) {
      if (part == Part::kBackward && ranks_[0].backward == nullptr) continue;
      const Graph& graph = GraphOf(ranks_[0], part);
      const std::vector<NodeId> placeholders = graph.placeholders();
      const std::vector<std::string> keys = PlaceholderKeys(graph, setup_.rank_names);
      size_t tangents = 0;
      for (size_t i = 0; i < placeholders.size(); ++i) {
        const bool is_tangent = keys[i].starts_with("tangent of ");
        const std::string_view descriptor = graph.attribute(placeholders[i], "descriptor");
        const auto input = static_cast<size_t>(InputIndexOf(descriptor));
        const DTensorSpec* spec = is_tangent ? setup_.SpecOf(setup_.tangents, tangents)
                                             : setup_.SpecOf(setup_.inputs, input);
        tangents += is_tangent ? 1 : 0;
        STRATA_RETURN_IF_ERROR(AddChoice(part, placeholders[i], keys[i], spec));
      }
    }
    return Ok();
  }

  /// Of an input of each rank.
  std::vector<Sizes> SizesOf(Part part, NodeId placeholder) const {
    std::vector<Sizes> sizes;
    for (const CompiledProgram& rank : ranks_) {
      const Graph& graph = GraphOf(rank, part);
      const Module& module = graph.module();
      Sizes& local = sizes.emplace_back();
      for (const DimId dim : module.types()[graph.value(graph.result(placeholder)).type].sizes)
        local.push_back(module.dims().Hint(dim).value_or(-1));
    }
    return sizes;
  }

  Status AddChoice(Part part, NodeId placeholder, const std::string& key, const DTensorSpec* spec) {
    const auto whole = values_.inputs.find(key);
    if (whole == values_.inputs.end() || !std::holds_alternative<Tensor>(whole->second))
      return Ok();
    if (std::ranges::find(choices_, key, &Choice::key) != choices_.end()) return Ok();
    const std::vector<Sizes> local = SizesOf(part, placeholder);
    const Sizes& sizes = std::get<Tensor>(whole->second).sizes();
    auto candidates = CandidatesOf(sizes, local, spec, setup_.mesh);
    if (!candidates) return std::move(candidates).error().In("input " + key);
    const auto name = std::ranges::find(setup_.names, key, &InputName::text);
    choices_.push_back({.key = key,
                        .is_parameter = name != setup_.names.end() && name->is_parameter,
                        .candidates = *std::move(candidates)});
    return Ok();
  }

  /// Parameters with the same choice take the same candidate of it, and so do other inputs.
  std::vector<Setting> Settings() {
    using Kind = std::pair<bool, std::vector<Relation>>;
    const auto kind_of = [](const Choice& choice) {
      return Kind(choice.is_parameter, choice.candidates.relations);
    };
    std::vector<Kind> kinds;
    for (const Choice& choice : choices_)
      if (std::ranges::find(kinds, kind_of(choice)) == kinds.end())
        kinds.push_back(kind_of(choice));
    std::vector<std::vector<size_t>> picks = {{}};
    for (const Kind& kind : kinds) {
      std::vector<std::vector<size_t>> more;
      for (const std::vector<size_t>& pick : picks) {
        for (size_t i = 0; i < kind.second.size(); ++i) {
          more.push_back(pick);
          more.back().push_back(i);
        }
      }
      leaves_out_ = leaves_out_ || more.size() > kMaxSettings;
      more.resize(std::min(more.size(), kMaxSettings));
      picks = std::move(more);
    }
    std::vector<Setting> settings;
    for (const std::vector<size_t>& pick : picks) {
      Setting setting;
      for (const Choice& choice : choices_) {
        const auto at = std::ranges::find(kinds, kind_of(choice)) - kinds.begin();
        setting.inputs[choice.key] = choice.candidates.relations[pick[static_cast<size_t>(at)]];
      }
      AddOutside(std::move(setting), settings);
    }
    return settings;
  }

  /// The setting in which graphs do all reductions, and the one in which means over axes that cut
  /// data, and no parameter, are taken outside of them; or as the user says.
  void AddOutside(Setting setting, std::vector<Setting>& settings) const {
    const size_t num_axes = setup_.mesh.axes().size();
    setting.outside.assign(num_axes, Term::Kind::kReplicate);
    Setting averaged = setting;
    bool is_other = false;
    averaged.is_outside_likely = true;
    for (size_t axis = 0; axis < num_axes; ++axis) {
      const auto stated = options_.reduced_outside.find(setup_.mesh.axes()[axis].name);
      if (stated != options_.reduced_outside.end()) {
        setting.outside[axis] = averaged.outside[axis] = stated->second;
        setting.is_outside_stated = averaged.is_outside_stated = true;
      } else if (CutsDataOnly(setting, axis)) {
        averaged.outside[axis] = Term::Kind::kMean;
        is_other = true;
        averaged.is_outside_likely = averaged.is_outside_likely && !Reduces(axis);
      }
    }
    settings.push_back(std::move(setting));
    if (is_other) settings.push_back(std::move(averaged));
  }

  bool Reduces(size_t axis) const {
    return setup_.Reduces(*ranks_[0].forward, axis) ||
           (ranks_[0].backward != nullptr && setup_.Reduces(*ranks_[0].backward, axis));
  }

  bool CutsDataOnly(const Setting& setting, size_t axis) const {
    bool cuts_data = false;
    for (const Choice& choice : choices_) {
      if (setting.inputs.at(choice.key)[axis].kind != Term::Kind::kShard) continue;
      if (choice.is_parameter) return false;
      cuts_data = true;
    }
    return cuts_data;
  }

  Result<Proof> Conclude(const Attempt& attempt) {
    Proof proof;
    proof.values = std::ssize(attempt.outputs);
    proof.evaluations = values_.evaluations + evaluations_;
    std::set<std::string> opaque = values_.opaque;
    opaque.insert(attempt.ranks.opaque.begin(), attempt.ranks.opaque.end());
    proof.opaque.assign(opaque.begin(), opaque.end());
    proof.assumptions = Assumptions(attempt);
    proof.mesh = setup_.mesh.Text();
    proof.reason = WhyUndecided(attempt, proof.opaque);
    if (proof.reason.empty()) {
      STRATA_TRY(proof.findings,
                 Explain(setup_, single_, ranks_, attempt,
                         {.seed = options_.seed, .max_findings = options_.max_findings}));
      if (proof.findings.empty()) proof.reason = WhyIncomplete(attempt);
      if (!proof.findings.empty()) STRATA_RETURN_IF_ERROR(SuggestSums(attempt, proof));
    }
    if (!proof.findings.empty()) proof.verdict = Verdict::kDiffers;
    if (!proof.reason.empty()) proof.verdict = Verdict::kUnproven;
    return proof;
  }

  /// If all outputs are equal once other code sums what ranks leave partial over axes that cut data
  /// only, as after a loss that is a sum, findings say how to state that.
  Status SuggestSums(const Attempt& failed, Proof& proof) {
    Setting setting = failed.setting;
    std::vector<std::string> axes, flags;
    for (size_t axis = 0; axis < setup_.mesh.axes().size(); ++axis) {
      const std::string& name = setup_.mesh.axes()[axis].name;
      if (options_.reduced_outside.contains(name) || !CutsDataOnly(setting, axis)) continue;
      setting.outside[axis] = Term::Kind::kSum;
      axes.push_back(name);
      flags.push_back(fmt::format("--assume {}=sums", name));
    }
    if (axes.empty()) return Ok();
    setting.is_outside_stated = true;
    STRATA_TRY(const Attempt summed,
               Try(setup_, ranks_, values_, std::move(setting), options_.seed));
    if (summed.failures() > 0) return Ok();
    for (Finding& finding : proof.findings) {
      Diagnosis& diagnosis = finding.diagnosis;
      if (diagnosis.kind == BugKind::kOther) diagnosis.kind = BugKind::kMissingCollective;
      diagnosis.reason += fmt::format("{}no graph sums over {}; if other code does: {}",
                                      diagnosis.reason.empty() ? "" : "; ", fmt::join(axes, ", "),
                                      fmt::join(flags, " "));
    }
    return Ok();
  }

  /// An unknown operator may compute on parts what it computes on the whole.
  std::string WhyUndecided(const Attempt& attempt, const std::vector<std::string>& opaque) const {
    if (attempt.failures() > 0 && leaves_out_)
      return fmt::format("ranks may hold inputs in more than {} ways", kMaxSettings);
    if (attempt.ranks.error) return attempt.ranks.error->message();
    if (attempt.failures() == 0 || opaque.empty()) return "";
    return fmt::format("{} of {} outputs are not known to be equal, because of unknown operators",
                       attempt.failures(), attempt.outputs.size());
  }

  /// Why equal outputs do not prove the ranks; "": they do.
  std::string WhyIncomplete(const Attempt& attempt) const {
    if (!attempt.unpaired.empty())
      return fmt::format("outputs without a counterpart: {}", fmt::join(attempt.unpaired, ", "));
    for (size_t axis = 0; axis < setup_.mesh.axes().size(); ++axis) {
      const bool is_cut = std::ranges::any_of(attempt.setting.inputs, [&](const auto& input) {
        return input.second[axis].kind == Term::Kind::kShard;
      });
      if (!is_cut) {
        return fmt::format(
            "no input is cut over {}, so its ranks compute the same: the log of one device must "
            "have the batch of all ranks",
            setup_.mesh.axes()[axis].name);
      }
    }
    return "";
  }

  std::vector<Assumption> Assumptions(const Attempt& attempt) const {
    std::vector<Assumption> assumptions;
    for (const std::string& pair : setup_.pairings)
      assumptions.push_back({pair});
    std::map<std::string, std::vector<std::string>> inferred;
    for (const Choice& choice : choices_) {
      if (choice.candidates.is_stated || choice.key.starts_with("tangent of ")) continue;
      inferred[RelationText(attempt.setting.inputs.at(choice.key), setup_.mesh)].push_back(
          choice.key);
    }
    for (const auto& [relation, keys] : inferred)
      assumptions.push_back({fmt::format("ranks hold {}: {}", relation, fmt::join(keys, ", "))});
    AddReductionAssumptions(attempt, assumptions);
    AddConstantAssumptions(assumptions);
    return assumptions;
  }

  void AddReductionAssumptions(const Attempt& attempt, std::vector<Assumption>& assumptions) const {
    for (size_t axis = 0; axis < attempt.setting.outside.size(); ++axis) {
      const Term::Kind outside = attempt.setting.outside[axis];
      if (outside == Term::Kind::kReplicate) continue;
      const std::string& name = setup_.mesh.axes()[axis].name;
      assumptions.push_back(
          {fmt::format("gradients and losses are {} over {} outside of the graphs",
                       outside == Term::Kind::kMean ? "averaged" : "summed", name),
           !options_.reduced_outside.contains(name)});
    }
  }

  void AddConstantAssumptions(std::vector<Assumption>& assumptions) const {
    std::set<std::string> zeros = ScalarConstants(ranks_[0]), others = TensorConstants(ranks_[0]);
    zeros.merge(ScalarConstants(single_));
    others.merge(TensorConstants(single_));
    if (!zeros.empty())
      assumptions.push_back({fmt::format("constants are 0: {}", fmt::join(zeros, ", "))});
    if (!others.empty()) {
      assumptions.push_back(
          {fmt::format("constants of one name are equal everywhere: {}", fmt::join(others, ", "))});
    }
  }

  const CompiledProgram& single_;
  std::span<const CompiledProgram> ranks_;
  AlignedRanks aligned_;
  const ForeignOptions& options_;
  ForeignSetup setup_;
  SingleValues values_;
  std::vector<Choice> choices_;
  bool leaves_out_ = false;  // some settings
  int64_t evaluations_ = 0;
};

}  // namespace

Proof ProveForeign(const CompiledProgram& single, std::span<const CompiledProgram> ranks,
                   const ForeignOptions& options) {
  auto proof = ForeignProver(single, ranks, options).Run();
  if (proof) return *std::move(proof);
  Proof unproven;
  unproven.verdict = Verdict::kUnproven;
  unproven.reason = proof.error().message();
  return unproven;
}

}  // namespace strata::prove
