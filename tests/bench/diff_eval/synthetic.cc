#include "tests/bench/diff_eval/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "diff/diff_json.h"
#include "ir/file.h"
#include "ir/fx/fx.h"
#include "tests/bench/diff_eval/methods.h"
#include "tests/bench/diff_eval/mutations.h"
#include "tests/bench/diff_eval/rename.h"
#include "tests/bench/diff_eval/truth.h"

namespace strata::bench {
namespace {

/// What is measured of one kind of mutation.
struct Tally {
  Score identity, touched, fields, relations;
  int64_t statuses = 0, right_statuses = 0;
  int64_t touched_statuses = 0, right_touched_statuses = 0;
  double rand_sum = 0;
  int64_t rand_cases = 0;
  int64_t pairs = 0, mirrored = 0, cases = 0, broken = 0, patched = 0;
  /// Claims and right ones by confidence in hundredths.
  std::array<std::pair<int64_t, int64_t>, 101> by_confidence{};
  std::map<std::pair<std::string, int>, std::pair<int64_t, int64_t>> by_tier;

  void Add(const Tally& other) {
    identity.Add(other.identity);
    touched.Add(other.touched);
    fields.Add(other.fields);
    relations.Add(other.relations);
    statuses += other.statuses;
    right_statuses += other.right_statuses;
    touched_statuses += other.touched_statuses;
    right_touched_statuses += other.right_touched_statuses;
    rand_sum += other.rand_sum;
    rand_cases += other.rand_cases;
    pairs += other.pairs;
    mirrored += other.mirrored;
    cases += other.cases;
    broken += other.broken;
    patched += other.patched;
    for (size_t i = 0; i < by_confidence.size(); ++i) {
      by_confidence[i].first += other.by_confidence[i].first;
      by_confidence[i].second += other.by_confidence[i].second;
    }
    for (const auto& [tier, counts] : other.by_tier) {
      by_tier[tier].first += counts.first;
      by_tier[tier].second += counts.second;
    }
  }

  /// Expected calibration error: how far confidences are from the shares of right claims.
  double CalibrationError() const {
    double error = 0, total = 0;
    for (size_t i = 0; i < by_confidence.size(); ++i) {
      const auto claims = static_cast<double>(by_confidence[i].first);
      const auto right = static_cast<double>(by_confidence[i].second);
      error += std::abs(right - claims * static_cast<double>(i) / 100);
      total += claims;
    }
    return total == 0 ? 0 : error / total;
  }
};

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Adjusted Rand index of two clusterings of the same items.
double AdjustedRand(const std::vector<int>& a, const std::vector<int>& b) {
  const auto pairs = [](int64_t n) {
    return static_cast<double>(n) * static_cast<double>(n - 1) / 2;
  };
  std::map<std::pair<int, int>, int64_t> both;
  std::map<int, int64_t> by_a, by_b;
  for (size_t i = 0; i < a.size(); ++i) {
    ++both[{a[i], b[i]}];
    ++by_a[a[i]];
    ++by_b[b[i]];
  }
  double index = 0, sum_a = 0, sum_b = 0;
  for (const auto& [key, n] : both)
    index += pairs(n);
  for (const auto& [key, n] : by_a)
    sum_a += pairs(n);
  for (const auto& [key, n] : by_b)
    sum_b += pairs(n);
  const double all = pairs(static_cast<int64_t>(a.size()));
  const double expected = all == 0 ? 0 : sum_a * sum_b / all, most = (sum_a + sum_b) / 2;
  return most == expected ? 1 : (index - expected) / (most - expected);
}

/// One mutated graph and the diff that is judged.
class Case {
 public:
  Case(const Module& before, const Module& after, const Lineage& lineage, const GraphDiff& diff,
       const Truth& truth)
      : before_(before),
        after_(after),
        lineage_(lineage),
        diff_(diff),
        truth_(truth),
        orbits_(Orbits(truth.diff, false)) {}

