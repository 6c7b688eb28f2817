#include "bench/diff_eval/experiments/synthetic.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/diff_eval/graphs/rename.h"
#include "bench/diff_eval/graphs/transformer.h"
#include "bench/diff_eval/methods/methods.h"
#include "bench/diff_eval/mutations/mutations.h"
#include "bench/diff_eval/scores/explain.h"
#include "bench/diff_eval/scores/judge.h"
#include "bench/diff_eval/truth/truth.h"
#include "diff/diff.h"
#include "diff/output/diff_json.h"
#include "ir/fx/fx.h"

namespace strata::bench {
namespace {

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
    STRATA_TRY(const std::vector<Base> bases, BasesFor(mutation));
    for (const Base& base : bases) {
      for (const double rate : options_.rates) {
        if (IsOfGraph(mutation) && rate != options_.rates[0]) continue;
        for (uint32_t k = 0; k < options_.num_seeds; ++k)
          STRATA_RETURN_IF_ERROR(RunCase(base, mutation, rate, options_.first_seed + k, tallies));
      }
    }
    for (const Method& method : Methods(options_.baselines)) {
      Print(ToString(mutation), method.name, tallies[method.name]);
      totals_[method.name].Add(tallies[method.name]);
    }
    return Ok();
  }

  struct Base {
    std::string name;
    std::unique_ptr<Module> module;
  };

  /// The graphs that were given; where layers are needed, transformers too.
  Result<std::vector<Base>> BasesFor(Mutation mutation) const {
    std::vector<Base> bases;
    const auto add = [&](const std::string& name, const std::string& text) -> Status {
      STRATA_TRY(FxDocument document, ParseFx(text));
      RenameAll(*document.module);
      bases.push_back({name, std::move(document.module)});
      return Ok();
    };
    for (const std::string& file : options_.graphs) {
      STRATA_TRY(const std::string text, ReadFile(file));
      // Different files may have one name.
      const std::string stem = std::filesystem::path(file).stem().string();
      STRATA_RETURN_IF_ERROR(add(fmt::format("{}_{}", bases.size(), stem), text));
    }
    for (const int layers : {4, 8, 16}) {
      if (!NeedsLayers(mutation)) break;
      STRATA_TRY(const std::unique_ptr<Module> module, MakeTransformer(layers, true));
      STRATA_RETURN_IF_ERROR(
          add(fmt::format("transformer{}", layers), PrintFx(module->graph({0}))));
    }
    return bases;
  }

  Status RunCase(const Base& base, Mutation mutation, double rate, uint32_t seed,
                 std::map<std::string, Tally>& tallies) {
    STRATA_TRY(
        const std::optional<MutatedPair> pair,
        MakePair(*base.module, mutation, rate, seed * 1000 + static_cast<uint32_t>(mutation)));
    if (!pair) return Ok();
    const Graph& a = pair->before->graph({0});
    const Graph& b = pair->after->graph({0});
    STRATA_TRY(const GraphDiff diff, Diff(a, b));
    STRATA_TRY(const Truth truth, MakeTruth(*pair->before, *pair->after, pair->lineage, diff));
    const Judge judge(pair->lineage, diff, truth);
    Tally tally;
    ++tally.cases;
    judge.CountIdentity(PartnersOf(diff), tally);
    judge.CountOurs(tally);
    STRATA_TRY(const Truth plain,
               MakeTruth(*pair->before, *pair->after, pair->lineage, diff, /*choices=*/false));
    Tally by_lineage;
    Judge(pair->lineage, diff, plain).CountIdentity(PartnersOf(diff), by_lineage);
    tally.plain_identity = by_lineage.identity;
    tally.plain_touched = by_lineage.touched;
    STRATA_RETURN_IF_ERROR(CheckInvariants(a, b, diff, tally));
    if (tally.flawed() && !options_.dump.empty()) {
      const std::string stem =
          fmt::format("{}/{}_{}_{}_{}", options_.dump, ToString(mutation), base.name, rate, seed);
      STRATA_RETURN_IF_ERROR(WriteFile(stem + ".before.txt", PrintFx(a)));
      STRATA_RETURN_IF_ERROR(WriteFile(stem + ".after.txt", PrintFx(b)));
    }
    if (options_.verbose && tally.flawed()) {
      Explain(fmt::format("{} {} rate {} seed {}", ToString(mutation), base.name, rate, seed), diff,
              truth, tally);
    }
    tallies[std::string(kOurMethod)].Add(tally);
    for (const Method& method : Methods(options_.baselines)) {
      if (method.name == kOurMethod) continue;
      STRATA_TRY(const Partners partners, method.match(a, b));
      Tally other;
      judge.CountIdentity(partners, other);
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
      const PairId other = back.pair_of_before[pair.after];
      tally.mirrored += other.valid() && back.pairs[other].after == pair.before;
    }
    return Ok();
  }

  static void PrintHead() {
    fmt::print(
        "{:<14} {:<9} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} "
        "{:>7} {:>6} {:>8} {:>8}\n",
        "mutation", "method", "cases", "P", "R", "F1", "touch R", "touch P", "status", "st.touch",
        "fields", "relat.", "hunks", "mirror", "patch", "broken", "plain F1", "plain t.");
  }

  static void Print(std::string_view kind, const std::string& method, const Tally& tally) {
    fmt::print("{:<14} {:<9} {:>5} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f}", kind, method,
               tally.cases, tally.identity.precision(), tally.identity.recall(),
               tally.identity.f1(), tally.touched.recall(), tally.touched.precision());
    if (method == kOurMethod) {
      fmt::print(
          " {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>7.3f} {:>7.4f} {:>7.4f} {:>6} {:>8.4f} {:>8.4f}",
          Share(tally.right_statuses, tally.statuses),
          Share(tally.right_touched_statuses, tally.touched_statuses), tally.fields.f1(),
          tally.relations.f1(),
          tally.rand_cases == 0 ? 1.0 : tally.rand_sum / static_cast<double>(tally.rand_cases),
          Share(tally.mirrored, tally.pairs), Share(tally.patched, tally.cases), tally.broken,
          tally.plain_identity.f1(), tally.plain_touched.recall());
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
