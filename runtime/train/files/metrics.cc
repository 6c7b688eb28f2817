#include "runtime/train/files/metrics.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace strata {
namespace {

constexpr std::string_view kLineBegin = R"({"step": )";

/// The step of a line of metrics; none for another line.
std::optional<int64_t> StepOfLine(std::string_view line) {
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
    const std::optional<int64_t> of = StepOfLine(std::string_view(*text).substr(end, next - end));
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
      .Field("loss", metrics.loss)
      .Field("grad_norm", metrics.grad_norm)
      .Field("lr", metrics.lr);
  if (metrics.validation_loss) {
    json.Field("validation_loss", *metrics.validation_loss);
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

Result<std::string> MetricsWriter::KeepOlder() const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target = file_.target_path();
  if (file_.partial_path().empty() || !fs::is_regular_file(target, error)) return std::string();
  STRATA_TRY(const std::string older, ReadFile(target.string()));
  STRATA_TRY(const std::string newer, ReadFile(file_.partial_path()));
  if (newer.starts_with(older)) return std::string();
  for (int64_t number = 1;; ++number) {
    std::string kept = fmt::format("{}.{}", file_.path(), number);
    fs::create_hard_link(target, kept, error);
    if (!error) return kept;
    if (error == std::errc::file_exists) continue;
    // A file system without links.
    if (fs::copy_file(target, kept, fs::copy_options::skip_existing, error)) return kept;
    if (error) {
      return Error(ErrorCode::kIo, "cannot keep the metrics of another run: {}: {}", kept,
                   error.message());
    }
  }
}

Status MetricsWriter::Write(const StepMetrics& metrics) {
  return file_.Append(FormatMetrics(metrics) + "\n");
}

}  // namespace strata