  /// Identity of any method.
  void CountIdentity(const Partners& partners, Tally& tally) const {
    const Partners truth = PartnersOf(truth_.diff);
    for (size_t i = 0; i < partners.size(); ++i) {
      const int32_t claim = partners[i];
      Score score;
      if (claim >= 0 && (claim == truth[i] || Exchangeable(i, claim))) {
        score.right = 1;
      } else {
        score.wrong = claim >= 0;
        score.missed = truth[i] >= 0;
      }
      tally.identity.Add(score);
      const bool touched = truth_.touched_before[i] ||
                           (claim >= 0 && truth_.touched_after[static_cast<size_t>(claim)]);
      if (touched) tally.touched.Add(score);
    }
  }

  void CountOurs(Tally& tally) const {
    CountStatuses(tally);
    CountFields(tally);
    CountRelations(tally);
    CountHunks(tally);
    for (const Pair& pair : diff_.pairs) {
      const bool right = TruePartner(pair.before) == pair.after ||
                         Exchangeable(static_cast<size_t>(pair.before.index), pair.after.index);
      const auto percent = static_cast<int>(std::lround(pair.confidence * 100));
      auto& bin = tally.by_confidence[static_cast<size_t>(percent)];
      ++bin.first;
      bin.second += right;
      auto& tier = tally.by_tier[{std::string(ToString(pair.via)),
                                  static_cast<int>(std::lround(pair.confidence * 1000))}];
      ++tier.first;
      tier.second += right;
    }
  }

 private:
  EntityId TruePartner(EntityId before) const {
    const int32_t pair = truth_.diff.pair_of_before[static_cast<size_t>(before.index)];
    return pair < 0 ? EntityId{} : truth_.diff.pairs[static_cast<size_t>(pair)].after;
  }

  bool Exchangeable(size_t before, int32_t claim) const {
    const int32_t pair = truth_.diff.pair_of_after[static_cast<size_t>(claim)];
    if (pair < 0) return false;
    const EntityId origin = truth_.diff.pairs[static_cast<size_t>(pair)].before;
    return orbits_[static_cast<size_t>(origin.index)] == orbits_[before];
  }

  static std::string StatusOf(const Pair& pair) {
    PairStatus status = pair.status;
    status.renamed = false;
    return ToString(status);
  }

  void CountStatuses(Tally& tally) const {
    const auto count = [&](bool right, bool touched) {
      ++tally.statuses;
      tally.right_statuses += right;
      tally.touched_statuses += touched;
      tally.right_touched_statuses += touched && right;
    };
    for (int32_t i = 0; i < diff_.before.size(); ++i) {
      const auto index = static_cast<size_t>(i);
      const int32_t said = diff_.pair_of_before[index], is = truth_.diff.pair_of_before[index];
      const std::string said_text =
          said < 0 ? "deleted" : StatusOf(diff_.pairs[static_cast<size_t>(said)]);
      const std::string is_text =
          is < 0 ? "deleted" : StatusOf(truth_.diff.pairs[static_cast<size_t>(is)]);
      count(said_text == is_text, is_text != "same" || truth_.touched_before[index]);
    }
    for (int32_t j = 0; j < diff_.after.size(); ++j) {
      const auto index = static_cast<size_t>(j);
      const bool is_new = truth_.diff.pair_of_after[index] < 0;
      const bool said_new = diff_.pair_of_after[index] < 0;
      if (is_new || said_new) count(is_new == said_new, true);
    }
  }

  void CountFields(Tally& tally) const {
    using Key = std::tuple<int32_t, std::string, std::string, std::string, bool>;
    const auto keys_of = [](const GraphDiff& diff) {
      std::set<Key> keys;
      for (const Pair& pair : diff.pairs) {
        for (const FieldDiff& field : pair.fields) {
          keys.emplace(pair.before.index, field.path, field.before.value_or("\1"),
                       field.after.value_or("\1"), field.derived);
        }
      }
      return keys;
    };
    AddSets(keys_of(diff_), keys_of(truth_.diff), tally.fields);
  }

