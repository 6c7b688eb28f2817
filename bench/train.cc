#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/shapes.h"
#include "bench/train_ways.h"
#include "bench/turns.h"
#include "bench/worker.h"
#include "cli/core/flags.h"
#include "runtime/aten/threads.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

bool IsPeer(const Contender& contender) {
  return contender.name.starts_with("PyTorch");
}

/// On a GPU each has all of it in its turn: their models together may be more than its memory.
Status MeasureOneByOne(Contenders& contenders, int64_t rounds, double slice_ms) {
  for (const std::unique_ptr<Contender>& contender : contenders) {
    STRATA_RETURN_IF_ERROR(contender->Create());
    STRATA_TRY(contender->first, contender->Begin());
    STRATA_RETURN_IF_ERROR(TakeTurns(std::span(&contender, 1), rounds, slice_ms));
    contender->End();
  }
  return Ok();
}

/// A peer that cannot train the model is left out.
Status MeasureInTurns(Contenders& contenders, int64_t rounds, double slice_ms) {
  for (const std::unique_ptr<Contender>& contender : contenders)
    STRATA_RETURN_IF_ERROR(contender->Create());
  Contenders begun;
  for (std::unique_ptr<Contender>& contender : contenders) {
    auto first = contender->Begin();
    if (!first && !IsPeer(*contender)) return std::move(first).error();
    if (!first) {
      Warn(fmt::format("{} is left out: {}", contender->name, first.error().message()));
      continue;
    }
    contender->first = *std::move(first);
    begun.push_back(std::move(contender));
  }
  contenders = std::move(begun);
  return TakeTurns(contenders, rounds, slice_ms);
}

const Contender* Find(const Contenders& contenders, std::string_view name) {
  for (const std::unique_ptr<Contender>& contender : contenders) {
    if (contender->name == name) return contender.get();
  }
  return nullptr;
}

void PrintCosts(const Contenders& contenders, double StepTime::* of) {
  const Contender* python = Find(contenders, "PyTorch eager");
  const Contender& eager = *contenders.front();
  fmt::print("  {:<20} {:>8} {:>8} {:>17} {:>17} {:>7} {:>8} {:>8} {:>8} {:>7}\n", "", "cpu ms",
             "wall ms", "/ PyTorch eager", "/ C++ eager", "first s", "(cpu s)", "peak MB",
             "planned", "loss ±");
  for (const std::unique_ptr<Contender>& contender : contenders) {
    double difference = 0;
    const std::vector<double>&losses = contender->first.losses, &expected = eager.first.losses;
    for (size_t i = 0; i < std::min(losses.size(), expected.size()); ++i)
      difference = std::max(difference, std::abs(losses[i] - expected[i]));
    const auto megabytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
    fmt::print(
        "  {:<20} {:>8.2f} {:>8.2f} {:>17} {:>17} {:>7.2f} {:>8.2f} {:>8.2f} {:>8} {:>7.0e}\n",
        contender->name, Median(contender->slices, &StepTime::cpu),
        Median(contender->slices, &StepTime::wall),
        python != nullptr ? RatioOf(*contender, *python, of).Text() : "-",
        RatioOf(*contender, eager, of).Text(), contender->first.first_wall,
        contender->first.first_cpu, megabytes(contender->first.peak_bytes),
        contender->planned_bytes > 0 ? fmt::format("{:.2f}", megabytes(contender->planned_bytes))
                                     : std::string("-"),
        difference);
  }
}

/// Processor seconds from the model to the end of its first step, without what a later step takes:
/// trace, passes, plan and code; a peer's Dynamo, autotuning and code.
double CompileSeconds(const Contender& contender) {
  return contender.first.first_cpu - Median(contender.slices, &StepTime::cpu) / 1000;
}

/// The full compile against PyTorch's compiler where it tries most; of each way that trained.
void PrintCompiledGates(const Contenders& contenders, double StepTime::* of) {
  const Contender& full = *Find(contenders, kFull);
  for (const char* const name : {"PyTorch inductor-autotune", "PyTorch inductor-sdpa"}) {
    const Contender* const peer = Find(contenders, name);
    if (peer == nullptr) continue;
    const auto ratio = [&](auto part) {
      return static_cast<double>(part(full)) / static_cast<double>(part(*peer));
    };
    PrintGate(fmt::format("full / {}", name), RatioOf(full, *peer, of), 0.85);
    PrintGate("  peak memory", ratio([](const Contender& c) { return c.first.peak_bytes; }), 1);
    PrintGate("  processor seconds of compilation", ratio(CompileSeconds), 0.05);
    fmt::print("  {:<52} {:>6.3f}\n", "  processor seconds to the first step, which they contain",
               ratio([](const Contender& c) { return c.first.first_cpu; }));
  }
}

