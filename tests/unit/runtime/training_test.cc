#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "runtime/aten/threads.h"
#include "runtime/config/parameters.h"
#include "runtime/train/trainer.h"
#include "runtime/train/training_state.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using at::Tensor;
using testing::Eager;
using testing::kSmallLlama3;
using testing::OrDie;
using testing::SmallConfig;
using testing::Synthetic;
using testing::Tensors;

TEST_CASE("clipping and AdamW follow their formulas, whether the norm is clipped or not") {
  for (const double max_norm : {0.01, 1000.0}) {
    const TrainConfig config =
        SmallConfig(kSmallLlama3, {fmt::format("optimizer.max_grad_norm={}", max_norm)});
    Eager run(config);
    const Tensors outputs = run.LossAndGradients(0);
    const Tensors gradients(outputs.begin() + 1, outputs.end());  // no experts: nothing follows
    Tensors before;
    double squares = 0.0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      before.push_back(run.parameters[i].to(at::kDouble));
      squares += gradients[i].to(at::kDouble).square().sum().item<double>();
    }
    CHECK_EQ(run.Update(outputs).item<double>(), doctest::Approx(std::sqrt(squares)).epsilon(1e-5));
    CHECK_EQ(run.state.step.item<float>(), 1.0F);

    const OptimizerConfig& o = config.optimizer;
    const double clip = std::min(1.0, max_norm / (std::sqrt(squares) + 1e-6));
    for (size_t i = 0; i < gradients.size(); ++i) {
      // In step 1 the bias corrections cancel: m / (1 - b1) is g, sqrt(v / (1 - b2)) is |g|.
      const Tensor g = gradients[i].to(at::kDouble) * clip;
      const Tensor expected =
          before[i] * (1.0 - o.lr * o.weight_decay) - o.lr * g / (g.abs() + o.eps);
      CHECK(at::allclose(run.parameters[i].to(at::kDouble), expected, 1e-5, 2e-7));
    }
  }
}

TEST_CASE("a run may go on eagerly, and back") {
  const TrainConfig config = SmallConfig(kSmallLlama3);
  const auto make = [&] {
    auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
    OrDie(trainer->Compile());
    return trainer;
  };
  const auto graphs = make(), mixed = make();
  for (int64_t step = 0; step < config.steps; ++step) {
    const StepReport expected = OrDie(graphs->Step());
    const StepReport actual = step % 2 == 0 ? OrDie(mixed->StepEagerly()) : OrDie(mixed->Step());
    CHECK_EQ(actual.metrics.step, expected.metrics.step);
    CHECK_EQ(actual.metrics.loss, expected.metrics.loss);
    CHECK_EQ(actual.metrics.grad_norm, expected.metrics.grad_norm);
    CHECK_EQ(actual.executed.empty(), step % 2 == 0);
  }
}

TEST_CASE("parameters that threads draw together have the values of each drawn alone") {
  const TrainConfig config = SmallConfig(kSmallLlama3, {"vocab_size=4099", "dim=36", "n_heads=2"});
  const TrainSpec spec(config);
  const int before = NumThreads();
  for (const int threads : {1, 3}) {
    SetThreads(threads);
    const TrainingState state(spec, std::nullopt, at::kCPU);
    REQUIRE_EQ(state.parameters.size(), spec.model.parameters.size());
    for (size_t i = 0; i < state.parameters.size(); ++i) {
      const ParameterSpec& parameter = spec.model.parameters[i];
      std::vector<float> alone(static_cast<size_t>(parameter.elements()));
      InitializeParameter(parameter, config.seed, alone);
      CHECK_MESSAGE(at::equal(state.parameters[i].flatten(), at::tensor(alone)), parameter.name);
    }
  }
  SetThreads(before);
}

TEST_CASE("a loss or norm that is no number ends the run") {
  const TrainConfig config = SmallConfig(kSmallLlama3, {"optimizer.lr=1e30"});
  const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
  REQUIRE_OK(trainer->Compile());
  REQUIRE_OK(trainer->Step());
  const Result<StepReport> second = trainer->Step();
  REQUIRE_FALSE(second);
  CHECK_EQ(second.error().message(),
           "gradient norm is nan: step 2: lower optimizer.lr, or look at the data of this step");
  CHECK_EQ(trainer->steps_done(), 1);
}

TEST_CASE("what runs has the fingerprint of the graphs that the passes left") {
  const TrainConfig config = SmallConfig(kSmallLlama3);
  const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
  REQUIRE_OK(trainer->Compile());
  const StepReport report = OrDie(trainer->Step());
  REQUIRE_EQ(report.executed.size(), 2);
  CHECK_EQ(report.executed[0].graph, kStepGraph);
  CHECK_EQ(report.executed[1].graph, kOptimizerGraph);
  for (const StepReport::Executed& executed : report.executed) {
    CHECK_EQ(executed.fingerprint, FingerprintOf(*trainer->module().FindGraph(executed.graph)));
  }
}

}  // namespace
}  // namespace strata
