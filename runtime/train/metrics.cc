#include "runtime/train/metrics.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

std::string FormatNumber(float value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", static_cast<double>(value));
  // A reader with types should see a real number in every line.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string FormatMetrics(const StepMetrics& metrics) {
  return fmt::format(R"({{"step": {}, "loss": {}, "grad_norm": {}}})", metrics.step,
                     FormatNumber(metrics.loss), FormatNumber(metrics.grad_norm));
}

Result<MetricsWriter> MetricsWriter::Create(const std::string& path) {
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Write(const StepMetrics& metrics) {
  return file_.Append(FormatMetrics(metrics) + "\n");
}

}  // namespace strata
