#include "runtime/train/metrics.h"

#include <utility>

#include "ir/json.h"

namespace strata {

std::string FormatMetrics(const StepMetrics& metrics) {
  std::string line;
  JsonWriter(line)
      .BeginObject()
      .Field("step", metrics.step)
      .Field("loss", static_cast<double>(metrics.loss))
      .Field("grad_norm", static_cast<double>(metrics.grad_norm))
      .EndObject();
  return line;
}

Result<MetricsWriter> MetricsWriter::Create(const std::string& path) {
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Write(const StepMetrics& metrics) {
  return file_.Append(FormatMetrics(metrics) + "\n");
}

}  // namespace strata
