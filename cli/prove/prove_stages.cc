#include "cli/prove/prove_stages.h"

#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "prove/stages.h"

namespace strata::cli {
namespace {

constexpr std::string_view kStep = "step";

/// `stage12.forward`: 12 and `forward`.
struct StageName {
  int64_t stage = 0;
  std::string_view part;
};
std::optional<StageName> ParseStageName(std::string_view name) {
  constexpr std::string_view kPrefix = "stage";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  StageName parsed;
  const char* const end = name.data() + name.size();
  const auto [dot, problem] = std::from_chars(name.data() + kPrefix.size(), end, parsed.stage);
  if (problem != std::errc() || dot == end || *dot != '.') return std::nullopt;
  parsed.part = {dot + 1, static_cast<size_t>(end - dot - 1)};
  return parsed;
}

/// `overlap.F0.B3`: 0 and 3.
std::optional<std::pair<int64_t, int64_t>> ParseOverlapName(std::string_view name) {
  constexpr std::string_view kPrefix = "overlap.F", kMiddle = ".B";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  int64_t forward = 0, backward = 0;
  auto parsed = std::from_chars(name.data() + kPrefix.size(), end, forward);
  const std::string_view rest(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  if (parsed.ec != std::errc() || !rest.starts_with(kMiddle)) return std::nullopt;
  parsed = std::from_chars(parsed.ptr + kMiddle.size(), end, backward);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return std::pair(forward, backward);
}

/// The graph as a pass found it, or as it was made at the same time; -1: there was none yet.
int32_t SnapshotAt(const History& history, std::string_view graph, int32_t pass) {
  int32_t snapshot = -1;
  for (const HistoryStep& step : history.steps)
    if (history.GraphOf(step) == graph && step.pass_index <= pass) snapshot = step.after;
  return snapshot;
}

class PipelineProver {
 public:
  PipelineProver(const History& history, const prove::ProofOptions& options,
                 std::vector<StepProof>& proofs)
      : history_(history), options_(options), proofs_(proofs) {
    for (const HistoryStep& step : history_.steps)
      if (step.before < 0) made_.emplace(history_.GraphOf(step), &step);
  }

  Status Run(const std::function<bool(const HistoryStep&)>& is_chosen) {
    if (const HistoryStep* split = Maker("stage0.backward"); split != nullptr && is_chosen(*split))
      STRATA_RETURN_IF_ERROR(ProveStep(*split, {"backward"}));
    if (const HistoryStep* halves = FirstOf("backward_weight"); halves && is_chosen(*halves))
      STRATA_RETURN_IF_ERROR(ProveStep(*halves, {"backward_input", "backward_weight"}));
    for (const auto& [name, step] : made_) {
      if (!is_chosen(*step)) continue;
      if (name == "step.backward") STRATA_RETURN_IF_ERROR(ProveTwoGraphs(*step));
      if (const auto pair = ParseOverlapName(name))
        STRATA_RETURN_IF_ERROR(ProveOverlap(*step, pair->first, pair->second));
    }
    return Ok();
  }

 private:
  static std::string NameOf(int64_t stage, std::string_view part) {
    return fmt::format("stage{}.{}", stage, part);
  }
  /// The step that made a graph; null: there is no such graph.
  const HistoryStep* Maker(const std::string& name) const {
    const auto found = made_.find(name);
    return found == made_.end() ? nullptr : found->second;
  }
  /// As a pass made it. Errors: there is none.
  Result<LoadedGraph> Load(const std::string& name) const {
    const HistoryStep* maker = Maker(name);
    if (maker == nullptr) return Error("no graph '{}': {}", name, history_.ref);
    return history_.load(maker->after);
  }

  /// The training's step as `pass` found it.
  Result<LoadedGraph> StepAt(int32_t pass) const {
    const int32_t snapshot = SnapshotAt(history_, kStep, pass);
    if (snapshot < 0) return Error("no graph '{}': {}", kStep, history_.ref);
    return history_.load(snapshot);
  }

  /// The step that made a part of some stage; null: no stage has that part.
  const HistoryStep* FirstOf(std::string_view part) const {
    for (const auto& [name, step] : made_)
      if (const auto stage = ParseStageName(name); stage && stage->part == part) return step;
    return nullptr;
  }

  /// All that runs for a microbatch, in an order in which it can run. `backward`: parts of a
  /// stage's backward, where it has these.
  Status ProveStep(const HistoryStep& split, const std::vector<std::string_view>& backward) {
    STRATA_TRY(const LoadedGraph whole, StepAt(split.pass_index));
    int64_t stages = 0;
    while (Maker(NameOf(stages, "forward")) != nullptr)
      ++stages;
    std::vector<std::pair<int64_t, std::string_view>> order;
    for (const std::string_view part : {"unshard", "forward"})
      for (int64_t stage = 0; stage < stages; ++stage)
        order.emplace_back(stage, part);
    for (int64_t stage = stages - 1; stage >= 0; --stage) {
      if (Maker(NameOf(stage, backward.front())) == nullptr) order.emplace_back(stage, "backward");
      for (const std::string_view part : backward)
        order.emplace_back(stage, part);
    }
    for (int64_t stage = 0; stage < stages; ++stage)
      order.emplace_back(stage, "reduce");
    std::vector<LoadedGraph> graphs;
    std::vector<int64_t> stage_of;
    for (const auto& [stage, part] : order) {
      const std::string name = NameOf(stage, part);
      if (Maker(name) == nullptr) continue;  // parameters are not shared
      STRATA_TRY(LoadedGraph graph, Load(name));
      graphs.push_back(std::move(graph));
      stage_of.push_back(stage);
    }
    std::vector<prove::StagePart> parts;
    for (size_t i = 0; i < graphs.size(); ++i)
      parts.push_back({.stage = stage_of[i], .graph = &graphs[i].graph()});
    Add(split, std::string(kStep),
        [&] { return prove::ProveStages(whole.graph(), 0, parts, options_); });
    return Ok();
  }

  /// Of `split-step`.
  Status ProveTwoGraphs(const HistoryStep& split) {
    STRATA_TRY(const LoadedGraph whole, StepAt(split.pass_index));
    STRATA_TRY(const LoadedGraph forward, Load("step.forward"));
    STRATA_TRY(const LoadedGraph backward, Load("step.backward"));
    const std::vector<prove::StagePart> parts = {{0, &forward.graph()}, {0, &backward.graph()}};
    Add(split, std::string(kStep),
        [&] { return prove::ProveStages(whole.graph(), 0, parts, options_); });
    return Ok();
  }

  Status ProveOverlap(const HistoryStep& step, int64_t forward_stage, int64_t backward_stage) {
    STRATA_TRY(const LoadedGraph joined, history_.load(step.after));
    STRATA_TRY(const LoadedGraph backward, Load(NameOf(backward_stage, "backward")));
    STRATA_TRY(const LoadedGraph forward, Load(NameOf(forward_stage, "forward")));
    STRATA_TRY(const MakerGraphs makers, LoadMakers(history_, step));
    prove::ProofOptions options = options_;
    options.makers = makers.pointers();
    Add(step, history_.GraphOf(step), [&] {
      return prove::ProveJoined(joined.graph(), backward.graph(), forward.graph(), options);
    });
    return Ok();
  }

  template <class Prove>
  void Add(const HistoryStep& step, std::string graph, Prove&& prove) {
    StepProof proof;
    proof.name = fmt::format("pass {} {}", step.pass_index, step.pass);
    proof.graph = std::move(graph);
    proof.ref = step.ref;
    proof.pass_index = step.pass_index;
    proof.pass = step.pass;
    proof.rank = history_.rank;
    const auto begin = std::chrono::steady_clock::now();
    proof.proof = prove();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    proof.milliseconds = took.count();
    proofs_.push_back(std::move(proof));
  }

  const History& history_;
  const prove::ProofOptions& options_;
  std::vector<StepProof>& proofs_;
  std::map<std::string, const HistoryStep*> made_;  // by graph: the step that it appears in
};

}  // namespace

std::vector<std::string> MakersOf(std::string_view graph) {
  if (graph == "step.backward") return {"step.forward"};
  if (const auto pair = ParseOverlapName(graph))
    return {fmt::format("stage{}.forward", pair->second)};
  const std::optional<StageName> name = ParseStageName(graph);
  if (!name || !name->part.starts_with("backward")) return {};
  std::vector<std::string> makers = {fmt::format("stage{}.forward", name->stage)};
  if (name->part == "backward_weight")
    makers.push_back(fmt::format("stage{}.backward_input", name->stage));
  return makers;
}

std::vector<const Graph*> MakerGraphs::pointers() const {
  std::vector<const Graph*> result;
  for (const LoadedGraph& graph : graphs)
    result.push_back(&graph.graph());
  return result;
}

Result<MakerGraphs> LoadMakers(const History& history, const HistoryStep& step) {
  MakerGraphs makers;
  for (const std::string& name : MakersOf(history.GraphOf(step))) {
    const int32_t snapshot = SnapshotAt(history, name, step.pass_index);
    if (snapshot < 0) continue;
    STRATA_TRY(makers.graphs.emplace_back(), history.load(snapshot));
  }
  return makers;
}

Status ProvePipeline(const History& history, const prove::ProofOptions& options,
                     const std::function<bool(const HistoryStep&)>& is_chosen,
                     std::vector<StepProof>& proofs) {
  return PipelineProver(history, options, proofs).Run(is_chosen);
}

}  // namespace strata::cli
