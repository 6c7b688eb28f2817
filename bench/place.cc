#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rank_correlation.h"
#include "bench/bench.h"
#include "bench/layouts.h"
#include "bench/shapes.h"
#include "bench/turns.h"
#include "cli/core/flags.h"
#include "runtime/ranks/measure_topology.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

struct BenchPlaceFlags {
  std::vector<std::string> shapes;
  std::string topology;
  std::optional<std::string> json;
  Batch batch = {.sequences = 4, .tokens = 64};
  int64_t rounds = 15;
};

/// Steps of a layout on ranks that are threads of this process, each with one thread.
class LayoutTraining final : public Contender {
 public:
  explicit LayoutTraining(PredictedLayout layout)
      : Contender(layout.name), predicted(std::move(layout)) {}

  Result<FirstSteps> Begin() override {
    STRATA_TRY(trainer_,
               Trainer::Create({.config = predicted.config,
                                .data = MakeTokenSource(TokenData::Synthetic(predicted.config)),
                                .passes = std::string(kFusingPasses),
                                .threads = static_cast<int>(predicted.ranks)}));
    STRATA_RETURN_IF_ERROR(trainer_->Compile());
    FirstSteps steps;
    for (int step = 0; step < 2; ++step) {
      STRATA_TRY(const StepReport report, trainer_->Step());
      steps.losses.push_back(report.metrics.loss);
    }
    return steps;
  }
  Result<std::vector<StepTime>> Run(int64_t steps) override {
    std::vector<StepTime> times;
    for (int64_t i = 0; i < steps; ++i) {
      const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), wall = Now(CLOCK_MONOTONIC);
      STRATA_TRY([[maybe_unused]] const StepReport report, trainer_->Step());
      times.push_back(
          {.cpu = Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, .wall = Now(CLOCK_MONOTONIC) - wall});
    }
    return times;
  }
  void End() override { trainer_.reset(); }

  double measured_ms() const { return Median(slices, &StepTime::wall); }
  /// Of all ranks: what other work on the machine hardly changes.
  double cpu_ms() const { return Median(slices, &StepTime::cpu); }
  double predicted_ms() const { return predicted.us() / 1e3; }

  const PredictedLayout predicted;

 private:
  std::unique_ptr<Trainer> trainer_;
};

/// The layouts of one shape, in the order of the measured times.
struct Ranking {
  std::vector<const LayoutTraining*> layouts;

  using Measure = double (LayoutTraining::*)() const;
  double Correlation(int64_t ranks, Measure measure) const {  // 0: of all
    std::vector<double> predicted, measured;
    for (const LayoutTraining* layout : layouts) {
      if (ranks != 0 && layout->predicted.ranks != ranks) continue;
      predicted.push_back(layout->predicted_ms());
      measured.push_back((layout->*measure)());
    }
    return RankCorrelation(predicted, measured);
  }
  const LayoutTraining& chosen() const {
    return **std::ranges::min_element(layouts, {}, &LayoutTraining::predicted_ms);
  }
  const LayoutTraining& fastest() const { return *layouts.front(); }
};

void Print(const Ranking& ranking) {
  fmt::print("  {:<24} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}\n", "layout", "compute", "exchange",
             "predicted", "measured", "cpu", "± %");
  for (const LayoutTraining* layout : ranking.layouts) {
    const PredictedLayout& predicted = layout->predicted;
    fmt::print("  {:<24} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>+8.1f}\n",
               predicted.name, predicted.compute_us / 1e3, predicted.communication_us / 1e3,
               layout->predicted_ms(), layout->measured_ms(), layout->cpu_ms(),
               100 * (layout->predicted_ms() / layout->measured_ms() - 1));
  }
  const auto of_all = [&](std::string_view what, Ranking::Measure measure) {
    const double correlation = ranking.Correlation(0, measure);
    fmt::print("  rank correlation with {}, {} layouts: {:.3f} (2 ranks {:.3f}, 4 ranks {:.3f})",
               what, ranking.layouts.size(), correlation, ranking.Correlation(2, measure),
               ranking.Correlation(4, measure));
    return correlation;
  };
  of_all("processor time", &LayoutTraining::cpu_ms);
  fmt::print("\n");
  const double correlation = of_all("time", &LayoutTraining::measured_ms);
  fmt::print("   limit 0.9: {}\n", correlation >= 0.9 ? "met" : "missed");
  const LayoutTraining &chosen = ranking.chosen(), &fastest = ranking.fastest();
  PrintGate(fmt::format("step time, {} / {}", chosen.name, fastest.name),
            RatioOf(chosen, fastest, &StepTime::wall), 1.05);
}

