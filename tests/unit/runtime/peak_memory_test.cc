// What plans say they need beside their inputs, and what they take.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "runtime/exec/step/memory_meter.h"
#include "runtime/train/trainer.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using at::Tensor;
using testing::Compiled;
using testing::Eager;
using testing::OrDie;
using testing::Overrides;
using testing::SmallConfig;
using testing::Tensors;

/// Results outweigh numbers and tables that operators make for themselves.
TrainConfig Larger(std::string_view text, Overrides more) {
  more.insert(more.begin(), {"dim=64", "seq_len=96", "batch_size=4", "rope.max_seq_len=96"});
  return SmallConfig(text, more);
}

TEST_CASE("the planned peak of a training is the measured one, with every plan") {
  PlanOptions views, blocks, no_places = PlanOptions::Fastest();
  views.fold_views = true;
  blocks.static_memory = true;
  no_places.arena_results = no_places.dynamic_arena = false;
  const PlanOptions all[] = {{}, views, blocks, no_places, PlanOptions::Fastest()};
  const Overrides kBatches = {"training.num_tokens_per_train_step=1152"},
                  kNarrow = {"training.mixed_precision_param=bfloat16"};
  const std::pair<std::string_view, Overrides> cases[] = {
      {testing::kSmallLlama3, {}},           {testing::kSmallLlama3, kBatches},
      {testing::kSmallQwen3, kNarrow},       {testing::kSmallQwen3, kBatches},
      {testing::kSmallDeepSeekV3, kBatches}, {testing::kSmallDeepSeekV3, kNarrow},
  };
  for (const auto& [text, overrides] : cases) {
    const TrainConfig config = Larger(text, overrides);
    for (const int threads : {1, 2}) {
      for (const PlanOptions& plan : all) {
        // Several threads have the plainest and the fastest plan.
        const bool is_extreme = &plan == std::begin(all) || &plan == std::end(all) - 1;
        if (threads > 1 && !is_extreme) continue;
        INFO(config.accumulation_steps, " batches of ", text.substr(0, 20), ", threads ", threads,
             ", option ", &plan - all);
        const auto trainer =
            OrDie(Trainer::Create({.config = config,
                                   .data = MakeTokenSource(TokenData::Synthetic(config)),
                                   .passes = std::string(kDefaultPasses),
                                   .plan = plan,
                                   .threads = threads}));
        const MemoryMeter meter;
        REQUIRE_OK(trainer->Compile());
        const auto planned = static_cast<double>(trainer->planned_bytes());
        for (int step = 0; step < 2; ++step)
          OrDie(trainer->Step());
        CHECK_LT(std::abs(planned / static_cast<double>(meter.peak_bytes()) - 1), 0.03);
      }
    }
  }
  at::set_num_threads(1);
}

TEST_CASE("a step of several batches takes one block of memory and its sums") {
  const TrainConfig config =
      Larger(testing::kSmallLlama3, {"training.num_tokens_per_train_step=1152"});
  REQUIRE_EQ(config.accumulation_steps, 3);
  const TrainConfig one = Larger(testing::kSmallLlama3, {});
  const auto peak = [](const TrainConfig& of) {
    const auto trainer = OrDie(Trainer::Create({.config = of, .data = testing::Synthetic(of)}));
    const MemoryMeter meter;
    REQUIRE_OK(trainer->Compile());
    for (int step = 0; step < 3; ++step)
      OrDie(trainer->Step());
    int64_t gradients = 0;
    for (const TensorView& parameter : trainer->Parameters())
      gradients += static_cast<int64_t>(parameter.bytes.size());
    return std::pair(meter.peak_bytes(), gradients);
  };
  const auto [several_bytes, sums] = peak(config);
  CHECK_LT(static_cast<double>(several_bytes), 1.03 * static_cast<double>(peak(one).first + sums));
}

TEST_CASE("an output that is a view of what an operator returned is not kept after the run") {
  at::set_num_threads(1);
  const Plan plan = OrDie(Lower(*testing::ParseBody(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  (values, indices) = aten.sort.default(x) as sorted : (f32[64, 64][64, 1]cpu, i64[64, 64][64, 1]cpu)
  t = aten.t.default(values) : f32[64, 64][1, 64]cpu ~values
  output([t])
)")
                                     ->FindGraph("g"),
                                PlanOptions{.hoist_constants = true}));
  Executor executor = OrDie(Executor::Bind(plan, {}));
  const Tensor x = at::rand({64, 64});
  const MemoryMeter meter;
  OrDie(executor.Run(Tensors{x}));
  CHECK_EQ(meter.live_bytes(), 0);
}

}  // namespace
}  // namespace strata
