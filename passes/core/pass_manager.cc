#include "passes/core/pass_manager.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/shell.h"
#include "ir/verify.h"

namespace strata {
namespace {

std::vector<GraphChange> Fingerprints(const Module& module) {
  std::vector<GraphChange> result;
  for (GraphId id : module.programs()) {
    result.push_back({id, {}, FingerprintOf(module.graph(id), FingerprintScope::kEverything)});
  }
  return result;
}

// The state after a pass, with what was `after` the pass before it as `before`.
std::vector<GraphChange> Compare(std::vector<GraphChange> after,
                                 const std::vector<GraphChange>& before) {
  for (GraphChange& change : after) {
    const auto old = std::ranges::find(before, change.graph, &GraphChange::graph);
    if (old != before.end()) change.before = old->after;
  }
  return after;
}

bool AnyChanged(const std::vector<GraphChange>& graphs) {
  return std::ranges::any_of(graphs, &GraphChange::changed);
}

}  // namespace

std::string PassManager::Text(size_t count) const {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += passes_[i]->Text();
  }
  return text;
}

Result<Changed> PassManager::Run(Module& module) {
  if (options_.verify) {
    if (Status sound = Verify(module); !sound) {
      return std::move(sound).error().In("the passes' input is broken");
    }
  }
  STRATA_RETURN_IF_ERROR(Tell(&PassInstrumentation::BeforePipeline, Text(), module));
  module.TakeProvenance();
  std::vector<GraphChange> graphs = Fingerprints(module);
  Changed changed = Changed::kNo;
  for (size_t i = 0; i < passes_.size(); ++i) {
    PassRun run;
    run.index = static_cast<int32_t>(i);
    run.name = passes_[i]->name();
    run.params = passes_[i]->params();
    STRATA_RETURN_IF_ERROR(Tell(&PassInstrumentation::BeforePass, run, module));
    if (const Status done = RunPass(*passes_[i], module, graphs, run); !done) {
      return Fail(done.error(), std::move(run), module);
    }
    if (run.status == PassStatus::kOk) changed = Changed::kYes;
    graphs = run.graphs;
    STRATA_RETURN_IF_ERROR(Tell(&PassInstrumentation::AfterPass, run, module));
  }
  STRATA_RETURN_IF_ERROR(Tell(&PassInstrumentation::AfterPipeline, module));
  return changed;
}

Status PassManager::RunPass(Pass& pass, Module& module, const std::vector<GraphChange>& graphs,
                            PassRun& run) {
  const auto start = std::chrono::steady_clock::now();
  const Result<Changed> answer = pass.Run(module);
  run.wall = std::chrono::steady_clock::now() - start;
  run.births = module.TakeProvenance();
  if (!answer) {
    return Error(answer.error().code(), "pass '{}' failed: {}", pass.name(),
                 answer.error().message());
  }
  if (*answer == Changed::kYes && options_.verify) {
    if (const Status sound = Verify(module); !sound) {
      return Error(ErrorCode::kInternal, "pass '{}' left a broken graph: {}", pass.name(),
                   sound.error().message());
    }
  }
  std::vector<GraphChange> after = Compare(Fingerprints(module), graphs);
  if (*answer == Changed::kNo && AnyChanged(after)) {
    const auto change = std::ranges::find_if(after, &GraphChange::changed);
    return Error(ErrorCode::kInternal,
                 "pass '{}' changed graph '{}' and answered that it changed nothing", pass.name(),
                 module.graph(change->graph).name_text());
  }
  run.status = AnyChanged(after) || !run.births.empty() ? PassStatus::kOk : PassStatus::kUnchanged;
  run.graphs = std::move(after);
  return Ok();
}

std::string PassManager::ReproducingCommand(const PassRun& run) const {
  const auto index = static_cast<size_t>(run.index);
  if (options_.run_ref.empty()) {
    return fmt::format("strata opt {} --passes {}", ShellWord(options_.input_ref),
                       ShellWord(Text(index + 1)));
  }
  const std::string before = fmt::format("{},pass={}:before", options_.run_ref, index);
  return fmt::format("strata opt {} --passes {}", ShellWord(before),
                     ShellWord(passes_[index]->Text()));
}

Error PassManager::Fail(const Error& error, PassRun run, const Module& module) {
  run.status = PassStatus::kFailed;
  run.error = error.message();
  run.reproduce = ReproducingCommand(run);
  std::string message = fmt::format("{}: reproduce with: {}", run.error, run.reproduce);
  // Each is called, even if others fail: the trace must have the graph.
  for (PassInstrumentation* watcher : watchers_) {
    for (const Status& told :
         {watcher->AfterPassFailed(run, module), watcher->AfterPipeline(module)}) {
      if (!told) message += fmt::format("\n  and then: {}", told.error().message());
    }
  }
  return Error(error.code(), "{}", message);
}

template <class Hook, class... Args>
Status PassManager::Tell(Hook hook, const Args&... args) {
  for (PassInstrumentation* watcher : watchers_) {
    STRATA_RETURN_IF_ERROR((watcher->*hook)(args...));
  }
  return Ok();
}

}  // namespace strata
