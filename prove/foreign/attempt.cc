#include "prove/foreign/attempt.h"

#include <algorithm>
#include <utility>

#include "prove/evaluation/evaluator.h"
#include "prove/foreign/contracts.h"
#include "prove/ops/elementwise.h"
#include "prove/values/field.h"

namespace strata::prove {
namespace {

constexpr std::string_view kTangent = "tangent of ";

/// How many times larger ranks hold the gradient of a tensor that they hold by `relation`, where
/// means are taken outside of the graphs: each takes the gradient of its own loss, whose mean over
/// the ranks is that of one device.
Residue ScaleOf(const Relation& relation, const Setting& setting, const Mesh& mesh) {
  Residue scale = 1;
  for (size_t axis = 0; axis < relation.size(); ++axis) {
    if (setting.outside[axis] == Term::Kind::kMean && relation[axis].kind == Term::Kind::kShard)
      scale = Mul(scale, FromInteger(mesh.axes()[axis].size));
  }
  return scale;
}

Value Scaled(const Value& value, Residue scale) {
  const auto* tensor = std::get_if<Tensor>(&value);
  if (scale == 1 || tensor == nullptr || tensor->domain() == Domain::kInteger) return value;
  return Map(*tensor, tensor->domain(), [&](uint64_t x) { return Mul(x, scale); });
}

bool IsMultiple(std::string_view difference) {
  return difference.ends_with(kMultiple);
}

class Comparison {
 public:
  Comparison(const ForeignSetup& setup, std::span<const CompiledProgram> ranks,
             const SingleValues& single, Attempt& attempt)
      : setup_(setup), ranks_(ranks), single_(single), attempt_(attempt) {}

  void Run() {
    for (const Part part : {Part::kForward, Part::kBackward}) {
      if (part == Part::kBackward && ranks_[0].backward == nullptr) continue;
      if (attempt_.ranks.error && part >= attempt_.ranks.part) break;
      for (const KeyedOutput& output : OutputsOf(GraphOf(ranks_[0], part), setup_.rank_names))
        Compare(part, output);
    }
    RequireOneReduction();
    if (attempt_.ranks.error) return;
    for (const auto& [key, relation] : attempt_.setting.inputs)
      CompareWritten(key, relation);
    for (const auto& [key, value] : single_.outputs)
      if (!attempt_.ranks.outputs.contains(key)) attempt_.unpaired.push_back(key);
  }

 private:
  void Compare(Part part, const KeyedOutput& output) {
    const auto whole = single_.outputs.find(output.key);
    if (whole == single_.outputs.end()) {
      attempt_.unpaired.push_back(output.key);
      return;
    }
    const std::vector<Value>& parts = attempt_.ranks.outputs.at(output.key);
    ComparedOutput compared{.key = output.key, .part = part, .index = output.index};
    const Result<std::vector<Relation>> relations =
        RelationsFor(part, output, whole->second, parts);
    if (!relations) {
      compared.relation.resize(setup_.mesh.axes().size());
      compared.difference = relations.error().message();
      attempt_.outputs.push_back(std::move(compared));
      return;
    }
    const Value expected = part == Part::kForward ? whole->second
                                                  : ExpectedOf(whole->second, InputOf(output),
                                                               attempt_.setting, setup_.mesh);
    for (const Relation& relation : *relations) {
      auto difference = DifferenceOnRanks(expected, parts, relation, setup_.mesh);
      const bool is_first = &relation == &relations->front();
      const bool explains =
          !is_first && difference && IsMultiple(*difference) && !IsMultiple(*compared.difference);
      if (difference && !is_first && !explains) continue;
      compared.relation = relation;
      compared.difference = std::move(difference);
      if (!compared.difference) break;
    }
    attempt_.outputs.push_back(std::move(compared));
  }

  void CompareWritten(const std::string& input, const Relation& relation) {
    const std::string key = WrittenKey(input);
    const auto whole = single_.outputs.find(key);
    const auto parts = attempt_.ranks.outputs.find(key);
    if (parts == attempt_.ranks.outputs.end()) return;
    if (whole == single_.outputs.end()) {
      attempt_.unpaired.push_back(key);
      return;
    }
    attempt_.outputs.push_back(
        {.key = key,
         .relation = relation,
         .difference = DifferenceOnRanks(whole->second, parts->second, relation, setup_.mesh)});
  }

  std::string InputOf(const KeyedOutput& output) const {
    return output.input < 0 || output.input >= std::ssize(setup_.rank_names)
               ? std::string()
               : setup_.rank_names[static_cast<size_t>(output.input)].text;
  }

