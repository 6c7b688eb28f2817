#include "bench/diff_eval/mutations/mutations.h"

#include <algorithm>

#include "bench/diff_eval/graphs/rename.h"
#include "bench/diff_eval/graphs/shard.h"
#include "bench/diff_eval/mutations/mutator.h"
#include "ir/verify.h"

namespace strata::bench {

// All there are, in the order of the enumeration. A mutation is done to nodes one by one, or to the
// graph at once.
const Mutator::Operator Mutator::kOperators[] = {
    {"delete", &Mutator::Delete},
    {"insert", &Mutator::Insert},
    {"attribute", &Mutator::Attribute},
    {"target", &Mutator::Target},
    {"shape/dtype", &Mutator::Retype},
    {"rewire", &Mutator::Rewire},
    {"local reorder", &Mutator::Reorder},
    {"relinearize", nullptr, &Mutator::Relinearize},
    {"recompute", &Mutator::Recompute},
    {"chunk", &Mutator::Chunk},
    {"fuse", &Mutator::Fuse},
    {"cast pass", nullptr, &Mutator::CastAll},
    {"mixed"},
    {"swap operands", &Mutator::Swap},
    {"decompose", &Mutator::Decompose},
    {"merge", &Mutator::Merge},
    {"dead code", &Mutator::DeadCode},
    {"inputs", &Mutator::Inputs},
    {"outputs", &Mutator::Outputs},
    {"offload", &Mutator::Offload},
    {"replace all", nullptr, &Mutator::ReplaceAll},
    {"optional", &Mutator::Optional},
    {"swap equals", &Mutator::SwapEquals},
    {"fuse region", &Mutator::FuseRegion},
    {"parts", &Mutator::ReplaceByParts},
    {"bucket", nullptr, &Mutator::BucketAll},
    {"drop layer", nullptr, &Mutator::DropLayer},
    {"add layer", nullptr, &Mutator::AddLayer},
    {"move layer", nullptr, &Mutator::MoveLayer},
    {"cross rank", nullptr, &Mutator::CrossRank},
};

std::string_view ToString(Mutation mutation) {
  static_assert(std::size(Mutator::kOperators) == kNumMutations);
  return Mutator::kOperators[static_cast<size_t>(mutation)].name;
}

bool IsOfGraph(Mutation mutation) {
  return Mutator::kOperators[static_cast<size_t>(mutation)].on_graph != nullptr;
}

bool NeedsLayers(Mutation mutation) {
  return mutation == Mutation::kDropLayer || mutation == Mutation::kAddLayer ||
         mutation == Mutation::kMoveLayer;
}

Lineage Mutate(Module& module, Mutation mutation, double rate, uint32_t seed) {
  Lineage lineage;
  if (mutation != Mutation::kMixed) {
    Mutator(module, rate, seed, lineage).Run(mutation);
    return lineage;
  }
  // One after the other; nodes of several rewrites are possible, as in a pipeline.
  static constexpr Mutation kParts[] = {
      Mutation::kDelete,  Mutation::kInsert,    Mutation::kAttribute,
      Mutation::kTarget,  Mutation::kType,      Mutation::kRewire,
      Mutation::kReorder, Mutation::kRecompute, Mutation::kFuse};
  for (Mutation part : kParts)
    Mutator(module, rate / std::size(kParts), seed + static_cast<uint32_t>(part), lineage)
        .Run(part);
  return lineage;
}

Result<std::optional<MutatedPair>> MakePair(const Module& base, Mutation mutation, double rate,
                                            uint32_t seed) {
  MutatedPair pair{base.Clone(), nullptr, {}};
  if (mutation == Mutation::kBucket || mutation == Mutation::kCrossRank) {
    ShardOverRanks(*pair.before, {.rank = 0});
  }
  if (mutation == Mutation::kCrossRank) {
    pair.after = base.Clone();
    ShardOverRanks(*pair.after, {.rank = 1 + seed % 3});
  } else {
    pair.after = pair.before->Clone();
  }
  pair.lineage = Mutate(*pair.after, mutation, rate, seed);
  for (const Module* module : {pair.before.get(), pair.after.get()})
    STRATA_RETURN_IF_ERROR(Verify(module->graph({0})));
  // Of a graph without layers or collectives there is nothing to see.
  const bool may_be_nothing =
      IsOfGraph(mutation) && mutation != Mutation::kRelinearize && mutation != Mutation::kCrossRank;
  if (may_be_nothing && pair.lineage.rewrites.empty()) return std::optional<MutatedPair>();
  RenameAll(*pair.before);
  RenameAll(*pair.after);
  return std::optional(std::move(pair));
}

bool MutateNode(Module& module, Mutation mutation, NodeId node, uint32_t seed, Lineage& lineage) {
  return Mutator(module, 0, seed, lineage).RunOn(mutation, node);
}

bool Mutator::RunOn(Mutation mutation, NodeId node) {
  const Operator& what = kOperators[static_cast<size_t>(mutation)];
  return what.on_node != nullptr && IsPlainCall(node) && (this->*what.on_node)(node);
}

void Mutator::Run(Mutation mutation) {
  const Operator& what = kOperators[static_cast<size_t>(mutation)];
  if (what.on_graph != nullptr) return (this->*what.on_graph)();
  const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
  const auto wanted =
      std::max<size_t>(1, static_cast<size_t>(rate_ * static_cast<double>(nodes.size())));
  size_t done = 0;
  for (size_t tries = 0; done < wanted && tries < 30 * wanted; ++tries) {
    const NodeId id = nodes[Random(nodes.size())];
    if (!IsFree(id) || !IsPlainCall(id)) continue;
    done += RunOn(mutation, id) ? 1 : 0;
  }
}

}  // namespace strata::bench
