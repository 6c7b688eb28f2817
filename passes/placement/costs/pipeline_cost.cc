#include "passes/placement/costs/pipeline_cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/costs/twins.h"
#include "passes/placement/inputs.h"

namespace strata {
namespace {

/// What a layer, or what comes before or after all of them, costs.
struct Part {
  double microbatch_us = 0, step_us = 0;
  double state_bytes = 0, saved_bytes = 0, again_bytes = 0;
  double sent_bytes = 0;  ///< that the next one reads
};

/// The costs of a placed step by layer.
class Parts {
 public:
  Parts(Graph& graph, const CostModel& model, const Recomputation& recomputation)
      : graph_(graph), module_(graph.module()), model_(model), recomputation_(recomputation) {}

  Result<std::vector<Part>> Run() {
    FindModules();
    parts_.resize(static_cast<size_t>(num_layers_) + 2);
    STRATA_TRY(const PlacedCost cost, CostOfPlaced(graph_, model_));
    for (const PlacedCost::Item& item : cost.items)
      AddCost(item);
    for (const NodeId node : graph_.placeholders())
      if (KindOf(graph_, node) == PlacedInput::kParameter) AddState(node);
    for (const ValueId value : recomputation_.saved)
      PartOf(graph_.value(value).def).saved_bytes += BytesOf(value);
    for (const ValueId value : recomputation_.again)
      again_bytes_ += BytesOf(value);
    for (Part& part : parts_)
      part.again_bytes = again_bytes_;
    AddSent();
    return parts_;
  }

 private:
  std::string_view ModuleOf(NodeId node) const {
    if (!graph_.attribute(node, "fqn").empty()) return graph_.attribute(node, "fqn");
    return graph_.node(node).module.valid() ? module_.str(graph_.node(node).module)
                                            : std::string_view();
  }
  static std::string_view RootOf(std::string_view path) { return path.substr(0, path.find('.')); }
  int64_t LayerOf(NodeId node) const {
    int64_t layer = -1;
    WithoutLayer(ModuleOf(node), layer);
    return layer;
  }

  /// Modules outside of layers come after them when forward first runs them after a layer.
  void FindModules() {
    bool has_layers = false;
    for (const NodeId node : graph_.nodes()) {
      const int64_t layer = LayerOf(node);
      num_layers_ = std::max(num_layers_, layer + 1);
      const Phase phase = graph_.node(node).phase;
      const bool is_forward = phase == Phase::kForward || phase == Phase::kLoss;
      if (graph_.node(node).kind != NodeKind::kCall || !is_forward) continue;
      has_layers = has_layers || layer >= 0;
      if (layer < 0) is_after_.try_emplace(std::string(RootOf(ModuleOf(node))), has_layers);
    }
  }

  Part& PartOf(NodeId node) {
    const int64_t layer = LayerOf(node);
    if (layer >= 0) return parts_[static_cast<size_t>(layer) + 1];
    const auto found = is_after_.find(std::string(RootOf(ModuleOf(node))));
    return found == is_after_.end() || found->second ? parts_.back() : parts_.front();
  }

  const Placements& PlacementsOf(ValueId value) const {
    return module_.types()[graph_.value(value).type].placements;
  }
  double BytesOf(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    if (!type.valid() || module_.types()[type].kind != TypeKind::kTensor) return 0;
    return model_.LocalBytes(module_, module_.types()[type], PlacementsOf(value));
  }

  /// Gathers of parameters, or of their casts, and reductions of gradients.
  bool IsOfParameters(NodeId node) const {
    NodeId from = node;
    while (graph_.node(from).kind == NodeKind::kCall &&
           (graph_.op(from) == kRedistributeOp || IsCast(graph_, from)))
      from = graph_.value(graph_.args(from)[0].value()).def;
    if (graph_.node(from).kind == NodeKind::kPlaceholder)
      return KindOf(graph_, from) == PlacedInput::kParameter;
    for (const Use use : graph_.uses(graph_.result(node)))
      if (graph_.node(use.user).kind == NodeKind::kOutput) return true;
    return false;
  }

  void AddCost(const PlacedCost::Item& item) {
    Part& part = PartOf(item.node);
    const bool is_update = graph_.node(item.node).kind == NodeKind::kPlaceholder;
    if (is_update || (graph_.op(item.node) == kRedistributeOp && IsOfParameters(item.node))) {
      part.step_us += item.us();
    } else {
      part.microbatch_us += item.us() * (recomputation_.recomputed.contains(item.node) ? 2 : 1);
    }
  }

  void AddState(NodeId node) {
    const double bytes = BytesOf(graph_.result(node));
    const DType dtype = module_.types()[graph_.value(graph_.result(node)).type].dtype;
    PartOf(node).state_bytes += 2 * bytes + 8 * bytes / static_cast<double>(ByteSize(dtype));
  }

