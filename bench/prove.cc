#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "bench/bench.h"
#include "bench/proof_layouts.h"
#include "cli/core/flags.h"
#include "cli/prove/prove_stages.h"
#include "diff/diff.h"
#include "passes/placement/placement.h"
#include "prove/layers/fewer_layers.h"
#include "prove/mutations/mutations.h"
#include "prove/prove_pass.h"
#include "prove/stages.h"
#include "refs/histories.h"
#include "tlparse-export/review/svg.h"

namespace strata::cli {
namespace {

struct Row {
  int64_t mutants = 0, caught = 0, refused = 0, equivalent = 0, escaped = 0, near = 0, right = 0;
  /// Caught mutants of `lower`, and those of them that rules of placement refute as well.
  int64_t lowered = 0, by_rules = 0;

  Row& operator+=(const Row& row) {
    mutants += row.mutants;
    caught += row.caught;
    refused += row.refused;
    equivalent += row.equivalent;
    escaped += row.escaped;
    near += row.near;
    right += row.right;
    lowered += row.lowered;
    by_rules += row.by_rules;
    return *this;
  }
};

struct Options {
  std::vector<std::string> traces;
  int64_t sites = 5, seed = 1;
  bool mutations = false, lists = false, layouts = false;
  std::string pictures;  ///< a folder
  std::string only;      ///< names of kinds, with commas; "": all
};

/// A mutant, and the finding that names it.
struct Picture {
  std::string svg, text;
};

/// Applies every mutation to the lowered graphs of traces.
class MutationBench {
 public:
  explicit MutationBench(const Options& options)
      : options_(options), rows_(prove::Mutations().size()) {}

  /// `name`: of the trace, in what is printed.
  Status Run(const std::string& trace, const std::string& name) {
    STRATA_TRY(const std::vector<History> histories, LoadHistories(trace));
    for (const History& history : histories)
      STRATA_RETURN_IF_ERROR(RunHistory(name, history));
    ++traces_;
    return Ok();
  }

  Status WritePictures() const {
    for (const auto& [name, picture] : pictures_) {
      fmt::print("{}: {}\n", name, picture.text);
      STRATA_RETURN_IF_ERROR(
          WriteFile(fmt::format("{}/{}.svg", options_.pictures, name), picture.svg));
    }
    return Ok();
  }

  void Print() const {
    fmt::print("{} traces, {} lowered graphs, at most {} sites of each mutation in each pass\n\n",
               traces_, graphs_, options_.sites);
    fmt::print("{:<22} {:>7} {:>7} {:>7} {:>10} {:>7} {:>7} {:>7} {:>7}  {}\n", "mutation",
               "mutants", "caught", "refused", "equivalent", "escaped", "at site", "class", "rules",
               "effect");
    Row all;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const prove::Mutation& mutation = prove::Mutations()[i];
      PrintRow(mutation.name, mutation.effect, rows_[i]);
      all += rows_[i];
    }
    PrintRow("all", "", all);
  }

 private:
  static void PrintRow(std::string_view name, std::string_view effect, const Row& row) {
    const auto share = [](int64_t count, int64_t of) {
      return of == 0 ? "-"
                     : fmt::format("{:.1f}%",
                                   100.0 * static_cast<double>(count) / static_cast<double>(of));
    };
    fmt::print("{:<22} {:>7} {:>7} {:>7} {:>10} {:>7} {:>7} {:>7} {:>7}  {}\n", name, row.mutants,
               row.caught, row.refused, row.equivalent, row.escaped, share(row.near, row.caught),
               share(row.right, row.caught), share(row.by_rules, row.lowered), effect);
  }

  Status RunHistory(const std::string& trace, const History& history) {
    for (const HistoryStep& step : history.steps) {
      if (!history.stable_ids || step.before < 0 || SameGraph(history, step.before, step.after))
        continue;
      STRATA_TRY(const LoadedGraph before, history.load(step.before));
      STRATA_TRY(const LoadedGraph after, history.load(step.after));
      if (!IsLowered(after.graph())) continue;
      const std::string where = fmt::format("{}: {}: {}", trace, history.GraphOf(step), step.pass);
      const prove::Proof proof = prove::ProvePass(before.graph(), after.graph(), Proving());
      if (proof.verdict != prove::Verdict::kProven) {
        fmt::print("{}: {} before any mutation\n", where, ToString(proof.verdict));
        continue;
      }
      ++graphs_;
      STRATA_RETURN_IF_ERROR(RunPass(where, before.graph(), after.graph(), proof));
    }
    STRATA_TRY(const std::vector<LoadedCut> cuts,
               LoadCuts(history, [](const HistoryStep&) { return true; }));
    for (const LoadedCut& cut : cuts)
      STRATA_RETURN_IF_ERROR(RunCut(trace, cut));
    return Ok();
  }

