#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/unicode.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/prove/prove_foreign.h"
#include "cli/prove/prove_pins.h"
#include "cli/prove/prove_stages.h"
#include "cli/render/proof_text.h"
#include "prove/partition.h"
#include "prove/proof.h"
#include "prove/prove_pass.h"
#include "refs/histories.h"
#include "refs/ref.h"
#include "store/proofs.h"

namespace strata::cli {
namespace {

/// The name of the step from a joint graph to a forward and a backward graph.
constexpr std::string_view kPartition = "partition";

struct ProofFlags {
  std::string file;
  std::vector<std::string> others, passes, assumptions;
  int64_t seed = 1, max_findings = 20;
  bool allows_unproven = false, accepts_inferred = false, as_json = false, record = false;
  bool precision = false, strict_casts = false;
  std::optional<std::string> pins;
};

bool IsChosen(const HistoryStep& step, const std::vector<std::string>& passes) {
  if (passes.empty()) return true;
  for (const std::string& pass : passes) {
    if (pass == step.pass || pass == fmt::format("{}", step.pass_index)) return true;
  }
  return false;
}

/// Milliseconds that `work` takes.
template <class Work>
double TimeOf(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

/// Runs a proof and takes its time.
template <class Prove>
void Time(StepProof& step, Prove&& prove) {
  step.milliseconds = TimeOf([&] { step.proof = prove(); });
}

/// A second opinion of `lower`: by rules, for all sizes.
void CheckByRules(const Graph& before, const Graph& after, StepProof& step) {
  step.placement_milliseconds =
      TimeOf([&] { step.placements = prove::CheckPlacements(before, after); });
}

prove::ProofOptions OptionsOf(const ProofFlags& flags, bool stable_ids) {
  return {.seed = static_cast<uint64_t>(flags.seed),
          .stable_ids = stable_ids,
          .max_findings = static_cast<size_t>(flags.max_findings),
          .lists_precision = flags.precision || flags.strict_casts};
}

/// A step that changed nothing needs no evaluation.
Result<StepProof> ProveStep(const History& history, const HistoryStep& step,
                            const ProofFlags& flags) {
  StepProof result;
  result.name = step.pass_index < 0 ? std::string("between passes")
                                    : fmt::format("pass {} {}", step.pass_index, step.pass);
  result.graph = history.GraphOf(step);
  result.ref = step.ref;
  result.pass_index = step.pass_index;
  result.pass = step.pass;
  result.rank = history.rank;
  if (SameGraph(history, step.before, step.after)) return result;
  STRATA_TRY(const LoadedGraph before, history.load(step.before));
  STRATA_TRY(const LoadedGraph after, history.load(step.after));
  STRATA_TRY(const MakerGraphs makers, LoadMakers(history, step));
  prove::ProofOptions options = OptionsOf(flags, history.stable_ids);
  options.makers = makers.pointers();
  Time(result, [&] { return prove::ProvePass(before.graph(), after.graph(), options); });
  if (history.stable_ids) CheckByRules(before.graph(), after.graph(), result);
  return result;
}

/// The first snapshot of the graph that came with a log record of this name; -1: none.
int32_t SnapshotOf(const History& history, const std::string& compilation,
                   std::string_view record) {
  for (size_t graph = 0; graph < history.records.size(); ++graph) {
    if (history.records[graph].compilation != compilation || history.records[graph].name != record)
      continue;
    for (size_t i = 0; i < history.snapshots.size(); ++i) {
      if (history.snapshots[i].graph == static_cast<int32_t>(graph)) return static_cast<int32_t>(i);
    }
  }
  return -1;
}

/// What AOTAutograd's partitioner did to each joint graph of a log.
Status ProvePartitions(const History& history, const ProofFlags& flags,
                       std::vector<StepProof>& proofs) {
  for (size_t graph = 0; graph < history.records.size(); ++graph) {
    const GraphRecord& record = history.records[graph];
    const int32_t joint = SnapshotOf(history, record.compilation, "aot_joint_graph");
    const int32_t forward = SnapshotOf(history, record.compilation, "aot_forward_graph");
    const int32_t backward = SnapshotOf(history, record.compilation, "aot_backward_graph");
    if (record.name != "aot_joint_graph" || joint < 0 || forward < 0 || backward < 0) continue;
    if (history.snapshot(joint).graph != static_cast<int32_t>(graph)) continue;
    STRATA_TRY(const LoadedGraph whole, history.load(joint));
    STRATA_TRY(const LoadedGraph first, history.load(forward));
    STRATA_TRY(const LoadedGraph second, history.load(backward));
    StepProof result;
    result.name = std::string(kPartition);
    result.graph = history.graphs[graph];
    result.ref = history.snapshot(joint).ref;
    result.rank = history.rank;
    Time(result, [&] {
      return prove::ProvePartition(whole.graph(), first.graph(), second.graph(),
                                   OptionsOf(flags, false));
    });
    proofs.push_back(std::move(result));
  }
  return Ok();
}

/// Every step that has a graph before it.
Result<std::vector<StepProof>> ProveAll(const std::vector<History>& histories,
                                        const ProofFlags& flags) {
  std::vector<StepProof> proofs;
  for (const History& history : histories) {
    for (const HistoryStep& step : history.steps) {
      if (step.before < 0 || !IsChosen(step, flags.passes)) continue;
      STRATA_TRY(StepProof proof, ProveStep(history, step, flags));
      proofs.push_back(std::move(proof));
    }
    STRATA_RETURN_IF_ERROR(ProvePipeline(
        history, OptionsOf(flags, false),
        [&](const HistoryStep& step) { return IsChosen(step, flags.passes); }, proofs));
    const bool is_chosen =
        flags.passes.empty() || std::ranges::find(flags.passes, kPartition) != flags.passes.end();
    if (is_chosen) STRATA_RETURN_IF_ERROR(ProvePartitions(history, flags, proofs));
  }
  return proofs;
}

/// Two graphs: inputs and outputs by position.
Result<std::vector<StepProof>> ProvePair(const ProofFlags& flags) {
  const LoadOptions load{.warn = Warn};
  STRATA_TRY(const SnapshotPair pair, LoadRefs(flags.file, flags.others[0], load));
  const auto& [before, after] = pair;
  StepProof result;
  result.name = fmt::format("{} = {}", flags.file, flags.others[0]);
  result.graph = after.graph().name_text();
  result.ref = flags.others[0];
  const prove::ProofOptions options = OptionsOf(flags, false);
  Time(result, [&] { return prove::ProvePass(before.graph(), after.graph(), options); });
  return std::vector<StepProof>{std::move(result)};
}

/// Stores the verdict of each pass in the trace.
Status Record(const std::string& file, const std::vector<StepProof>& proofs) {
  STRATA_TRY(const Ref trace, ParseRef(file));
  std::vector<RunProof> records;
  for (const StepProof& step : proofs) {
    if (step.pass_index < 0) continue;
    STRATA_TRY(const Ref ref, ParseRef(step.ref));
    RunProof record{.run = static_cast<RunId>(ref.run.value_or(1)),
                    .proof = PassProofOf(step.proof, step.graph)};
    record.proof.pass = step.pass_index;
    records.push_back(std::move(record));
  }
  return RecordProofs(trace.file, records);
}

/// Verdicts are recorded in a trace only.
Status CheckRecord(const ProofFlags& flags) {
  if (!flags.record) return Ok();
  STRATA_TRY(const Ref ref, ParseRef(flags.file));
  if (flags.others.empty() && LooksLikeTrace(ref.file)) return Ok();
  STRATA_TRY([[maybe_unused]] const MappedFile file, MappedFile::Open(ref.file));
  return Error(ErrorCode::kUnsupported,
               "cannot record: {}: --record needs a trace; strata import makes one of a log",
               Visible(flags.file));
}

Exit ExitOf(const std::vector<StepProof>& proofs, const ProofFlags& flags) {
  for (const StepProof& step : proofs) {
    const bool is_fine = step.proof.verdict == prove::Verdict::kProven ||
                         (flags.allows_unproven && step.proof.verdict == prove::Verdict::kUnproven);
    const bool is_inferred =
        std::ranges::any_of(step.proof.assumptions, &prove::Assumption::is_inferred);
    if (!is_fine || !step.placements.findings.empty()) return Exit::kDifferences;
    if (is_inferred && !flags.accepts_inferred) return Exit::kDifferences;
    if (flags.strict_casts && !step.proof.precision.empty()) return Exit::kDifferences;
  }
  return Exit::kOk;
}

/// What the words of the command line ask for.
Result<std::vector<StepProof>> ProofsOf(const ProofFlags& flags) {
  if (flags.others.empty()) {
    STRATA_TRY(const std::vector<History> histories, LoadHistories(flags.file));
    return ProveAll(histories, flags);
  }
  STRATA_TRY(const bool are_ranks, NamesRanks(flags.others));
  if (!are_ranks) {
    auto proofs = ProvePair(flags);
    if (proofs || !IsCompiledLog(flags.file)) return proofs;
    STRATA_TRY(const Ref other, ParseRef(flags.others[0]));
    STRATA_TRY([[maybe_unused]] const MappedFile file, MappedFile::Open(other.file));
    return Error("no logs of several ranks: {}: {} is the log of one device, to compare with those",
                 Visible(flags.others[0]), Visible(flags.file));
  }
  return ProveForeignLogs({.single = flags.file,
                           .ranks = flags.others,
                           .assumptions = flags.assumptions,
                           .seed = flags.seed,
                           .max_findings = flags.max_findings});
}

}  // namespace

Result<Exit> RunProve(Args args) {
  ProofFlags out;
  Flags flags("prove",
              "proves that every pass of a run computes what was there before it: evaluates the "
              "graphs before and after each pass exactly, modulo 2^61-1, on random inputs; exit "
              "status 1: a value differs, or a pass is not proven");
  flags.Positional("FILE", &out.file, "a trace or a log, with #run= or #rank= if it has several");
  flags.Positionals("REF", &out.others, 0,
                    "a graph to compare with FILE, which is then the REF of a graph, too; or the "
                    "logs of all ranks, or their folder, to compare with FILE, the log of one "
                    "device");
  flags.Repeated("--pass", "N|NAME", &out.passes, "only this pass; may be repeated");
  flags.Option("--seed", "N", &out.seed, "of the inputs (default: 1)");
  flags.Option("--max-findings", "N", &out.max_findings, "for each pass (default: 20)", 1);
  flags.Switch("--allow-unproven", &out.allows_unproven, "exit status 0 if nothing differs");
  flags.Repeated("--assume", "AXIS=averages|sums", &out.assumptions,
                 "of logs of ranks: code outside of the graphs reduces gradients over this axis; "
                 "may be repeated");
  flags.Switch("--accept-inferred", &out.accepts_inferred,
               "exit status 0 also if a proof takes for granted what no log states");
  flags.Option("--pins", "FILE", &out.pins,
               "what strata prove said was inferred, and you know: its lines 'inferred: …'");
  flags.Switch("--precision", &out.precision,
               "also list where a proven pass rounds numbers otherwise");
  flags.Switch("--strict-casts", &out.strict_casts,
               "the same, and exit status 1 if there are such places");
  flags.Switch("--record", &out.record,
               "store the verdict of each pass in the trace FILE, for ls and the viewer");
  flags.Switch("--json", &out.as_json, "print strata.prove/1");
  flags.Example("strata prove run.strata");
  flags.Example("strata prove run.strata --pass fuse --seed 2");
  flags.Example("strata prove run.strata --record");
  flags.Example("strata prove before.txt after.txt");
  flags.Example("strata prove one_device.log ranks/ --assume dp=averages");
  flags.Example("strata prove one_device.log ranks/ --pins pins.txt");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  STRATA_RETURN_IF_ERROR(CheckRecord(out));

  Pins pins;
  if (out.pins) {
    STRATA_TRY(pins, ReadPins(*out.pins));
  }
  STRATA_TRY(std::vector<StepProof> proofs, ProofsOf(out));
  ApplyPins(pins, proofs);
  if (proofs.empty()) {
    return Error(ErrorCode::kNotFound, "nothing to prove: {}: no pass{} has a graph before it",
                 Visible(out.file), out.passes.empty() ? "" : " of that name");
  }
  if (out.record) STRATA_RETURN_IF_ERROR(Record(out.file, proofs));
  STRATA_RETURN_IF_ERROR(WriteFile(
      "-", out.as_json ? ProofJson(proofs, out.file, out.seed) : ProofText(proofs, out.seed)));
  return ExitOf(proofs, out);
}

}  // namespace strata::cli
