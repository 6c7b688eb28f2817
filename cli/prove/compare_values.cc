#include "runtime/exec/compare_values.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/unicode.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/prove/prove_ranks.h"
#include "cli/prove/value_pairs.h"
#include "ir/fingerprint.h"
#include "ir/seeded_draws.h"
#include "ir/stated_constants.h"
#include "refs/ref.h"
#include "runtime/aten/operator_library.h"
#include "runtime/aten/threads.h"
#include "runtime/exec/graph_ranks.h"

namespace strata::cli {
namespace {

struct CompareFlags {
  std::string before, after;
  std::optional<std::string> inputs;
  int64_t seed = 0, threads = 0;
  std::vector<std::string> operators;
  ValueTolerance tolerance;
  bool json = false;
};

Result<bool> ParseFlags(Args args, CompareFlags& out) {
  Flags flags("compare-values",
              "runs two graphs on the same inputs and compares them node by node");
  flags.Positional("REF", &out.before, "the first graph");
  flags.Positional("REF2", &out.after, "the second graph");
  flags.Option("--inputs", "FILE", &out.inputs,
               "safetensors file with the names of the inputs, from train --dump-inputs (default: "
               "synthetic)");
  flags.Option("--seed", "N", &out.seed, "seed of synthetic inputs");
  flags.Tolerance("--ulps", "--tolerance", &out.tolerance);
  flags.Threads(&out.threads);
  flags.Operators(&out.operators);
  flags.Switch("--json", &out.json, "print strata.compare-values/1");
  flags.Example("strata compare-values 't.strata#graph=step,pass=1:before' 't.strata#graph=step'");
  flags.Example("strata compare-values a.txt b.txt --inputs in.safetensors --ulps 4 --json");
  return flags.Parse(args);
}

void AppendSide(JsonWriter& json, std::string_view key, const Snapshot& snapshot) {
  json.Key(key).BeginObject().Field("ref", snapshot.ref);
  json.Field("nodes", snapshot.graph().num_printed_nodes());
  json.Field("fingerprint", ToString(FingerprintOf(snapshot.graph()))).EndObject();
}

void AppendMismatches(JsonWriter& json, std::string_view key, const MatchedGraphs& matched,
                      const ComparedValues& values) {
  json.Key(key).BeginArray();
  for (const ValueMismatch& mismatch : values.mismatches) {
    const TensorDifference& difference = mismatch.difference;
    json.Break(2).BeginObject().Field("before", matched.NameBefore(mismatch.pair.before));
    json.Field("after", matched.NameAfter(mismatch.pair.after));
    json.Field("module", matched.ModuleAfter(mismatch.pair.after));
    if (!mismatch.types.empty()) json.Field("types", mismatch.types);
    json.Field("elements", difference.elements).Key("max_ulps");
    if (std::isfinite(difference.max_ulps)) {
      json.Double(difference.max_ulps);
    } else {
      json.Null();
    }
    json.Field("max_abs", difference.max_abs).Field("magnitude", difference.magnitude);
    json.Field("index", difference.where);
    json.Field("before_value", difference.before).Field("after_value", difference.after);
    json.EndObject();
  }
  json.EndArray();
}

std::string ToJson(const Snapshot& before, const Snapshot& after, const MatchedGraphs& matched,
                   const ValueComparison& comparison, const std::vector<std::string>& inferred) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.compare-values/1");
  AppendSide(json, "before", before);
  AppendSide(json, "after", after);
  const auto& [nodes, not_compared, outputs, written] = comparison;
  json.Field("compared", nodes.compared).Field("different", nodes.different());
  json.Field("not_compared", not_compared).Field("outputs", outputs.compared);
  json.Field("different_outputs", outputs.different()).Field("written", written.compared);
  json.Field("different_written", written.different());
  json.Key("inferred").BeginArray();
  for (const std::string& what : inferred)
    json.String(what);
  json.EndArray();
  AppendMismatches(json, "mismatches", matched, nodes);
  AppendMismatches(json, "output_mismatches", matched, outputs);
  AppendMismatches(json, "written_mismatches", matched, written);
  json.EndObject();
  return text + "\n";
}

std::string ToText(const MatchedGraphs& matched, const ValueComparison& comparison,
                   const std::vector<std::string>& inferred) {
  const auto& [nodes, not_compared, outputs, written] = comparison;
  std::string text =
      fmt::format("{} values compared, {} differ; {} of {} outputs differ", nodes.compared,
                  nodes.different(), outputs.different(), outputs.compared);
  if (written.compared > 0) {
    text += fmt::format("; {} of {} written inputs differ", written.different(), written.compared);
  }
  if (not_compared > 0) text += fmt::format("; {} not compared", not_compared);
  text += "\n";
  if (comparison.first() != nullptr)
    text += fmt::format("first difference: {}\n", DescribeFirst(matched, comparison));
  for (const std::string& what : inferred)
    text += fmt::format("inferred: {}\n", Visible(what));
  return text;
}

/// Graphs of several ranks run on all of them, each on its part of the inputs.
Result<ValueComparison> CompareOnRanks(const GraphRanks& ranks, const Graph& before,
                                       const Graph& after, const MatchedGraphs& matched,
                                       const CompareFlags& flags) {
  const auto seed = static_cast<uint64_t>(flags.seed);
  std::vector<NamedTensors> inputs;
  NamedTensors more;
  if (flags.inputs) {
    STRATA_TRY(const NamedTensors whole, LoadTensors(*flags.inputs));
    STRATA_TRY(inputs, ranks.Share(whole));
  } else {
    STRATA_TRY(inputs, ranks.Draw(seed));
    STRATA_TRY(more, DrawInputs(after, seed));
  }
  return CompareValuesOnRanks(before, after, matched, inputs, more, flags.tolerance);
}

std::string MeshText(const std::optional<GraphRanks>& ranks) {
  return ranks ? "the mesh " + ranks->mesh().Text() : "one rank";
}

/// `inferred`: receives what synthetic constants hold because `after` says so.
Result<ValueComparison> CompareAlone(const Graph& before, const Graph& after,
                                     const MatchedGraphs& matched, const CompareFlags& flags,
                                     std::vector<std::string>& inferred) {
  NamedTensors inputs, more;
  if (flags.inputs) {
    STRATA_TRY(inputs, LoadTensors(*flags.inputs));
  } else {
    const auto seed = static_cast<uint64_t>(flags.seed);
    STRATA_TRY(inputs, DrawInputs(before, seed));
    STRATA_TRY(more, DrawInputs(after, seed));
    const StatedConstants constants = StatedConstantsOf(before, after);
    SetStatedConstants(constants, inputs);
    SetStatedConstants(constants, more);
    for (const auto& [attribute, constant] : constants)
      inferred.push_back(fmt::format("the constant {} is {}", attribute, constant.text));
  }
  for (const auto& [attribute, input] : matched.stored)
    inferred.push_back(StoredInputText(before, input, attribute));
  const SeededDraws draws(before, std::array{&after});
  if (!draws.empty()) inferred.push_back(draws.Text());
  NamedTensors after_inputs = TransferInputs(matched, inputs);
  after_inputs.merge(more);
  return CompareValues(before, after, matched.pairs, inputs, after_inputs, flags.tolerance);
}

}  // namespace

