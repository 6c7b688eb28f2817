#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "runtime/models/model.h"
#include "runtime/train/programs/trace_programs.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;

struct Flavour {
  std::string path;
  int64_t parameters;
};

// As published with the weights, where they were; the rest by the table of torchtitan's flavours.
// DeepSeek-V3 without multi-token prediction and without biases.
const std::vector<Flavour> kFlavours = {
    {"deepseek_v3/16b", 15'706'484'224},
    {"deepseek_v3/236b", 235'741'434'880},
    {"deepseek_v3/671b", 671'026'404'352},
    {"deepseek_v3/debugmodel", 0},
    {"llama3/1b", 1'235'814'400},
    {"llama3/3b", 3'212'749'824},
    {"llama3/405b", 405'853'388'800},
    {"llama3/70b", 70'553'706'496},
    {"llama3/8b", 8'030'261'248},
    {"llama3/debugmodel", 0},
    {"qwen3/0.6b", 596'049'920},
    {"qwen3/1.7b", 1'720'574'976},
    {"qwen3/14b", 14'768'307'200},
    {"qwen3/235b_a22b", 235'093'634'560},
    {"qwen3/30b_a3b", 30'532'122'624},
    {"qwen3/32b", 32'762'123'264},
    {"qwen3/4b", 4'022'468'096},
    {"qwen3/8b", 8'190'735'360},
    {"qwen3/debugmodel", 0},
    {"qwen3/debugmodel_moe", 0},
};

TEST_CASE("every flavour is a configuration of the known size") {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("configs")) {
    if (!entry.is_regular_file() || entry.path().parent_path() == "configs") continue;
    found.push_back(entry.path().lexically_relative("configs").replace_extension().string());
  }
  std::ranges::sort(found);
  std::vector<std::string> expected;
  for (const Flavour& flavour : kFlavours)
    expected.push_back(flavour.path);
  CHECK_EQ(found, expected);

  for (const Flavour& flavour : kFlavours) {
    INFO(flavour.path);
    int64_t total = 0;
    const TrainConfig config = OrDie(LoadTrainConfig("configs/" + flavour.path + ".toml"));
    for (const ParameterSpec& spec : SpecsOf(config).parameters)
      total += spec.elements();
    if (flavour.parameters != 0) CHECK_EQ(total, flavour.parameters);
  }
}

TEST_CASE("the largest flavours are traced at full size, from shapes alone") {
  for (const char* path : {"llama3/405b", "qwen3/235b_a22b", "deepseek_v3/671b"}) {
    INFO(path);
    const TrainConfig config = OrDie(LoadTrainConfig(fmt::format("configs/{}.toml", path)));
    Module module;
    Constants constants;
    REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
    CHECK_OK(Verify(module));
    CHECK(constants.empty());
  }
}

}  // namespace
}  // namespace strata
