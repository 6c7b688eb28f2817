#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/config/pipeline.h"
#include "runtime/config/tree.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;

constexpr std::string_view kSixLayers = R"(model = "llama3"
dim = 32
n_layers = 6
n_heads = 4
vocab_size = 64
seq_len = 16
batch_size = 8
steps = 3
)";

Result<TrainConfig> Load(std::vector<std::string> sets) {
  for (std::string& set : sets)
    if (!set.starts_with("batch") && !set.starts_with("enable") && !set.starts_with("training") &&
        !set.starts_with("validator"))
      set = (set.starts_with("num") || set.starts_with("module") || set.starts_with("data") ||
                     set.starts_with("fsdp")
                 ? "parallelism."
                 : "parallelism.pipeline_parallel_") +
            set;
  return ParseTrainConfig(kSixLayers, ConfigFormat::kToml, "c.toml", sets);
}

std::string RefusedSetting(std::vector<std::string> sets) {
  const std::string message = MessageOf(Load(std::move(sets)));
  const size_t value = message.rfind(": ");
  return value == std::string::npos ? message : message.substr(message.find("': --set") + 3);
}

TEST_CASE("a batch is split into microbatches, whose number one rank would accumulate") {
  const TrainConfig config = *Load({"degree=2", "microbatch_size=2"});
  CHECK_EQ(config.batch_size, 2);
  CHECK_EQ(config.accumulation_steps, 4);
  CHECK_EQ(config.parallelism.pipeline.microbatches, 4);
  CHECK_EQ(config.parallelism.pipeline.num_stages, 2);
  CHECK_EQ(config.parallelism.mesh.Text(), "pp=2");
  CHECK_EQ(config.parallelism.stage_mesh.Text(), "");
  // The default is a sequence for each.
  CHECK_EQ(Load({"degree=2"})->parallelism.pipeline.microbatches, 8);

  const TrainConfig sharded =
      *Load({"degree=2", "data_parallel_shard_degree=2", "microbatch_size=4", "schedule=gpipe"});
  CHECK_EQ(sharded.batch_size, 8);
  CHECK_EQ(sharded.accumulation_steps, 2);
  CHECK_EQ(sharded.parallelism.mesh.Text(), "pp=2,fsdp=2");
  CHECK_EQ(sharded.parallelism.stage_mesh.Text(), "fsdp=2");
  CHECK_EQ(sharded.parallelism.pipeline.schedule, "GPipe");
}

TEST_CASE("or it is a microbatch, of which the schedule takes a number") {
  const TrainConfig config = *Load({"degree=2", "num_pp_microbatches=4", "batch_size=2"});
  CHECK_EQ(config.batch_size, 2);
  CHECK_EQ(config.accumulation_steps, 4);
  const TrainConfig twice = *Load({"degree=2", "num_pp_microbatches=4", "batch_size=2",
                                   "training.num_tokens_per_train_step=256"});
  CHECK_EQ(twice.accumulation_steps, 8);
  CHECK_EQ(twice.parallelism.pipeline.microbatches, 4);
}

TEST_CASE("steps of a validation count batches, as without a pipeline") {
  const std::vector<std::string> validated = {"validator.enable=true", "validator.steps=3"};
  const auto steps = [&](std::vector<std::string> sets) {
    sets.insert(sets.end(), validated.begin(), validated.end());
    return Load(sets)->validator.steps;
  };
  CHECK_EQ(steps({"degree=2", "microbatch_size=2"}), 12);
  CHECK_EQ(steps({"degree=2", "num_pp_microbatches=4", "batch_size=2"}), 3);
}

TEST_CASE("stages are those of the schedule, or follow from the layers of one") {
  CHECK_EQ(Load({"degree=2", "schedule=Interleaved1F1B"})->parallelism.pipeline.num_stages, 4);
  CHECK_EQ(Load({"degree=2", "schedule=Interleaved1F1B", "layers_per_stage=1"})
               ->parallelism.pipeline.num_stages,
           8);
  CHECK_EQ(Load({"degree=2", "layers_per_stage=4"})->parallelism.pipeline.num_stages, 2);
}

