#include "cli/train/train_table.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cli/train/train_outputs.h"

namespace strata::cli {
namespace {

/// A NaN without its sign, which says nothing and differs between processors.
double WithoutSign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace

TrainTable::TrainTable(AtomicFile out) : out_(std::move(out)) {}

Result<TrainTable> TrainTable::Create() {
  STRATA_TRY(AtomicFile out, AtomicFile::Create("-"));
  return TrainTable(std::move(out));
}

double TrainTable::SecondsSince(Clock::time_point from) const {
  return std::chrono::duration<double>(now_ - from).count();
}

Status TrainTable::Add(const StepReport& report, const Trainer& trainer) {
  last_ = report;
  ++steps_;
  now_ = Clock::now();
  tokens_ += report.tokens;
  tokens_of_line_ += report.tokens;
  const StepMetrics& metrics = report.metrics;
  if (!IsDue(metrics.step, trainer.config())) return Ok();
  if (!std::exchange(has_head_, true)) {
    STRATA_RETURN_IF_ERROR(
        out_.Append("step       loss  grad_norm         lr   tokens/s      GiB        s\n"));
  }
  STRATA_RETURN_IF_ERROR(out_.Append(
      fmt::format("{:>4} {:>10.6f} {:>10.6f} {:>10.4e} {:>10.1f} {:>8.2f} {:>8.2f}\n", metrics.step,
                  WithoutSign(metrics.loss), WithoutSign(metrics.grad_norm), metrics.lr,
                  static_cast<double>(tokens_of_line_) / SecondsSince(line_), MemoryGiB(trainer),
                  SecondsSince(start_))));
  line_ = now_;
  tokens_of_line_ = 0;
  if (!metrics.validation_loss) return Ok();
  return out_.Append(fmt::format("     {:>10.6f}  validation\n", *metrics.validation_loss));
}

std::string TrainTable::Progress(const Trainer& trainer) const {
  const double seconds = SecondsSince(start_);
  const double rate = static_cast<double>(tokens_) / seconds;
  const int64_t step = last_.metrics.step;
  const auto left = static_cast<int64_t>(seconds / static_cast<double>(steps_) *
                                         static_cast<double>(trainer.config().steps - step));
  return fmt::format("loss {:.4f}  {} tokens/s  {:.2f} GiB  {}:{:02}:{:02} left",
                     last_.metrics.loss,
                     rate < 1e4 ? fmt::format("{:.0f}", rate) : fmt::format("{:.1f}k", rate / 1e3),
                     MemoryGiB(trainer), left / 3600, left / 60 % 60, left % 60);
}

}  // namespace strata::cli
