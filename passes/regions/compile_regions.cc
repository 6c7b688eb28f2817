#include "passes/regions/compile_regions.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "passes/compile/pointwise.h"
#include "passes/core/written_memory.h"
#include "passes/regions/region_graph.h"

namespace strata {
namespace {

/// Names of the entries of `inductor_configs` that a region can have.
constexpr std::string_view kKnownConfigs[] = {"reorder_for_peak_memory", "max_autotune",
                                              "wrap_inductor_compiled_regions"};

/// Entries that no compiler here knows. A region has the configuration of its first member.
Status CheckConfig(const Graph& graph, NodeId first) {
  std::string_view text = graph.attribute(first, kCompileAttribute);
  const size_t begin = text.find("'inductor_configs':");
  if (begin == std::string_view::npos) return Ok();
  text.remove_prefix(begin + std::string_view("'inductor_configs':").size());
  for (size_t at = text.find('\''); at != std::string_view::npos; at = text.find('\'')) {
    text.remove_prefix(at + 1);
    const size_t end = text.find('\'');
    if (end == std::string_view::npos) break;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end + 1);
    const size_t next = text.find_first_not_of(' ');
    if (next == std::string_view::npos || text[next] != ':') continue;  // a value
    if (std::ranges::find(kKnownConfigs, word) != std::end(kKnownConfigs)) continue;
    return Error("unknown entry '{}' of inductor_configs: node {}: it has {}", word,
                 graph.name(first), fmt::join(kKnownConfigs, ", "));
  }
  return Ok();
}

/// Copies the members of a region into a body.
class RegionWriter {
 public:
  RegionWriter(Module& module, const Graph& graph, std::string_view name)
      : graph_(graph), body_(module.AddGraph(name, /*is_body=*/true)), rewriter_(body_) {}

  void AddInput(ValueId value, std::string_view name) {
    const TypeId type = graph_.value(value).type;
    const NodeId node = rewriter_.Create(
        {.kind = NodeKind::kPlaceholder, .results = std::span(&type, 1), .name = name}, From({}));
    values_[value] = body_.result(node);
  }

  void AddMember(NodeId node) {
    graph_.ForEachOperand(node, [&](ValueId value) {
      if (!values_.contains(value)) CopyAttribute(graph_.value(value).def);
    });
    std::vector<TypeId> types;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      types.push_back(graph_.value(graph_.result(node, i)).type);
    Create(node, types);
    const NodeId copy = body_.last();
    for (size_t i = 0; i < types.size(); ++i) {
      const ValueId old_value = graph_.result(node, i), value = body_.result(copy, i);
      values_[old_value] = value;
      if (const ValueId owner = graph_.value(old_value).alias_of; owner.valid())
        ShareMemory(node, owner, value);
      if (graph_.node(node).returns_tuple && graph_.value(old_value).name.valid())
        rewriter_.SetElementName(value, graph_.module().str(graph_.value(old_value).name));
    }
  }

  GraphId Finish(std::span<const ValueId> outputs) {
    std::vector<Arg> results;
    for (const ValueId output : outputs)
      results.push_back(values_.at(output));
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, results);
    rewriter_.Create({.kind = NodeKind::kOutput, .args = std::span(&list, 1)}, From({}));
    return body_.id();
  }

 private:
  /// The operand that lies in the memory of `owner` is known in the body, `owner` perhaps not.
  void ShareMemory(NodeId node, ValueId owner, ValueId value) {
    for (const ValueId operand : graph_.operands(node)) {
      if (OwnerOf(graph_, operand) == owner)
        return rewriter_.SetAlias(value, OwnerOf(body_, values_.at(operand)));
    }
  }

  /// Of a body that a member runs.
  void CopyAttribute(NodeId node) {
    const TypeId type = graph_.value(graph_.result(node)).type;
    Create(node, std::span(&type, 1));
    values_[graph_.result(node)] = body_.result(body_.last());
  }

