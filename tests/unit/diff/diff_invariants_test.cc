#include <set>

#include <doctest/doctest.h>

#include "diff/output/diff_json.h"
#include "tests/support/random_graph.h"
#include "tests/unit/diff/mutate.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::Mutate;
using testing::Mutation;
using testing::OrDie;
using testing::RandomGraph;
using testing::RenameAll;

GraphDiff DiffModules(const Module& before, const Module& after, DiffOptions options = {}) {
  return OrDie(Diff(before.graph({0}), after.graph({0}), options));
}

/// Two graphs that differ by some of all mutations.
std::pair<std::unique_ptr<Module>, std::unique_ptr<Module>> MutatedPair(uint32_t seed) {
  auto before = RandomGraph(seed, {.num_nodes = 150});
  auto after = before->Clone();
  for (int i = 0; i < 12; ++i)
    Mutate(*after, static_cast<Mutation>(i), 0.02, seed + static_cast<uint32_t>(i));
  RenameAll(*after);
  return {std::move(before), std::move(after)};
}

TEST_CASE("every node of both sides is in exactly one of pairs, inserted and deleted") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto [before, after] = MutatedPair(seed);
    const GraphDiff diff = DiffModules(*before, *after);
    std::set<EntityId> befores(diff.deleted.begin(), diff.deleted.end());
    std::set<EntityId> afters(diff.inserted.begin(), diff.inserted.end());
    for (const Pair& pair : diff.pairs) {
      CHECK(befores.insert(pair.before).second);
      CHECK(afters.insert(pair.after).second);
      CHECK(diff.before[pair.before].kind == diff.after[pair.after].kind);
    }
    CHECK_EQ(befores.size(), static_cast<size_t>(diff.before.size()));
    CHECK_EQ(afters.size(), static_cast<size_t>(diff.after.size()));
  }
}

TEST_CASE("a graph does not differ from itself, nor from itself under new names") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto module = RandomGraph(seed, {.num_nodes = 150});
    const GraphDiff itself = DiffModules(*module, *module);
    CHECK(itself.Equal());
    CHECK_EQ(itself.summary.same, itself.before.size());
    const auto renamed = module->Clone();
    RenameAll(*renamed);
    const GraphDiff diff = DiffModules(*module, *renamed);
    CHECK(diff.Equal());
    CHECK_EQ(diff.summary.same + diff.summary.renamed, diff.before.size());
  }
}

TEST_CASE("a diff does not depend on names") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto [before, after] = MutatedPair(seed);
    const auto renamed = after->Clone();
    RenameAll(*renamed);
    RenameAll(*renamed);
    const GraphDiff a = DiffModules(*before, *after), b = DiffModules(*before, *renamed);
    CHECK_EQ(DiffJson(a, "a", "b"), DiffJson(b, "a", "b"));
  }
}

TEST_CASE("the diff in the other direction is the mirror image") {
  size_t pairs = 0, mirrored = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const auto [before, after] = MutatedPair(seed);
    const GraphDiff there = DiffModules(*before, *after), back = DiffModules(*after, *before);
    for (const Pair& pair : there.pairs) {
      ++pairs;
      const PairId index = back.pair_of_before[pair.after];
      if (!index.valid()) continue;
      const Pair& other = back.pairs[index];
      mirrored += other.after == pair.before;
    }
  }
  CHECK_GE(static_cast<double>(mirrored), 0.995 * static_cast<double>(pairs));
}

TEST_CASE("equal inputs give equal bytes") {
  const auto [before, after] = MutatedPair(3);
  CHECK_EQ(DiffJson(DiffModules(*before, *after), "a", "b"),
           DiffJson(DiffModules(*before, *after), "a", "b"));
}

/// Found identities against those that stable ids prove.
struct Found {
  size_t right = 0, wrong = 0, missed = 0;
};

Found CountFound(Mutation mutation, double rate) {
  Found found;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    const auto before = RandomGraph(seed, {.num_nodes = 300});
    const auto after = before->Clone();
    Mutate(*after, mutation, rate, seed);
    RenameAll(*after);
    const GraphDiff truth = DiffModules(*before, *after, {.stable_ids = true});
    const GraphDiff diff = DiffModules(*before, *after);
    for (int32_t i = 0; i < diff.before.size(); ++i) {
      const auto partner = [&](const GraphDiff& of) {
        const PairId pair = of.pair_of_before[EntityId{i}];
        return !pair.valid() ? EntityId{} : of.pairs[pair].after;
      };
      if (partner(diff) == partner(truth)) {
        found.right += partner(diff).valid();
        continue;
      }
      found.wrong += partner(diff).valid();
      found.missed += partner(truth).valid();
    }
  }
  return found;
}

TEST_CASE("identities survive every kind of change") {
  // Random graphs hold equal nodes, between which nothing decides; hence the margin.
  constexpr double kLimit = 0.99;
  for (int i = 0; i < testing::kNumMutations; ++i) {
    const auto mutation = static_cast<Mutation>(i);
    const Found found = CountFound(mutation, 0.01);
    const auto right = static_cast<double>(found.right);
    CAPTURE(ToString(mutation));
    CHECK_GE(right / static_cast<double>(found.right + found.wrong), kLimit);
    CHECK_GE(right / static_cast<double>(found.right + found.missed), kLimit);
  }
}

}  // namespace
}  // namespace strata