void PrintGates(const BenchShape& shape, const TrainConfig& config, const Contenders& contenders,
                double StepTime::* of) {
  const Contender& eager = *contenders.front();
  const Contender& bitwise = *Find(contenders, kBitwise);
  const auto peak = [](const Contender& c) { return static_cast<double>(c.first.peak_bytes); };
  if (shape.is_tiny) PrintGate("bitwise / C++ eager", RatioOf(bitwise, eager, of), 0.25);
  if (const Contender* python = Find(contenders, "PyTorch eager")) {
    const Ratio ratio = RatioOf(bitwise, *python, of);
    PrintGate("bitwise / PyTorch eager", ratio, shape.eager_limit);
    fmt::print("  {:<52} {:>6.3f}\n", "products and attention of it, calls of ATen in both",
               ratio.median * Find(contenders, kProfiled)->product_share);
    PrintGate("peak memory, bitwise / PyTorch eager", peak(bitwise) / peak(*python), 1);
  }
  if (const Contender* inductor = Find(contenders, "PyTorch inductor")) {
    PrintGate("fast / PyTorch inductor", RatioOf(*Find(contenders, kFast), *inductor, of), 1);
  }
  PrintCompiledGates(contenders, of);
  PrintGate("peak memory, bitwise / C++ eager", peak(bitwise) / peak(eager), 1);
  PrintGate("error of the planned peak, %",
            100 * std::abs(static_cast<double>(bitwise.planned_bytes) / peak(bitwise) - 1), 3);
  if (bitwise.most_planned_bytes && bitwise.most_planned_bytes != bitwise.planned_bytes) {
    fmt::print("  {:<52} {:>6.2f} MB\n", "planned for the tokens' worst spread over experts",
               static_cast<double>(*bitwise.most_planned_bytes) / 1e6);
  }
  PrintGate("cost of --profile, bitwise, %",
            100 * (RatioOf(*Find(contenders, kProfiled), bitwise, of).median - 1), 3);
  if (config.n_layers == 32) {
    PrintGate("processor seconds to the first step, not fused",
              Find(contenders, kPlan)->first.first_cpu, 1);
  }
}

/// Against the fastest of PyTorch's ways.
void PrintGpuGate(const Contenders& contenders, double StepTime::* of) {
  const Contender* best = nullptr;
  for (const std::unique_ptr<Contender>& contender : contenders) {
    if (!IsPeer(*contender)) continue;
    if (best == nullptr || Median(contender->slices, of) < Median(best->slices, of))
      best = contender.get();
  }
  if (best == nullptr) return;
  PrintGate(fmt::format("{} / {}, PyTorch's best", kGraph, best->name),
            RatioOf(*Find(contenders, kGraph), *best, of), 1);
}

struct BenchFlags {
  std::vector<std::string> shapes, peers, threads;
  std::string device = "cpu";
  std::string python;
  int64_t rounds = 15;
};

/// PyTorch's ways that this model needs, or those that were asked for.
std::vector<std::string> PeersOf(const TrainConfig& config, const BenchFlags& flags) {
  if (flags.python.empty()) return {};
  if (!flags.peers.empty()) return flags.peers;
  if (config.device == DeviceKind::kCuda) return {"eager", "inductor-graphs", "inductor"};
  std::vector<std::string> peers = {"eager", "aot_eager", "inductor", "inductor-autotune"};
  if (config.attn_type == AttentionType::kFlex) peers.emplace_back("inductor-sdpa");
  return peers;
}