  void Create(NodeId node, std::span<const TypeId> types) {
    const Node& n = graph_.node(node);
    std::vector<Arg> args;
    for (const Arg& arg : graph_.args(node))
      args.push_back(Copy(arg));
    std::vector<NamedArg> kwargs;
    for (size_t i = 0; i < n.num_kwargs; ++i)
      kwargs.push_back({graph_.kwarg(node, i).name, Copy(graph_.kwarg(node, i).value)});
    const NodeId copy = rewriter_.Create({.kind = n.kind,
                                          .op = graph_.op(node),
                                          .args = args,
                                          .kwargs = kwargs,
                                          .results = types,
                                          .returns_tuple = n.returns_tuple,
                                          .name = graph_.name(node)},
                                         From(graph_, {node}, Origin::kCloned));
    for (const auto& [key, value] : graph_.attributes(node))
      rewriter_.SetAttribute(copy, graph_.module().str(key), graph_.module().str(value));
  }

  Arg Copy(const Arg& arg) {
    if (arg.is_value()) return values_.at(arg.value());
    if (!arg.is_span()) return arg;
    std::vector<Arg> elements;
    for (const Arg& element :
         std::vector<Arg>(graph_.elements(arg).begin(), graph_.elements(arg).end()))
      elements.push_back(Copy(element));
    return rewriter_.MakeSpan(arg.kind(), elements);
  }

  const Graph& graph_;
  Graph& body_;
  Rewriter rewriter_;
  std::map<ValueId, ValueId> values_;  // of the graph, in the body
};

class RegionMaker {
 public:
  RegionMaker(Module& module, Graph& graph, int64_t min_nodes, int64_t& num_regions)
      : module_(module),
        graph_(graph),
        min_nodes_(min_nodes),
        num_regions_(num_regions),
        regions_(graph),
        rewriter_(graph) {}

  Result<bool> Run() {
    for (const std::vector<NodeId>& members : regions_.regions())
      STRATA_RETURN_IF_ERROR(CheckConfig(graph_, members.front()));
    const bool any = std::ranges::any_of(regions_.regions(),
                                         [&](const auto& members) { return IsLarge(members); });
    if (!any) return false;
    for (const RegionGraph::Unit& unit : regions_.Schedule()) {
      if (unit.region < 0) {
        if (unit.node != graph_.output()) rewriter_.MoveBefore(unit.node, graph_.output());
        continue;
      }
      const std::vector<NodeId>& members = regions_.regions()[static_cast<size_t>(unit.region)];
      if (IsLarge(members)) {
        Replace(members);
      } else {
        for (const NodeId member : members)
          rewriter_.MoveBefore(member, graph_.output());
      }
    }
    for (const NodeId node : replaced_ | std::views::reverse)
      rewriter_.Erase(node);
    for (const auto& [value, name] : names_)
      rewriter_.SetElementName(value, name);
    return true;
  }

 private:
  bool IsLarge(const std::vector<NodeId>& members) const {
    return static_cast<int64_t>(members.size()) >= min_nodes_;
  }

  static bool Contains(const std::vector<NodeId>& members, NodeId node) {
    return std::ranges::find(members, node) != members.end();
  }

  /// Operands from outside, but for bodies, which come along.
  std::vector<ValueId> InputsOf(const std::vector<NodeId>& members) const {
    std::vector<ValueId> inputs;
    for (const NodeId member : members) {
      graph_.ForEachOperand(member, [&](ValueId value) {
        const NodeId def = graph_.value(value).def;
        const bool is_body =
            graph_.node(def).kind == NodeKind::kGetAttr && !graph_.args(def).empty();
        if (is_body || Contains(members, def)) return;
        if (std::ranges::find(inputs, value) == inputs.end()) inputs.push_back(value);
      });
    }
    return inputs;
  }

  /// What leaves a region.
  struct Exits {
    std::vector<ValueId> outputs;
    /// Views of outputs that others read: they stay beside the region, members may have copies.
    std::vector<NodeId> views;
  };

