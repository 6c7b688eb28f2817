#include "passes/expert/chunk_context.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "passes/core/chunk_attributes.h"
#include "passes/expert/chunk_roots.h"

namespace strata {
namespace {

/// Symbols of an expression, in order.
void CollectSymbols(const DimTable& dims, DimId dim, std::vector<DimId>& symbols) {
  if (!dim.valid() || dims.kind(dim) == DimKind::kConst) return;
  if (dims.kind(dim) == DimKind::kSymbol) {
    symbols.push_back(dim);
    return;
  }
  for (const DimId operand : dims.operands(dim))
    CollectSymbols(dims, operand, symbols);
}

// Places leave room on both sides of each node of the graph before.
constexpr int64_t kBetween = 4;

}  // namespace

ChunkContext::ChunkContext(Graph& g, const ChunkSymbols& s, const ChunkOptions& o)
    : graph(g), module(g.module()), symbols(s), options(o), rewriter(g), views(g) {
  for (const int32_t position : PositionsOf(graph))
    place_.Add(position * kBetween);
  for (const NodeId node : graph.nodes()) {
    Take(graph.node(node).name);
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      Take(graph.value(graph.result(node, i)).name);
  }
  FindSymbolsReadFromData();
}

void ChunkContext::FindSymbolsReadFromData() {
  const DimTable& dims = module.dims();
  std::set<DimId> seen;
  for (const NodeId node : graph.nodes()) {
    std::vector<DimId> mentioned;
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const TypeId type = graph.value(graph.result(node, i)).type;
      if (!type.valid()) continue;
      CollectSymbols(dims, module.types()[type].dim, mentioned);
      for (const DimId size : module.types()[type].sizes)
        CollectSymbols(dims, size, mentioned);
    }
    for (const DimId symbol : mentioned) {
      if (!seen.insert(symbol).second) continue;
      const Symbol* known = dims.FindSymbol(module.strings().Find(dims.name(symbol)));
      const bool is_call = graph.node(node).kind == NodeKind::kCall;
      if (is_call && known != nullptr && !known->backed && !symbols.Mentions(symbol))
        reads_[node].push_back(symbol);
    }
  }
}

Substitution& ChunkContext::SizesIn(StrId root, int64_t chunk) {
  std::vector<Substitution>& sizes = sizes_[root];
  while (std::ssize(sizes) <= chunk) {
    std::map<DimId, DimId> parts;
    for (const DimId symbol : symbols.symbols())
      parts.emplace(symbol, symbols.Part(symbol, std::ssize(sizes)));
    sizes.emplace_back(module, std::move(parts));
  }
  return sizes[static_cast<size_t>(chunk)];
}

void ChunkContext::RenewSymbols(NodeId node, StrId root) {
  const auto found = reads_.find(node);
  if (found == reads_.end()) return;
  DimTable& dims = module.dims();
  for (int64_t chunk = 0; chunk < options.num_chunks; ++chunk) {
    for (const DimId symbol : found->second) {
      Symbol fresh = *dims.FindSymbol(module.strings().Find(dims.name(symbol)));
      std::string name;
      do {
        name = fmt::format("u{}", next_symbol_++);
      } while (dims.FindSymbol(module.Intern(name)) != nullptr);
      fresh.name = module.Intern(name);
      if (fresh.hint) {
        fresh.hint =
            std::max<int64_t>(1, (*fresh.hint + options.num_chunks - 1) / options.num_chunks);
      }
      const DimId renewed = dims.Sym(name);
      dims.SetSymbol(fresh);
      SizesIn(root, chunk).Add(symbol, renewed);
    }
  }
}

bool ChunkContext::Take(StrId name) {
  if (!name.valid()) return false;
  const auto index = static_cast<size_t>(name.index);
  if (index >= is_taken_.size()) is_taken_.resize(std::max(index + 1, 2 * is_taken_.size()));
  const bool was_free = !is_taken_[index];
  is_taken_[index] = true;
  return was_free;
}

std::string ChunkContext::FreeName(std::string_view base) {
  std::string name(base);
  for (int number = 1; !Take(module.Intern(name)); ++number)
    name = fmt::format("{}_{}", base, number);
  return name;
}

void ChunkContext::Rename(NodeId node, std::string_view base) {
  rewriter.SetName(node, FreeName(base));
}

void ChunkContext::RenameElement(ValueId value, std::string_view base) {
  rewriter.SetElementName(value, FreeName(base));
}

NodeId ChunkContext::CreateBefore(NodeId anchor, const NodeSpec& spec,
                                  std::span<const NodeId> ancestors, const ChunkRegion& region,
                                  std::string_view role) {
  rewriter.SetCursorBefore(anchor);
  const NodeId node = rewriter.Create(spec, From(ancestors));
  Take(graph.node(node).name);
  SetPlace(node, place_[anchor] - 1);
  const std::string_view root = module.str(region.root);
  rewriter.SetModule(node, ModuleAround(root));
  rewriter.SetPhase(node, graph.node(region.body.front()).phase);
  rewriter.SetSeqNr(node, -1);
  rewriter.SetAttribute(node, kChunkedRegionAttribute, root);
  rewriter.SetAttribute(node, kChunkRoleAttribute, role);
  return node;
}

void ChunkContext::SetChunk(NodeId node, int64_t chunk) {
  rewriter.SetAttribute(node, kChunkIdAttribute, fmt::format("{}", chunk));
}

void ChunkContext::SetPlace(NodeId node, int64_t place) {
  place_.resize(static_cast<size_t>(graph.node_bound()), -1);
  place_[node] = place;
}

void ChunkContext::PlaceAfter(NodeId node, NodeId anchor) {
  SetPlace(node, place_[anchor] + 1);
}

bool ChunkContext::IsBefore(NodeId a, NodeId b) const {
  const int64_t place_a = place_[a];
  const int64_t place_b = place_[b];
  return place_a != place_b ? place_a < place_b : a < b;
}

Arg ChunkContext::Number(DimId dim) const {
  const std::optional<int64_t> number = module.dims().AsConst(dim);
  return number ? Arg::Int(*number) : Arg::Dim(dim);
}

}  // namespace strata
