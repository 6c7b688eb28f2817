#include "bench/turns.h"

#include <algorithm>

#include <fmt/format.h>

namespace strata::cli {

double Now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

double Median(const std::vector<StepTime>& times, double StepTime::* of) {
  std::vector<double> values;
  for (const StepTime& time : times)
    values.push_back(time.*of);
  return Quantile(std::move(values), 0.5);
}

Status TakeTurns(std::span<const std::unique_ptr<Contender>> contenders, int64_t rounds,
                 double slice_ms) {
  for (int64_t round = 0; round < rounds; ++round) {
    for (const std::unique_ptr<Contender>& contender : contenders) {
      const double known =
          round == 0 ? slice_ms : std::max(1e-3, Median(contender->slices, &StepTime::wall));
      const auto steps = std::clamp<int64_t>(static_cast<int64_t>(slice_ms / known), 1, 500);
      STRATA_TRY(std::vector<StepTime> times, contender->Run(steps + 1));
      times.erase(times.begin());
      contender->slices.push_back(
          {.cpu = Median(times, &StepTime::cpu), .wall = Median(times, &StepTime::wall)});
    }
  }
  return Ok();
}

std::string Ratio::Text() const {
  return fmt::format("{:.2f} [{:.2f} {:.2f}]", median, low, high);
}

Ratio RatioOf(const Contender& a, const Contender& b, double StepTime::* of) {
  std::vector<double> ratios;
  for (size_t round = 0; round < std::min(a.slices.size(), b.slices.size()); ++round)
    ratios.push_back(a.slices[round].*of / b.slices[round].*of);
  return {.median = Quantile(ratios, 0.5),
          .low = Quantile(ratios, 0.25),
          .high = Quantile(ratios, 0.75)};
}

void PrintGate(std::string_view what, double value, double limit, std::string_view spread) {
  fmt::print("  {:<52} {:>6.3f} {:<13} limit {:g}: {}\n", what, value, spread, limit,
             value <= limit ? "met" : "missed");
}

void PrintGate(std::string_view what, const Ratio& ratio, double limit) {
  PrintGate(what, ratio.median, limit, fmt::format("[{:.2f} {:.2f}]", ratio.low, ratio.high));
}

}  // namespace strata::cli
