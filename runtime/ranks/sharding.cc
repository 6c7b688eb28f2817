#include "runtime/ranks/sharding.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <fmt/format.h>

#include "base/text.h"
#include "ir/dim.h"
#include "ir/strings.h"
#include "ir/type.h"
#include "runtime/plan/input_sizes.h"

namespace strata {
namespace {

using at::Tensor;

constexpr std::string_view kAttribute = "global";

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
               graph.name_text(), graph.name(node), kAttribute);
}

}  // namespace

Result<Sharding> Sharding::Parse(std::string_view text, const Mesh& mesh,
                                 const SymbolSizes& symbols) {
  StringTable strings;
  DimTable dims(strings);
  for (const auto& [symbol, size] : symbols)
    dims.SetSymbol({.name = strings.Intern(symbol), .hint = size});
  TypeTable types(strings, dims);
  const Type& type = types[types.Parse(text)];
  if (type.kind != TypeKind::kTensor) return Unusable(text, "it is not the type of a tensor");
  Sharding sharding;
  for (const DimId dim : type.sizes) {
    const std::optional<int64_t> size = dims.Hint(dim);
    if (!size) return Unusable(text, "its sizes depend on symbols");
    sharding.sizes_.push_back(*size);
  }
  if (type.placements.empty()) return sharding;
  if (type.placements.size() != mesh.axes().size()) {
    return Unusable(text, fmt::format("it has {} placements for the axes of {}",
                                      type.placements.size(), mesh.Text()));
  }
  std::vector<int64_t> local = sharding.sizes_;
  std::vector<Cut> strided;  // these axes cut what the others left
  for (size_t i = 0; i < type.placements.size(); ++i) {
    const Placement& placement = type.placements[i];
    if (placement.kind == Placement::Kind::kReplicate) continue;
    if (placement.kind == Placement::Kind::kPartial) return Unusable(text, "it is partial");
    if (placement.dim < 0 || placement.dim >= static_cast<int64_t>(local.size())) {
      return Unusable(text, fmt::format("it has no dimension {}", placement.dim));
    }
    (placement.split == 0 ? sharding.cuts_ : strided)
        .push_back({.axis = mesh.axes()[i], .dim = placement.dim});
  }
  sharding.cuts_.insert(sharding.cuts_.end(), strided.begin(), strided.end());
  for (Cut& cut : sharding.cuts_) {
    int64_t& size = local[static_cast<size_t>(cut.dim)];
    cut.size = size;
    cut.chunk = size = (size + cut.axis.size - 1) / cut.axis.size;
  }
  return sharding;
}

int64_t Sharding::PartOf(int64_t rank) const {
  int64_t part = 0;
  for (const Cut& cut : cuts_)
    part = part * cut.axis.size + rank / cut.axis.stride % cut.axis.size;
  return part;
}

Tensor Sharding::Shard(const Tensor& whole, int64_t rank) const {
  Tensor part = whole;
  for (const Cut& cut : cuts_) {
    const int64_t index = rank / cut.axis.stride % cut.axis.size;
    const int64_t begin = std::min(index * cut.chunk, cut.size);
    const int64_t end = std::min(begin + cut.chunk, cut.size);
    Tensor chunk = part.slice(cut.dim, begin, end);
    if (end - begin < cut.chunk) {
      std::vector<int64_t> sizes = part.sizes().vec();
      sizes[static_cast<size_t>(cut.dim)] = cut.chunk;
      Tensor padded = at::zeros(sizes, part.options());
      padded.slice(cut.dim, 0, end - begin).copy_(chunk);
      chunk = std::move(padded);
    }
    part = std::move(chunk);
  }
  return part.clone(at::MemoryFormat::Contiguous);
}

Tensor Sharding::Gather(std::span<const Tensor> parts) const {
  return GatherFrom(0, 0, parts).clone(at::MemoryFormat::Contiguous);
}

Tensor Sharding::GatherFrom(size_t index, int64_t rank, std::span<const Tensor> parts) const {
  if (index == cuts_.size()) return parts[static_cast<size_t>(rank)];
  const Cut& cut = cuts_[index];
  std::vector<Tensor> chunks;
  for (int64_t i = 0; i < cut.axis.size; ++i)
    chunks.push_back(GatherFrom(index + 1, rank + i * cut.axis.stride, parts));
  return at::cat(chunks, cut.dim).slice(cut.dim, 0, cut.size);
}

Result<std::vector<Sharding>> InputShardings(const Graph& graph, const Mesh& mesh) {
  const SymbolSizes symbols = HintsOf(graph);
  std::vector<Sharding> shardings;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kPlaceholder) continue;
    const std::string_view text = graph.attribute(node, kAttribute);
    if (text.empty()) return NotLowered(graph, node);
    STRATA_TRY(Sharding sharding, Sharding::Parse(text, mesh, symbols));
    shardings.push_back(std::move(sharding));
  }
  return shardings;
}

Result<std::vector<std::optional<Sharding>>> OutputShardings(const Graph& graph, const Mesh& mesh) {
  const SymbolSizes symbols = HintsOf(graph);
  std::vector<std::optional<Sharding>> shardings;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kOutput) continue;
    const std::string_view text = graph.attribute(node, kAttribute);
    if (text.empty()) return NotLowered(graph, node);
    for (const std::string_view type : SplitTypes(text)) {
      if (type == "None") {
        shardings.emplace_back();
        continue;
      }
      STRATA_TRY(Sharding sharding, Sharding::Parse(type, mesh, symbols));
      shardings.emplace_back(std::move(sharding));
    }
  }
  return shardings;
}

}  // namespace strata