  void CountRelations(Tally& tally) const {
    using Key = std::tuple<RelationKind, int32_t, int32_t>;
    const auto keys_of = [](const std::vector<Relation>& relations) {
      std::set<Key> keys;
      for (const Relation& relation : relations) {
        for (EntityId a : relation.before) {
          for (EntityId b : relation.after)
            keys.emplace(relation.kind, a.index, b.index);
        }
      }
      return keys;
    };
    AddSets(keys_of(diff_.relations), keys_of(truth_.relations), tally.relations);
  }

  template <class Key>
  static void AddSets(const std::set<Key>& said, const std::set<Key>& is, Score& score) {
    for (const Key& key : said)
      ++(is.contains(key) ? score.right : score.wrong);
    for (const Key& key : is)
      score.missed += !said.contains(key);
  }

  /// Hunks against rewrites, over nodes that are in one of each.
  void CountHunks(Tally& tally) const {
    std::map<StableId, int> rewrite_of;
    for (size_t r = 0; r < lineage_.rewrites.size(); ++r) {
      for (StableId id : lineage_.rewrites[r])
        rewrite_of.emplace(id, static_cast<int>(r));
    }
    std::vector<int> hunks, rewrites;
    std::set<StableId> seen;
    const auto add = [&](const Listing& listing, EntityId id, int hunk) {
      const Entity& entity = listing[id];
      if (entity.element.valid()) return;
      const StableId stable_id = listing.graph(id).node(entity.node).stable_id;
      const auto found = rewrite_of.find(stable_id);
      if (found == rewrite_of.end() || !seen.insert(stable_id).second) return;
      hunks.push_back(hunk);
      rewrites.push_back(found->second);
    };
    for (size_t h = 0; h < diff_.hunks.size(); ++h) {
      const int hunk = static_cast<int>(h);
      for (EntityId id : diff_.hunks[h].inserted)
        add(diff_.after, id, hunk);
      for (EntityId id : diff_.hunks[h].deleted)
        add(diff_.before, id, hunk);
      for (int32_t pair : diff_.hunks[h].pairs)
        add(diff_.before, diff_.pairs[static_cast<size_t>(pair)].before, hunk);
    }
    if (hunks.size() < 2) return;
    tally.rand_sum += AdjustedRand(hunks, rewrites);
    ++tally.rand_cases;
  }

  const Module& before_;
  const Module& after_;
  const Lineage& lineage_;
  const GraphDiff& diff_;
  const Truth& truth_;
  const std::vector<uint64_t> orbits_;
};

class Evaluation {
 public:
  explicit Evaluation(const SyntheticOptions& options) : options_(options) {}

  Status Run() {
    const int kinds =
        options_.all_kinds || !options_.only.empty() ? kNumMutations : kNumGateMutations;
    PrintHead();
    for (int kind = 0; kind < kinds; ++kind) {
      const auto mutation = static_cast<Mutation>(kind);
      if (!options_.only.empty() && ToString(mutation) != options_.only) continue;
      STRATA_RETURN_IF_ERROR(RunKind(mutation));
    }
    PrintTotals();
    return Ok();
  }

 private:
  Status RunKind(Mutation mutation) {
    std::map<std::string, Tally> tallies;
    const bool whole = mutation == Mutation::kRelinearize || mutation == Mutation::kCast ||
                       mutation == Mutation::kReplaceAll;
    for (const std::string& file : options_.graphs) {
      STRATA_TRY(const std::string text, ReadFile(file));
      STRATA_TRY(FxDocument document, ParseFx(text));
      RenameAll(*document.module);
      for (const double rate : {0.005, 0.05}) {
        if (whole && rate > 0.01) continue;
        for (uint32_t k = 0; k < options_.num_seeds; ++k)
          STRATA_RETURN_IF_ERROR(
              RunCase(file, *document.module, mutation, rate, options_.first_seed + k, tallies));
      }
    }
    for (const Method& method : Methods(options_.baselines)) {
      Print(ToString(mutation), method.name, tallies[method.name]);
      totals_[method.name].Add(tallies[method.name]);
    }
    return Ok();
  }

