#include "ir/verify.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace strata {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph),
        module_(graph.module()),
        position_(static_cast<size_t>(graph.node_bound()), -1),
        seen_uses_(static_cast<size_t>(graph.value_bound()), 0) {}

  Status Run() {
    STRATA_RETURN_IF_ERROR(CheckOrder());
    const auto num_nodes = static_cast<size_t>(graph_.num_nodes());
    names_.reserve(num_nodes);
    stable_ids_.reserve(num_nodes);
    for (NodeId id : graph_.nodes())
      STRATA_RETURN_IF_ERROR(CheckNode(id));
    return CheckUses();
  }

 private:
  template <class... Args>
  Error Broken(NodeId id, fmt::format_string<Args...> format, Args&&... args) const {
    return Error(ErrorCode::kInternal, "graph '{}', node '{}': {}", graph_.name_text(),
                 id.valid() ? graph_.name(id) : std::string_view("<none>"),
                 fmt::format(format, std::forward<Args>(args)...));
  }

  /// The list runs forward and back, ends, and holds as many nodes as counted.
  Status CheckOrder() {
    NodeId previous;
    int32_t count = 0;
    for (NodeId id = graph_.first(); id.valid(); id = graph_.node(id).next) {
      if (id.index >= graph_.node_bound()) return Broken({}, "the order names node {}", id.index);
      int32_t& position = position_[static_cast<size_t>(id.index)];
      if (position >= 0) return Broken(id, "occurs twice in the order");
      if (graph_.node(id).prev != previous) return Broken(id, "its back link is wrong");
      position = count++;
      previous = id;
    }
    if (graph_.last() != previous) return Broken(previous, "the order does not end here");
    if (count != graph_.num_nodes()) {
      return Broken({}, "{} nodes in order, {} counted", count, graph_.num_nodes());
    }
    return Ok();
  }

  Status CheckNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.kind == NodeKind::kErased) return Broken(id, "erased but still in the order");
    if (node.kind == NodeKind::kOutput && (id != graph_.last() || id != graph_.output())) {
      return Broken(id, "an output that is not last");
    }
    STRATA_RETURN_IF_ERROR(CheckName(id, node.name));
    if (node.stable_id != StableId::kNone &&
        !stable_ids_.insert(static_cast<uint64_t>(node.stable_id)).second) {
      return Broken(id, "its stable id belongs to another node too");
    }
    const uint32_t slots = node.num_args + 2u * node.num_kwargs;
    for (uint32_t i = 0; i < slots; ++i) {
      STRATA_RETURN_IF_ERROR(CheckArg(id, node.args_begin + i));
    }
    for (size_t i = 0; i < node.num_results; ++i) {
      STRATA_RETURN_IF_ERROR(CheckResult(id, graph_.result(id, i)));
    }
    return Ok();
  }

  Status CheckName(NodeId id, StrId name) {
    if (!name.valid()) return Broken(id, "has no name");
    if (!names_.insert(name).second) {
      return Broken(id, "the name '{}' is taken by another node", module_.str(name));
    }
    return Ok();
  }

  Status CheckArg(NodeId id, uint32_t slot) {
    const Arg& arg = graph_.slot(slot);
    if (arg.is_span()) {
      for (uint32_t i = 0; i < arg.span_size(); ++i) {
        STRATA_RETURN_IF_ERROR(CheckArg(id, arg.span_begin() + i));
      }
    } else if (arg.kind() == ArgKind::kGraph) {
      if (arg.graph().index < 0 || static_cast<size_t>(arg.graph().index) >= module_.num_graphs()) {
        return Broken(id, "refers to graph {}, which does not exist", arg.graph().index);
      }
    } else if (arg.is_value()) {
      if (arg.value().index < 0 || arg.value().index >= graph_.value_bound()) {
        return Broken(id, "reads value {}, which does not exist", arg.value().index);
      }
      const NodeId def = graph_.value(arg.value()).def;
      const int32_t at = position_[static_cast<size_t>(def.index)];
      if (at < 0) return Broken(id, "reads '{}', which was erased", graph_.name(def));
      if (at >= position_[static_cast<size_t>(id.index)]) {
        return Broken(id, "reads '{}' before it is defined", graph_.value_name(arg.value()));
      }
      ++seen_uses_[static_cast<size_t>(arg.value().index)];
    }
    return Ok();
  }

  Status CheckResult(NodeId id, ValueId result) {
    const Value& value = graph_.value(result);
    if (value.def != id) return Broken(id, "a result says that another node defines it");
    if (value.name.valid()) STRATA_RETURN_IF_ERROR(CheckName(id, value.name));
    if (value.type.valid()) {
      const Type& type = module_.types()[value.type];
      if (type.has_strides && type.strides.size() != type.sizes.size()) {
        return Broken(id, "{} sizes but {} strides", type.sizes.size(), type.strides.size());
      }
    }
    if (value.alias_of.valid()) {
      if (value.alias_of.index < 0 || value.alias_of.index >= graph_.value_bound()) {
        return Broken(id, "aliases value {}, which does not exist", value.alias_of.index);
      }
      const Value& base = graph_.value(value.alias_of);
      const int32_t at = position_[static_cast<size_t>(base.def.index)];
      if (at < 0) {
        return Broken(id, "aliases '{}', which was erased", graph_.value_name(value.alias_of));
      }
      if (base.alias_of.valid()) {
        return Broken(id, "aliases '{}', which does not own its storage",
                      graph_.value_name(value.alias_of));
      }
      if (at >= position_[static_cast<size_t>(id.index)]) {
        return Broken(id, "aliases '{}', which is defined later",
                      graph_.value_name(value.alias_of));
      }
      if (value.type.valid() && base.type.valid()) {
        const StrId device = module_.types()[value.type].device;
        const StrId base_device = module_.types()[base.type].device;
        if (device.valid() && base_device.valid() && device != base_device) {
          return Broken(id, "is on {} but aliases '{}' on {}", module_.str(device),
                        graph_.value_name(value.alias_of), module_.str(base_device));
        }
      }
    }
    return Ok();
  }

  /// Use lists hold exactly the uses that arguments show.
  Status CheckUses() {
    for (NodeId id : graph_.nodes()) {
      for (size_t i = 0; i < graph_.node(id).num_results; ++i) {
        const ValueId result = graph_.result(id, i);
        uint32_t listed = 0;
        for (const Use use : graph_.uses(result)) {
          const Arg& arg = graph_.slot(use.slot);
          if (!arg.is_value() || arg.value() != result ||
              position_[static_cast<size_t>(use.user.index)] < 0) {
            return Broken(id, "its use list names a place that does not read it");
          }
          ++listed;
        }
        const uint32_t seen = seen_uses_[static_cast<size_t>(result.index)];
        if (listed != seen || listed != graph_.value(result).num_uses) {
          return Broken(id, "{} uses listed, {} found, {} counted", listed, seen,
                        graph_.value(result).num_uses);
        }
      }
    }
    return Ok();
  }

  const Graph& graph_;
  const Module& module_;
  std::vector<int32_t> position_;
  std::vector<uint32_t> seen_uses_;
  std::unordered_set<StrId> names_;
  std::unordered_set<uint64_t> stable_ids_;
};

