#include "passes/memory/reshard_after_forward.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/memory/selectors.h"
#include "passes/memory/tag_memory.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// An operator that may follow a gather, and the argument that reads it.
struct Consumer {
  std::string op;
  size_t argument = 0;
};

std::vector<std::string_view> SplitAtBars(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find('|');
    if (const std::string_view part = TrimBlanks(text.substr(0, end)); !part.empty())
      parts.push_back(part);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

Result<std::vector<Consumer>> ParseConsumers(std::string_view text) {
  std::vector<Consumer> consumers;
  for (const std::string_view part : SplitAtBars(text)) {
    const size_t mark = part.rfind('#');
    const std::string_view number =
        mark == std::string_view::npos ? std::string_view() : part.substr(mark + 1);
    Consumer consumer{.op = std::string(part.substr(0, mark))};
    const char* const last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, consumer.argument);
    if (number.empty() || consumer.op.empty() || error != std::errc() || end != last) {
      return Error("consumer '{}' names no argument, write OP#ARGUMENT: aten.cat.default#0", part);
    }
    consumers.push_back(std::move(consumer));
  }
  return consumers;
}

class ReshardTagger {
 public:
  ReshardTagger(Graph& graph, const std::vector<std::string_view>& skip,
                const std::vector<Consumer>& consumers)
      : graph_(graph), skip_(skip), consumers_(consumers), rewriter_(graph) {}

  bool Run() {
    bool changed = false;
    for (const NodeId node : graph_.nodes()) {
      if (graph_.node(node).kind != NodeKind::kCall || IsBackward(graph_, node)) continue;
      if (MemoryTagOf(graph_, node) || !IsOfParameter(node)) continue;
      SetMemoryTag(rewriter_, node, MemoryTag::kPreferRecompute);
      changed = true;
    }
    return changed;
  }

 private:
  bool IsOfParameter(NodeId node) const {
    if (IsCollective(graph_, node, CollectiveKind::kAllGather))
      return !IsSkipped(node) && ComesFromPlaceholder(node);
    if (IsPassedOn(node)) return ReadsTagged(node, std::nullopt);
    return std::ranges::any_of(consumers_, [&](const Consumer& consumer) {
      return graph_.op(node) == consumer.op && ReadsTagged(node, consumer.argument);
    });
  }

  bool IsSkipped(NodeId node) const {
    return std::ranges::any_of(skip_, [&](std::string_view pattern) {
      return MatchesModule(pattern, ModuleOf(graph_, node));
    });
  }

  bool ComesFromPlaceholder(NodeId node) const {
    while (graph_.node(node).kind == NodeKind::kCall) {
      node = OnlyInputOf(graph_, node);
      if (!node.valid()) return false;
    }
    return graph_.node(node).kind == NodeKind::kPlaceholder;
  }

  /// Waits, views and casts: nothing is computed.
  bool IsPassedOn(NodeId node) const {
    constexpr std::array<std::string_view, 3> kCasts = {
        "aten._to_copy.default", "prims.convert_element_type.default", "_operator.getitem"};
    const std::string_view op = graph_.op(node);
    const OpTraits traits = TraitsOf(op);
    return IsWait(graph_, node) || (traits.view && !traits.mutates) ||
           std::ranges::find(kCasts, op) != kCasts.end();
  }

  /// Whether an argument, or that one, reads a result that backward computes again.
  bool ReadsTagged(NodeId node, std::optional<size_t> argument) const {
    bool reads = false;
    const auto look = [&](const Arg& arg) {
      if (arg.is_value()) reads |= IsRecomputable(graph_, graph_.value(arg.value()).def);
    };
    const std::span<const Arg> args = graph_.args(node);
    for (size_t i = 0; i < args.size(); ++i) {
      if (argument && i != *argument) continue;
      look(args[i]);
      if (!args[i].is_span()) continue;
      for (const Arg& element : graph_.elements(args[i]))
        look(element);
    }
    return reads;
  }

  Graph& graph_;
  const std::vector<std::string_view>& skip_;
  const std::vector<Consumer>& consumers_;
  Rewriter rewriter_;
};

}  // namespace

Result<Changed> ReshardParameters::Run(Module& module) {
  const std::vector<std::string_view> skip = SplitAtBars(options_.skip);
  STRATA_TRY(const std::vector<Consumer> consumers, ParseConsumers(options_.consumers));
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    if (HasBackward(graph)) changed |= ReshardTagger(graph, skip, consumers).Run();
  }
  return Changed(changed);
}

}  // namespace strata
