#include "passes/placement/auto/placement_json.h"

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "passes/placement/auto/search_space.h"
#include "passes/placement/costs/recomputation.h"

namespace strata {
namespace {

class Writer {
 public:
  Writer(const Graph& graph, const AutoPlacement& placement, const CostModel& model,
         const PipelineCost* pipeline)
      : graph_(graph),
        module_(graph.module()),
        placement_(placement),
        model_(model),
        pipeline_(pipeline) {
    for (const SearchSpace::Operand& operand : placement.space.operands)
      operands_of_[operand.reader].push_back(&operand);
  }

  std::string Text() {
    JsonWriter json(text_);
    json.BeginObject().Field("schema", "strata.place/1");
    WriteMesh(json);
    json.Key("nodes").BeginArray();
    for (const NodeId node : graph_.nodes())
      if (placement_.space.variable_of.contains(node)) WriteNode(json, node);
    json.EndArray();
    WriteSummary(json);
    if (pipeline_ != nullptr) WritePipeline(json);
    json.EndObject();
    return text_ + "\n";
  }

 private:
  const SearchSpace::Variable& Variable(int index) const {
    return placement_.space.variables[static_cast<size_t>(index)];
  }
  int Choice(int variable) const {
    return placement_.solved.choices[static_cast<size_t>(variable)];
  }

  void WriteMesh(JsonWriter& json) {
    json.Key("mesh").BeginObject().Key("shape").BeginArray();
    for (const MeshAxis& axis : model_.mesh().axes())
      json.Int(axis.size);
    json.EndArray().Key("names").BeginArray();
    for (const MeshAxis& axis : model_.mesh().axes())
      json.String(axis.name);
    json.EndArray().EndObject().Field("topology", model_.topology().name);
  }

  void WriteNode(JsonWriter& json, NodeId node) {
    const int index = placement_.space.variable_of.at(node);
    const SearchSpace::Variable& variable = Variable(index);
    const CallStrategy& strategy = variable.strategies[static_cast<size_t>(Choice(index))];
    const Node& n = graph_.node(node);
    json.Break(2).BeginObject().Field("name", graph_.name(node));
    if (n.kind == NodeKind::kCall) json.Field("op", graph_.op(node));
    json.Field("phase", ToString(n.phase));
    if (n.module.valid()) json.Field("module_path", module_.str(n.module));
    if (variable.kind == SearchSpace::Kind::kInput)
      json.Field("fqn", graph_.attribute(node, "fqn"));
    json.Key("placements").BeginArray();
    for (const Placements& result : strategy.results)
      json.String(PlacementsText(module_, result));
    json.EndArray().Field("compute_us", strategy.compute_us);
    json.Field("cluster_root", graph_.name(variable.node));
    json.Field("cluster_size", variable.count);
    json.Key("inputs").BeginArray();
    for (const SearchSpace::Operand* operand : operands_of_[index])
      WriteOperand(json, *operand);
    json.EndArray().EndObject();
  }

  void WriteOperand(JsonWriter& json, const SearchSpace::Operand& operand) {
    const SearchSpace::Variable &producer = Variable(operand.producer),
                                &reader = Variable(operand.reader);
    const auto& from = producer.strategies[static_cast<size_t>(Choice(operand.producer))];
    const auto& to = reader.strategies[static_cast<size_t>(Choice(operand.reader))];
    const Placements& wanted =
        reader.kind == SearchSpace::Kind::kCall ? to.operands[operand.operand] : to.results[0];
    const double us = placement_.space.EdgeUs(module_, model_, operand, Choice(operand.producer),
                                              Choice(operand.reader));
    json.BeginObject()
        .Field("operand", static_cast<int64_t>(operand.operand))
        .Field("name", graph_.name(producer.node))
        .Field("is_shared", producer.kind == SearchSpace::Kind::kShared)
        .Field("src_placement", PlacementsText(module_, from.results[operand.result]))
        .Field("dst_placement", PlacementsText(module_, wanted))
        .Field("communication_us", us)
        .EndObject();
  }

  void WriteSummary(JsonWriter& json) {
    const SolverResult& solved = placement_.solved;
    json.Break(0).Key("summary").BeginObject();
    json.Field("total_us", solved.cost)
        .Field("compute_us", placement_.compute_us)
        .Field("communication_us", placement_.communication_us)
        .Field("bound_us", solved.bound)
        .Field("is_optimal", solved.status == SolverResult::Status::kOptimal)
        .Field("memory_bytes", placement_.memory_bytes)
        .Field("memory_policy", ToString(placement_.memory_policy))
        .Field("is_memory_tight", placement_.is_memory_tight)
        .Field("split_layer", placement_.split_layer)
        .EndObject();
  }

  void WritePipeline(JsonWriter& json) {
    json.Break(0).Key("pipeline").BeginObject();
    json.Field("total_us", pipeline_->us)
        .Field("memory_bytes", pipeline_->memory_bytes)
        .Field("stages", static_cast<int64_t>(pipeline_->first_layers.size()))
        .Field("microbatches", pipeline_->microbatches)
        .Key("first_layers")
        .BeginArray();
    for (const int64_t layer : pipeline_->first_layers)
      json.Int(layer);
    json.EndArray().EndObject();
  }

  const Graph& graph_;
  const Module& module_;
  const AutoPlacement& placement_;
  const CostModel& model_;
  const PipelineCost* pipeline_;
  std::map<int, std::vector<const SearchSpace::Operand*>> operands_of_;
  std::string text_;
};

}  // namespace

std::string PlacementJson(const Graph& graph, const AutoPlacement& placement,
                          const CostModel& model, const PipelineCost* pipeline) {
  return Writer(graph, placement, model, pipeline).Text();
}

}  // namespace strata