  /// Forward values that a part has from the one before it.
  void AddSent() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_.node(node).phase != Phase::kForward || graph_.node(node).kind != NodeKind::kCall)
        continue;
      Part* made = &PartOf(node);
      if (made == &parts_.back()) continue;
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        const ValueId value = graph_.result(node, i);
        const bool leaves = std::ranges::any_of(graph_.uses(value), [&](const Use use) {
          return graph_.node(use.user).phase == Phase::kForward &&
                 graph_.node(use.user).kind == NodeKind::kCall && &PartOf(use.user) > made;
        });
        if (leaves) made->sent_bytes = std::max(made->sent_bytes, BytesOf(value));
      }
    }
  }

  Graph& graph_;
  const Module& module_;
  const CostModel& model_;
  const Recomputation& recomputation_;
  int64_t num_layers_ = 0;
  double again_bytes_ = 0;
  std::map<std::string, bool> is_after_;  // by the first name of a module's path
  std::vector<Part> parts_;
};

/// Of one stage to the next, µs.
double SendUs(const CostModel& model, double bytes) {
  const NetworkSpec& network = model.topology().network;
  const bool is_inside = model.mesh().num_ranks() < network.ranks_per_node;
  constexpr double kBytesPerUs = 1e3;  // of 1e9 bytes per second
  return network.base_us + bytes / ((is_inside ? network.intra : network.inter) * kBytesPerUs);
}

/// Where stages begin, by part, such that the largest sum of a stage is the least.
std::vector<size_t> Cut(const std::vector<double>& weights, size_t stages) {
  const size_t n = weights.size();
  std::vector<double> sums(n + 1, 0);
  for (size_t i = 0; i < n; ++i)
    sums[i + 1] = sums[i] + weights[i];
  // least[k][i]: of the first i parts in k stages; begin[k][i]: where the last of them begins.
  const double infinite = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(stages + 1, std::vector<double>(n + 1, infinite));
  std::vector<std::vector<size_t>> begin(stages + 1, std::vector<size_t>(n + 1, 0));
  least[0][0] = 0;
  for (size_t k = 1; k <= stages; ++k) {
    for (size_t i = k; i <= n; ++i) {
      for (size_t j = k - 1; j < i; ++j) {
        const double largest = std::max(least[k - 1][j], sums[i] - sums[j]);
        if (largest >= least[k][i]) continue;
        least[k][i] = largest;
        begin[k][i] = j;
      }
    }
  }
  std::vector<size_t> begins(stages);
  for (size_t k = stages, end = n; k > 0; --k)
    begins[k - 1] = end = begin[k][end];
  return begins;
}

}  // namespace

Result<PipelineCost> CostOfPipeline(Graph& graph, const CostModel& model,
                                    const Recomputation& recomputation, int64_t stages,
                                    int64_t microbatches) {
  STRATA_TRY(const std::vector<Part> parts, Parts(graph, model, recomputation).Run());
  const auto num_layers = static_cast<int64_t>(parts.size()) - 2;
  if (num_layers < stages)
    return Error("{} layers do not make {} stages: graph {}", num_layers, stages,
                 graph.name_text());
  // What comes before the layers goes with the first one, what comes after them with the last one.
  const auto rounds = static_cast<double>(microbatches + stages - 1);
  std::vector<double> weights;
  const auto us = [&](const Part& part) { return rounds * part.microbatch_us + part.step_us; };
  for (size_t layer = 1; layer + 1 < parts.size(); ++layer)
    weights.push_back(us(parts[layer]));
  weights.front() += us(parts.front());
  weights.back() += us(parts.back());
  const std::vector<size_t> begins = Cut(weights, static_cast<size_t>(stages));
  PipelineCost cost;
  cost.microbatches = microbatches;
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    const size_t end = stage + 1 < begins.size() ? begins[stage + 1] : weights.size();
    const size_t first = begins[stage] == 0 ? 0 : begins[stage] + 1;
    const size_t last = end == weights.size() ? parts.size() : end + 1;
    double stage_us = 0, state = 0, saved = 0;
    for (size_t part = first; part < last; ++part) {
      stage_us += us(parts[part]);
      state += parts[part].state_bytes;
      saved += parts[part].saved_bytes;
    }
    if (stage + 1 < begins.size()) {
      // Activations go on, their gradients come back.
      stage_us += rounds * 2 * SendUs(model, parts[last - 1].sent_bytes);
    }
    const auto in_flight = std::min(microbatches, stages - static_cast<int64_t>(stage));
    const double memory =
        state + static_cast<double>(in_flight) * saved + parts[last - 1].again_bytes;
    cost.us = std::max(cost.us, stage_us);
    cost.memory_bytes = std::max(cost.memory_bytes, memory);
    cost.first_layers.push_back(static_cast<int64_t>(begins[stage]));
  }
  return cost;
}

}  // namespace strata