  /// The relations that may hold of an output, the first of which is expected.
  Result<std::vector<Relation>> RelationsFor(Part part, const KeyedOutput& output,
                                             const Value& whole,
                                             const std::vector<Value>& parts) const {
    const auto* tensor = std::get_if<Tensor>(&whole);
    const std::vector<Sizes> local = SizesOnRanks(parts);
    std::vector<Relation> relations = {Relation(setup_.mesh.axes().size())};
    if (tensor != nullptr && !local.empty()) {
      const DTensorSpec* spec =
          part == Part::kForward
              ? setup_.SpecOf(setup_.outputs, output.position)
              : setup_.SpecOf(setup_.gradients, static_cast<size_t>(output.input));
      STRATA_TRY(Candidates candidates, CandidatesOf(tensor->sizes(), local, spec, setup_.mesh));
      relations = std::move(candidates.relations);
      const auto input = attempt_.setting.inputs.find(InputOf(output));
      const bool is_gradient = part == Part::kBackward && input != attempt_.setting.inputs.end();
      if (is_gradient && spec == nullptr) relations = {input->second};
    }
    AddReductions(part, relations);
    return relations;
  }

  /// What code outside of the graphs reduces may be partial. The mean of replicas is the value that
  /// they are of, but their sum is not.
  void AddReductions(Part part, std::vector<Relation>& relations) const {
    for (size_t axis = 0; axis < attempt_.setting.outside.size(); ++axis) {
      const Term::Kind outside = attempt_.setting.outside[axis];
      if (outside == Term::Kind::kReplicate) continue;
      for (size_t i = 0, count = relations.size(); i < count; ++i) {
        if (relations[i][axis].kind != Term::Kind::kReplicate) continue;
        const bool must_be_partial = outside == Term::Kind::kSum && part == Part::kBackward;
        if (!must_be_partial) relations.push_back(relations[i]);
        (must_be_partial ? relations[i] : relations.back())[axis] = {.kind = outside};
      }
    }
  }

  /// A graph that reduces some gradients over an axis should reduce all of them, unless the user
  /// says that others are reduced outside.
  void RequireOneReduction() {
    if (attempt_.setting.is_outside_stated) return;
    for (size_t axis = 0; axis < attempt_.setting.outside.size(); ++axis) {
      if (ranks_[0].backward == nullptr || !setup_.Reduces(*ranks_[0].backward, axis)) continue;
      for (ComparedOutput& output : attempt_.outputs) {
        const bool is_left = output.part == Part::kBackward && !output.difference &&
                             output.relation[axis].kind == attempt_.setting.outside[axis] &&
                             output.relation[axis].is_partial();
        if (!is_left) continue;
        output.difference = "the graph reduces other gradients, but not this one";
        output.relation[axis] = Term();
      }
    }
  }

  const ForeignSetup& setup_;
  const std::span<const CompiledProgram> ranks_;
  const SingleValues& single_;
  Attempt& attempt_;
};

}  // namespace

size_t Attempt::failures() const {
  const auto count = std::ranges::count_if(
      outputs, [](const ComparedOutput& output) { return output.difference.has_value(); });
  return static_cast<size_t>(count) + unpaired.size() + (ranks.error ? 1 : 0);
}

Value ExpectedOf(const Value& whole, const std::string& input, const Setting& setting,
                 const Mesh& mesh) {
  const auto found = setting.inputs.find(input);
  if (found == setting.inputs.end()) return whole;
  return Scaled(whole, ScaleOf(found->second, setting, mesh));
}

Result<Attempt> Try(const ForeignSetup& setup, std::span<const CompiledProgram> ranks,
                    const SingleValues& single, Setting setting, uint64_t seed,
                    const RanksObserver& observe) {
  KeyedRankValues inputs;
  for (const auto& [key, whole] : single.inputs) {
    const auto relation = setting.inputs.find(key);
    const auto* tensor = std::get_if<Tensor>(&whole);
    std::vector<Value>& parts = inputs[key];
    for (int64_t rank = 0; rank < std::ssize(ranks); ++rank) {
      Value part = whole;
      if (tensor != nullptr && relation != setting.inputs.end())
        part = PartOf(*tensor, relation->second, setup.mesh, rank);
      if (key.starts_with(kTangent) && relation != setting.inputs.end())
        part = Scaled(part, ScaleOf(relation->second, setting, setup.mesh));
      parts.push_back(std::move(part));
    }
  }
  const GroupLookup groups = [&](std::string_view name, int64_t) {
    return setup.groups.MembersOf(name);
  };
  Attempt attempt;
  attempt.setting = std::move(setting);
  STRATA_TRY(attempt.ranks, EvaluateRanks(ranks, setup.rank_names, inputs, groups, seed, observe));
  Comparison(setup, ranks, single, attempt).Run();
  return attempt;
}

}  // namespace strata::prove
