#include "prove/foreign/evaluation.h"

#include <algorithm>
#include <utility>

#include "ir/module.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/inputs.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

using ValuesByName = std::map<std::string, Value, std::less<>>;

bool IsScalarConstant(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kGetAttr) return false;
  const TypeId type = graph.value(graph.result(node)).type;
  return type.valid() && graph.module().types()[type].sizes.empty();
}

void SetToZero(const Graph& graph, NodeId node, std::span<Value> results) {
  if (!IsScalarConstant(graph, node)) return;
  for (const Value& result : results) {
    const auto* tensor = std::get_if<Tensor>(&result);
    if (tensor == nullptr) continue;
    const auto words = static_cast<size_t>(tensor->numel() * tensor->words_per_element());
    tensor->Write(std::vector<uint64_t>(words));
  }
}

template <class Fn>
void ForEachConstant(const CompiledProgram& program, Fn&& fn) {
  for (const Graph* graph : {program.forward, program.backward}) {
    if (graph == nullptr) continue;
    for (const NodeId node : graph->nodes()) {
      if (graph->node(node).kind == NodeKind::kGetAttr &&
          graph->value(graph->result(node)).type.valid())
        fn(*graph, node);
    }
  }
}

/// Values of outputs by the names that they have in the graph, for the backward graph to read.
ValuesByName Named(const Graph& graph, const std::vector<Value>& outputs) {
  ValuesByName named;
  const std::vector<ValueId> values = graph.operands(graph.output());
  for (size_t i = 0; i < outputs.size(); ++i)
    named.insert_or_assign(std::string(graph.value_name(values[i])), outputs[i]);
  return named;
}

/// An input: of what forward saved by its name, else what is known by its key; null: neither.
const Value* FindInput(std::string_view name, std::string_view key, const ValuesByName& saved,
                       const KeyedValues& known) {
  if (const auto found = saved.find(name); found != saved.end()) return &found->second;
  const auto found = known.find(key);
  return found == known.end() ? nullptr : &found->second;
}

class SingleStep {
 public:
  SingleStep(const CompiledProgram& program, uint64_t seed, const SingleObserver& observe)
      : program_(program), names_(InputNamesOf(program)), seed_(seed), observe_(observe) {}

  Result<SingleValues> Run() {
    STRATA_RETURN_IF_ERROR(RunPart(Part::kForward));
    if (program_.backward != nullptr) STRATA_RETURN_IF_ERROR(RunPart(Part::kBackward));
    return std::move(values_);
  }

 private:
  Status RunPart(Part part) {
    const Graph& graph = GraphOf(program_, part);
    STRATA_RETURN_IF_ERROR(CheckWork(graph, 1));
    STRATA_TRY(const std::vector<Value> inputs, InputsOf(graph));
    Evaluator evaluator(graph, seed_);
    STRATA_TRY(const std::vector<Value> outputs,
               evaluator.Run(inputs, [&](NodeId node, std::span<Value> results) {
                 SetToZero(graph, node, results);
                 if (observe_) observe_(part, node, results);
               }));
    for (const KeyedOutput& output : OutputsOf(graph, names_))
      values_.outputs.insert_or_assign(output.key, outputs[output.index]);
    const std::vector<std::string> keys = PlaceholderKeys(graph, names_);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto before = values_.inputs.find(keys[i]);
      if (before != values_.inputs.end() && !SameValue(before->second, inputs[i]))
        values_.outputs.insert_or_assign(WrittenKey(keys[i]), inputs[i]);
    }
    saved_ = Named(graph, outputs);
    values_.opaque.insert(evaluator.opaque().begin(), evaluator.opaque().end());
    values_.evaluations += evaluator.evaluations();
    return Ok();
  }

  Result<std::vector<Value>> InputsOf(const Graph& graph) {
    const std::vector<NodeId> placeholders = graph.placeholders();
    const std::vector<std::string> keys = PlaceholderKeys(graph, names_);
    std::vector<Value> inputs;
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const std::string_view name = graph.name(placeholders[i]);
      if (const Value* found = FindInput(name, keys[i], saved_, values_.inputs)) {
        inputs.push_back(*found);
        continue;
      }
      STRATA_TRY(Value value, MakeInput(graph, placeholders[i], seed_));
      values_.inputs.insert_or_assign(keys[i].empty() ? std::string(name) : keys[i], CopyOf(value));
      inputs.push_back(std::move(value));
    }
    return inputs;
  }

  const CompiledProgram& program_;
  const std::vector<InputName> names_;
  const uint64_t seed_;
  const SingleObserver& observe_;
  ValuesByName saved_;
  SingleValues values_;
};

class RanksStep {
 public:
  RanksStep(std::span<const CompiledProgram> ranks, const std::vector<InputName>& names,
            const GroupLookup& groups, uint64_t seed, const RanksObserver& observe)
      : ranks_(ranks), names_(names), groups_(groups), seed_(seed), observe_(observe) {}

