#include "ir/graph.h"

#include <algorithm>
#include <string>

#include "ir/module.h"

namespace strata {

std::string_view ToString(Phase phase) {
  switch (phase) {
    case Phase::kUnknown:
      return "unknown";
    case Phase::kForward:
      return "forward";
    case Phase::kLoss:
      return "loss";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "unknown";
}

std::string_view Graph::name_text() const {
  return module_->str(name_);
}
std::string_view Graph::op(NodeId id) const {
  return module_->str(node(id).op);
}
std::string_view Graph::name(NodeId id) const {
  return module_->str(node(id).name);
}

std::string_view Graph::value_name(ValueId id) const {
  const Value& v = value(id);
  return v.name.valid() ? module_->str(v.name) : name(v.def);
}

std::string Graph::unique_value_name(ValueId id) const {
  const Value& v = value(id);
  std::string name(value_name(id));
  if (!v.name.valid() && node(v.def).num_results > 1)
    name += "$" + std::to_string(result_index(id));
  return name;
}

std::vector<NodeId> Graph::placeholders() const {
  std::vector<NodeId> result;
  for (NodeId id : nodes()) {
    if (node(id).kind == NodeKind::kPlaceholder) result.push_back(id);
  }
  return result;
}

const Arg* Graph::FindKwarg(NodeId id, std::string_view name) const {
  const Node& n = node(id);
  const std::span<const Arg> pairs = pool_.Row(n.args_begin + n.num_args, size_t{2} * n.num_kwargs);
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (module_->str(pairs[i].str()) == name) return &pairs[i + 1];
  }
  return nullptr;
}

bool Graph::HasUses(NodeId id) const {
  const Node& n = node(id);
  for (size_t i = 0; i < n.num_results; ++i) {
    if (value(result(id, i)).num_uses > 0) return true;
  }
  return false;
}

std::vector<ValueId> Graph::operands(NodeId id) const {
  std::vector<ValueId> result;
  ForEachOperand(id, [&](ValueId value) { result.push_back(value); });
  return result;
}

int32_t Graph::num_printed_nodes() const {
  int32_t count = num_nodes_;
  for (NodeId id : nodes()) {
    const Node& n = node(id);
    if (!n.returns_tuple) continue;
    for (size_t i = 0; i < n.num_results; ++i)
      count += value(result(id, i)).name.valid() ? 1 : 0;
  }
  return count;
}

std::span<const std::pair<StrId, StrId>> Graph::attributes(NodeId id) const {
  if (id >= attributes_.end_id()) return {};
  return attributes_[id];
}

std::string_view Graph::attribute(NodeId id, std::string_view key) const {
  for (const auto& [name, value] : attributes(id)) {
    if (module_->str(name) == key) return module_->str(value);
  }
  return {};
}

std::unique_ptr<Graph> Graph::CloneInto(Module* module) const {
  std::unique_ptr<Graph> copy(new Graph(module, id_, name_, is_body_));
  copy->is_foreign_ = is_foreign_;
  copy->nodes_ = nodes_;
  copy->values_ = values_;
  copy->pool_ = pool_;
  copy->first_ = first_;
  copy->last_ = last_;
  copy->output_ = output_;
  copy->num_nodes_ = num_nodes_;
  copy->attributes_ = attributes_;
  copy->aliases_ = aliases_;
  return copy;
}

std::vector<int32_t> OrderOf(const Graph& graph) {
  std::vector<int32_t> order(static_cast<size_t>(graph.node_bound()), -1);
  int32_t position = 0;
  for (NodeId id : graph.nodes())
    order[static_cast<size_t>(id.index)] = position++;
  return order;
}

}  // namespace strata