  Exits ExitsOf(const std::vector<NodeId>& members) const {
    Exits exits;
    for (const NodeId member : members | std::views::reverse) {
      bool is_view = true;
      std::vector<ValueId> read;
      for (size_t i = 0; i < graph_.node(member).num_results; ++i) {
        const ValueId value = graph_.result(member, i);
        const ValueId owner = graph_.value(value).alias_of;
        is_view = is_view && owner.valid() && Contains(members, graph_.value(owner).def);
        const bool is_read = std::ranges::any_of(graph_.uses(value), [&](const Use& use) {
          return !Contains(members, use.user) || Contains(exits.views, use.user);
        });
        if (is_read) read.push_back(value);
      }
      if (read.empty()) continue;
      if (is_view) {
        exits.views.push_back(member);
      } else {
        exits.outputs.insert(exits.outputs.begin(), read.begin(), read.end());
      }
    }
    std::ranges::reverse(exits.views);
    return exits;
  }

  std::string NameOf(ValueId value) const {
    if (const auto known = names_.find(value); known != names_.end()) return known->second;
    const Value& v = graph_.value(value);
    const bool is_unnamed = graph_.node(v.def).returns_tuple && !v.name.valid();
    return is_unnamed ? fmt::format("{}__{}", graph_.name(v.def), v.index)
                      : std::string(graph_.value_name(value));
  }

  void Replace(const std::vector<NodeId>& members) {
    const std::vector<ValueId> inputs = InputsOf(members);
    const auto [outputs, views] = ExitsOf(members);
    for (const NodeId member : members)
      if (!Contains(views, member)) replaced_.push_back(member);
    if (outputs.empty()) return;  // no node reads it
    const std::string name = fmt::format("region_{}", num_regions_++);
    RegionWriter writer(module_, graph_, name);
    for (const ValueId input : inputs)
      writer.AddInput(input, NameOf(input));
    for (const NodeId member : members)
      writer.AddMember(member);
    const Arg body = Arg::Graph(writer.Finish(outputs));

    rewriter_.SetCursorToEnd();
    const NodeId attribute = rewriter_.Create(
        {.kind = NodeKind::kGetAttr, .op = name, .args = std::span(&body, 1), .name = name},
        From({}));
    std::vector<Arg> args{graph_.result(attribute)};
    args.insert(args.end(), inputs.begin(), inputs.end());
    std::vector<TypeId> types;
    for (const ValueId output : outputs)
      types.push_back(graph_.value(output).type);
    const NamedArg kwarg{module_.Intern(kRegionArg), Arg::Bool(true)};
    const NodeId region = rewriter_.Create({.op = kFusedOp,
                                            .args = args,
                                            .kwargs = std::span(&kwarg, 1),
                                            .results = types,
                                            .returns_tuple = true},
                                           From(members, Origin::kReplaced));
    TakeOver(outputs, region);
    for (const NodeId view : views)
      rewriter_.MoveBefore(view, graph_.output());
  }

  /// Readers of the members read the region.
  void TakeOver(const std::vector<ValueId>& outputs, NodeId region) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId old_value = outputs[i], result = graph_.result(region, i);
      names_.emplace(result, NameOf(old_value));
      if (const ValueId owner = graph_.value(old_value).alias_of; owner.valid())
        rewriter_.SetAlias(result, owner);
      rewriter_.ReplaceUses(old_value, result);
    }
  }

  Module& module_;
  Graph& graph_;
  int64_t min_nodes_;
  int64_t& num_regions_;
  RegionGraph regions_;
  Rewriter rewriter_;
  std::vector<NodeId> replaced_;          // readers after what they read, within a region
  std::map<ValueId, std::string> names_;  // of results, when the members are gone
};

}  // namespace

Result<Changed> CompileRegions::Run(Module& module) {
  if (options_.serializable && options_.boxed)
    return Error("options contradict each other: serializable, boxed: take one of them out");
  bool changed = false;
  int64_t num_regions = 0;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const bool any,
               RegionMaker(module, module.graph(id), options_.min_nodes, num_regions).Run());
    changed = changed || any;
  }
  return Changed(changed);
}

}  // namespace strata
