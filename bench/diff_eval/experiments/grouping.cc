#include "bench/diff_eval/experiments/grouping.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "bench/diff_eval/graphs/rename.h"
#include "bench/diff_eval/graphs/transformer.h"
#include "bench/diff_eval/mutations/mutations.h"
#include "bench/diff_eval/scores/rand_index.h"
#include "diff/diff.h"
#include "ir/rewriter.h"

namespace strata::bench {
namespace {

/// A mutation at one role of some layers.
struct Edit {
  Mutation mutation;
  std::string role;
  uint32_t seed;
  std::set<int> layers;
};

constexpr Mutation kKinds[] = {Mutation::kDelete,    Mutation::kInsert,    Mutation::kAttribute,
                               Mutation::kTarget,    Mutation::kType,      Mutation::kSwap,
                               Mutation::kRecompute, Mutation::kDecompose, Mutation::kFuse,
                               Mutation::kChunk};

class GroupingCase {
 public:
  static constexpr int32_t kNoGroup = -1;

  /// `but_one`: every layer is changed but one, which is left alone.
  GroupingCase(uint32_t seed, bool paths, bool but_one)
      : random_(seed), paths_(paths), but_one_(but_one) {}

  /// False: the mutations that were drawn cannot be applied.
  Result<bool> Run() {
    const int layers = std::vector{4, 8, 16, 32}[random_() % 4];
    STRATA_TRY(before_, MakeTransformer(layers, paths_));
    after_ = before_->Clone();
    Edit most = Draw(), rest = Draw();
    if (most.mutation == rest.mutation && most.role == rest.role) return false;
    // All layers but some; those are left alone, or changed in another way.
    const int left_out =
        but_one_ ? 1 : 1 + static_cast<int>(random_() % static_cast<uint32_t>(layers / 3));
    while (static_cast<int>(left_out_.size()) < left_out)
      left_out_.insert(static_cast<int>(random_() % static_cast<uint32_t>(layers)));
    for (int i = 0; i < layers; ++i) {
      if (!left_out_.contains(i)) most.layers.insert(i);
    }
    if (!but_one_ && random_() % 3 != 0) rest.layers = left_out_;
    STRATA_TRY(const bool applied, Apply({most, rest}));
    if (!applied) return false;
    RenameAll(*after_);
    STRATA_TRY(const GraphDiff diff, Diff(before_->graph({0}), after_->graph({0})));
    Score(diff);
    title_ = fmt::format(
        "{} layers, {} at {}, {} others {} at {}", layers, ToString(most.mutation), most.role,
        left_out, rest.layers.empty() ? "left alone, not" : ToString(rest.mutation), rest.role);
    return true;
  }

  double index() const { return index_; }
  size_t left_out() const { return left_out_.size(); }
  size_t named() const { return named_; }
  size_t falsely_named() const { return falsely_named_; }
  const std::string& title() const { return title_; }

 private:
  Edit Draw() {
    const Mutation mutation = kKinds[random_() % std::size(kKinds)];
    const bool forward = random_() % 3 != 0;
    const std::span<const LayerLine> lines = forward ? ForwardLines() : BackwardLines();
    const std::string_view role = lines[random_() % lines.size()].role;
    return {mutation, std::string(role), static_cast<uint32_t>(random_()), {}};
  }

  Result<bool> Apply(const std::vector<Edit>& edits) {
    std::unordered_map<std::string, NodeId> names;
    Graph& graph = after_->graph({0});
    for (NodeId id : graph.nodes())
      names.emplace(graph.name(id), id);
    for (size_t e = 0; e < edits.size(); ++e) {
      for (int layer : edits[e].layers) {
        const NodeId id = names.at(fmt::format("{}_{}", edits[e].role, layer));
        const size_t known = lineage_.rewrites.size();
        if (graph.node(id).kind == NodeKind::kErased) return false;
        if (!MutateNode(*after_, edits[e].mutation, id, edits[e].seed, lineage_)) return false;
        for (size_t r = known; r < lineage_.rewrites.size(); ++r) {
          for (StableId node : lineage_.rewrites[r])
            truth_.try_emplace(node, static_cast<int32_t>(e));
        }
      }
    }
    return true;
  }

