// `compile.enable_autoparallel`: a training finds its own placements.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/checkpoint_writer.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/rank_courses.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::CheckClose;
using testing::ConfigOf;
using testing::Degree;
using testing::MessageOf;
using testing::OrDie;
using testing::TempDir;
using testing::Train;

constexpr std::string_view kLlama3 = R"(model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
batch_size = 8
steps = 4
seed = 7
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

constexpr std::string_view kDeepSeekV3 = R"(model = "deepseek_v3"
dim = 32
n_layers = 2
n_dense_layers = 1
n_heads = 4
hidden_dim = 48
vocab_size = 64
seq_len = 16
batch_size = 8
steps = 4
seed = 7
[mla]
q_lora_rank = 0
kv_lora_rank = 16
qk_nope_head_dim = 8
qk_rope_head_dim = 8
v_head_dim = 8
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 16
num_shared_experts = 1
score_func = "softmax"
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

constexpr const char* kAuto = "compile.enable_autoparallel=true";

const std::vector<std::string> kSquare = {Degree("data_parallel_shard", 2),
                                          Degree("tensor_parallel", 2), "batch_size=4"};

std::vector<std::string> With(std::vector<std::string> sets, const std::string& more) {
  sets.push_back(more);
  return sets;
}

std::unique_ptr<Trainer> TrainerOf(const std::vector<std::string>& sets,
                                   const std::string& passes) {
  const TrainConfig config = ConfigOf(kLlama3, sets);
  return OrDie(
      Trainer::Create({.config = config, .data = OrDie(OpenDataSource(config)), .passes = passes}));
}

TEST_CASE("T118: a training that finds its placements has the passes of one that is given them") {
  const auto pipeline = [](const std::vector<std::string>& sets) {
    return TrainerOf(sets, "dce,canonicalize,fuse")->pipeline();
  };
  for (const std::string& more : {std::string("steps=1"), std::string("compile.memory_policy=full"),
                                  std::string("parallelism.fsdp_reshard_after_forward=never")}) {
    std::string manual = pipeline(With(kSquare, more));
    const std::string_view given = "plan=llama3";
    const std::string found = more == "compile.memory_policy=full"
                                  ? "plan=auto,topology=cpu,memory_policy=full"
                                  : "plan=auto,topology=cpu";
    REQUIRE(manual.find(given) != std::string::npos);
    manual.replace(manual.find(given), given.size(), found);
    CHECK_EQ(pipeline(With(With(kSquare, more), kAuto)), manual);
  }
  CHECK(pipeline(With(With(kSquare, kAuto), "compile.autoparallel_topology=h100"))
            .find("plan=auto}") != std::string::npos);
}

TEST_CASE("T118: the policy of AutoParallel's backend has its own passes, and the same losses") {
  const std::string policy = "compile.inductor_compilation=autoparallel_backend";
  CHECK_EQ(TrainerOf(With(kSquare, policy), "dce,canonicalize")->pipeline(),
           "dce,canonicalize,place{mesh=\"fsdp=2,tp=2\",plan=llama3},lower,tag-memory,recompute,"
           "bucket-by-size,overlap-collectives{topology=cpu},fuse");
  CHECK(TrainerOf(With(With(kSquare, policy), "compile.memory_policy=full"), "dce")
            ->pipeline()
            .find("tag-memory{policy=full}") != std::string::npos);
  CheckClose(Train(kLlama3, With(With(kSquare, policy), kAuto)), Train(kLlama3, {}));
}

TEST_CASE("T119: placements that a training finds train as one rank does") {
  const testing::Course one_rank = Train(kLlama3, {});
  CheckClose(Train(kLlama3, With(kSquare, kAuto)), one_rank);
  for (const char* more :
       {"parallelism.fsdp_reshard_after_forward=always",
        "parallelism.fsdp_reshard_after_forward=never", "compile.memory_policy=full"})
    CheckClose(Train(kLlama3, With(With(kSquare, kAuto), more)), one_rank);
  CheckClose(Train(kLlama3, {Degree("data_parallel_replicate", 2), Degree("context_parallel", 2),
                             "batch_size=4", kAuto}),
             one_rank);
}

TEST_CASE("T111: a validation runs forward alone, on placements that a training found") {
  const auto with = [](std::vector<std::string> sets) {
    for (const char* set : {"validator.enable=true", "validator.freq=2", "validator.steps=2"})
      sets.emplace_back(set);
    return sets;
  };
  const testing::Course found = Train(kLlama3, with(With(kSquare, kAuto)));
  CHECK(found.steps[1].validation_loss.has_value());
  CheckClose(found, Train(kLlama3, with({})));
}

