#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/flags.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

constexpr int kRuns = 15;

/// Small enough that most of a step is what calling operators costs.
TrainConfig Config(int64_t dim, int64_t seq_len) {
  TrainConfig config;
  config.dim = dim;
  config.n_layers = 12;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = dim / 4;
  config.hidden_dim = 2 * dim;
  config.vocab_size = 96;
  config.seq_len = seq_len;
  config.batch_size = 2;
  config.rope.max_seq_len = seq_len;
  config.steps = INT32_MAX;
  return config;
}

Result<std::unique_ptr<Trainer>> MakeTrainer(const TrainConfig& config) {
  return Trainer::Create(
      {.config = config, .data = MakeTokenSource(TokenData::Synthetic(config), config)});
}

Status MeasureTraining(int64_t dim, int64_t seq_len) {
  const TrainConfig config = Config(dim, seq_len);
  std::unique_ptr<Trainer> trainer;
  Status failure;
  const auto keep = [&](Status status) {
    if (!status) failure = std::move(status);
  };
  const Timing compile = Measure(
      kRuns, [&] { keep(trainer->Compile()); },
      [&] {
        auto made = MakeTrainer(config);
        if (made) trainer = std::move(made).value();
      });
  const Timing graphs = Measure(kRuns, [&] {
    auto report = trainer->Step();
    if (!report) failure = std::move(report).error();
  });
  const Timing eager = Measure(kRuns, [&] {
    auto report = trainer->StepEagerly();
    if (!report) failure = std::move(report).error();
  });
  STRATA_RETURN_IF_ERROR(failure);

  int64_t nodes = 0;
  for (const GraphId id : trainer->module().programs())
    nodes += trainer->module().graph(id).num_nodes();
  fmt::print("Llama3, 12 layers, dim {}, 2 x {} tokens: {} nodes\n", dim, seq_len, nodes);
  PrintTiming("  trace, run passes, lower, bind", compile);
  PrintTiming("  a step, as graphs", graphs);
  PrintTiming("  a step, eagerly", eager);
  fmt::print("  {:.2f} us a node, {:.2f} of eager\n",
             1e3 * graphs.median / static_cast<double>(nodes), graphs.median / eager.median);
  return Ok();
}

}  // namespace

Result<Exit> BenchTrain(Args args) {
  Flags flags("bench train", "measures trace and passes, and steps as graphs against eager ones");
  flags.Example("strata bench train");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  STRATA_RETURN_IF_ERROR(MeasureTraining(16, 8));
  STRATA_RETURN_IF_ERROR(MeasureTraining(64, 16));
  return Exit::kOk;
}

}  // namespace strata::cli
