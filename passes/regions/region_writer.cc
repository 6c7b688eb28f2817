#include "passes/regions/region_writer.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <span>

#include <fmt/format.h>

#include "ir/fused_op.h"
#include "ir/module.h"
#include "passes/compile/pointwise.h"
#include "passes/core/node_copy.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

/// Copies the members of a region into a body.
class BodyWriter {
 public:
  BodyWriter(Module& module, const Graph& graph, std::string_view name)
      : graph_(graph), body_(module.AddGraph(name, /*is_body=*/true)), rewriter_(body_) {}

  void AddInput(ValueId value, std::string_view name) {
    const TypeId type = graph_.value(value).type;
    const NodeId node = rewriter_.Create(
        {.kind = NodeKind::kPlaceholder, .results = std::span(&type, 1), .name = name}, From({}));
    values_[value] = body_.result(node);
  }

  void AddMember(NodeId node) {
    graph_.ForEachOperand(node, [&](ValueId value) {
      // The attribute of a body that the member runs.
      if (!values_.contains(value)) CopyNode(graph_, graph_.value(value).def, rewriter_, values_);
    });
    CopyNode(graph_, node, rewriter_, values_);
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
  const Graph& graph_;
  Graph& body_;
  Rewriter rewriter_;
  CopiedValues values_;
};

bool Contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

}  // namespace

bool RegionWriter::IsMember(NodeId node) const {
  const auto index = static_cast<size_t>(node.index);
  return index < is_member_.size() && is_member_[index];
}

std::vector<ValueId> RegionWriter::InputsOf(const std::vector<NodeId>& members) const {
  std::vector<ValueId> inputs;
  std::set<ValueId> known;
  for (const NodeId member : members) {
    graph_.ForEachOperand(member, [&](ValueId value) {
      const NodeId def = graph_.value(value).def;
      const bool is_body = graph_.node(def).kind == NodeKind::kGetAttr && !graph_.args(def).empty();
      if (is_body || IsMember(def)) return;
      if (known.insert(value).second) inputs.push_back(value);
    });
  }
  return inputs;
}

RegionWriter::Exits RegionWriter::ExitsOf(const std::vector<NodeId>& members) const {
  Exits exits;
  for (const NodeId member : members | std::views::reverse) {
    bool is_view = true;
    std::vector<ValueId> read;
    for (size_t i = 0; i < graph_.node(member).num_results; ++i) {
      const ValueId value = graph_.result(member, i);
      const ValueId owner = graph_.value(value).alias_of;
      is_view = is_view && owner.valid() && IsMember(graph_.value(owner).def);
      const bool is_read = std::ranges::any_of(graph_.uses(value), [&](const Use& use) {
        return !IsMember(use.user) || Contains(exits.views, use.user);
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

std::string RegionWriter::NameOf(ValueId value) const {
  if (const auto known = names_.find(value); known != names_.end()) return known->second;
  const Value& v = graph_.value(value);
  const bool is_unnamed = graph_.node(v.def).returns_tuple && !v.name.valid();
  return is_unnamed ? fmt::format("{}__{}", graph_.name(v.def), graph_.result_index(value))
                    : std::string(graph_.value_name(value));
}

bool RegionWriter::Replace(const std::vector<NodeId>& members, std::string_view name) {
  is_member_.assign(static_cast<size_t>(graph_.node_bound()), false);
  for (const NodeId member : members)
    is_member_[static_cast<size_t>(member.index)] = true;
  const std::vector<ValueId> inputs = InputsOf(members);
  const auto [outputs, views] = ExitsOf(members);
  for (const NodeId member : members)
    if (!Contains(views, member)) replaced_.push_back(member);
  if (outputs.empty()) return false;
  BodyWriter writer(module_, graph_, name);
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
    Append(view);
  return true;
}

void RegionWriter::TakeOver(const std::vector<ValueId>& outputs, NodeId region) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId old_value = outputs[i], result = graph_.result(region, i);
    names_.emplace(result, NameOf(old_value));
    if (const ValueId owner = graph_.value(old_value).alias_of; owner.valid())
      rewriter_.SetAlias(result, owner);
    rewriter_.ReplaceUses(old_value, result);
  }
}

void RegionWriter::Finish() {
  for (const NodeId node : replaced_ | std::views::reverse)
    rewriter_.Erase(node);
  for (const auto& [value, name] : names_)
    rewriter_.SetElementName(value, name);
}

}  // namespace strata
