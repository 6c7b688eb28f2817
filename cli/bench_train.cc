#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/bench_peers.h"
#include "cli/flags.h"
#include "runtime/torch/memory_meter.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

struct Shape {
  std::string_view name;
  int64_t layers, dim, heads, kv_heads, hidden, vocab, batch, seq;
  bool is_tiny;  ///< most of a step is what calling operators costs
};

// debugmodel is torchtitan's flavour with shorter sequences, 36m a Llama3 of 36 million parameters.
constexpr Shape kShapes[] = {
    {"12x16", 12, 16, 4, 2, 32, 96, 2, 8, true},
    {"32x16", 32, 16, 4, 2, 32, 96, 2, 8, true},
    {"12x64", 12, 64, 4, 2, 128, 96, 2, 16, true},
    {"32x64", 32, 64, 4, 2, 128, 96, 2, 16, true},
    {"debugmodel", 6, 256, 16, 16, 768, 2048, 4, 256, false},
    {"36m", 8, 512, 8, 8, 1536, 8192, 2, 256, false},
};

TrainConfig Config(const Shape& shape) {
  TrainConfig config;
  config.dim = shape.dim;
  config.n_layers = shape.layers;
  config.n_heads = shape.heads;
  config.n_kv_heads = shape.kv_heads;
  config.head_dim = shape.dim / shape.heads;
  config.hidden_dim = shape.hidden;
  config.vocab_size = shape.vocab;
  config.seq_len = shape.seq;
  config.batch_size = shape.batch;
  config.rope.max_seq_len = shape.seq;
  config.steps = INT32_MAX;
  return config;
}

/// One way to run the step.
struct Variant {
  std::string name, passes;
  PlanOptions plan;
  bool is_eager = false;
  std::unique_ptr<Trainer> trainer = nullptr;
  StepCost cost = {};
  std::vector<double> cpu = {}, wall = {};
};

std::vector<Variant> Variants() {
  const std::string base(kDefaultPasses);
  std::vector<Variant> variants;
  variants.push_back({.name = "C++ eager", .passes = base, .plan = {}, .is_eager = true});
  variants.push_back({.name = "plan, boxed calls", .passes = base, .plan = {}});
  variants.push_back({.name = "plan, static", .passes = base, .plan = PlanOptions::Fastest()});
  variants.push_back(
      {.name = "fused, bitwise", .passes = base + ",fuse", .plan = PlanOptions::Fastest()});
  variants.push_back({.name = "fused, fast",
                      .passes = base + ",fuse{numerics=fast}",
                      .plan = PlanOptions::Fastest()});
  return variants;
}

double Now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

Result<StepReport> StepOf(Variant& variant) {
  return variant.is_eager ? variant.trainer->StepEagerly() : variant.trainer->Step();
}

