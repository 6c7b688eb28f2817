#include "bench/diff_eval/experiments/pairs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/diff_eval/graphs/rename.h"
#include "bench/diff_eval/methods/methods.h"
#include "bench/diff_eval/scores/score.h"
#include "diff/diff.h"
#include "ir/fx/fx.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FoldersIn(const fs::path& dir) {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

/// Two graphs, and which of their nodes are one by name.
struct RealPair {
  std::vector<std::string> names_before, names_after;
  Partners truth;
  std::vector<bool> known_before, known_after;  ///< the name is on both sides
};

RealPair TruthOf(const Listing& before, const Listing& after) {
  RealPair pair;
  std::unordered_map<std::string, int32_t> by_name;
  for (EntityId id : after.ids()) {
    pair.names_after.push_back(after.name(id));
    by_name.emplace(pair.names_after.back(), id.index);
  }
  pair.truth.assign(static_cast<size_t>(before.size()), -1);
  pair.known_before.assign(static_cast<size_t>(before.size()), false);
  pair.known_after.assign(static_cast<size_t>(after.size()), false);
  for (EntityId id : before.ids()) {
    pair.names_before.push_back(before.name(id));
    const auto found = by_name.find(pair.names_before.back());
    if (found == by_name.end()) continue;
    const auto i = static_cast<size_t>(id.index), j = static_cast<size_t>(found->second);
    pair.known_before[i] = pair.known_after[j] = true;
    if (before[id].kind == after[{found->second}].kind) pair.truth[i] = found->second;
  }
  return pair;
}

Score Compare(const RealPair& pair, const Partners& partners, bool verbose) {
  Score score;
  int shown = 0;
  for (size_t i = 0; i < partners.size(); ++i) {
    const int32_t claim = partners[i], truth = pair.truth[i];
    if (claim >= 0 && claim == truth) {
      ++score.right;
      continue;
    }
    // Two names that are on one side only: something was replaced, and names say nothing.
    const bool is_wrong =
        claim >= 0 && (pair.known_before[i] || pair.known_after[static_cast<size_t>(claim)]);
    score.wrong += is_wrong;
    score.missed += truth >= 0;
    if (verbose && (is_wrong || truth >= 0) && shown++ < 20) {
      const auto name = [&](int32_t j) {
        return j < 0 ? "-" : pair.names_after[static_cast<size_t>(j)];
      };
      fmt::print("    {} is {}, said {}\n", pair.names_before[i], name(truth), name(claim));
    }
  }
  return score;
}

}  // namespace

Status EvaluatePairs(const std::string& dir, bool baselines, bool verbose) {
  if (!fs::is_directory(dir)) {
    return Error("no such folder: {}: see bench/diff_eval/README.md for pairs", dir);
  }
  fmt::print("{:<22} {:>6} {:>9}  {:<12} {:>9} {:>9} {:>7} {:>7} {:>8}\n", "kind", "pairs", "nodes",
             "method", "precision", "recall", "wrong", "missed", "patches");
  for (const fs::path& kind : FoldersIn(dir)) {
    std::map<std::string, Score> totals;
    size_t cases = 0, nodes = 0, patched = 0;
    for (const fs::path& folder : FoldersIn(kind)) {
      STRATA_TRY(const std::string before_text, ReadFile((folder / "before.txt").string()));
      STRATA_TRY(const std::string after_text, ReadFile((folder / "after.txt").string()));
      STRATA_TRY(FxDocument before, ParseFx(before_text));
      STRATA_TRY(FxDocument after, ParseFx(after_text));
      const RealPair truth = TruthOf(Listing(before.graph()), Listing(after.graph()));
      RenameAll(*before.module);
      RenameAll(*after.module);
      ++cases;
      nodes += truth.names_before.size();
      STRATA_TRY(const GraphDiff diff, Diff(before.graph(), after.graph()));
      STRATA_TRY(const bool makes_after, PatchMakesAfter(diff));
      patched += makes_after;
      for (const Method& method : Methods(baselines)) {
        STRATA_TRY(const Partners partners, method.match(before.graph(), after.graph()));
        const bool ours = method.name == kOurMethod;
        const Score quiet = Compare(truth, partners, false);
        if (verbose && ours) {
          fmt::print("  {} {}: P {:.4f} R {:.4f}\n", kind.filename().string(),
                     folder.filename().string(), quiet.precision(), quiet.recall());
        }
        totals[method.name].Add(Compare(truth, partners, verbose && ours));
      }
    }
    for (const Method& method : Methods(baselines)) {
      const Score& score = totals[method.name];
      fmt::print("{:<22} {:>6} {:>9}  {:<12} {:>9.4f} {:>9.4f} {:>7} {:>7} {:>8}\n",
                 kind.filename().string(), cases, nodes, method.name, score.precision(),
                 score.recall(), score.wrong, score.missed,
                 method.name == kOurMethod ? fmt::format("{}/{}", patched, cases) : "");
    }
  }
  return Ok();
}

}  // namespace strata::bench