Result<Exit> RunCompareValues(Args args) {
  CompareFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  SetThreads(ChooseThreads(flags.threads));
  STRATA_RETURN_IF_ERROR(LoadOperators(flags.operators));
  STRATA_TRY(const SnapshotPair pair, LoadRefs(flags.before, flags.after));
  const auto& [before, after] = pair;
  const bool same_trace = !before.origin.empty() && before.origin == after.origin &&
                          before.graph_name == after.graph_name;
  STRATA_TRY(const MatchedGraphs matched, MatchGraphs(before.graph(), after.graph(), same_trace));
  STRATA_TRY(const std::optional<GraphRanks> ranks, GraphRanks::Of(before.graph()));
  STRATA_TRY(const std::optional<GraphRanks> others, GraphRanks::Of(after.graph()));
  if (MeshText(ranks) != MeshText(others)) {
    return Error(
        "graphs of different ranks: {} is of {}, {} of {}: name two states before the pass lower, "
        "or two after it",
        before.ref, MeshText(ranks), after.ref, MeshText(others));
  }
  std::vector<std::string> inferred;
  STRATA_TRY(const ValueComparison comparison,
             ranks ? CompareOnRanks(*ranks, before.graph(), after.graph(), matched, flags)
                   : CompareAlone(before.graph(), after.graph(), matched, flags, inferred));
  if (comparison.compared() == 0) {
    return Error(
        "nothing to compare: {} and {}: no value of one stands for one of the other; name "
        "two states of one graph",
        before.ref, after.ref);
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", flags.json
                                            ? ToJson(before, after, matched, comparison, inferred)
                                            : ToText(matched, comparison, inferred)));
  return comparison.first() != nullptr ? Exit::kDifferences : Exit::kOk;
}

}  // namespace strata::cli
