#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <doctest/doctest.h>

#include "runtime/models/model.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"

namespace strata {
namespace {

using testing::OrDie;

TrainConfig LoopConfig(const std::vector<std::string>& overrides) {
  return OrDie(
      ParseTrainConfig(testing::kSmallLlama3, ConfigFormat::kToml, "small.toml", overrides));
}

std::unique_ptr<Trainer> MakeTrainer(const TrainConfig& config) {
  TrainSetup setup{.config = config, .data = OrDie(OpenDataSource(config))};
  if (config.validator.enable) setup.validation = OrDie(OpenValidationData(config));
  return OrDie(Trainer::Create(std::move(setup)));
}

bool SameBytes(const TensorView& a, const TensorView& b) {
  return a.bytes.size() == b.bytes.size() &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

std::vector<std::vector<std::byte>> Copies(const Trainer& trainer) {
  std::vector<std::vector<std::byte>> copies;
  for (const TensorView& view : trainer.Parameters())
    copies.emplace_back(view.bytes.begin(), view.bytes.end());
  return copies;
}

const std::vector<std::string> kGroups = {"optimizer.param_groups.norms.pattern=norm",
                                          "optimizer.param_groups.norms.weight_decay=0",
                                          "optimizer.param_groups.frozen.pattern=^tok_embeddings",
                                          "optimizer.param_groups.frozen.lr=0",
                                          "optimizer.param_groups.fast.pattern=layers\\.1\\.",
                                          "optimizer.param_groups.fast.lr=0.01",
                                          "optimizer.param_groups.fast.beta1=0.5",
                                          "lr_scheduler.warmup_steps=2"};

TEST_CASE("parameter groups train as eagerly, bit for bit, each by its own settings") {
  at::set_num_threads(1);
  const TrainConfig config = LoopConfig(kGroups);
  const auto graphs = MakeTrainer(config), eager = MakeTrainer(config),
             plain = MakeTrainer(LoopConfig({}));
  OrDie(graphs->Compile());
  const auto before = Copies(*graphs);
  for (int64_t step = 0; step < config.steps; ++step) {
    CHECK_EQ(OrDie(graphs->Step()).metrics.loss, OrDie(eager->StepEagerly()).metrics.loss);
    OrDie(plain->StepEagerly());
  }
  const auto a = graphs->Parameters(), b = eager->Parameters(), c = plain->Parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(SameBytes(a[i], b[i]));
    CHECK_FALSE(SameBytes(a[i], c[i]));
    const bool is_frozen = a[i].name == "tok_embeddings.weight";
    CHECK_EQ(std::memcmp(a[i].bytes.data(), before[i].data(), before[i].size()) == 0, is_frozen);
  }
}

TEST_CASE("a group that no parameter is of is an error before anything is traced") {
  const TrainConfig config = LoopConfig({"optimizer.param_groups.bias.pattern=bias"});
  CHECK_EQ(testing::MessageOf(
               Trainer::Create({.config = config, .data = OrDie(OpenDataSource(config))})),
           "no parameter matches 'bias': optimizer.param_groups.bias.pattern: the model has "
           "lm_head.weight and others, and the first group that matches takes a parameter");
}

TEST_CASE("a configuration switches passes off, one or all") {
  const auto pipeline = [](const std::vector<std::string>& overrides) {
    const TrainConfig config = LoopConfig(overrides);
    return OrDie(Trainer::Create({.config = config,
                                  .data = OrDie(OpenDataSource(config)),
                                  .passes = "dce,canonicalize,fuse{numerics=fast}"}))
        ->pipeline();
  };
  CHECK_EQ(pipeline({}), "dce,canonicalize,fuse{numerics=fast}");
  CHECK_EQ(pipeline({"compile.disable_passes=fuse, dce"}), "canonicalize");
  CHECK_EQ(pipeline({"compile.enable_passes=false"}), "");
  const auto message = [](const std::vector<std::string>& overrides, std::string_view passes) {
    const TrainConfig config = LoopConfig(overrides);
    return testing::MessageOf(Trainer::Create(
        {.config = config, .data = OrDie(OpenDataSource(config)), .passes = std::string(passes)}));
  };
  const std::string unknown = message({"compile.disable_passes=fuze"}, "dce");
  CHECK_EQ(unknown.substr(0, unknown.find("name some")),
           "no pass 'fuze': compile.disable_passes: ");
  CHECK(unknown.ends_with(", did you mean 'fuse'"));
  CHECK_EQ(message({"training.disable_cuda_graphs=true"}, "dce,cuda-graph"),
           "pass and configuration contradict each other: cuda-graph: "
           "training.disable_cuda_graphs is true, take one of them out");
}

TEST_CASE("the full compile computes again what is cheap, unless the run says what is saved") {
  const auto pipeline = [](const std::vector<std::string>& overrides, std::string_view passes) {
    const TrainConfig config = LoopConfig(overrides);
    return OrDie(Trainer::Create({.config = config,
                                  .data = OrDie(OpenDataSource(config)),
                                  .passes = std::string(passes)}))
        ->pipeline();
  };
  const std::string full = "compile.inductor_compilation=full";
  CHECK_EQ(pipeline({full}, "dce,fuse"),
           "dce,tag-memory{policy=min_cut},recompute,reorder-for-peak,fuse");
  CHECK_EQ(pipeline({"compile.inductor_compilation=standalone"}, "fuse"),
           "tag-memory{policy=min_cut},recompute,reorder-for-peak,compile-standalone,fuse");
  CHECK_EQ(pipeline({full, "compile.memory_policy=none"}, "fuse"), "reorder-for-peak,fuse");
  CHECK_EQ(pipeline({full, "activation_checkpoint.mode=none"}, "fuse"), "reorder-for-peak,fuse");
  CHECK_EQ(pipeline({full, "compile.memory_policy=default"}, "fuse"),
           "tag-memory,recompute,reorder-for-peak,fuse");
  CHECK_EQ(pipeline({full}, "tag-memory{policy=full},recompute,fuse"),
           "tag-memory{policy=full},recompute,reorder-for-peak,fuse");
  CHECK_EQ(pipeline({full, "compile.enable_passes=false"}, "fuse"), "");
}

TEST_CASE("the validation loss is the mean over all labels of all its batches") {
  at::set_num_threads(1);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"loss.name=chunked_cross_entropy", "loss.num_chunks=5"},
        {"compile.symbolic_dims=batch_and_seq"}}) {
    std::vector<std::string> overrides = {"validator.enable=true", "validator.steps=3",
                                          "validator.freq=2"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    const TrainConfig config = LoopConfig(overrides);
    const auto trainer = MakeTrainer(config);
    OrDie(trainer->Compile());
    CHECK_FALSE(trainer->IsValidationStep());
    StepReport report = OrDie(trainer->Step());
    CHECK(trainer->IsValidationStep());
    const auto before = Copies(*trainer);
    const auto validate = [&] {
      OrDie(trainer->Validate(report));
      return *report.metrics.validation_loss;
    };
    const double loss = validate();
    CHECK_EQ(loss, validate());  // from the beginning again
    CHECK_EQ(std::ranges::count(report.executed, "validate", &StepReport::Executed::graph), 1);
    CHECK((before == Copies(*trainer)));

    // All batches have as many labels, so the mean is that of the batches' losses.
    std::vector<at::Tensor> parameters;
    for (const TensorView& view : trainer->Parameters()) {
      at::Tensor tensor = at::empty(view.shape);
      std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
      parameters.push_back(tensor.requires_grad_(true));
    }
    const at::Tensor table = RopeTable(config);
    const auto data = OrDie(OpenValidationData(config));
    double sum = 0.0;
    for (int step = 0; step < 3; ++step) {
      const Batch batch = *OrDie(data->Next());
      const auto ids = [&](const std::vector<int64_t>& values) {
        return at::tensor(values).view({batch.rows, batch.seq_len()});
      };
      sum += LossAndGradients(TrainSpec(config),
                              {.parameters = parameters, .buffers = {}, .rope_table = table},
                              {.tokens = ids(batch.tokens), .labels = ids(batch.labels)})[0]
                 .item<float>();
    }
    CHECK_EQ(loss, doctest::Approx(sum / 3).epsilon(1e-6));
    OrDie(trainer->Step());
    CHECK(trainer->IsValidationStep());
    OrDie(trainer->Step());
    CHECK_FALSE(trainer->IsValidationStep());
  }
}

}  // namespace
}  // namespace strata
