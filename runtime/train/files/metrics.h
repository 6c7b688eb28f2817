#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/result.h"

namespace strata {

/// What one step reports.
struct StepMetrics {
  int64_t step = 0;        ///< from 1
  double loss = 0.0;       ///< mean cross-entropy per label
  double grad_norm = 0.0;  ///< global L2 norm before clipping
  double lr = 0.0;         ///< learning rate
  /// Of the parameters after the step, where it was measured.
  std::optional<double> validation_loss = std::nullopt;
};

/// One line of JSON without line end: `{"step": 1, "loss": 6.25009822845459, "grad_norm":
/// 0.9477152824401855, "lr": 0.001}`, and `validation_loss` where there is one. An fp32 value is
/// printed as the shortest text of the equal double, so reading it back gives the very same number.
/// NaN and infinities, which JSON lacks, are null.
std::string FormatMetrics(const StepMetrics& metrics);

/// A file of such lines. Each line is in `<path>.partial` when `Write` returns, so a live run can
/// be followed there; `Commit` gives the file its name.
class MetricsWriter {
 public:
  /// Begins with the lines that an older file of the name, or the unfinished one of a killed run,
  /// has of the steps up to `resumed_step`.
  static Result<MetricsWriter> Create(const std::string& path, int64_t resumed_step = 0);
  Status Write(const StepMetrics& metrics);
  /// Errors: as of AtomicFile.
  Status Commit() { return file_.Commit(); }

  /// To be called before `Commit`: an older file of the name with lines that this one lacks, so one
  /// of another run, gets the name `<path>.1` (or `.2`, … the first that is free). Returns that
  /// name; empty: no line would be lost. Errors: the file cannot be linked or copied.
  Result<std::string> KeepOlder() const;

 private:
  explicit MetricsWriter(AtomicFile file) : file_(std::move(file)) {}

  AtomicFile file_;
};

}  // namespace strata