constexpr std::string_view kNamed =
    R"(module_fqns_per_model_part=[["tok_embeddings","layers.0"],["layers.1","norm","lm_head"]])";

TEST_CASE("modules of stages are named in arrays, and are as many stages") {
  const TrainConfig config = *Load({"degree=2", std::string(kNamed)});
  CHECK_EQ(config.parallelism.pipeline.num_stages, 2);
  CHECK(config.parallelism.pipeline.modules ==
        std::vector<std::vector<std::string>>{{"tok_embeddings", "layers.0"},
                                              {"layers.1", "norm", "lm_head"}});
  CHECK_EQ(Load({"degree=2", "schedule=ZBVZeroBubble",
                 R"(module_fqns_per_model_part=[["a"],["b"],["c"],["d"]])"})
               ->parallelism.pipeline.num_stages,
           4);
  CHECK(Load({"module_fqns_per_model_part=[]"}));
  const auto toml = ParseTrainConfig(std::string(kSixLayers) + R"([parallelism]
pipeline_parallel_degree = 2
module_fqns_per_model_part = [
  ["tok_embeddings", "layers.0"],
  ["layers.1"],
]
)",
                                     ConfigFormat::kToml, "c.toml", {});
  CHECK_EQ(toml->parallelism.pipeline.modules[1][0], "layers.1");
}

TEST_CASE("arrays of arrays are written as JSON, and read again") {
  constexpr std::string_view kText =
      "{\n  \"parts\": [\n    [\n      \"a\",\n      \"b\"\n    ],\n    []\n  ]\n}\n";
  const auto entries = ParseConfigEntries(kText, ConfigFormat::kJson, "c.json");
  CHECK(std::get<WordLists>((*entries)[0].value) == WordLists{{"a", "b"}, {}});
  CHECK_EQ(ToJson(*entries), kText);
}

TEST_CASE("modules of stages that do not fit are errors") {
  const auto error = [](const std::string& modules, std::vector<std::string> sets = {}) {
    sets.insert(sets.begin(), "degree=2");
    sets.push_back("module_fqns_per_model_part=" + modules);
    return MessageOf(Load(sets));
  };
  // What follows the value, which is quoted.
  const auto advice = [&](const std::string& modules, std::vector<std::string> sets = {}) {
    const std::string message = error(modules, std::move(sets));
    CHECK(message.find(" for 'parallelism.module_fqns_per_model_part': --set ") != message.npos);
    return message.substr(message.rfind(": ") + 2);
  };
  const std::string two = R"([["a"],["b"]])";
  CHECK_EQ(advice(R"([["a"],[]])"), "stage 1 has no modules");
  CHECK_EQ(advice(R"([["a"],["b"],["c"]])"), "3 stages are no multiple of the 2 ranks");
  CHECK_EQ(advice(R"([["a"],["b","a"]])"), "module 'a' is in two stages, name it once");
  CHECK_EQ(advice(R"([["a"],["b,c"]])"), "'b,c' is no path of a module");
  CHECK_EQ(advice(R"([["a"],["b"],["c"],["d"]])"), "4 stages are 2 per rank, 1F1B takes 1");
  CHECK_EQ(advice(two, {"schedule=DualPipeV"}),
           "2 stages are 1 per rank, DualPipeV takes 2 or more");
  CHECK_EQ(advice(R"(["a","b"])"), "expected an array of arrays of words, found an array");
  CHECK_EQ(error(two, {"layers_per_stage=2"}),
           "impossible value for 'parallelism.pipeline_parallel_layers_per_stage': --set "
           "parallelism.pipeline_parallel_layers_per_stage=2: "
           "parallelism.module_fqns_per_model_part names the modules of each stage, remove one");
}

