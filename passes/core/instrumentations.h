#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "passes/core/pass.h"

namespace strata {

/// Hands the module before the pipeline and after each pass to a sink.
class RecordSnapshots final : public PassInstrumentation {
 public:
  /// REQUIRES: `sink` outlives this.
  explicit RecordSnapshots(SnapshotSink& sink) : sink_(sink) {}

  Status BeforePipeline(std::string_view pipeline, const Module& module) override {
    return sink_.Begin(pipeline, module);
  }
  Status AfterPass(const PassRun& run, const Module& module) override {
    return sink_.Write(run, module);
  }
  Status AfterPassFailed(const PassRun& run, const Module& module) override {
    return sink_.Write(run, module);
  }
  Status AfterPipeline(const Module& module) override { return sink_.End(module); }

 private:
  SnapshotSink& sink_;
};

/// Collects how long each pass took and what it did to the number of nodes.
class TimePasses final : public PassInstrumentation {
 public:
  struct Row {
    std::string pass;
    PassStatus status;
    std::chrono::nanoseconds wall;
    int64_t nodes_before, nodes_after;
  };

  Status BeforePipeline(std::string_view pipeline, const Module& module) override;
  Status BeforePass(const PassRun& run, const Module& module) override;
  Status AfterPass(const PassRun& run, const Module& module) override;
  Status AfterPassFailed(const PassRun& run, const Module& module) override;

  const std::vector<Row>& rows() const { return rows_; }
  /// A table, slowest parts visible: name, status, milliseconds, share, nodes.
  std::string Table() const;

 private:
  int64_t nodes_before_ = 0;
  std::vector<Row> rows_;
};

/// Prints a graph before and after each pass that changed it.
class PrintOnChange final : public PassInstrumentation {
 public:
  /// Called with each piece of text.
  using Output = std::function<void(std::string_view)>;

  /// `pass_pattern` is an RE2 regular expression that must match a pass's whole name.
  /// Errors: the expression is malformed.
  static Result<PrintOnChange> Create(std::string_view pass_pattern, Output output);

  PrintOnChange(PrintOnChange&&) noexcept;
  PrintOnChange& operator=(PrintOnChange&&) noexcept;
  ~PrintOnChange() override;

  Status BeforePass(const PassRun& run, const Module& module) override;
  Status AfterPass(const PassRun& run, const Module& module) override;
  Status AfterPassFailed(const PassRun& run, const Module& module) override;

 private:
  struct State;
  explicit PrintOnChange(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Keeps a copy of the module as the pipeline found it; when a pass fails, writes it as native text
/// to `path`, so that the reproducing command has an input. Use with
/// `PassManager::Options::input_ref = path`.
class Reproducer final : public PassInstrumentation {
 public:
  explicit Reproducer(std::string path) : path_(std::move(path)) {}

  Status BeforePipeline(std::string_view pipeline, const Module& module) override;
  Status AfterPassFailed(const PassRun& run, const Module& module) override;

 private:
  std::string path_;
  std::unique_ptr<Module> input_;
};

}  // namespace strata