Status MeasureShape(const BenchShape& shape, const BenchFlags& flags, int threads) {
  const DeviceKind device = flags.device == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
  STRATA_TRY(const TrainConfig config, ConfigOf(shape, device));
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  Contenders contenders;
  STRATA_TRY(std::vector<std::unique_ptr<Strata>> ours, OurWays(shape, config, threads));
  STRATA_RETURN_IF_ERROR(ours[0]->Create());  // peers begin with its parameters
  int64_t parameters = 0;
  for (const TensorView& tensor : ours[0]->trainer().Parameters())
    parameters += static_cast<int64_t>(tensor.bytes.size() / sizeof(float));
  std::vector<std::unique_ptr<PyTorchPeer>> peers;
  for (const std::string& peer : PeersOf(config, flags)) {
    STRATA_TRY(peers.emplace_back(), StartPeer(flags.python, {.name = peer, .threads = threads},
                                               ours[0]->trainer(), folder.path()));
  }
  for (std::unique_ptr<Strata>& way : ours)
    contenders.push_back(std::move(way));
  for (std::unique_ptr<PyTorchPeer>& peer : peers)
    contenders.push_back(std::move(peer));
  const auto measure = device == DeviceKind::kCuda ? MeasureOneByOne : MeasureInTurns;
  STRATA_RETURN_IF_ERROR(measure(contenders, flags.rounds, shape.is_tiny ? 60 : 300));

  // With several threads, those that wait for others burn processor time; so does who waits for a
  // GPU.
  const bool is_cpu_time = threads == 1 && device == DeviceKind::kCpu;
  double StepTime::* const of = is_cpu_time ? &StepTime::cpu : &StepTime::wall;
  fmt::print(
      "{} of {}: {} layers, dim {}, {} x {} tokens, {:.1f} M parameters, threads {}; medians of "
      "{} "
      "rounds, ratios of {} time\n",
      shape.name, Name(config.model), config.n_layers, config.dim, config.batch_size,
      config.seq_len, static_cast<double>(parameters) / 1e6, threads, flags.rounds,
      is_cpu_time ? "processor" : "wall");
  PrintCosts(contenders, of);
  if (device == DeviceKind::kCpu) {
    PrintGates(shape, config, contenders, of);
  } else {
    PrintGpuGate(contenders, of);
  }
  std::fflush(stdout);  // the next shape takes minutes
  return Ok();
}

/// The numbers that `--threads` gives.
Result<std::vector<int>> ThreadsOf(const std::vector<std::string>& words) {
  std::vector<int> threads;
  for (const std::string& word : words) {
    int number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 1 ||
        number > kMaxThreads) {
      return Error("--threads must be {}: strata bench train: see 'strata bench train --help'",
                   number > kMaxThreads ? fmt::format("at most {}", kMaxThreads) : "at least 1");
    }
    threads.push_back(number);
  }
  return threads.empty() ? std::vector<int>{1} : threads;
}

}  // namespace

Result<Exit> BenchTrain(Args args) {
  BenchFlags options;
  Flags flags(
      "bench train",
      "measures a training step: as plans, eagerly, and by PyTorch with the same model, "
      "initial values and tokens. All take turns, on a GPU one by one; ratios are medians over "
      "rounds, with quartiles: of processor time with one thread, of wall time with more");
  flags.Repeated("--shape", "NAME", &options.shapes,
                 "12x16, 32x16, 12x64, 32x64 (layers x dim), debugmodel, 36m, flex, qwen3, moe, "
                 "moe-sizes (default: all these); 1b, with a GPU (its default)");
  flags.Choice("--device", &options.device, {"cpu", "cuda"},
               "where all of them train; on a GPU in bf16, peers eager, inductor and "
               "inductor-graphs");
  flags.Option("--python", "FILE", &options.python,
               "interpreter with PyTorch (default: .venv-bench/bin/python where it is)");
  flags.Repeated("--peer", "NAME", &options.peers,
                 "eager, eager-loop, aot_eager, inductor, inductor-autotune (max-autotune), "
                 "inductor-sdpa (shape flex, with a dense mask) (default: all but eager-loop); one "
                 "that fails is left out");
  flags.Repeated("--threads", "N", &options.threads,
                 "threads inside operators; several: one after the other (default: 1)");
  flags.Option("--rounds", "N", &options.rounds, "turns of each");
  flags.Example("strata bench train");
  flags.Example("strata bench train --shape 36m --threads 1 --threads 2");
  flags.Example("strata bench train --shape moe --peer inductor --python venv/bin/python");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  const bool on_gpu = options.device == "cuda";
  if (options.shapes.empty()) {
    for (const BenchShape& shape : BenchShapes()) {
      if (shape.needs_gpu == on_gpu) options.shapes.emplace_back(shape.name);
    }
  }
  STRATA_TRY(const std::vector<const BenchShape*> shapes, FindShapes(options.shapes));
  STRATA_TRY(const std::vector<int> threads, ThreadsOf(options.threads));
  if (options.python.empty()) options.python = FindPeerPython();
  for (const BenchShape* shape : shapes) {
    for (const int count : threads)
      STRATA_RETURN_IF_ERROR(MeasureShape(*shape, options, count));
  }
  return Exit::kOk;
}

}  // namespace strata::cli