void Write(const Ranking& ranking, const BenchShape& shape, JsonWriter& json) {
  json.BeginObject().Field("shape", shape.name).Key("layouts").BeginArray();
  for (const LayoutTraining* layout : ranking.layouts) {
    json.BeginObject()
        .Field("name", layout->name)
        .Field("ranks", layout->predicted.ranks)
        .Field("compute_ms", layout->predicted.compute_us / 1e3)
        .Field("communication_ms", layout->predicted.communication_us / 1e3)
        .Field("predicted_ms", layout->predicted_ms())
        .Field("measured_ms", layout->measured_ms())
        .Field("cpu_ms", layout->cpu_ms())
        .EndObject();
  }
  json.EndArray()
      .Field("rank_correlation", ranking.Correlation(0, &LayoutTraining::measured_ms))
      .Field("cpu_rank_correlation", ranking.Correlation(0, &LayoutTraining::cpu_ms))
      .Field("chosen", ranking.chosen().name)
      .Field("fastest", ranking.fastest().name)
      .Field("chosen_over_fastest",
             RatioOf(ranking.chosen(), ranking.fastest(), &StepTime::wall).median)
      .EndObject();
}

Status MeasureShape(const BenchShape& shape, const Topology& topology, const BenchPlaceFlags& flags,
                    JsonWriter& json) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  Contenders contenders;
  Ranking ranking;
  for (const Layout& layout : BenchLayouts()) {
    STRATA_TRY(PredictedLayout predicted,
               Predict(shape, layout, flags.batch, topology, folder.path()));
    auto training = std::make_unique<LayoutTraining>(std::move(predicted));
    ranking.layouts.push_back(training.get());
    contenders.push_back(std::move(training));
  }
  for (const std::unique_ptr<Contender>& contender : contenders) {
    STRATA_TRY(contender->first, contender->Begin());
  }
  STRATA_RETURN_IF_ERROR(TakeTurns(contenders, flags.rounds, /*slice_ms=*/100));
  std::ranges::sort(ranking.layouts, {}, &LayoutTraining::measured_ms);
  fmt::print("{}, {} sequences of {} tokens on all ranks; ms, medians of {} rounds\n", shape.name,
             flags.batch.sequences, flags.batch.tokens, flags.rounds);
  Print(ranking);
  std::fflush(stdout);
  Write(ranking, shape, json);
  return Ok();
}

}  // namespace

Result<Exit> BenchPlace(Args args) {
  BenchPlaceFlags options;
  Flags flags(
      "bench place",
      "predicts and measures steps of one model and batch in many layouts on 2 and 4 ranks, "
      "which are threads: by plans of the model and by plans that strata place finds. The "
      "prediction prices the graphs that a step executes, after all passes. "
      "Prints how the two orders correlate (Spearman), and how much longer the layout that "
      "is predicted to be the fastest takes than the fastest. All take turns");
  flags.Repeated(
      "--shape", "NAME", &options.shapes,
      "of strata bench train, with heads that 4 ranks divide: debugmodel (default), 36m");
  flags.Option("--topology", "FILE", &options.topology,
               "of strata calibrate (default: measured before the steps)");
  flags.Option("--batch", "N", &options.batch.sequences, "sequences of all ranks (default: 4)", 4);
  flags.Option("--tokens", "N", &options.batch.tokens, "of a sequence (default: 64)", 4);
  flags.Option("--rounds", "N", &options.rounds, "turns of each (default: 15)", 1);
  flags.Option("--json", "FILE", &options.json, "also write the figures as JSON");
  flags.Example("strata bench place --json out/place.json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (options.shapes.empty()) options.shapes = {"debugmodel"};
  STRATA_TRY(const std::vector<const BenchShape*> shapes, FindShapes(options.shapes));
  Result<Topology> topology =
      options.topology.empty() ? MeasureTopology() : Topology::Load(options.topology);
  if (!topology) return std::move(topology).error();
  fmt::print("{}\n", topology->ToToml());
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.bench-place/1").Key("shapes").BeginArray();
  for (const BenchShape* shape : shapes)
    STRATA_RETURN_IF_ERROR(MeasureShape(*shape, *topology, options, json));
  json.EndArray().EndObject();
  if (options.json) STRATA_RETURN_IF_ERROR(WriteFile(*options.json, text + "\n"));
  return Exit::kOk;
}

}  // namespace strata::cli