  Status RunCase(const std::string& file, const Module& before, Mutation mutation, double rate,
                 uint32_t seed, std::map<std::string, Tally>& tallies) {
    const std::unique_ptr<Module> after = before.Clone();
    const Lineage lineage =
        Mutate(*after, mutation, rate, seed * 1000 + static_cast<uint32_t>(mutation));
    RenameAll(*after);
    const Graph& a = before.graph({0});
    const Graph& b = after->graph({0});
    STRATA_TRY(const GraphDiff diff, Diff(a, b));
    STRATA_TRY(const Truth truth, MakeTruth(before, *after, lineage, diff));
    const Case one(before, *after, lineage, diff, truth);
    Tally tally;
    ++tally.cases;
    one.CountIdentity(PartnersOf(diff), tally);
    one.CountOurs(tally);
    STRATA_RETURN_IF_ERROR(CheckInvariants(a, b, diff, tally));
    const bool flawed = tally.identity.wrong + tally.identity.missed + tally.fields.wrong > 0;
    if (flawed && !options_.dump.empty()) {
      const std::string stem = fmt::format("{}/{}_{}_{}_{}", options_.dump, ToString(mutation),
                                           std::filesystem::path(file).stem().string(), rate, seed);
      STRATA_RETURN_IF_ERROR(WriteFile(stem + ".before.txt", PrintFx(a)));
      STRATA_RETURN_IF_ERROR(WriteFile(stem + ".after.txt", PrintFx(b)));
    }
    if (options_.verbose) Explain(file, mutation, rate, seed, diff, truth, tally);
    tallies[std::string(kOurMethod)].Add(tally);
    for (const Method& method : Methods(options_.baselines)) {
      if (method.name == kOurMethod) continue;
      STRATA_TRY(const Partners partners, method.match(a, b));
      Tally other;
      one.CountIdentity(partners, other);
      tallies[method.name].Add(other);
    }
    return Ok();
  }

  /// A graph equals itself; new names change nothing; two runs say the same; the other direction
  /// says the reverse.
  static Status CheckInvariants(const Graph& a, const Graph& b, const GraphDiff& diff,
                                Tally& tally) {
    STRATA_TRY(const GraphDiff itself, Diff(b, b));
    STRATA_TRY(const GraphDiff again, Diff(a, b));
    const bool same_bytes = DiffJson(diff, "a", "b") == DiffJson(again, "a", "b");
    tally.broken += !(itself.Equal() && same_bytes);
    STRATA_TRY(const bool patched, PatchMakesAfter(diff));
    tally.patched += patched;
    STRATA_TRY(const GraphDiff back, Diff(b, a));
    for (const Pair& pair : diff.pairs) {
      ++tally.pairs;
      const int32_t other = back.pair_of_before[static_cast<size_t>(pair.after.index)];
      tally.mirrored += other >= 0 && back.pairs[static_cast<size_t>(other)].after == pair.before;
    }
    return Ok();
  }

