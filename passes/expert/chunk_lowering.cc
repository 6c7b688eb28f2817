#include "passes/expert/chunk_lowering.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/written_memory.h"
#include "passes/expert/chunk_checks.h"
#include "passes/expert/chunk_live_outs.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

class RegionLowering {
 public:
  RegionLowering(ChunkContext& context, const ChunkRegion& region)
      : context_(context), graph_(context.graph), region_(region) {}

  Result<RegionCopies> Run() {
    for (const NodeId node : region_.body)
      in_body_.insert(node);
    STRATA_RETURN_IF_ERROR(CheckRegion(context_, region_));
    STRATA_RETURN_IF_ERROR(SplitOperands());
    for (const NodeId node : region_.body)
      STRATA_RETURN_IF_ERROR(CopyNode(node));
    return std::move(copies_);
  }

 private:
  int64_t num_chunks() const { return context_.options.num_chunks; }

  Status SplitOperands() {
    bool has_activation = false;
    for (const NodeId node : region_.body) {
      const std::vector<ValueId> operands = graph_.operands(node);
      for (const ValueId operand : operands) {
        if (in_body_.contains(graph_.value(operand).def)) continue;
        if (context_.copies.contains(operand) || parts_.contains(operand)) {
          has_activation = true;
          continue;
        }
        const TypeId type = graph_.value(operand).type;
        if (!IsTensor(context_.module, type) || !context_.symbols.Carries(type) ||
            IsStatic(operand)) {
          continue;
        }
        STRATA_RETURN_IF_ERROR(Split(operand, node));
        has_activation = true;
      }
    }
    if (has_activation) return Ok();
    return Error(
        "no chunkable activation live-ins: {}: nothing that it reads has the chunked "
        "dimension",
        Where(context_, region_));
  }

  bool IsStatic(ValueId value) const {
    if (graph_.node(graph_.value(value).def).kind != NodeKind::kPlaceholder) return false;
    int64_t index = 0;
    for (const NodeId input : graph_.nodes()) {
      if (index++ >= context_.options.num_static_inputs) return false;
      if (input == graph_.value(value).def) return true;
    }
    return false;
  }

  /// The chunks of `value` before its first reader `reader`.
  Status Split(ValueId value, NodeId reader) {
    Module& module = context_.module;
    const TypeId whole_id = graph_.value(value).type;
    auto found = context_.symbols.DimOf(whole_id);
    if (!found) return std::move(found).error().In(graph_.value_name(value));
    if (!*found) {
      return Error("tensor does not carry the selected chunk symbol in a size: {}: {}",
                   Where(context_, region_), graph_.value_name(value));
    }
    const size_t dim = **found;
    const Type whole = module.types()[whole_id];
    std::vector<Arg> sizes;
    std::vector<TypeId> types;
    DimId offset = whole.dim.valid() ? whole.dim : module.dims().Const(0);
    for (int64_t chunk = 0; chunk < num_chunks(); ++chunk) {
      Type part = whole;
      part.sizes[dim] = context_.SizesIn(region_.root, chunk)(whole.sizes[dim]);
      part.dim = module.dims().AsConst(offset) == 0 ? DimId{} : offset;
      if (whole.has_strides) {
        offset = module.dims().Add(offset, module.dims().Mul(part.sizes[dim], whole.strides[dim]));
      }
      sizes.push_back(context_.Number(part.sizes[dim]));
      types.push_back(module.types().Intern(part));
    }
    const Arg args[] = {Arg(value), context_.rewriter.MakeSpan(ArgKind::kList, sizes),
                        Arg::Int(static_cast<int64_t>(dim))};
    const std::string name(graph_.value_name(value));
    const NodeId def = graph_.value(value).def;
    const NodeId split = context_.CreateBefore(reader,
                                               {.op = "aten.split_with_sizes.default",
                                                .args = args,
                                                .results = types,
                                                .returns_tuple = true},
                                               {&def, 1}, region_, kSplitRole);
    context_.Rename(split, fmt::format("{}_split", name));
    for (int64_t chunk = 0; chunk < num_chunks(); ++chunk) {
      const ValueId part = graph_.result(split, static_cast<size_t>(chunk));
      context_.RenameElement(part, fmt::format("{}_part{}", name, chunk));
      context_.rewriter.SetAlias(part, OwnerOf(graph_, value));
      context_.views.Add(part, 0);
      parts_[value].push_back(Dense(part, whole_id, reader, chunk));
    }
    return Ok();
  }

  /// A part with the strides that a chunk has by itself: a copy, unless it has them already.
  ValueId Dense(ValueId part, TypeId whole, NodeId reader, int64_t chunk) {
    Module& module = context_.module;
    const TypeId own_id = context_.SizesIn(region_.root, chunk)(whole);
    Type own = module.types()[own_id];
    own.dim = {};
    const Type given = module.types()[graph_.value(part).type];
    if (!own.has_strides || HasEqualStrides(module.dims(), given, own)) return part;
    const bool is_contiguous = IsContiguous(module.dims(), own);
    const NamedArg format{module.Intern("memory_format"),
                          Arg::Raw(module.Intern(is_contiguous ? "torch.contiguous_format"
                                                               : "torch.preserve_format"))};
    const Arg args[] = {Arg(part)};
    const TypeId results[] = {module.types().Intern(own)};
    const NodeId def = graph_.value(part).def;
    const NodeId clone = context_.CreateBefore(
        reader,
        {.op = "aten.clone.default", .args = args, .kwargs = {&format, 1}, .results = results},
        {&def, 1}, region_, kChunkInputRole);
    context_.Rename(clone, fmt::format("{}_dense", graph_.value_name(part)));
    context_.SetChunk(clone, chunk);
    return graph_.result(clone);
  }