  /// Graphs that a pass cut out of one, each edited while the others stay.
  Status RunCut(const std::string& trace, const LoadedCut& loaded) {
    const std::string where = fmt::format("{}: {}: {}", trace, loaded.graph, loaded.step.pass);
    const std::vector<prove::StagePart> parts = loaded.Parts();
    const prove::StageCut cut = loaded.CutOf(parts);
    if (!IsLowered(*cut.whole)) return Ok();
    const prove::Proof proof = prove::ProveStages(cut, Proving());
    if (proof.verdict != prove::Verdict::kProven) {
      fmt::print("{}: {} before any mutation\n", where, ToString(proof.verdict));
      return Ok();
    }
    graphs_ += static_cast<int64_t>(parts.size());
    STRATA_TRY(const prove::CutMutants mutants, prove::CutMutants::Make(cut));
    const auto sites = SitesOf(parts);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const prove::Mutation& mutation = prove::Mutations()[i];
      if (!IsWanted(mutation)) continue;
      int64_t tried = 0;
      for (const auto& [part, node] : sites) {
        if (tried >= options_.sites) break;
        const auto result = mutants.Try(part, mutation, node, Proving());
        if (!result) continue;
        ++tried;
        Count(*result, rows_[i]);
        const Graph& graph = *parts[part].graph;
        List(fmt::format("{}: {} at {}/{}", where, mutation.name, graph.name_text(),
                         graph.name(node)),
             *result);
      }
    }
    return Ok();
  }

  bool IsWanted(const prove::Mutation& mutation) const {
    const std::string all = fmt::format(",{},", options_.only);
    return options_.only.empty() || all.find(fmt::format(",{},", mutation.name)) != all.npos;
  }

  /// Nodes of all parts, in an order that spreads them over all.
  std::vector<std::pair<size_t, NodeId>> SitesOf(std::span<const prove::StagePart> parts) const {
    std::vector<std::pair<size_t, NodeId>> sites;
    for (size_t part = 0; part < parts.size(); ++part)
      for (const NodeId node : parts[part].graph->nodes())
        sites.emplace_back(part, node);
    std::ranges::sort(sites, {}, [&](const auto& site) {
      return KeyOf(static_cast<uint64_t>(site.second.index) ^ (uint64_t{site.first} << 32));
    });
    return sites;
  }

  uint64_t KeyOf(uint64_t site) const {
    return Mix(site ^ Mix(static_cast<uint64_t>(options_.seed)));
  }

  /// What `--list` prints of a mutant that is not found at its site, or not as its class.
  void List(const std::string& mutant, const prove::MutantResult& result) const {
    if (!options_.lists || (result.is_near && result.is_class_right)) return;
    fmt::print("{}: {} {}: {}: {}\n", mutant, TextOf(result.outcome), result.node,
               ToString(result.diagnosis.kind), result.diagnosis.reason);
  }

  /// Of layers that are the same one is edited. A proof of an edit that looks at the others, too,
  /// as it does if values differ, takes minutes.
  Status RunPass(const std::string& where, const Graph& before, const Graph& after,
                 const prove::Proof& proof) {
    const auto fewer = proof.layers_left_out > 0 ? prove::WithoutEqualLayers(before, after)
                                                 : std::optional<prove::FewerLayers>();
    const bool is_cut = fewer.has_value();
    return RunGraph(where, is_cut ? *fewer->pair.before : before,
                    is_cut ? *fewer->pair.after : after);
  }

  /// Nodes in an order that spreads the sites over the graph, the same for equal graphs and seeds.
  std::vector<NodeId> Shuffled(const Graph& graph) const {
    const auto key = [&](NodeId node) { return KeyOf(static_cast<uint64_t>(node.index)); };
    std::vector<NodeId> nodes = graph.nodes().Snapshot();
    std::ranges::sort(nodes, {}, key);
    return nodes;
  }