TEST_CASE("T119: gradients of placements that a training finds are summed in fp32") {
  // In bf16 sums in another order differ more.
  constexpr const char* kNarrow = "training.mixed_precision_param=bfloat16";
  const testing::Course one_rank = Train(kLlama3, {kNarrow});
  const testing::Course found = Train(kLlama3, With(With(kSquare, kAuto), kNarrow));
  REQUIRE_EQ(found.steps.size(), one_rank.steps.size());
  for (size_t i = 0; i < found.steps.size(); ++i)
    CHECK_EQ(found.steps[i].loss, doctest::Approx(one_rank.steps[i].loss).epsilon(5e-3));
}

TEST_CASE("T119: placements that a training with experts finds train as its own plan does") {
  const std::vector<std::string> sets = {Degree("data_parallel_shard", 4),
                                         Degree("expert_parallel", 2), "batch_size=2"};
  CheckClose(Train(kDeepSeekV3, With(sets, kAuto)), Train(kDeepSeekV3, sets));
}

TEST_CASE("T117, T120: what cannot be placed, or is placed by other keys, is refused") {
  const auto refusal = [](std::vector<std::string> sets) {
    return MessageOf(ParseTrainConfig(kLlama3, ConfigFormat::kToml, "c.toml", sets));
  };
  CHECK_EQ(refusal({kAuto}),
           "impossible value for 'compile.enable_autoparallel': --set "
           "compile.enable_autoparallel=true: there is nothing to place on one rank, take false");
  CHECK_EQ(refusal({kAuto, Degree("data_parallel_shard", 2), Degree("pipeline_parallel", 2)}),
           "impossible value for 'compile.enable_autoparallel': --set "
           "compile.enable_autoparallel=true: stages of a pipeline take a plan that strata place "
           "wrote, take false and parallelism.plan");
  CHECK_EQ(refusal(With(With(kSquare, kAuto), "parallelism.plan=llama3")),
           "impossible value for 'parallelism.plan': --set parallelism.plan=llama3: "
           "compile.enable_autoparallel finds the plan, remove one of them");
  CHECK_EQ(refusal(With(With(kSquare, kAuto), "parallelism.enable_sequence_parallel=false")),
           "impossible value for 'parallelism.enable_sequence_parallel': --set "
           "parallelism.enable_sequence_parallel=false: compile.enable_autoparallel decides it, "
           "remove it");
  CHECK_EQ(refusal(With(kSquare, "compile.autoparallel_topology=cpu")),
           "impossible value for 'compile.autoparallel_topology': --set "
           "compile.autoparallel_topology=cpu: it requires compile.enable_autoparallel = true, "
           "remove it");
  const std::string policy = "compile.inductor_compilation=autoparallel_backend";
  CHECK_EQ(refusal({policy}), "impossible value for 'compile.inductor_compilation': --set " +
                                  policy + ": there are no collectives on one rank, take 'full'");
  for (const char* set : {"compile.passes=dce", "compile.precompile_artifact_dir=out",
                          "compile.enable_fsdp_ag_rs_overlap=true"}) {
    CHECK(refusal(With(With(kSquare, policy), set))
              .ends_with("compile.inductor_compilation = 'autoparallel_backend' has passes of its "
                         "own, remove one of them"));
  }
  CHECK_EQ(refusal({"compile.mode=jit", kAuto}),
           "impossible value for 'compile.mode': --set compile.mode=jit: every run is traced "
           "ahead, take 'aot_fx_trace'");
  const auto unknown =
      TrainerOf(With(With(kSquare, kAuto), "compile.autoparallel_topology=h1000"), "dce")
          ->Compile();
  REQUIRE(!unknown);
  CHECK(unknown.error().message().find("no topology 'h1000'") != std::string::npos);
}

TEST_CASE("T76, T77: a checkpoint of found placements resumes on them and on one rank") {
  const TempDir dir;
  const std::vector<std::string> found = With(kSquare, kAuto);
  const auto trainer = testing::TrainerOf(ConfigOf(kLlama3, found));
  OrDie(trainer->Compile());
  for (int step = 0; step < 2; ++step)
    OrDie(trainer->Step());
  CheckpointWriter writer = OrDie(CheckpointWriter::Open(dir.path(), {}));
  OrDie(writer.Save(trainer->Position(),
                    {.model = trainer->Parameters(), .optimizer = trainer->OptimizerTensors()}));
  std::vector<double> left;
  while (OrDie(trainer->HasNext()))
    left.push_back(OrDie(trainer->Step()).metrics.loss);
  for (const auto& sets : {found, std::vector<std::string>{}}) {
    const auto resumed = testing::TrainerOf(ConfigOf(kLlama3, sets));
    CHECK(OrDie(resumed->Restore(OrDie(LoadCheckpoint(dir.path(), 2)))).empty());
    OrDie(resumed->Compile());
    for (size_t i = 0; OrDie(resumed->HasNext()); ++i) {
      const double loss = OrDie(resumed->Step()).metrics.loss;
      if (sets.empty()) {
        CHECK_EQ(loss, doctest::Approx(left[i]).epsilon(2e-6));
      } else {
        CHECK_EQ(loss, left[i]);  // bit for bit
      }
    }
  }
}

}  // namespace
}  // namespace strata
