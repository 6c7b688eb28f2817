#include "passes/placement/shard_cuts.h"

#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "ir/dim.h"
#include "ir/strings.h"
#include "ir/type.h"
#include "passes/placement/placement.h"

namespace strata {
namespace {

Error Unusable(std::string_view type, std::string_view why) {
  return Error(ErrorCode::kInternal, "placement '{}': {}", OneLine(type, 200), why);
}

std::vector<std::string_view> SplitTypes(std::string_view text) {
  std::vector<std::string_view> types;
  while (true) {
    const size_t end = text.find(';');
    types.push_back(TrimBlanks(text.substr(0, end)));
    if (end == text.npos) return types;
    text.remove_prefix(end + 1);
  }
}

Error NotLowered(const Graph& graph, NodeId node) {
  return Error(ErrorCode::kInvalid,
               "graph {} cannot run on several ranks: {}: no attribute '{}': run the passes place "
               "and lower",
               graph.name_text(), graph.name(node), kGlobalTypeAttribute);
}

}  // namespace

Result<ShardCuts> ParseShardCuts(std::string_view text, const Mesh& mesh,
                                 const SymbolSizes& symbols) {
  StringTable strings;
  DimTable dims(strings);
  for (const auto& [symbol, size] : symbols)
    dims.SetSymbol({.name = strings.Intern(symbol), .hint = size});
  TypeTable types(strings, dims);
  const Type& type = types[types.Parse(text)];
  if (type.kind != TypeKind::kTensor) return Unusable(text, "it is not the type of a tensor");
  ShardCuts sharding;
  for (const DimId dim : type.sizes) {
    const std::optional<int64_t> size = dims.Hint(dim);
    if (!size) return Unusable(text, "its sizes depend on symbols");
    sharding.sizes.push_back(*size);
  }
  if (type.placements.empty()) return sharding;
  if (type.placements.size() != mesh.axes().size()) {
    return Unusable(text, fmt::format("it has {} placements for the axes of {}",
                                      type.placements.size(), mesh.Text()));
  }
  std::vector<int64_t> local = sharding.sizes;
  std::vector<ShardCut> strided;  // these axes cut what the others left
  for (size_t i = 0; i < type.placements.size(); ++i) {
    const Placement& placement = type.placements[i];
    if (placement.kind == Placement::Kind::kReplicate) continue;
    if (placement.kind == Placement::Kind::kPartial) return Unusable(text, "it is partial");
    if (placement.dim < 0 || placement.dim >= static_cast<int64_t>(local.size())) {
      return Unusable(text, fmt::format("it has no dimension {}", placement.dim));
    }
    (placement.split == 0 ? sharding.cuts : strided)
        .push_back({.axis = mesh.axes()[i], .dim = placement.dim});
  }
  sharding.cuts.insert(sharding.cuts.end(), strided.begin(), strided.end());
  for (ShardCut& cut : sharding.cuts) {
    int64_t& size = local[static_cast<size_t>(cut.dim)];
    cut.size = size;
    cut.chunk = size = (size + cut.axis.size - 1) / cut.axis.size;
  }
  return sharding;
}

Result<std::vector<ShardCuts>> InputCuts(const Graph& graph, const Mesh& mesh,
                                         const SymbolSizes& symbols) {
  std::vector<ShardCuts> cuts;
  for (const NodeId node : graph.placeholders()) {
    const std::string_view text = graph.attribute(node, kGlobalTypeAttribute);
    if (text.empty()) return NotLowered(graph, node);
    STRATA_TRY(ShardCuts input, ParseShardCuts(text, mesh, symbols));
    cuts.push_back(std::move(input));
  }
  return cuts;
}

Result<std::vector<std::optional<ShardCuts>>> OutputCuts(const Graph& graph, const Mesh& mesh,
                                                         const SymbolSizes& symbols) {
  std::vector<std::optional<ShardCuts>> cuts;
  const std::string_view text = graph.attribute(graph.output(), kGlobalTypeAttribute);
  if (text.empty()) return NotLowered(graph, graph.output());
  for (const std::string_view type : SplitTypes(text)) {
    if (type == "None") {
      cuts.emplace_back();
      continue;
    }
    STRATA_TRY(ShardCuts output, ParseShardCuts(type, mesh, symbols));
    cuts.emplace_back(std::move(output));
  }
  return cuts;
}

}  // namespace strata
