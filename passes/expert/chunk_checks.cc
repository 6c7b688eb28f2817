#include "passes/expert/chunk_checks.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/written_memory.h"
#include "passes/expert/chunk_roots.h"
#include "passes/expert/exchange_labels.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

std::string NodeText(const Graph& graph, NodeId node) {
  return fmt::format("node {} ({})", graph.name(node), graph.op(node));
}

bool IsExpertCollective(const Graph& graph, NodeId node, const std::unordered_set<NodeId>& body) {
  if (IsTokenExchange(graph, node) || !graph.attribute(node, "EP").empty() ||
      !graph.attribute(node, kExchangeAttribute).empty()) {
    return true;
  }
  if (!BaseName(graph.op(node)).starts_with("wait")) return false;
  const std::vector<ValueId> operands = graph.operands(node);
  const NodeId launch = operands.empty() ? NodeId{} : graph.value(operands[0]).def;
  return body.contains(launch) && IsTokenExchange(graph, launch);
}

/// Attention without dropout draws no numbers.
bool DrawsRandomNumbers(const Graph& graph, NodeId node) {
  if (!TraitsOf(graph.op(node)).random) return false;
  const std::string_view base = BaseName(graph.op(node));
  if (!base.starts_with("_scaled_dot_product_")) return true;
  const bool has_bias = base.starts_with("_scaled_dot_product_efficient") ||
                        base.starts_with("_scaled_dot_product_cudnn");
  const size_t position = has_bias ? 5 : 3;
  const std::span<const Arg> args = graph.args(node);
  const Arg* dropout =
      position < args.size() ? &args[position] : graph.FindKwarg(node, "dropout_p");
  if (dropout == nullptr || dropout->is_none()) return false;
  return !((dropout->kind() == ArgKind::kFloat && dropout->as_float() == 0.0) ||
           (dropout->kind() == ArgKind::kInt && dropout->as_int() == 0));
}

/// Memory that the region writes and does not make is read by its writer alone, once.
Status CheckWrites(const ChunkContext& context, const ChunkRegion& region,
                   const std::unordered_set<NodeId>& body) {
  const Graph& graph = context.graph;
  std::set<ValueId> written;
  for (const NodeId node : region.body) {
    if (!Mutates(graph, node)) continue;
    std::vector<ValueId> shared;
    const auto add = [&](ValueId value) {
      const ValueId owner = OwnerOf(graph, value);
      if (!body.contains(graph.value(owner).def)) shared.push_back(owner);
    };
    const std::span<const Arg> args = graph.args(node);
    const bool is_in_place = BaseName(graph.op(node)).ends_with('_');
    if (is_in_place && !args.empty() && args[0].is_value()) {
      add(args[0].value());
    } else {
      graph.ForEachOperand(node, add);
    }
    if (shared.empty()) continue;
    if (!is_in_place) {
      return Error(
          "chunks can write one shared operand, one schema-declared mutable positional input: {}: "
          "{}",
          Where(context, region), NodeText(graph, node));
    }
    if (context.symbols.Carries(graph, shared[0])) {
      return Error("a chunk would write to the whole: {}: {} writes {}", Where(context, region),
                   NodeText(graph, node), graph.value_name(shared[0]));
    }
    if (!written.insert(shared[0]).second) {
      return Error("memory is written more than once per chunk: {}: {} writes {}",
                   Where(context, region), NodeText(graph, node), graph.value_name(shared[0]));
    }
  }
  if (written.empty()) return Ok();
  for (const NodeId node : region.body) {
    if (Mutates(graph, node)) continue;
    ValueId read;
    graph.ForEachOperand(node, [&](ValueId operand) {
      if (written.contains(OwnerOf(graph, operand))) read = operand;
    });
    if (read.valid()) {
      return Error("one chunk would read what another one wrote: {}: {} reads {}",
                   Where(context, region), NodeText(graph, node), graph.value_name(read));
    }
  }
  return Ok();
}

bool HasChunkedSizes(const Graph& graph, const ChunkSymbols& symbols) {
  for (const NodeId node : graph.nodes())
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      if (symbols.Carries(graph, graph.result(node, i))) return true;
  return false;
}

Status CheckBody(const ChunkContext& context, const ChunkRegion& region, NodeId node) {
  const Graph& graph = context.graph;
  const auto check = [&](const Arg& arg) -> Status {
    if (arg.kind() != ArgKind::kGraph) return Ok();
    const Graph& body = graph.module().graph(arg.graph());
    if (!HasChunkedSizes(body, context.symbols)) return Ok();
    return Error(ErrorCode::kUnsupported,
                 "a body has chunked sizes: {}: {}: graph {}: chunk before the pass that makes it",
                 Where(context, region), NodeText(graph, node), body.name_text());
  };
  for (const Arg& arg : graph.args(node))
    STRATA_RETURN_IF_ERROR(check(arg));
  for (const ValueId operand : graph.operands(node)) {
    const NodeId def = graph.value(operand).def;
    if (graph.node(def).kind != NodeKind::kGetAttr) continue;
    for (const Arg& arg : graph.args(def))
      STRATA_RETURN_IF_ERROR(check(arg));
  }
  return Ok();
}

/// Which argument of an operator on a tensor is a list of the sizes of its result.
std::optional<size_t> ShapeArgument(std::string_view op) {
  constexpr std::array<std::string_view, 14> kSecond = {
      "_unsafe_view", "as_strided",        "broadcast_to", "expand",   "expand_copy",
      "new_empty",    "new_empty_strided", "new_full",     "new_ones", "new_zeros",
      "reshape",      "resize_",           "view",         "view_copy"};
  return std::ranges::find(kSecond, BaseName(op)) != kSecond.end() ? std::optional<size_t>(1)
                                                                   : std::nullopt;
}

}  // namespace

