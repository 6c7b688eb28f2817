#include "bench/train_ways.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/command.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "ir/op_name.h"
#include "runtime/exec/step/memory_meter.h"

namespace strata::cli {
namespace {

/// Products and attention: calls of the library that PyTorch makes, too, whatever else is fused.
bool IsProduct(std::string_view op) {
  static constexpr std::string_view kProducts[] = {
      "mm",
      "bmm",
      "addmm",
      "baddbmm",
      "_grouped_mm",
      "_scaled_dot_product_flash_attention_for_cpu",
      "_scaled_dot_product_flash_attention_for_cpu_backward"};
  return std::ranges::find(kProducts, SplitOpName(op).base) != std::end(kProducts);
}

/// The share of the nodes' time, in the profiled steps, that products and attention take.
double ProductShare(const Trainer& trainer) {
  double products = 0, all = 0;
  for (const GraphProfile& profile : trainer.Profiles()) {
    const Graph* graph = trainer.module().FindGraph(profile.graph);
    if (graph == nullptr) continue;
    std::map<StableId, double> times;
    for (const auto& [id, node] : profile.nodes)
      times[id] = static_cast<double>(node.time.count());
    for (const NodeId node : graph->nodes()) {
      const auto time = times.find(graph->node(node).stable_id);
      if (time == times.end()) continue;
      all += time->second;
      if (IsProduct(graph->op(node))) products += time->second;
    }
  }
  return all > 0 ? products / all : 0;
}

/// Of this process and of the compilers that it ran.
double ProcessorSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  }
  return seconds;
}

/// For its lifetime, compiled kernels are kept in `folder` (runtime/codegen/kernel_cache.h).
class EmptyCache {
 public:
  explicit EmptyCache(const std::string& folder) {
    if (const char* const value = std::getenv(kVariable)) before_ = value;
    ::setenv(kVariable, folder.c_str(), 1);
  }
  EmptyCache(const EmptyCache&) = delete;
  EmptyCache& operator=(const EmptyCache&) = delete;
  ~EmptyCache() {
    if (before_) {
      ::setenv(kVariable, before_->c_str(), 1);
    } else {
      ::unsetenv(kVariable);
    }
  }

 private:
  static constexpr const char* kVariable = "XDG_CACHE_HOME";
  std::optional<std::string> before_;
};

}  // namespace

Strata::Strata(std::string name, const TrainConfig& config, int threads, std::string passes,
               const PlanOptions& plan, Way way)
    : Contender(std::move(name)),
      config_(config),
      threads_(threads),
      passes_(std::move(passes)),
      plan_(plan),
      way_(way) {}

Status Strata::Create() {
  if (trainer_ != nullptr) return Ok();
  STRATA_TRY(trainer_, Trainer::Create({.config = config_,
                                        .data = MakeTokenSource(TokenData::Synthetic(config_)),
                                        .passes = passes_,
                                        .plan = plan_,
                                        .threads = threads_}));
  return Ok();
}

Result<FirstSteps> Strata::Begin() {
  FirstSteps first;
  Device* const device = trainer_->device();
  const int64_t before = device != nullptr ? device->memory().allocated : 0;
  if (device != nullptr) device->ResetPeakMemory();
  const MemoryMeter meter;
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  const EmptyCache no_kernels(folder.path());
  const double wall = Now(CLOCK_MONOTONIC), cpu = ProcessorSeconds();
  if (way_ != Way::kEager) STRATA_RETURN_IF_ERROR(trainer_->Compile());
  for (const std::string& warning : trainer_->warnings())
    Warn(fmt::format("{}: {}", name, warning));  // what is measured is not what its name says
  for (int step = 0; step < 3; ++step) {
    STRATA_TRY(const StepReport report, Step());
    if (step == 0) {
      first.first_wall = (Now(CLOCK_MONOTONIC) - wall) / 1e3;
      first.first_cpu = ProcessorSeconds() - cpu;
    }
    first.losses.push_back(report.metrics.loss);
    if (way_ != Way::kEager) planned_bytes = std::max(planned_bytes, trainer_->planned_bytes());
  }
  first.peak_bytes =
      device != nullptr ? device->memory().peak_allocated - before : meter.peak_bytes();
  if (way_ != Way::kEager) most_planned_bytes = trainer_->planned_bytes_at_most();
  return first;
}

Result<std::vector<StepTime>> Strata::Run(int64_t steps) {
  std::vector<StepTime> times;
  for (int64_t i = 0; i < steps; ++i) {
    const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), wall = Now(CLOCK_MONOTONIC);
    STRATA_TRY(const StepReport report, Step());
    times.push_back(
        {.cpu = Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, .wall = Now(CLOCK_MONOTONIC) - wall});
  }
  if (way_ == Way::kProfiledGraphs) product_share = ProductShare(*trainer_);
  return times;
}

Result<StepReport> Strata::Step() {
  if (way_ == Way::kEager) return trainer_->StepEagerly();
  if (way_ == Way::kProfiledGraphs) trainer_->ProfileNext(/*values=*/false);
  return trainer_->Step();
}

Result<std::vector<std::unique_ptr<Strata>>> OurWays(const BenchShape& shape,
                                                     const TrainConfig& config, int threads) {
  using Way = Strata::Way;
  const std::string base(kDefaultPasses);
  const PlanOptions fastest = PlanOptions::FastestTraining();
  std::vector<std::unique_ptr<Strata>> ways;
  const auto add = [&](const char* name, const std::string& passes, const PlanOptions& plan,
                       Strata::Way way) {
    ways.push_back(std::make_unique<Strata>(name, config, threads, passes, plan, way));
  };
  add("C++ eager", base, {}, Way::kEager);
  if (config.device == DeviceKind::kCuda) {
    const std::string fused = base + ",place-casts,fuse{numerics=fast}";
    add("fused, streams", fused, {}, Way::kGraphs);
    add(kGraph, fused + ",cuda-graph", {}, Way::kGraphs);
    return ways;
  }
  add("plan, boxed calls", base, {}, Way::kGraphs);
  add(kPlan, base, fastest, Way::kGraphs);
  add(kBitwise, base + ",fuse", fastest, Way::kGraphs);
  add(kProfiled, base + ",fuse", fastest, Way::kProfiledGraphs);
  const std::string fast = base + ",fuse{numerics=fast}";
  add(kFast, fast, fastest, Way::kGraphs);
  std::vector<std::string> settings = SettingsOf(shape, config.device);
  settings.emplace_back("compile.inductor_compilation=full");
  STRATA_TRY(const TrainConfig full, ConfigOf(settings));
  ways.push_back(std::make_unique<Strata>(kFull, full, threads, fast, fastest, Way::kGraphs));
  return ways;
}

}  // namespace strata::cli