/// The graphs that `graph` refers to, with repetitions.
std::vector<size_t> BodiesOf(const Graph& graph) {
  std::vector<size_t> bodies;
  const auto visit = [&](const auto& self, const Arg& arg) -> void {
    if (arg.kind() == ArgKind::kGraph) bodies.push_back(static_cast<size_t>(arg.graph().index));
    if (!arg.is_span()) return;
    for (const Arg& element : graph.elements(arg))
      self(self, element);
  };
  for (NodeId node : graph.nodes()) {
    for (const Arg& arg : graph.args(node))
      visit(visit, arg);
    for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
      visit(visit, graph.kwarg(node, i).value);
  }
  return bodies;
}

}  // namespace

Status Verify(const Graph& graph) {
  return Verifier(graph).Run();
}

Status Verify(const Module& module) {
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    STRATA_RETURN_IF_ERROR(Verify(module.graph({static_cast<int32_t>(i)})));
  }
  return CheckBodies(module);
}

Status CheckBodies(const Module& module) {
  const size_t count = module.num_graphs();
  std::vector<std::vector<size_t>> bodies(count);
  std::vector<int> referrers(count, 0), depth(count, 0);
  for (size_t i = 0; i < count; ++i) {
    bodies[i] = BodiesOf(module.graph({static_cast<int32_t>(i)}));
    for (size_t body : bodies[i])
      ++referrers[body];
  }
  // From those without referrers, downwards; a graph in a circle is never reached.
  std::vector<size_t> ready;
  for (size_t i = 0; i < count; ++i) {
    if (referrers[i] == 0) ready.push_back(i);
  }
  for (size_t done = 0; done < ready.size(); ++done) {
    const size_t graph = ready[done];
    if (depth[graph] > kMaxBodyDepth) {
      return Error("graph '{}' is nested more than {} deep",
                   module.graph({static_cast<int32_t>(graph)}).name_text(), kMaxBodyDepth);
    }
    for (size_t body : bodies[graph]) {
      depth[body] = std::max(depth[body], depth[graph] + 1);
      if (--referrers[body] == 0) ready.push_back(body);
    }
  }
  const auto circular = std::ranges::find_if(referrers, [](int n) { return n > 0; });
  if (circular == referrers.end()) return Ok();
  const auto index = static_cast<int32_t>(circular - referrers.begin());
  return Error("graph '{}' contains itself", module.graph({index}).name_text());
}

}  // namespace strata