std::string Where(const ChunkContext& context, const ChunkRegion& region) {
  return fmt::format("graph {}: {}, {}", context.graph.name_text(), context.module.str(region.root),
                     region.is_backward ? "backward" : "forward");
}

Status CheckRegion(const ChunkContext& context, const ChunkRegion& region) {
  const Graph& graph = context.graph;
  const std::unordered_set<NodeId> body(region.body.begin(), region.body.end());
  for (const NodeId node : region.body) {
    if (context.options.chunk_dim == ChunkDim::kSeq &&
        HasPart(ModuleOf(graph, node), "attention")) {
      return Error(ErrorCode::kUnsupported,
                   "chunks of a sequence need full-K/V handling in attention: {}: {}: take "
                   "module_fqn=layers.*.moe or chunk_dim=batch",
                   Where(context, region), NodeText(graph, node));
    }
    const OpTraits traits = TraitsOf(graph.op(node));
    if (traits.collective && !IsExpertCollective(graph, node, body)) {
      return Error("only EP collectives can run per chunk: {}: {}: take another module_fqn",
                   Where(context, region), NodeText(graph, node));
    }
    if (DrawsRandomNumbers(graph, node)) {
      return Error(ErrorCode::kUnsupported,
                   "chunks would draw other random numbers: {}: {}: take another module_fqn",
                   Where(context, region), NodeText(graph, node));
    }
    STRATA_RETURN_IF_ERROR(CheckBody(context, region, node));
  }
  return CheckWrites(context, region, body);
}

Status CheckShapeArguments(const ChunkContext& context, NodeId node) {
  const Graph& graph = context.graph;
  if (graph.node(node).num_results == 0) return Ok();
  const TypeId type = graph.value(graph.result(node)).type;
  const std::optional<size_t> position = ShapeArgument(graph.op(node));
  const std::span<const Arg> args = graph.args(node);
  if (!position || *position >= args.size() || !args[*position].is_span() ||
      !context.symbols.Carries(type)) {
    return Ok();
  }
  std::string shape;
  for (const Arg& size : graph.elements(args[*position])) {
    if (size.kind() != ArgKind::kInt || size.as_int() == -1) return Ok();
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size.as_int());
  }
  const SourceLoc* loc =
      graph.node(node).loc.valid() ? &context.module.loc(graph.node(node).loc) : nullptr;
  return Error(
      "the program baked a Python constant into a shape: graph {}: {} of {}: [{}] for {}: use "
      "x.shape[i]/x.size(i) or -1{}",
      graph.name_text(), NodeText(graph, node), ModuleOf(graph, node), shape,
      context.module.types().ToString(type),
      loc == nullptr ? ""
                     : fmt::format("\n  {}:{}: {}", context.module.str(loc->file), loc->line,
                                   loc->code.valid() ? context.module.str(loc->code) : ""));
}

namespace {

/// What the attributes of a node say of its place among chunks, found once.
struct ChunkPlace {
  std::string_view root, chunk, role;
  bool is_last_write = false;

  ChunkPlace(const Graph& graph, NodeId node) {
    for (const auto& [key_id, value_id] : graph.attributes(node)) {
      const std::string_view key = graph.module().str(key_id);
      const std::string_view value = graph.module().str(value_id);
      if (key == kChunkedRegionAttribute) root = value;
      if (key == kChunkIdAttribute) chunk = value;
      if (key == kChunkRoleAttribute) role = value;
      if (key == kChunkProofAttribute) is_last_write = value == kLastWriteProof;
    }
  }
};

}  // namespace

Status CheckChunksStayInside(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    const ChunkPlace place(graph, node);
    if (place.role != kBodyRole || place.is_last_write) continue;
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      for (const Use use : graph.uses(graph.result(node, i))) {
        const ChunkPlace reader(graph, use.user);
        const bool is_own = reader.root == place.root;
        const bool is_same = is_own && reader.chunk == place.chunk;
        const bool joins = is_own && reader.role == kMaterializationRole;
        if (is_same || joins || (is_own && Mutates(graph, use.user))) continue;
        return Error(ErrorCode::kInternal,
                     "a node outside of the chunks reads one of them: graph {}: {} reads {} of {}",
                     graph.name_text(), NodeText(graph, use.user), graph.name(node), place.root);
      }
    }
  }
  return Ok();
}

bool HasEqualStrides(const DimTable& dims, const Type& a, const Type& b) {
  for (size_t dim = 0; dim < a.strides.size(); ++dim) {
    if (a.strides[dim] == b.strides[dim] || dims.Hint(a.sizes[dim]) == 1) continue;
    const std::optional<int64_t> x = dims.Hint(a.strides[dim]), y = dims.Hint(b.strides[dim]);
    if (!x || x != y) return false;
  }
  return true;
}

bool IsContiguous(const DimTable& dims, const Type& type) {
  int64_t expected = 1;
  for (size_t dim = type.sizes.size(); dim-- > 0;) {
    const std::optional<int64_t> size = dims.Hint(type.sizes[dim]);
    const std::optional<int64_t> stride = dims.Hint(type.strides[dim]);
    if (!size || !stride || (*size != 1 && *stride != expected)) return false;
    expected *= *size;
  }
  return true;
}

}  // namespace strata
