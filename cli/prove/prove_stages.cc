#include "cli/prove/prove_stages.h"

#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

/// The steps that made the graphs of a run.
class Makers {
 public:
  explicit Makers(const History& history) : history_(history) {
    for (const HistoryStep& step : history_.steps)
      if (step.before < 0) made_.emplace(history_.GraphOf(step), &step);
  }

  const std::map<std::string, const HistoryStep*>& all() const { return made_; }
  /// The step that made a graph; null: there is no such graph.
  const HistoryStep* Of(const std::string& name) const {
    const auto found = made_.find(name);
    return found == made_.end() ? nullptr : found->second;
  }
  /// The step that made a part of some stage; null: no stage has that part.
  const HistoryStep* OfPart(std::string_view part) const {
    for (const auto& [name, step] : made_)
      if (const auto stage = ParseStageName(name); stage && stage->part == part) return step;
    return nullptr;
  }
  /// As a pass made it. Errors: there is none.
  Result<LoadedGraph> Load(const std::string& name) const {
    const HistoryStep* maker = Of(name);
    if (maker == nullptr) return Error("no graph '{}': {}", name, history_.ref);
    return history_.load(maker->after);
  }

 private:
  const History& history_;
  std::map<std::string, const HistoryStep*> made_;  // by graph: the step that it appears in
};

std::string NameOf(int64_t stage, std::string_view part) {
  return fmt::format("stage{}.{}", stage, part);
}

class CutLoader {
 public:
  CutLoader(const History& history, const std::function<bool(const HistoryStep&)>& is_chosen)
      : history_(history), makers_(history), is_chosen_(is_chosen) {}

  Result<std::vector<LoadedCut>> Run() {
    STRATA_RETURN_IF_ERROR(AddStages(makers_.Of("stage0.backward"), {"backward"}));
    STRATA_RETURN_IF_ERROR(
        AddStages(makers_.OfPart("backward_weight"), {"backward_input", "backward_weight"}));
    if (makers_.Of("step.backward") != nullptr) {
      STRATA_RETURN_IF_ERROR(AddGraphs(*makers_.Of("step.backward"), kStep,
                                       {{0, "step.forward"}, {0, "step.backward"}}));
    }
    STRATA_RETURN_IF_ERROR(AddUpdate("accumulate", "stage{}.accumulate"));
    STRATA_RETURN_IF_ERROR(AddUpdate("optimizer", "optimizer.rank{}"));
    return std::move(cuts_);
  }

 private:
  using Names = std::vector<std::pair<int64_t, std::string>>;

  /// All that runs for a microbatch, in an order in which it can run. `backward`: parts of a
  /// stage's backward, where it has these.
  Status AddStages(const HistoryStep* split, const std::vector<std::string_view>& backward) {
    if (split == nullptr) return Ok();
    int64_t stages = 0;
    while (makers_.Of(NameOf(stages, "forward")) != nullptr)
      ++stages;
    Names order;
    for (const std::string_view part : {"unshard", "forward"})
      for (int64_t stage = 0; stage < stages; ++stage)
        order.emplace_back(stage, NameOf(stage, part));
    for (int64_t stage = stages - 1; stage >= 0; --stage) {
      if (makers_.Of(NameOf(stage, backward.front())) == nullptr)
        order.emplace_back(stage, NameOf(stage, "backward"));
      for (const std::string_view part : backward)
        order.emplace_back(stage, NameOf(stage, part));
    }
    for (int64_t stage = 0; stage < stages; ++stage)
      order.emplace_back(stage, NameOf(stage, "reduce"));
    std::erase_if(order, [&](const auto& part) {
      return makers_.Of(part.second) == nullptr;  // parameters are not shared
    });
    return AddGraphs(*split, kStep, order);
  }

  /// Of `split-optimizer`: what ranks, or stages, run of a graph.
  Status AddUpdate(std::string_view whole, std::string_view part_format) {
    Names order;
    for (int64_t i = 0;; ++i) {
      std::string name = fmt::format(fmt::runtime(part_format), i);
      if (makers_.Of(name) == nullptr) break;
      order.emplace_back(i, std::move(name));
    }
    if (order.empty()) return Ok();
    const size_t before = cuts_.size();
    STRATA_RETURN_IF_ERROR(AddGraphs(*makers_.Of(order[0].second), whole, order));
    if (cuts_.size() > before) {
      cuts_.back().returned = prove::Returned::kNumbered;
      cuts_.back().on_own_ranks = true;
    }
    return Ok();
  }

