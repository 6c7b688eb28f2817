#include "runtime/train/metrics.h"

#include <utility>

#include "ir/json.h"

namespace strata {
namespace {

/// The first lines of a run's metrics: `step` lines, or fewer if it has not so many.
std::string LinesUpTo(int64_t step, const std::string& path) {
  auto text = ReadFile(path + ".partial");
  if (!text) text = ReadFile(path);
  if (!text) return {};
  size_t end = 0;
  for (int64_t line = 0; line < step; ++line) {
    const size_t next = text->find('\n', end);
    if (next == std::string::npos) break;
    end = next + 1;
  }
  return text->substr(0, end);
}

}  // namespace

std::string FormatMetrics(const StepMetrics& metrics) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject()
      .Field("step", metrics.step)
      .Field("loss", static_cast<double>(metrics.loss))
      .Field("grad_norm", static_cast<double>(metrics.grad_norm))
      .Field("lr", metrics.lr);
  if (metrics.validation_loss) {
    json.Field("validation_loss", static_cast<double>(*metrics.validation_loss));
  }
  json.EndObject();
  return line;
}

Result<MetricsWriter> MetricsWriter::Create(const std::string& path, int64_t resumed_step) {
  const std::string kept = resumed_step > 0 ? LinesUpTo(resumed_step, path) : "";
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  if (!kept.empty()) STRATA_RETURN_IF_ERROR(file.Append(kept));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Write(const StepMetrics& metrics) {
  return file_.Append(FormatMetrics(metrics) + "\n");
}

}  // namespace strata
