#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/fingerprint.h"
#include "ir/module.h"

namespace strata {

/// What a pass answers: did it change anything a fingerprint of everything can see?
enum class Changed : bool { kNo = false, kYes = true };

/// One transformation of a module. A pass knows nothing of recording, printing or timing.
///
/// A pass changes graphs through Rewriter only, keeps placeholders and outputs in number, order and
/// meaning, and answers `Changed` truthfully: the manager checks it. It is deterministic, so that
/// all ranks of a job make the same graph.
class Pass {
 public:
  virtual ~Pass() = default;

  /// On an error the module may be left in any state; the pipeline ends there.
  virtual Result<Changed> Run(Module& module) = 0;

  /// As written in a pipeline: "bucket-transformer-blocks". Given by the registry.
  const std::string& name() const { return name_; }
  /// The options that differ from their defaults: "ag=2,mode=fast"; empty when none does.
  const std::string& params() const { return params_; }
  /// `name` or `name{params}`.
  std::string Text() const;
  void SetText(std::string name, std::string params);

 private:
  std::string name_, params_;
};

enum class PassStatus : uint8_t {
  kOk,         ///< changed something
  kUnchanged,  ///< changed nothing
  kFailed,     ///< returned an error, left a broken graph, or lied about `Changed`
};
std::string_view ToString(PassStatus status);  ///< "ok", "unchanged", "failed"

/// What a pass run did to one program of the module, its bodies included. Over everything
/// (FingerprintScope::kEverything); `before` is zero for a program that the pass added.
struct GraphChange {
  GraphId graph;
  Fingerprint before, after;
  bool changed() const { return before != after; }
};

/// One execution of one pass of a pipeline.
struct PassRun {
  int32_t index = 0;         ///< position in the pipeline, from 0
  std::string name, params;  ///< as Pass::name and Pass::params
  PassStatus status = PassStatus::kUnchanged;
  std::chrono::nanoseconds wall{};  ///< of the pass alone, without verifying and recording

  /// Every program of the module, in module order. Not filled for a failed run, whose graphs may
  /// be broken, nor in BeforePass.
  std::vector<GraphChange> graphs;
  /// Nodes that the pass made, in order of creation.
  std::vector<Provenance> births;

  /// For a failed run: what went wrong, and the command that shows it again.
  std::string error, reproduce;
};

/// Watches a pipeline and never changes the module. An error ends the pipeline: an output that
/// cannot be written is not a thing to be silent about.
class PassInstrumentation {
 public:
  virtual ~PassInstrumentation() = default;

  /// `pipeline` is the text that makes the same pipeline. `module.provenance()` has the records
  /// from before the first pass.
  virtual Status BeforePipeline(std::string_view pipeline, const Module& module);
  virtual Status BeforePass(const PassRun& run, const Module& module);
  virtual Status AfterPass(const PassRun& run, const Module& module);
  /// Instead of AfterPass. The module may break every rule of ir/verify.h. AfterPipeline follows.
  virtual Status AfterPassFailed(const PassRun& run, const Module& module);
  virtual Status AfterPipeline(const Module& module);
};

/// Where snapshots go: a trace file, a test's list.
class SnapshotSink {
 public:
  virtual ~SnapshotSink() = default;

  /// The module before the first pass; `module.provenance()` has the records of its nodes.
  virtual Status Begin(std::string_view pipeline, const Module& module) = 0;
  /// The module after a pass that changed it, left it as it was, or failed (see `run.status`; a
  /// failed run's graphs may be broken and are kept nevertheless).
  virtual Status Write(const PassRun& run, const Module& module) = 0;
  /// After the last `Write`, also when a pass failed.
  virtual Status End(const Module& module) = 0;
};

}  // namespace strata
