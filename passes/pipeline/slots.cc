#include "passes/pipeline/slots.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/pipeline/graph_copier.h"

namespace strata {
namespace {

constexpr std::array<std::pair<StageSlot::Kind, std::string_view>, 9> kKinds = {{
    {StageSlot::Kind::kInput, "input"},
    {StageSlot::Kind::kActivation, "activation"},
    {StageSlot::Kind::kGradient, "gradient"},
    {StageSlot::Kind::kWhole, "whole"},
    {StageSlot::Kind::kSaved, "saved"},
    {StageSlot::Kind::kKept, "kept"},
    {StageSlot::Kind::kLoss, "loss"},
    {StageSlot::Kind::kParameterGradient, "grad"},
    {StageSlot::Kind::kExtra, "extra"},
}};

}  // namespace

std::string StageInputName(const Graph& graph, NodeId placeholder) {
  const std::string_view fqn = graph.attribute(placeholder, "fqn");
  return std::string(fqn.empty() ? graph.name(placeholder) : fqn);
}

std::string ToString(const StageSlot& slot) {
  std::string_view word;
  for (const auto& [kind, text] : kKinds)
    if (kind == slot.kind) word = text;
  return slot.name.empty() ? std::string(word) : fmt::format("{} {}", word, slot.name);
}

Result<StageSlot> ParseStageSlot(std::string_view text) {
  const size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  for (const auto& [kind, known] : kKinds) {
    const bool has_name = space != text.npos && space + 1 < text.size();
    if (known != word || has_name != (kind != StageSlot::Kind::kLoss)) continue;
    return StageSlot{.kind = kind, .name = std::string(has_name ? text.substr(space + 1) : "")};
  }
  return Error("not a slot: '{}': write `loss`, or a kind and a name, as in `activation 0`", text);
}

Result<StageSlots> StageSlotsOf(const Graph& graph) {
  StageSlots slots;
  for (const NodeId node : graph.placeholders()) {
    auto slot = ParseStageSlot(graph.attribute(node, kSlotAttribute));
    if (!slot) {
      return std::move(slot).error().In(
          fmt::format("graph {}: input {}", graph.name_text(), graph.name(node)));
    }
    slots.inputs.push_back(*std::move(slot));
  }
  std::string_view text = graph.attribute(graph.output(), kSlotsAttribute);
  while (!text.empty()) {
    const size_t end = text.find("; ");
    auto slot = ParseStageSlot(text.substr(0, end));
    if (!slot) return std::move(slot).error().In(fmt::format("graph {}", graph.name_text()));
    slots.outputs.push_back(*std::move(slot));
    text.remove_prefix(end == text.npos ? text.size() : end + 2);
  }
  if (const size_t values = OutputsOf(graph).size(); values != slots.outputs.size()) {
    return Error("graph {} returns {} values: {} slots name them: give each one", graph.name_text(),
                 values, slots.outputs.size());
  }
  return slots;
}

void SetInputSlot(Rewriter& rewriter, NodeId placeholder, const StageSlot& slot) {
  rewriter.SetAttribute(placeholder, kSlotAttribute, ToString(slot));
}

void SetOutputSlots(Rewriter& rewriter, const std::vector<StageSlot>& slots) {
  std::vector<std::string> texts;
  for (const StageSlot& slot : slots)
    texts.push_back(ToString(slot));
  rewriter.SetAttribute(rewriter.graph().output(), kSlotsAttribute,
                        fmt::format("{}", fmt::join(texts, "; ")));
}

}  // namespace strata
