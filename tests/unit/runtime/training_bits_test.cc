#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "runtime/train/programs/programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using at::Tensor;
using testing::Case;
using testing::Compiled;
using testing::Eager;
using testing::kCases;
using testing::OrDie;
using testing::SameBits;
using testing::SmallConfig;
using testing::Synthetic;
using testing::Tensors;
using testing::Title;

TEST_CASE(
    "executed loss and gradients are eager autograd's, bit for bit, before and after passes") {
  at::set_num_threads(1);
  for (const Case& c : kCases) {
    INFO(Title(c));
    const Eager eager(SmallConfig(c.text, c.overrides));
    const Tensors expected = eager.LossAndGradients(0);
    REQUIRE(std::isfinite(expected[0].item<float>()));
    for (const std::string_view passes : {std::string_view(), kDefaultPasses}) {
      INFO(passes);
      const Tensors actual =
          OrDie(Compiled(eager.config, passes).Bind(kStepGraph).Run(eager.Inputs(0)));
      REQUIRE_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        INFO("output ", i);
        CHECK(SameBits(actual[i], expected[i]));
      }
    }
  }
}

TEST_CASE("every option of a plan, alone and together, leaves the plain plan's bits") {
  at::set_num_threads(1);
  const PlanOptions all[] = {
      {.fold_views = true},
      {.static_memory = true},
      {.fold_views = true, .static_memory = true},
      {.static_memory = true, .in_place = true},
      {.hoist_constants = true},
      {.static_memory = true, .arena_results = true},
      {.static_memory = true, .arena_results = true, .dynamic_arena = true},
      {.keep_values = true, .fold_views = true, .static_memory = true},
      PlanOptions::Fastest(),
  };
  for (const Case& c : kCases) {
    INFO(Title(c));
    const Eager eager(SmallConfig(c.text, c.overrides));
    const Compiled compiled(eager.config, kDefaultPasses);
    std::vector<Tensors> expected;
    Executor plain = compiled.Bind(kStepGraph);
    for (int64_t step = 0; step < 2; ++step)
      expected.push_back(OrDie(plain.Run(eager.Inputs(step))));
    for (const PlanOptions& options : all) {
      INFO("option ", &options - all);
      Executor executor = compiled.Bind(kStepGraph, options);
      // The second run finds the memory of the first; the first's outputs are held and must stay.
      const Tensors first = OrDie(executor.Run(eager.Inputs(0)));
      const Tensors second = OrDie(executor.Run(eager.Inputs(1)));
      const Tensors third = OrDie(executor.Run(eager.Inputs(0)));
      for (size_t i = 0; i < expected[0].size(); ++i) {
        INFO("output ", i);
        CHECK(SameBits(first[i], expected[0][i]));
        CHECK(SameBits(second[i], expected[1][i]));
        CHECK(SameBits(third[i], expected[0][i]));
      }
    }
  }
}

/// Both graphs, for two steps: losses, gradients, and what the optimizer leaves.
std::vector<Tensors> RunTwoSteps(const TrainConfig& config, std::string_view passes,
                                 const PlanOptions& options) {
  Eager run(config);
  const Compiled compiled(config, passes);
  Executor step = compiled.Bind(kStepGraph, options);
  Executor optimizer = compiled.Bind(kOptimizerGraph, options);
  std::vector<Tensors> results;
  for (int64_t i = 0; i < 2; ++i) {
    results.push_back(OrDie(step.Run(run.Inputs(i))));
    Tensors inputs = run.parameters;
    for (size_t k = 1; k <= run.parameters.size(); ++k)
      inputs.push_back(results.back()[k].clone(at::MemoryFormat::Contiguous));
    for (const Tensors& group : {run.state.exp_avg, run.state.exp_avg_sq, run.buffers})
      inputs.insert(inputs.end(), group.begin(), group.end());
    inputs.insert(inputs.end(), results.back().end() - std::ssize(run.buffers),
                  results.back().end());
    inputs.insert(inputs.end(), {run.state.step, run.state.lr});
    run.state.lr.fill_(run.config.optimizer.lr);
    results.push_back(OrDie(optimizer.Run(inputs)));
    results.push_back({});
    for (const Tensors& group : {run.parameters, run.state.exp_avg, run.state.exp_avg_sq})
      for (const Tensor& tensor : group)
        results.back().push_back(tensor.clone());
  }
  return results;
}

