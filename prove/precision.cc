#include "prove/precision.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/placement/placement.h"
#include "prove/diagnosis/cone.h"
#include "prove/evaluation/rounding.h"
#include "prove/proof.h"

namespace strata::prove {
namespace {

/// The type of a tensor of numbers; kUnknown: another value.
DType NumberType(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid()) return DType::kUnknown;
  const DType dtype = graph.module().types()[type].dtype;
  const bool is_number = IsNarrow(dtype) || dtype == DType::kF32 || dtype == DType::kF64;
  return is_number ? dtype : DType::kUnknown;
}

DType ResultType(const Graph& graph, NodeId node) {
  return graph.node(node).num_results == 0 ? DType::kUnknown
                                           : NumberType(graph, graph.result(node));
}

/// A graph, and what of it the other graph does not have.
class NewNodes {
 public:
  NewNodes(const Graph& graph, const Graph& other) : graph_(graph) {
    for (const NodeId node : other.nodes())
      others_.insert(other.node(node).stable_id);
    for (const NodeId node : graph.nodes())
      by_name_.emplace(graph.name(node), node);
    if (auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute)))
      mesh_ = *std::move(mesh);
  }

  NodeId Find(std::string_view name) const {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? NodeId{} : found->second;
  }

  /// What rounds numbers on the way to a node: "cast from f32 to bf16", "add in bf16".
  std::vector<std::string> RoundingBefore(NodeId node) const {
    std::vector<std::string> texts;
    const bool is_new = !others_.contains(graph_.node(node).stable_id);
    for (const NodeId inner : ConeOf(graph_, others_, mesh_, node, is_new).inner) {
      std::string text = RoundingOf(inner);
      if (!text.empty() && std::ranges::find(texts, text) == texts.end())
        texts.push_back(std::move(text));
    }
    std::ranges::reverse(texts);  // operands first
    return texts;
  }

 private:
  std::string RoundingOf(NodeId node) const {
    const std::vector<ValueId> operands = graph_.operands(node);
    if (operands.empty() || IsWait(graph_, node)) return "";
    const DType dtype = ResultType(graph_, node), from = NumberType(graph_, operands[0]);
    if (CollectiveOf(graph_, node)) return ExchangeText(ExchangeOf(graph_, node), operands[0]);
    if (!IsNarrow(dtype)) return "";
    if (ComputesNumbers(graph_, node))
      return fmt::format("{} in {}", BaseName(graph_.op(node)), ShortName(dtype));
    if (from == DType::kUnknown || from == dtype) return "";
    return fmt::format("cast from {} to {}", ShortName(from), ShortName(dtype));
  }

  /// A sum of narrow parts, or of parts that were narrow.
  std::string ExchangeText(const Exchange& exchange, ValueId operand) const {
    if (exchange.reduce.empty()) return "";
    const DType dtype = NumberType(graph_, operand);
    if (IsNarrow(dtype)) return fmt::format("{} in {}", exchange.Text(), ShortName(dtype));
    for (NodeId node = graph_.value(operand).def; !graph_.operands(node).empty();) {
      if (ComputesNumbers(graph_, node)) break;
      const ValueId source = graph_.operands(node)[0];
      const DType was = NumberType(graph_, source);
      if (IsNarrow(was)) return fmt::format("{} of parts in {}", exchange.Text(), ShortName(was));
      node = graph_.value(source).def;
    }
    return "";
  }

  const Graph& graph_;
  std::set<StableId> others_;
  std::map<std::string, NodeId> by_name_;
  Mesh mesh_;
};

/// Layers are one: "layers.*.attention".
std::string Pattern(std::string_view module) {
  std::string pattern;
  for (size_t i = 0; i < module.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(module[i])) != 0;
    if (!is_digit) {
      pattern += module[i];
    } else if (pattern.empty() || pattern.back() == '.') {
      pattern += '*';
    } else if (pattern.back() != '*') {
      pattern += module[i];
    }
  }
  return pattern;
}

std::string OperatorText(const Graph& graph, NodeId node) {
  if (CollectiveOf(graph, node)) return ExchangeOf(graph, node).Text();
  const bool is_call = graph.node(node).kind == NodeKind::kCall;
  return is_call ? std::string(BaseName(graph.op(node))) : "input";
}

std::string WhatOf(const Graph& before, const NewNodes& in_before, const Graph& after,
                   const NewNodes& in_after, const Finding& finding) {
  const NodeId node = in_after.Find(finding.node), reference = in_before.Find(finding.reference);
  if (!node.valid() || !reference.valid()) return "rounded otherwise";
  const DType was = ResultType(before, reference), is = ResultType(after, node);
  if (was != is && was != DType::kUnknown && is != DType::kUnknown)
    return fmt::format("{} in {}, {} before", OperatorText(after, node), ShortName(is),
                       ShortName(was));
  const std::vector<std::string> now = in_after.RoundingBefore(node),
                                 then = in_before.RoundingBefore(reference);
  if (!now.empty()) return fmt::format("{}", fmt::join(now, ", "));
  if (!then.empty()) return fmt::format("without {}", fmt::join(then, ", "));
  return "rounded otherwise";
}

}  // namespace

std::vector<PrecisionChange> PrecisionChanges(const Graph& before, const Graph& after,
                                              std::span<const Finding> findings, bool stable_ids) {
  const NewNodes in_before(before, after), in_after(after, before);
  std::vector<PrecisionChange> changes;
  for (const Finding& finding : findings) {
    PrecisionChange change{.node = finding.node,
                           .reference = finding.reference,
                           .modules = Pattern(finding.module),
                           .what = stable_ids ? WhatOf(before, in_before, after, in_after, finding)
                                              : "rounded otherwise"};
    const auto same = std::ranges::find_if(changes, [&](const PrecisionChange& other) {
      return other.modules == change.modules && other.what == change.what;
    });
    if (same == changes.end()) {
      changes.push_back(std::move(change));
    } else {
      ++same->places;
    }
  }
  return changes;
}

}  // namespace strata::prove
