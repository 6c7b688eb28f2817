#include "runtime/train/metrics.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace strata {
namespace {

constexpr std::string_view kLineBegin = R"({"step": )";

/// The step of a line of metrics; none for another line.
std::optional<int64_t> StepOf(std::string_view line) {
  if (!line.starts_with(kLineBegin)) return std::nullopt;
  line.remove_prefix(kLineBegin.size());
  int64_t step = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), step);
  return read.ec == std::errc() ? std::optional(step) : std::nullopt;
}

/// The first lines of a run's metrics: those of the steps up to `step`. A run may have begun to
/// write them in any step.
std::string LinesUpTo(int64_t step, const std::string& path) {
  auto text = ReadFile(path + ".partial");
  if (!text) text = ReadFile(path);
  if (!text) return {};
  size_t end = 0;
  for (size_t next = text->find('\n'); next != std::string::npos; next = text->find('\n', end)) {
    const std::optional<int64_t> of = StepOf(std::string_view(*text).substr(end, next - end));
    if (!of || *of > step) break;
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