  /// `whole`: as `split` found it.
  Status AddGraphs(const HistoryStep& split, std::string_view whole, const Names& order) {
    if (!is_chosen_(split)) return Ok();
    const int32_t snapshot = SnapshotAt(history_, whole, split.pass_index);
    if (snapshot < 0) return Error("no graph '{}': {}", whole, history_.ref);
    LoadedCut cut;
    cut.step = split;
    cut.graph = whole;
    STRATA_TRY(cut.whole, history_.load(snapshot));
    for (const auto& [stage, name] : order) {
      STRATA_TRY(cut.graphs.emplace_back(), makers_.Load(name));
      cut.stages.push_back(stage);
    }
    STRATA_TRY(cut.originals, Copies());
    cuts_.push_back(std::move(cut));
    return Ok();
  }

  /// What all passes copied.
  Result<prove::Originals> Copies() const {
    prove::Originals originals;
    if (!history_.stable_ids) return originals;
    for (const HistoryStep& step : history_.steps) {
      if (step.pass_index < 0) continue;
      STRATA_TRY(const std::vector<Provenance> records, history_.provenance(step));
      originals.merge(prove::OriginalsOf(records));
    }
    return originals;
  }

  const History& history_;
  const Makers makers_;
  const std::function<bool(const HistoryStep&)>& is_chosen_;
  std::vector<LoadedCut> cuts_;
};

/// Runs a proof of what `step` did and takes its time.
template <class Prove>
StepProof TimedProof(const History& history, const HistoryStep& step, std::string graph,
                     Prove&& prove) {
  StepProof proof;
  proof.name = fmt::format("pass {} {}", step.pass_index, step.pass);
  proof.graph = std::move(graph);
  proof.ref = step.ref;
  proof.pass_index = step.pass_index;
  proof.pass = step.pass;
  proof.rank = history.rank;
  const auto begin = std::chrono::steady_clock::now();
  proof.proof = prove();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  proof.milliseconds = took.count();
  return proof;
}

Result<StepProof> ProveOverlap(const History& history, const Makers& graphs,
                               const HistoryStep& step, int64_t forward_stage,
                               int64_t backward_stage, prove::ProofOptions options) {
  STRATA_TRY(const LoadedGraph joined, history.load(step.after));
  STRATA_TRY(const LoadedGraph backward, graphs.Load(NameOf(backward_stage, "backward")));
  STRATA_TRY(const LoadedGraph forward, graphs.Load(NameOf(forward_stage, "forward")));
  STRATA_TRY(const MakerGraphs makers, LoadMakers(history, step));
  options.makers = makers.pointers();
  return TimedProof(history, step, history.GraphOf(step), [&] {
    return prove::ProveJoined(joined.graph(), backward.graph(), forward.graph(), options);
  });
}

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

std::vector<prove::StagePart> LoadedCut::Parts() const {
  std::vector<prove::StagePart> parts;
  for (size_t i = 0; i < graphs.size(); ++i)
    parts.push_back({.stage = stages[i], .graph = &graphs[i].graph()});
  return parts;
}

prove::StageCut LoadedCut::CutOf(std::span<const prove::StagePart> parts) const {
  return {.whole = &whole.graph(),
          .parts = parts,
          .originals = originals,
          .returned = returned,
          .on_own_ranks = on_own_ranks};
}

Result<std::vector<LoadedCut>> LoadCuts(const History& history,
                                        const std::function<bool(const HistoryStep&)>& is_chosen) {
  return CutLoader(history, is_chosen).Run();
}

Status ProvePipeline(const History& history, const prove::ProofOptions& options,
                     const std::function<bool(const HistoryStep&)>& is_chosen,
                     std::vector<StepProof>& proofs) {
  STRATA_TRY(const std::vector<LoadedCut> cuts, LoadCuts(history, is_chosen));
  for (const LoadedCut& cut : cuts) {
    const std::vector<prove::StagePart> parts = cut.Parts();
    proofs.push_back(TimedProof(history, cut.step, cut.graph,
                                [&] { return prove::ProveStages(cut.CutOf(parts), options); }));
  }
  const Makers makers(history);
  for (const auto& [name, step] : makers.all()) {
    const auto pair = ParseOverlapName(name);
    if (!pair || !is_chosen(*step)) continue;
    STRATA_TRY(StepProof proof,
               ProveOverlap(history, makers, *step, pair->first, pair->second, options));
    proofs.push_back(std::move(proof));
  }
  return Ok();
}

}  // namespace strata::cli
