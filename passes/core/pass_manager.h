#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "passes/core/pass.h"

namespace strata {

/// Runs passes in order.
///
///     PassManager manager({.input_ref = "step.txt"});
///     STRATA_TRY(auto passes, ParsePipeline("dce,canonicalize", registry));
///     for (auto& pass : passes) manager.Add(std::move(pass));
///     RecordSnapshots record(sink);
///     manager.Watch(record);
///     STRATA_TRY(Changed changed, manager.Run(module));
///
/// After each pass the manager checks the answer `Changed` against the graphs' fingerprints,
/// verifies the graphs that changed, and calls its instrumentations, in the order in which they
/// were added. A pass that reports a change without any difference counts as unchanged. The first
/// pass that fails ends the pipeline; its graphs still go to the instrumentations. An error of an
/// instrumentation ends it at once.
class PassManager {
 public:
  struct Options {
    /// Verify the input and every changed graph. Without it, a broken graph is found where it
    /// hurts.
    bool verify = true;
    /// A REF of the module that `Run` starts from, for the command that reproduces a failure.
    std::string input_ref = "INPUT";
    /// The run that records the pipeline, "out/t.strata#run=1"; "": none. With it the command takes
    /// the graph before the failing pass from there.
    std::string run_ref = {};
  };

  PassManager() = default;
  explicit PassManager(Options options) : options_(std::move(options)) {}

  void set_run_ref(std::string run_ref) { options_.run_ref = std::move(run_ref); }

  void Add(std::unique_ptr<Pass> pass) { passes_.push_back(std::move(pass)); }
  /// REQUIRES: `watcher` outlives the manager.
  void Watch(PassInstrumentation& watcher) { watchers_.push_back(&watcher); }

  /// The pipeline as text: "dce,canonicalize,place{plan=llama3.toml}".
  std::string Text() const { return Text(passes_.size()); }

  /// Whether any pass changed the module. On an error the module is as the failing pass left it.
  /// Errors name the pass and the command that reproduces the failure.
  Result<Changed> Run(Module& module);

 private:
  /// The first `count` passes as text.
  std::string Text(size_t count) const;
  /// Runs and judges one pass. `graphs` is the state before; fills `run`.
  Status RunPass(Pass& pass, Module& module, const std::vector<GraphChange>& graphs, PassRun& run);
  /// The command that shows a failure of that run again.
  std::string ReproducingCommand(const PassRun& run) const;
  /// Reports a failed run to all instrumentations.
  Error Fail(const Error& error, PassRun run, const Module& module);
  template <class Hook, class... Args>
  Status Tell(Hook hook, const Args&... args);

  Options options_;
  std::vector<std::unique_ptr<Pass>> passes_;
  std::vector<PassInstrumentation*> watchers_;
};

}  // namespace strata
