#include "passes/expert/chunk_live_outs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/core/chunk_attributes.h"
#include "passes/expert/chunk_checks.h"
#include "passes/expert/chunk_roots.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

class LiveOuts {
 public:
  LiveOuts(ChunkContext& context, const ChunkPlan& plan, const ChunkRegion& region,
           const GradientBoundaries& gradients, const RegionCopies& copies)
      : context_(context),
        graph_(context.graph),
        plan_(plan),
        region_(region),
        gradients_(gradients),
        copies_(copies) {}

  Status Run() {
    for (const NodeId node : region_.body) {
      for (size_t i = 0; i < graph_.node(node).num_results; ++i)
        STRATA_RETURN_IF_ERROR(Lower(graph_.result(node, i)));
    }
    return Ok();
  }

 private:
  struct Users {
    std::vector<Use> whole;
    bool has_chunked = false;
  };

  Status Lower(ValueId value) {
    const Users users = UsersOutside(value);
    if (users.has_chunked) context_.copies.emplace(value, copies_.values.at(value));
    if (users.whole.empty()) return Ok();
    const NodeId node = graph_.value(value).def;
    if (copies_.chained.contains(node)) return UseLastWrite(value, users);
    STRATA_TRY(const std::string_view proof, ProofOf(value, users));
    const NodeId whole = Join(value, FirstOf(users.whole), proof);
    for (const Use use : users.whole)
      context_.rewriter.ReplaceUse(use, graph_.result(whole));
    return Ok();
  }

  /// Uses by nodes that are not copies, and that matter.
  Users UsersOutside(ValueId value) {
    Users users;
    std::vector<NodeId> dead;
    for (const Use use : graph_.uses(value)) {
      const bool is_copy =
          graph_.attribute(use.user, kChunkRoleAttribute) == kBodyRole &&
          graph_.attribute(use.user, kChunkedRegionAttribute) == context_.module.str(region_.root);
      if (is_copy) continue;
      if (plan_.Find(use.user) == nullptr && !IsSemanticUser(graph_, use.user)) {
        dead.push_back(use.user);
      } else if (ReadsChunks(use.user)) {
        users.has_chunked = true;
      } else {
        users.whole.push_back(use);
      }
    }
    std::ranges::sort(dead);
    dead.erase(std::unique(dead.begin(), dead.end()), dead.end());
    for (const NodeId node : dead)
      context_.rewriter.Erase(node);
    return users;
  }

  /// Whether a user is, or will be, in the backward region of this root.
  bool ReadsChunks(NodeId user) const {
    if (region_.is_backward || !IsBackward(graph_, user)) return false;
    const ChunkRegion* planned = plan_.Find(user);
    if (planned != nullptr) return planned->root == region_.root;
    return graph_.node(user).kind == NodeKind::kCall && !gradients_.suffix.contains(user) &&
           IsInside(ModuleOf(graph_, user), context_.module.str(region_.root));
  }

  NodeId FirstOf(const std::vector<Use>& uses) const {
    return std::ranges::min_element(
               uses, [&](const Use& a, const Use& b) { return context_.IsBefore(a.user, b.user); })
        ->user;
  }

  /// Empty: the chunks are parts of the whole; else why they add up to it.
  Result<std::string_view> ProofOf(ValueId value, const Users& users) const {
    auto dim = context_.symbols.DimOf(copies_.types.at(value));
    if (!dim) return std::move(dim).error().In(Where(context_, region_));
    if (*dim) return std::string_view();
    const NodeId node = graph_.value(value).def;
    const bool all_outputs = std::ranges::all_of(
        users.whole, [&](const Use& use) { return use.user == graph_.output(); });
    if (region_.is_backward && gradients_.boundaries.contains(node))
      return all_outputs ? kOutputSumProof : kBoundarySumProof;
    if (IsCount(graph_, node, context_.symbols)) return kCountProof;
    std::string readers;
    for (const Use& use : users.whole)
      readers += fmt::format("{}{}", readers.empty() ? "" : ", ", graph_.name(use.user));
    return Error(
        "cannot materialize {}live-out without chunk dimension: {}: {} ({}) is read by {}: there "
        "is no forward accumulation proof or a backward parameter-gradient consumer",
        users.has_chunked ? "hybrid live-out consumers: " : "", Where(context_, region_),
        graph_.attribute(node, kChunkedOriginalAttribute), graph_.op(node), readers);
  }

  Status UseLastWrite(ValueId value, const Users& users) {
    const ValueId last = copies_.values.at(value).back();
    context_.rewriter.SetAttribute(graph_.value(last).def, kChunkProofAttribute, kLastWriteProof);
    for (const Use use : users.whole)
      context_.rewriter.ReplaceUse(use, last);
    return Ok();
  }

  /// The whole before `reader`: a concatenation, or with a proof a sum.
  NodeId Join(ValueId value, NodeId reader, std::string_view proof) {
    const std::vector<ValueId>& chunks = copies_.values.at(value);
    const TypeId type = copies_.types.at(value);
    const std::string name(graph_.attribute(graph_.value(value).def, kChunkedOriginalAttribute));
    const StrId element = graph_.value(value).name;
    NodeId joined;
    if (proof.empty()) {
      std::vector<Arg> parts(chunks.begin(), chunks.end());
      const size_t dim = **context_.symbols.DimOf(type);
      const Arg args[] = {context_.rewriter.MakeSpan(ArgKind::kList, parts),
                          Arg::Int(static_cast<int64_t>(dim))};
      joined = Create("aten.cat.default", args, type, chunks, reader);
    } else {
      // Last chunk first, as autograd adds what several uses of a tensor give.
      ValueId sum = chunks.back();
      for (size_t chunk = chunks.size() - 1; chunk-- > 0;) {
        const Arg args[] = {Arg(chunks[chunk]), Arg(sum)};
        joined = Create("aten.add.Tensor", args, type, chunks, reader);
        context_.rewriter.SetAttribute(joined, kChunkProofAttribute, proof);
        sum = graph_.result(joined);
      }
    }
    context_.Rename(joined,
                    fmt::format("{}_chunk_materialized",
                                element.valid() ? std::string(OriginalElement(value)) : name));
    return joined;
  }

  /// "getitem_3" of "getitem_3_chunk0".
  std::string_view OriginalElement(ValueId value) const {
    const std::string_view name = graph_.value_name(value);
    return name.substr(0, name.rfind("_chunk"));
  }

  NodeId Create(std::string_view op, std::span<const Arg> args, TypeId type,
                const std::vector<ValueId>& chunks, NodeId reader) {
    std::vector<NodeId> ancestors;
    for (const ValueId chunk : chunks)
      ancestors.push_back(graph_.value(chunk).def);
    const TypeId results[] = {type};
    return context_.CreateBefore(reader, {.op = op, .args = args, .results = results}, ancestors,
                                 region_, kMaterializationRole);
  }

  ChunkContext& context_;
  Graph& graph_;
  const ChunkPlan& plan_;
  const ChunkRegion& region_;
  const GradientBoundaries& gradients_;
  const RegionCopies& copies_;
};

}  // namespace

Status LowerLiveOuts(ChunkContext& context, const ChunkPlan& plan, const ChunkRegion& region,
                     const GradientBoundaries& gradients, const RegionCopies& copies) {
  return LiveOuts(context, plan, region, gradients, copies).Run();
}

}  // namespace strata