  void Score(const GraphDiff& diff) {
    std::unordered_map<StableId, int32_t> group_of;
    const auto note = [&](const Listing& listing, EntityId id, int32_t group) {
      group_of.try_emplace(listing.graph(id).node(listing[id].node).stable_id, group);
    };
    for (HunkId h : IdsOf(diff.hunks)) {
      const Hunk& hunk = diff.hunks[h];
      const int32_t group = hunk.pattern.valid() ? hunk.pattern.index : 1'000'000 + h.index;
      for (EntityId id : hunk.deleted)
        note(diff.before, id, group);
      for (EntityId id : hunk.inserted)
        note(diff.after, id, group);
      for (PairId pair : hunk.pairs) {
        note(diff.before, diff.pairs[pair].before, group);
        note(diff.after, diff.pairs[pair].after, group);
      }
    }
    // Consequences of changes are in no hunk.
    for (const Pair& pair : diff.pairs) {
      if (pair.status.derived) note(diff.after, pair.after, kNoGroup);
    }
    std::vector<int32_t> truth, found;
    for (const auto& [node, edit] : truth_) {
      const auto group = group_of.find(node);
      if (group != group_of.end() && group->second == kNoGroup) continue;
      truth.push_back(edit);
      found.push_back(group != group_of.end() ? group->second
                                              : 2'000'000 + static_cast<int32_t>(found.size()));
    }
    index_ = AdjustedRandIndex(truth, found);
    std::set<std::string> named;
    for (const Pattern& pattern : diff.patterns) {
      for (const Deviation& deviation : pattern.deviations) {
        const size_t dot = deviation.where.find('.', deviation.where.find('.') + 1);
        named.insert(deviation.where.substr(0, dot));
      }
    }
    for (int layer : left_out_)
      named_ += named.erase(fmt::format("{}.{}", paths_ ? "layers" : "place", layer));
    falsely_named_ = named.size();
  }

  std::mt19937 random_;
  const bool paths_, but_one_;
  std::unique_ptr<Module> before_, after_;
  Lineage lineage_;
  std::map<StableId, int32_t> truth_;  // which edit touched a node first
  std::set<int> left_out_;
  double index_ = 0;
  size_t named_ = 0, falsely_named_ = 0;
  std::string title_;
};

}  // namespace

namespace {

/// One line of the table. Some draws cannot be applied.
Status EvaluateGroups(bool paths, bool but_one, uint32_t first_seed, uint32_t num_seeds,
                      bool verbose) {
  double sum = 0, worst = 1;
  size_t cases = 0, left_out = 0, named = 0, falsely = 0;
  for (uint32_t seed = first_seed; cases < num_seeds; ++seed) {
    GroupingCase one(seed, paths, but_one);
    STRATA_TRY(const bool ran, one.Run());
    if (!ran) continue;
    ++cases;
    sum += one.index();
    worst = std::min(worst, one.index());
    left_out += one.left_out();
    named += one.named();
    falsely += one.falsely_named();
    const bool odd = one.index() < 0.999 || one.named() < one.left_out() || one.falsely_named() > 0;
    if (verbose && odd) {
      fmt::print("  seed {}: ARI {:.3f}, {} of {} layers named, {} wrongly: {}\n", seed,
                 one.index(), one.named(), one.left_out(), one.falsely_named(), one.title());
    }
  }
  fmt::print("{:<18} {:<18} {:>6} {:>8.4f} {:>8.3f} {:>9.1f}% {:>10}\n",
             but_one ? "all but one" : "most and others",
             paths ? "module paths" : "structure alone", cases, sum / static_cast<double>(cases),
             worst, 100.0 * static_cast<double>(named) / static_cast<double>(left_out), falsely);
  return Ok();
}

}  // namespace

Status EvaluateGrouping(uint32_t first_seed, uint32_t num_seeds, bool verbose) {
  fmt::print("patterns: one mutation in most layers, in the others another one or none\n");
  fmt::print("{:<18} {:<18} {:>6} {:>8} {:>8} {:>10} {:>10}\n", "layers", "told by", "cases", "ARI",
             "worst", "named", "wrongly");
  for (const bool but_one : {false, true}) {
    for (const bool paths : {true, false})
      STRATA_RETURN_IF_ERROR(EvaluateGroups(paths, but_one, first_seed, num_seeds, verbose));
  }
  return Ok();
}

}  // namespace strata::bench