/// Makes the trainer and does the first steps: what they cost, lose and need.
Status Begin(Variant& variant, const TrainConfig& config, int threads) {
  STRATA_TRY(variant.trainer,
             Trainer::Create({.config = config,
                              .data = MakeTokenSource(TokenData::Synthetic(config), config),
                              .passes = variant.passes,
                              .plan = variant.plan,
                              .threads = threads}));
  const MemoryMeter meter;
  const double begin = Now(CLOCK_MONOTONIC), cpu = Now(CLOCK_PROCESS_CPUTIME_ID);
  if (!variant.is_eager) STRATA_RETURN_IF_ERROR(variant.trainer->Compile());
  for (int step = 0; step < 3; ++step) {
    STRATA_TRY(const StepReport report, StepOf(variant));
    if (step == 0) {
      variant.cost.first_step = (Now(CLOCK_MONOTONIC) - begin) / 1e3;
      variant.cost.first_step_cpu = (Now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3;
    }
    variant.cost.losses.push_back(report.metrics.loss);
  }
  variant.cost.name = variant.name;
  variant.cost.peak_bytes = meter.peak_bytes();
  if (!variant.is_eager) variant.cost.planned_bytes = variant.trainer->planned_bytes();
  return Ok();
}

/// Steps of all variants in turn, so that all see the same neighbours.
Status MeasureInTurn(std::vector<Variant>& variants, int64_t runs) {
  for (int64_t run = 0; run < runs; ++run) {
    for (Variant& variant : variants) {
      const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), wall = Now(CLOCK_MONOTONIC);
      STRATA_TRY(const StepReport report, StepOf(variant));
      variant.cpu.push_back(Now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
      variant.wall.push_back(Now(CLOCK_MONOTONIC) - wall);
    }
  }
  for (Variant& variant : variants) {
    variant.cost.cpu = Median(variant.cpu);
    variant.cost.wall = Median(variant.wall);
  }
  return Ok();
}

const StepCost* Find(const std::vector<StepCost>& costs, std::string_view name) {
  const auto found = std::ranges::find(costs, name, &StepCost::name);
  return found != costs.end() ? &*found : nullptr;
}

void PrintCosts(const std::vector<StepCost>& costs) {
  const StepCost* python = Find(costs, "PyTorch eager");
  const StepCost& eager = costs.front();
  fmt::print("  {:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "", "cpu ms", "wall ms",
             "/ python", "/ C++", "first s", "peak MB", "planned", "loss ±");
  for (const StepCost& cost : costs) {
    double difference = 0;
    for (size_t i = 0; i < std::min(cost.losses.size(), eager.losses.size()); ++i)
      difference = std::max(difference, std::abs(cost.losses[i] - eager.losses[i]));
    const auto ratio = [&](const StepCost* other) {
      return other != nullptr ? fmt::format("{:.2f}", cost.cpu / other->cpu) : std::string("-");
    };
    fmt::print("  {:<20} {:>9.2f} {:>9.2f} {:>9} {:>9} {:>9.2f} {:>9.2f} {:>9} {:>9.1e}\n",
               cost.name, cost.cpu, cost.wall, ratio(python), ratio(&eager), cost.first_step,
               static_cast<double>(cost.peak_bytes) / 1e6,
               cost.planned_bytes > 0
                   ? fmt::format("{:.2f}", static_cast<double>(cost.planned_bytes) / 1e6)
                   : std::string("-"),
               difference);
  }
}

void PrintGate(std::string_view what, double value, double limit) {
  fmt::print("  {:<58} {:>6.2f}   limit {:g}: {}\n", what, value, limit,
             value <= limit ? "met" : "missed");
}

void PrintGates(const Shape& shape, const std::vector<StepCost>& costs) {
  const StepCost& eager = costs.front();
  const StepCost& bitwise = *Find(costs, "fused, bitwise");
  const StepCost& fast = *Find(costs, "fused, fast");
  if (shape.is_tiny) PrintGate("bitwise / C++ eager", bitwise.cpu / eager.cpu, 0.25);
  if (const StepCost* python = Find(costs, "PyTorch eager")) {
    PrintGate("bitwise / PyTorch eager", bitwise.cpu / python->cpu, shape.is_tiny ? 0.20 : 0.90);
    PrintGate("peak memory, bitwise / PyTorch eager",
              static_cast<double>(bitwise.peak_bytes) / static_cast<double>(python->peak_bytes), 1);
  }
  if (const StepCost* inductor = Find(costs, "PyTorch inductor")) {
    PrintGate("fast / PyTorch inductor", fast.cpu / inductor->cpu, 1);
  }
  PrintGate("peak memory / C++ eager",
            static_cast<double>(bitwise.peak_bytes) / static_cast<double>(eager.peak_bytes), 1);
  PrintGate("error of the planned peak, %",
            100 * std::abs(static_cast<double>(bitwise.planned_bytes) /
                               static_cast<double>(bitwise.peak_bytes) -
                           1),
            3);
  if (shape.layers == 32) {
    PrintGate("processor seconds to the first step, not fused",
              Find(costs, "plan, static")->first_step_cpu, 1);
  }
}

struct BenchFlags {
  std::vector<std::string> shapes, peers;
  std::string python;
  int64_t threads = 1, runs = 15;
};

Status MeasureShape(const Shape& shape, const BenchFlags& flags) {
  const TrainConfig config = Config(shape);
  const int threads = static_cast<int>(flags.threads);
  std::vector<Variant> variants = Variants();
  std::vector<StepCost> costs, peers;
  if (!flags.python.empty()) {
    STRATA_TRY(const std::unique_ptr<Trainer> fresh,
               Trainer::Create({.config = config,
                                .data = MakeTokenSource(TokenData::Synthetic(config), config)}));
    STRATA_TRY(peers, MeasurePeers(flags.python, *fresh, threads, flags.runs, flags.peers));
  }
  for (Variant& variant : variants)
    STRATA_RETURN_IF_ERROR(Begin(variant, config, threads));
  STRATA_RETURN_IF_ERROR(MeasureInTurn(variants, flags.runs));
  int64_t parameters = 0;
  for (const TensorView& tensor : variants[0].trainer->Parameters())
    parameters += static_cast<int64_t>(tensor.bytes.size() / sizeof(float));
  for (Variant& variant : variants)
    costs.push_back(std::move(variant.cost));
  costs.insert(costs.end(), peers.begin(), peers.end());
  fmt::print("Llama3 {}: {} layers, dim {}, {} x {} tokens, {:.1f} M parameters, threads {}\n",
             shape.name, shape.layers, shape.dim, shape.batch, shape.seq,
             static_cast<double>(parameters) / 1e6, flags.threads);
  PrintCosts(costs);
  PrintGates(shape, costs);
  std::fflush(stdout);  // the next shape takes minutes
  return Ok();
}

}  // namespace

Result<Exit> BenchTrain(Args args) {
  BenchFlags options;
  Flags flags("bench train",
              "measures a training step: as plans, eagerly, and by PyTorch with the same model, "
              "initial values and tokens; medians of processor time and wall time");
  flags.Repeated("--shape", "NAME", &options.shapes,
                 "12x16, 32x16, 12x64, 32x64 (layers x dim), debugmodel, 36m (default: all)");
  flags.Option("--python", "FILE", &options.python,
               "interpreter with PyTorch (default: .venv-bench/bin/python where it is)");
  flags.Repeated("--peer", "NAME", &options.peers,
                 "eager, eager-loop, aot_eager, inductor (default: all but eager-loop)");
  flags.Option("--threads", "N", &options.threads, "threads inside operators");
  flags.Option("--runs", "N", &options.runs, "measured steps of each");
  flags.Example("strata bench train");
  flags.Example("strata bench train --shape 36m --threads 2 --python venv/bin/python");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  constexpr const char* kPython = ".venv-bench/bin/python";
  if (options.python.empty() && std::filesystem::exists(kPython)) options.python = kPython;
  if (options.python.empty()) {
    Warn("no PyTorch to compare with: run ./dev setup bench, or give --python");
  }
  if (options.peers.empty()) options.peers = {"eager", "aot_eager", "inductor"};
  if (options.shapes.empty()) {
    for (const Shape& shape : kShapes)
      options.shapes.emplace_back(shape.name);
  }
  for (const std::string& name : options.shapes) {
    const Shape* shape = std::ranges::find(kShapes, name, &Shape::name);
    if (shape == std::end(kShapes)) {
      return Error("unknown shape '{}': strata bench train: see --help", name);
    }
    STRATA_RETURN_IF_ERROR(MeasureShape(*shape, options));
  }
  return Exit::kOk;
}

}  // namespace strata::cli