  Status RunGraph(const std::string& where, const Graph& before, const Graph& after) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const prove::Mutation& mutation = prove::Mutations()[i];
      if (mutation.is_of_cuts || !IsWanted(mutation)) continue;
      int64_t sites = 0;
      for (const NodeId node : Shuffled(after)) {
        if (sites >= options_.sites) break;
        const auto result = prove::TryMutant(before, after, mutation, node, Proving());
        if (!result) continue;
        ++sites;
        Count(*result, rows_[i]);
        if (result->is_refuted_by_rules && result->outcome == prove::MutantOutcome::kEquivalent)
          fmt::print("{}: {} at {}: placement rules and evaluation disagree\n", where,
                     mutation.name, after.name(node));
        if (!options_.pictures.empty() && result->is_near && result->is_class_right)
          STRATA_RETURN_IF_ERROR(Draw(after, mutation, node, *result));
        List(fmt::format("{}: {} at {}", where, mutation.name, after.name(node)), *result);
      }
    }
    return Ok();
  }

  /// Keeps the picture of a mutant beside the correct graph if it is the smallest of its mutation.
  Status Draw(const Graph& correct, const prove::Mutation& mutation, NodeId site,
              const prove::MutantResult& result) {
    const std::unique_ptr<Module> copy = correct.module().Clone();
    Graph& mutant = copy->graph(correct.id());
    mutation.apply(mutant, site);
    STRATA_TRY(const GraphDiff diff, Diff(correct, mutant));
    if (diff.Equal()) return Ok();
    Picture& smallest = pictures_[mutation.name];
    std::string svg = ChangeSvg(diff);
    if (!smallest.svg.empty() && smallest.svg.size() <= svg.size()) return Ok();
    smallest = {.svg = std::move(svg),
                .text = fmt::format("{}: {}\n  class   {}: {}", result.node, result.what,
                                    ToString(result.diagnosis.kind), result.diagnosis.reason)};
    return Ok();
  }

  static std::string_view TextOf(prove::MutantOutcome outcome) {
    switch (outcome) {
      case prove::MutantOutcome::kCaught:
        return "found at";
      case prove::MutantOutcome::kRefused:
        return "refused:";
      case prove::MutantOutcome::kEquivalent:
        return "equivalent";
      case prove::MutantOutcome::kEscaped:
        return "escaped";
    }
    return "";
  }

  static void Count(const prove::MutantResult& result, Row& row) {
    ++row.mutants;
    row.caught += result.outcome == prove::MutantOutcome::kCaught ? 1 : 0;
    row.refused += result.outcome == prove::MutantOutcome::kRefused ? 1 : 0;
    row.equivalent += result.outcome == prove::MutantOutcome::kEquivalent ? 1 : 0;
    row.escaped += result.outcome == prove::MutantOutcome::kEscaped ? 1 : 0;
    const bool is_lowered =
        result.is_checked_by_rules && result.outcome == prove::MutantOutcome::kCaught;
    row.lowered += is_lowered ? 1 : 0;
    row.by_rules += is_lowered && result.is_refuted_by_rules ? 1 : 0;
    row.near += result.is_near ? 1 : 0;
    row.right += result.is_class_right ? 1 : 0;
  }

  prove::ProofOptions Proving() const {
    return {.seed = static_cast<uint64_t>(options_.seed), .stable_ids = true};
  }

  const Options& options_;
  std::vector<Row> rows_;
  std::map<std::string_view, Picture> pictures_;  // by mutation
  int64_t traces_ = 0, graphs_ = 0;
};

/// Traces of small models on many layouts, made one after the other.
Status RunLayouts(MutationBench& bench) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  for (const ProofLayout& layout : ProofLayouts()) {
    const std::string trace = fmt::format("{}/run.strata", folder.path());
    STRATA_RETURN_IF_ERROR(TraceLayout(layout, folder.path(), trace));
    STRATA_RETURN_IF_ERROR(bench.Run(trace, layout.Name()));
  }
  return Ok();
}

/// Errors: a name that no kind of edit has.
Status CheckNames(std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    const bool is_known = std::ranges::find(prove::Mutations(), name, &prove::Mutation::name) !=
                          prove::Mutations().end();
    if (!is_known) return Error("--only: no kind of edit: '{}': the table names all", name);
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return Ok();
}

}  // namespace

Result<Exit> BenchProve(Args args) {
  Options options;
  Flags flags("bench prove",
              "measures which bugs strata prove finds: edits correct lowered graphs");
  flags.Positionals("TRACE", &options.traces, 0,
                    "traces with lowered graphs; large ones are edited on reduced sizes");
  flags.Switch(
      "--layouts", &options.layouts,
      "instead: traces of small Llama3, Qwen3 and DeepSeek-V3 models on many layouts, with "
      "pipelines, experts and memory policies");
  flags.Switch("--mutations", &options.mutations, "a table by kind of edit; the default");
  flags.Option("--sites", "N", &options.sites, "of each kind in each graph (default: 5)", 1);
  flags.Option("--seed", "N", &options.seed, "of the inputs (default: 1)");
  flags.Switch("--list", &options.lists,
               "name the mutants that are not found at their site, or not as their class");
  flags.Option("--only", "NAMES", &options.only, "edits of these kinds, with commas between them");
  flags.Option("--pictures", "FOLDER", &options.pictures,
               "draw a found mutant of each kind, and print its finding");
  flags.Example("strata bench prove --mutations tiny.strata");
  flags.Example("strata bench prove --mutations --layouts --sites 1");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (options.traces.empty() != options.layouts)
    return Error("nothing to edit, or two things: give traces, or --layouts");
  STRATA_RETURN_IF_ERROR(CheckNames(options.only));
  MutationBench bench(options);
  for (const std::string& trace : options.traces)
    STRATA_RETURN_IF_ERROR(bench.Run(trace, trace));
  if (options.layouts) STRATA_RETURN_IF_ERROR(RunLayouts(bench));
  STRATA_RETURN_IF_ERROR(bench.WritePictures());
  bench.Print();
  return Exit::kOk;
}

}  // namespace strata::cli