  Result<RanksValues> Run(const KeyedRankValues& inputs) {
    saved_.resize(ranks_.size());
    STRATA_RETURN_IF_ERROR(RunPart(Part::kForward, inputs));
    if (ranks_[0].backward != nullptr && !values_.error)
      STRATA_RETURN_IF_ERROR(RunPart(Part::kBackward, inputs));
    return std::move(values_);
  }

 private:
  Status RunPart(Part part, const KeyedRankValues& known) {
    const Graph& graph = GraphOf(ranks_[0], part);
    STRATA_RETURN_IF_ERROR(CheckWork(graph, std::ssize(ranks_)));
    std::vector<const Graph*> graphs;
    for (const CompiledProgram& rank : ranks_)
      graphs.push_back(&GraphOf(rank, part));
    std::vector<Values> inputs;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      STRATA_TRY(inputs.emplace_back(), InputsOf(*graphs[rank], rank, known));
    }
    RankEvaluator evaluator(graphs, groups_, seed_);
    const auto outputs = evaluator.Run(inputs, [&](NodeId node, std::span<Values> results) {
      for (Values& values : results)
        SetToZero(graph, node, values);
      if (observe_) observe_(part, node, results);
    });
    const std::set<std::string> opaque = evaluator.opaque();
    values_.opaque.insert(opaque.begin(), opaque.end());
    values_.evaluations += evaluator.evaluations();
    if (!outputs) {
      values_.error = outputs.error();
      values_.part = part;
      values_.failed = evaluator.failed();
      return Ok();
    }
    for (const KeyedOutput& output : OutputsOf(graph, names_)) {
      std::vector<Value>& values = values_.outputs[output.key];
      for (const Values& of_rank : *outputs)
        values.push_back(of_rank[output.index]);
    }
    AddWritten(graph, known, inputs);
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      saved_[rank] = Named(*graphs[rank], (*outputs)[rank]);
    return Ok();
  }

  void AddWritten(const Graph& graph, const KeyedRankValues& known,
                  const std::vector<Values>& inputs) {
    const std::vector<std::string> keys = PlaceholderKeys(graph, names_);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto before = known.find(keys[i]);
      if (before == known.end()) continue;
      std::vector<Value> after;
      bool is_written = false;
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        after.push_back(inputs[rank][i]);
        is_written = is_written || !SameValue(before->second[rank], after.back());
      }
      if (is_written) values_.outputs.insert_or_assign(WrittenKey(keys[i]), std::move(after));
    }
  }

  Result<Values> InputsOf(const Graph& graph, size_t rank, const KeyedRankValues& known) const {
    const std::vector<NodeId> placeholders = graph.placeholders();
    const std::vector<std::string> keys = PlaceholderKeys(graph, names_);
    Values inputs;
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const std::string_view name = graph.name(placeholders[i]);
      const auto found = known.find(keys[i]);
      if (const auto saved = saved_[rank].find(name); saved != saved_[rank].end()) {
        inputs.push_back(saved->second);
      } else if (found != known.end()) {
        inputs.push_back(CopyOf(found->second[rank]));
      } else {
        return Error(ErrorCode::kUnsupported,
                     "input {} of the ranks has no counterpart on one "
                     "device",
                     keys[i].empty() ? name : std::string_view(keys[i]));
      }
    }
    return inputs;
  }

  const std::span<const CompiledProgram> ranks_;
  const std::vector<InputName>& names_;
  const GroupLookup& groups_;
  const uint64_t seed_;
  const RanksObserver& observe_;
  std::vector<ValuesByName> saved_;  // by rank
  RanksValues values_;
};

}  // namespace

Result<SingleValues> EvaluateSingle(const CompiledProgram& program, uint64_t seed,
                                    const SingleObserver& observe) {
  return SingleStep(program, seed, observe).Run();
}

Result<RanksValues> EvaluateRanks(std::span<const CompiledProgram> ranks,
                                  const std::vector<InputName>& names,
                                  const KeyedRankValues& inputs, const GroupLookup& groups,
                                  uint64_t seed, const RanksObserver& observe) {
  return RanksStep(ranks, names, groups, seed, observe).Run(inputs);
}

std::string WrittenKey(std::string_view input) {
  return std::string(input) + " after the graphs";
}

std::set<std::string> ScalarConstants(const CompiledProgram& program) {
  std::set<std::string> names;
  ForEachConstant(program, [&](const Graph& graph, NodeId node) {
    if (IsScalarConstant(graph, node)) names.emplace(graph.name(node));
  });
  return names;
}

std::set<std::string> TensorConstants(const CompiledProgram& program) {
  std::set<std::string> names;
  ForEachConstant(program, [&](const Graph& graph, NodeId node) {
    if (!IsScalarConstant(graph, node)) names.emplace(graph.name(node));
  });
  return names;
}

}  // namespace strata::prove