TEST_CASE("fused kernels have the bits of the operators that they replace, compiled or not") {
  at::set_num_threads(1);
  const std::string fused = std::string(kDefaultPasses) + ",fuse";
  for (const Case& c : kCases) {
    // Each compiles kernels for its sizes.
    const bool is_compiled =
        (&c - kCases.data()) % 5 == 0 || std::getenv("STRATA_TEST_ALL_KERNELS");
    INFO(Title(c));
    const TrainConfig config = SmallConfig(c.text, c.overrides);
    const auto expected = RunTwoSteps(config, kDefaultPasses, {});
    std::vector<PlanOptions> all{{.unfuse = true}, PlanOptions::Fastest()};
    all.back().unfuse = true;
    if (is_compiled) all.push_back(PlanOptions::Fastest());
    for (const PlanOptions& options : all) {
      INFO("option ", &options - all.data());
      const auto actual = RunTwoSteps(config, fused, options);
      for (size_t group = 0; group < expected.size(); ++group) {
        for (size_t i = 0; i < expected[group].size(); ++i) {
          INFO("group ", group, " tensor ", i);
          CHECK(SameBits(actual[group][i], expected[group][i]));
        }
      }
    }
  }
}

TEST_CASE("fused kernels with other sums and functions are within rounding") {
  at::set_num_threads(1);
  const std::string fused = std::string(kDefaultPasses) + ",fuse{numerics=fast}";
  for (const Case& c : kCases) {
    if ((&c - kCases.data()) % 5 != 0 && !std::getenv("STRATA_TEST_ALL_KERNELS")) continue;
    INFO(Title(c));
    const TrainConfig config = SmallConfig(c.text, c.overrides);
    const Tensors expected = RunTwoSteps(config, kDefaultPasses, {})[0];
    const Tensors actual = RunTwoSteps(config, fused, PlanOptions::Fastest())[0];
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO("output ", i);
      const double scale = expected[i].to(at::kDouble).abs().max().item<double>();
      const double error =
          (actual[i].to(at::kDouble) - expected[i].to(at::kDouble)).abs().max().item<double>();
      CHECK_LE(error, 2e-5 * scale + 1e-8);
    }
  }
}

TEST_CASE("a whole training is an eager loop, bit for bit") {
  at::set_num_threads(1);
  for (const Case& c : kCases) {
    INFO(Title(c));
    const TrainConfig config = SmallConfig(c.text, c.overrides);
    const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
    REQUIRE_OK(trainer->Compile());
    Eager eager(config);
    for (int64_t step = 0; step < config.steps; ++step) {
      INFO("step ", step);
      const StepReport report = OrDie(trainer->Step());
      const Tensors outputs = eager.LossAndGradients(step);
      CHECK_EQ(report.metrics.loss, outputs[0].item<float>());
      CHECK_EQ(report.metrics.grad_norm, eager.Update(outputs).item<float>());
    }
    const std::vector<TensorView> trained = trainer->Parameters();
    Tensors expected = eager.parameters;
    expected.insert(expected.end(), eager.buffers.begin(), eager.buffers.end());
    REQUIRE_EQ(trained.size(), expected.size());
    for (size_t i = 0; i < trained.size(); ++i) {
      INFO(trained[i].name);
      REQUIRE_EQ(trained[i].bytes.size(), expected[i].nbytes());
      CHECK_EQ(std::memcmp(trained[i].bytes.data(), expected[i].const_data_ptr(),
                           trained[i].bytes.size()),
               0);
    }
  }
}

}  // namespace
}  // namespace strata