TEST_CASE("stages are divided by layers or by times") {
  CHECK_FALSE(Load({"degree=2", "split=layers"})->parallelism.pipeline.balance);
  const TrainConfig config = *Load({"degree=2", "split=balanced", "split_times=t.json"});
  CHECK(config.parallelism.pipeline.balance);
  CHECK_EQ(config.parallelism.pipeline.times, "t.json");
  CHECK_EQ(RefusedSetting({"degree=2", "split_times=t.json"}),
           "--set parallelism.pipeline_parallel_split_times=t.json: it is for "
           "parallelism.pipeline_parallel_split = \"balanced\"");
  CHECK_EQ(RefusedSetting({"degree=2", "split=balanced", "first_stage_less_layers=2"}),
           "--set parallelism.pipeline_parallel_first_stage_less_layers=2: modules are divided by "
           "their times, remove it");
  CHECK_EQ(RefusedSetting({"split=balanced"}),
           "--set parallelism.pipeline_parallel_split=balanced: a rank has all layers, remove it");
  CHECK_EQ(MessageOf(Load({"degree=2", "split=evenly"})),
           "unknown parallelism.pipeline_parallel_split: --set "
           "parallelism.pipeline_parallel_split=evenly: found the string 'evenly', choose one of "
           "layers, balanced");
}

TEST_CASE("GR-11: schedules and sizes that do not fit are errors") {
  CHECK_EQ(RefusedSetting({"degree=0"}),
           "--set parallelism.pipeline_parallel_degree=0: 0 must be at least 1");
  CHECK_EQ(RefusedSetting({"degree=2", "schedule=2F2B"}),
           "--set parallelism.pipeline_parallel_schedule=2F2B: no pipeline schedule '2F2B': take "
           "one of GPipe, 1F1B, LoopedBFS, Interleaved1F1B, InterleavedZeroBubble, ZBVZeroBubble, "
           "DualPipeV");
  CHECK_EQ(RefusedSetting({"degree=2", "microbatch_size=3"}),
           "--set parallelism.pipeline_parallel_microbatch_size=3: 3 sequences do not divide "
           "batch_size 8");
  CHECK_EQ(
      RefusedSetting(
          {"degree=2", "num_pp_microbatches=3", "training.num_tokens_per_train_step=256"}),
      "--set parallelism.num_pp_microbatches=3: 3 microbatches do not divide the 2 batches of a "
      "step");
  CHECK_EQ(RefusedSetting({"degree=4", "schedule=1F1B", "microbatch_size=4"}),
           "--set parallelism.pipeline_parallel_schedule=1F1B: 1F1B: 2 microbatches on 4 ranks: "
           "take at least 4");
  CHECK_EQ(RefusedSetting({"degree=2", "layers_per_stage=3"}),
           "--set parallelism.pipeline_parallel_layers_per_stage=3: 3 layers per stage make 3 "
           "stages, no multiple of the 2 ranks");
  CHECK_EQ(RefusedSetting({"degree=2", "layers_per_stage=2"}),
           "--set parallelism.pipeline_parallel_layers_per_stage=2: 2 layers per stage make 2 "
           "stages per rank, 1F1B takes 1");
  CHECK_EQ(RefusedSetting({"degree=2", "schedule=DualPipeV", "layers_per_stage=4"}),
           "--set parallelism.pipeline_parallel_layers_per_stage=4: 4 layers per stage make 1 "
           "stages per rank, DualPipeV takes 2 or more");
}

TEST_CASE("GR-11: parameters of a stage stay whole between forward and backward") {
  for (const char* reshard : {"default", "never"})
    CHECK(Load({"degree=2", "fsdp_reshard_after_forward=" + std::string(reshard)}));
  CHECK_EQ(RefusedSetting({"degree=2", "fsdp_reshard_after_forward=always"}),
           "--set parallelism.fsdp_reshard_after_forward=always: parameters of a stage stay whole "
           "from UNSHARD to RESHARD of the schedule, take 'default' or 'never'");
}

TEST_CASE("keys of a pipeline without one are errors") {
  CHECK_EQ(
      RefusedSetting({"microbatch_size=2"}),
      "--set parallelism.pipeline_parallel_microbatch_size=2: a rank has all layers, remove it");
  CHECK_EQ(RefusedSetting({"schedule_csv=s.csv"}),
           "--set parallelism.pipeline_parallel_schedule_csv=s.csv: a rank has all layers, remove "
           "it");
}

}  // namespace
}  // namespace strata