  Status CopyNode(NodeId node) {
    context_.RenewSymbols(node, region_.root);
    std::vector<TypeId> types;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      types.push_back(graph_.value(graph_.result(node, i)).type);
    STRATA_RETURN_IF_ERROR(CheckShapeArguments(context_, node));
    std::vector<NodeId> nodes = {node};
    for (int64_t chunk = 1; chunk < num_chunks(); ++chunk) {
      context_.rewriter.SetCursorAfter(nodes.back());
      nodes.push_back(context_.rewriter.Clone(node));
      context_.PlaceAfter(nodes.back(), node);
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const ValueId value = graph_.result(node, i);
      copies_.types.emplace(value, types[i]);
      for (const NodeId copy : nodes) {
        copies_.values[value].push_back(graph_.result(copy, i));
        if (copy != node) context_.views.Copy(value, graph_.result(copy, i));
      }
    }
    const bool writes_shared = WritesShared(node);
    const std::string name(graph_.name(node));
    for (int64_t chunk = num_chunks() - 1; chunk >= 0; --chunk) {
      const NodeId copy = nodes[static_cast<size_t>(chunk)];
      MapArguments(copy, chunk);
      if (writes_shared && chunk > 0) {
        context_.rewriter.SetSlot(copy, graph_.node(copy).args_begin,
                                  Arg(graph_.result(nodes[static_cast<size_t>(chunk - 1)])));
      }
      for (size_t i = 0; i < types.size(); ++i) {
        context_.rewriter.SetType(graph_.result(copy, i),
                                  context_.SizesIn(region_.root, chunk)(types[i]));
      }
      Label(copy, chunk, name, node);
    }
    if (writes_shared) copies_.chained.insert(node);
    return Ok();
  }

  bool WritesShared(NodeId node) const {
    if (!Mutates(graph_, node)) return false;
    const ValueId written = graph_.args(node)[0].value();
    return !in_body_.contains(graph_.value(OwnerOf(graph_, written)).def);
  }

  void Label(NodeId copy, int64_t chunk, const std::string& name, NodeId original) {
    for (size_t i = 0; i < graph_.node(copy).num_results; ++i) {
      const ValueId value = graph_.result(copy, i);
      const StrId element = graph_.value(graph_.result(original, i)).name;
      if (element.valid()) {
        context_.RenameElement(value,
                               fmt::format("{}_chunk{}", context_.module.str(element), chunk));
      }
    }
    context_.Rename(copy, fmt::format("{}_chunk{}", name, chunk));
    Rewriter& rewriter = context_.rewriter;
    rewriter.SetAttribute(copy, kChunkedRegionAttribute, context_.module.str(region_.root));
    rewriter.SetAttribute(copy, kChunkRoleAttribute, kBodyRole);
    rewriter.SetAttribute(copy, kChunkedOriginalAttribute, name);
    context_.SetChunk(copy, chunk);
  }

  void MapArguments(NodeId copy, int64_t chunk) {
    const uint32_t begin = graph_.node(copy).args_begin;
    const uint32_t count = graph_.node(copy).num_args + 2u * graph_.node(copy).num_kwargs;
    for (uint32_t slot = begin; slot < begin + count; ++slot)
      MapSlot(copy, slot, chunk);
  }

  void MapSlot(NodeId copy, uint32_t slot, int64_t chunk) {
    const Arg arg = graph_.slot(slot);
    if (arg.is_span()) {
      for (uint32_t i = 0; i < arg.span_size(); ++i)
        MapSlot(copy, arg.span_begin() + i, chunk);
    } else if (arg.is_value()) {
      const Arg mapped = InChunk(arg.value(), chunk);
      if (!mapped.is_value() || mapped.value() != arg.value())
        context_.rewriter.SetSlot(copy, slot, mapped);
    } else if (arg.kind() == ArgKind::kDim) {
      context_.rewriter.SetSlot(copy, slot, context_.SizesIn(region_.root, chunk)(arg));
    }
  }

  Arg InChunk(ValueId value, int64_t chunk) const {
    const auto at = static_cast<size_t>(chunk);
    if (const auto found = copies_.values.find(value); found != copies_.values.end())
      return Arg(found->second[at]);
    if (const auto found = context_.copies.find(value); found != context_.copies.end())
      return Arg(found->second[at]);
    if (const auto found = parts_.find(value); found != parts_.end()) return Arg(found->second[at]);
    return Arg(value);
  }

  ChunkContext& context_;
  Graph& graph_;
  const ChunkRegion& region_;
  std::unordered_set<NodeId> in_body_;
  std::unordered_map<ValueId, std::vector<ValueId>> parts_;  // of operands that are split
  RegionCopies copies_;
};

}  // namespace

Status LowerRegion(ChunkContext& context, const ChunkPlan& plan, const ChunkRegion& region,
                   const GradientBoundaries& gradients) {
  STRATA_TRY(const RegionCopies copies, RegionLowering(context, region).Run());
  return LowerLiveOuts(context, plan, region, gradients, copies);
}

}  // namespace strata
