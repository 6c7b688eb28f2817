#include "passes/memory/tags.h"

#include <array>
#include <charconv>
#include <utility>

namespace strata {
namespace {

constexpr std::array<std::pair<MemoryTag, std::string_view>, 4> kTexts = {{
    {MemoryTag::kMustSave, "MUST_SAVE"},
    {MemoryTag::kPreferRecompute, "PREFER_RECOMPUTE"},
    {MemoryTag::kMustRecompute, "MUST_RECOMPUTE"},
    {MemoryTag::kMustCpuOffload, "MUST_CPU_OFFLOAD"},
}};

}  // namespace

std::string_view ToString(MemoryTag tag) {
  return kTexts[static_cast<size_t>(tag)].second;
}

std::optional<MemoryTag> MemoryTagOf(const Graph& graph, NodeId node) {
  const std::string_view text = graph.attribute(node, kMemoryTagAttribute);
  for (const auto& [tag, name] : kTexts)
    if (text == name) return tag;
  return std::nullopt;
}

void SetMemoryTag(Rewriter& rewriter, NodeId node, MemoryTag tag) {
  rewriter.SetAttribute(node, kMemoryTagAttribute, ToString(tag));
}

bool IsRecomputable(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || IsBackward(graph, node)) return false;
  const std::optional<MemoryTag> tag = MemoryTagOf(graph, node);
  return tag && IsGivenUp(*tag);
}

std::string_view ModuleOf(const Graph& graph, NodeId node) {
  return graph.module().str(graph.node(node).module);
}

int64_t LayerNumber(std::string_view module) {
  constexpr std::string_view kPrefix = "layers.";
  if (!module.starts_with(kPrefix)) return kNotInLayers;
  module.remove_prefix(kPrefix.size());
  const std::string_view part = module.substr(0, module.find('.'));
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
  const bool is_number = error == std::errc() && end == part.data() + part.size() && layer >= 0;
  return is_number ? layer : kNotInLayers;
}

}  // namespace strata