  static void Explain(const std::string& file, Mutation mutation, double rate, uint32_t seed,
                      const GraphDiff& diff, const Truth& truth, const Tally& tally) {
    if (tally.identity.wrong + tally.identity.missed + tally.fields.wrong + tally.relations.wrong +
            tally.relations.missed ==
        0) {
      return;
    }
    fmt::print("  {} {} rate {} seed {}: identity -{}/-{} fields +{}/-{} relations +{}/-{}\n",
               ToString(mutation), file, rate, seed, tally.identity.wrong, tally.identity.missed,
               tally.fields.wrong, tally.fields.missed, tally.relations.wrong,
               tally.relations.missed);
    int shown = 0;
    for (int32_t i = 0; i < diff.before.size() && shown < 12; ++i) {
      const auto name = [&](const GraphDiff& of) {
        const int32_t pair = of.pair_of_before[static_cast<size_t>(i)];
        return pair < 0 ? std::string("-")
                        : of.after.name(of.pairs[static_cast<size_t>(pair)].after);
      };
      if (name(diff) == name(truth.diff)) continue;
      const int32_t pair = diff.pair_of_before[static_cast<size_t>(i)];
      const Pair* said = pair < 0 ? nullptr : &diff.pairs[static_cast<size_t>(pair)];
      fmt::print("    {} is {}, said {} {} {:.3f}\n", diff.before.name({i}), name(truth.diff),
                 name(diff), said == nullptr ? "" : ToString(said->via),
                 said == nullptr ? 0 : said->confidence);
      ++shown;
    }
    const auto show = [&](std::string_view who, const std::vector<Relation>& relations) {
      for (const Relation& relation : relations) {
        if (shown++ > 24) return;
        fmt::print("    {} {}:", who, ToString(relation.kind));
        for (EntityId id : relation.before)
          fmt::print(" {}", diff.before.name(id));
        fmt::print(" ->");
        for (EntityId id : relation.after)
          fmt::print(" {}", diff.after.name(id));
        fmt::print("\n");
      }
    };
    if (tally.relations.wrong + tally.relations.missed > 0) {
      show("said", diff.relations);
      show("is", truth.relations);
    }
    if (tally.identity.wrong + tally.identity.missed == 0) {
      for (const Pair& pair : diff.pairs) {
        const Pair& is = truth.diff.pairs[static_cast<size_t>(
            truth.diff.pair_of_before[static_cast<size_t>(pair.before.index)])];
        if (ToString(pair.status) == ToString(is.status) || shown++ > 24) continue;
        fmt::print("    {}: is {}, said {}\n", diff.before.name(pair.before), ToString(is.status),
                   ToString(pair.status));
        for (const FieldDiff& field : pair.fields)
          fmt::print("      said {} {} -> {} {}\n", field.path, field.before.value_or("-"),
                     field.after.value_or("-"), field.derived);
        for (const FieldDiff& field : is.fields)
          fmt::print("      is {} {} -> {} {}\n", field.path, field.before.value_or("-"),
                     field.after.value_or("-"), field.derived);
      }
    }
  }

  static void PrintHead() {
    fmt::print(
        "{:<14} {:<9} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} "
        "{:>7} {:>6}\n",
        "mutation", "method", "cases", "P", "R", "F1", "touch R", "touch P", "status", "st.touch",
        "fields", "relat.", "hunks", "mirror", "patch", "broken");
  }

  static void Print(std::string_view kind, const std::string& method, const Tally& tally) {
    fmt::print("{:<14} {:<9} {:>5} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f}", kind, method,
               tally.cases, tally.identity.precision(), tally.identity.recall(),
               tally.identity.f1(), tally.touched.recall(), tally.touched.precision());
    if (method == kOurMethod) {
      fmt::print(
          " {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>7.3f} {:>7.4f} {:>7.4f} {:>6}",
          Share(tally.right_statuses, tally.statuses),
          Share(tally.right_touched_statuses, tally.touched_statuses), tally.fields.f1(),
          tally.relations.f1(),
          tally.rand_cases == 0 ? 1.0 : tally.rand_sum / static_cast<double>(tally.rand_cases),
          Share(tally.mirrored, tally.pairs), Share(tally.patched, tally.cases), tally.broken);
    }
    fmt::print("\n");
  }

  void PrintTotals() const {
    for (const auto& [method, tally] : totals_)
      Print("all", method, tally);
    const Tally& ours = totals_.at(std::string(kOurMethod));
    fmt::print("\nconfidence: expected error {:.4f}\n{:<8} {:>10} {:>10} {:>8}\n",
               ours.CalibrationError(), "via", "confidence", "claims", "right");
    for (const auto& [tier, counts] : ours.by_tier) {
      fmt::print("{:<8} {:>10.3f} {:>10} {:>8.4f}\n", tier.first, tier.second / 1000.0,
                 counts.first, Share(counts.second, counts.first));
    }
  }

  const SyntheticOptions& options_;
  std::map<std::string, Tally> totals_;
};

}  // namespace

Status EvaluateSynthetic(const SyntheticOptions& options) {
  return Evaluation(options).Run();
}

}  // namespace strata::bench
