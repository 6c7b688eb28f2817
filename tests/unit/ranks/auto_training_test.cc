// Several ranks, placed by the plan that a search found, train as one rank does.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "passes/core/pass_manager.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/costs/topology.h"
#include "passes/placement/place.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/trace_programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/rank_courses.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::ConfigOf;
using testing::OrDie;
using testing::TempDir;

constexpr std::string_view kPlacedLlama3 = R"(model = "llama3"
dim = 32
n_layers = 3
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

constexpr std::string_view kQwen3 = R"(model = "qwen3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
head_dim = 8
hidden_dim = 48
vocab_size = 64
enable_weight_tying = true
seq_len = 16
batch_size = 8
steps = 4
seed = 7
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

constexpr std::string_view kPlacedDeepSeekV3 = R"(model = "deepseek_v3"
dim = 32
n_layers = 3
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

struct PlacedCourse {
  std::vector<StepMetrics> steps;
  std::vector<float> gradients, parameters;
};

void Append(std::vector<float>& values, const std::vector<TensorView>& views) {
  for (const TensorView& view : views) {
    const size_t begin = values.size();
    values.resize(begin + view.bytes.size() / sizeof(float));
    std::memcpy(values.data() + begin, view.bytes.data(), view.bytes.size());
  }
}

PlacedCourse TrainPlaced(const TrainConfig& config) {
  const auto trainer =
      OrDie(Trainer::Create({.config = config, .data = OrDie(OpenDataSource(config))}));
  OrDie(trainer->Compile());
  trainer->KeepGradients();
  PlacedCourse course;
  while (OrDie(trainer->HasNext())) {
    course.steps.push_back(OrDie(trainer->Step()).metrics);
    if (course.steps.size() == 1) Append(course.gradients, trainer->Gradients());
  }
  Append(course.parameters, trainer->Parameters());
  return course;
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    largest = std::max<double>(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

/// Sums in another order: a few ULPs per step, which Adam's division raises for small gradients.
void CheckClose(const PlacedCourse& course, const PlacedCourse& oracle) {
  REQUIRE_EQ(course.steps.size(), oracle.steps.size());
  for (size_t i = 0; i < course.steps.size(); ++i) {
    CHECK_EQ(course.steps[i].loss, doctest::Approx(oracle.steps[i].loss).epsilon(2e-6));
    CHECK_EQ(course.steps[i].grad_norm, doctest::Approx(oracle.steps[i].grad_norm).epsilon(2e-5));
  }
  CHECK_LT(Difference(course.gradients, oracle.gradients), 1e-6);
  CHECK_LT(Difference(course.parameters, oracle.parameters), 2e-4);
}

struct Found {
  std::string plan;
  double cost = 0;                ///< that the search names
  double placed = 0, manual = 0;  ///< of the graph that the plan, and that the family's plan makes
};

/// The plan for a training on its mesh. `memory`: part of what the cheapest placements take.
Found PlanFor(const TrainConfig& config, const std::string& topology, double memory,
              std::string_view constraints) {
  Module module;
  Constants constants;
  OrDie(TraceTraining(TrainSpec(config), module, constants));
  PassManager manager;
  for (auto& pass : OrDie(TrainingPasses(config, kDefaultPasses))) {
    if (pass->name() == "place") break;
    manager.Add(std::move(pass));
  }
  OrDie(manager.Run(module));
  const Mesh& mesh = config.parallelism.mesh;
  const CostModel model = OrDie(CostModel::Make(OrDie(Topology::Load(topology)), mesh));
  Graph& step = *module.FindGraph(kStepGraph);
  const PlacementPlan kept = OrDie(PlacementPlan::Parse(constraints, "kept", mesh, {}));
  AutoOptions options;
  AutoPlacement placement = OrDie(PlaceAutomatically(step, kept, model, options));
  CHECK(placement.solved.status == SolverResult::Status::kOptimal);
  if (memory < 1) {
    options.memory_bytes = memory * placement.memory_bytes;
    placement = OrDie(PlaceAutomatically(step, kept, model, options));
    CHECK_LE(placement.memory_bytes, options.memory_bytes * (1 + 1e-9));
  }
  Found found{.plan = PlanText(step, placement, mesh, "found"), .cost = placement.solved.cost};
  const auto manual = module.Clone();
  Graph& manual_step = *manual->FindGraph(kStepGraph);
  OrDie(PlaceGraph(manual_step,
                   OrDie(PlacementPlan::Load(std::string(Name(config.model)), mesh, {})),
                   Reshard::kBlocks));
  found.manual = OrDie(CostOfPlaced(manual_step, model)).total();
  OrDie(PlaceGraph(step, OrDie(PlacementPlan::Parse(found.plan, "found", mesh, {})),
                   Reshard::kBlocks));
  found.placed = OrDie(CostOfPlaced(step, model)).total();
  return found;
}

struct PlacedLayout {
  int64_t replicate, shard, tensor;
  const char* topology;
  double memory;  ///< part of what the cheapest placements take
  int64_t experts = 1;
  const char* constraints = "";
};

/// Products of experts run where the experts are.
constexpr const char* kExpertsApart = R"toml(
parameter = [{ name = "layers.*.moe.experts.*", ep = "S(0)" }]
node = [
  { module = "layers.*.moe.experts", phase = "forward", op = "aten._grouped_mm.default", ep = "E(0)S(0)P(sum) -> E(0)" },
]
)toml";

std::vector<std::string> SetsOf(const PlacedLayout& layout) {
  return {fmt::format("parallelism.data_parallel_replicate_degree={}", layout.replicate),
          fmt::format("parallelism.data_parallel_shard_degree={}", layout.shard),
          fmt::format("parallelism.tensor_parallel_degree={}", layout.tensor),
          fmt::format("parallelism.expert_parallel_degree={}", layout.experts),
          fmt::format("batch_size={}", 8 / layout.replicate / layout.shard)};
}

/// `by_family`: compares with ranks that the plan of the model family places, not with one rank.
void CheckTrainsAlike(std::string_view model, const std::vector<PlacedLayout>& layouts,
                      bool by_family = false) {
  const PlacedCourse one_rank = TrainPlaced(ConfigOf(model, {}));
  for (const PlacedLayout& layout : layouts) {
    INFO(fmt::format("dp_replicate={} fsdp={} tp={}, {}, memory {}", layout.replicate, layout.shard,
                     layout.tensor, layout.topology, layout.memory));
    const TempDir dir;
    std::vector<std::string> sets = SetsOf(layout);
    const Found found =
        PlanFor(ConfigOf(model, sets), layout.topology, layout.memory, layout.constraints);
    if (layout.constraints == kExpertsApart) CHECK(found.plan.find("E(0)") != std::string::npos);
    CHECK_LE(found.placed, found.cost * 1.05);
    if (layout.memory == 1.0 && !by_family && *layout.constraints == 0)
      CHECK_LE(found.placed, found.manual * (1 + 1e-9));
    const PlacedCourse oracle = by_family ? TrainPlaced(ConfigOf(model, sets)) : one_rank;
    const std::string file = dir.path() + "/plan.toml";
    OrDie(WriteFile(file, found.plan));
    sets.push_back("parallelism.plan=" + file);
    const PlacedCourse course = TrainPlaced(ConfigOf(model, sets));
    CheckClose(course, oracle);
    CHECK_EQ(course.steps[0].loss, doctest::Approx(one_rank.steps[0].loss).epsilon(2e-6));
  }
}

TEST_CASE("T116: ranks that were placed automatically train as one rank does: Llama3") {
  CheckTrainsAlike(kPlacedLlama3, {{1, 2, 2, "cpu", 1.0},
                                   {1, 2, 2, "h100", 1.0},
                                   {1, 4, 1, "cpu", 1.0},
                                   {1, 1, 2, "h100", 1.0},
                                   {1, 4, 2, "cpu", 1.0},
                                   {2, 2, 2, "cpu", 1.0}});
}

TEST_CASE("T116: ranks that were placed automatically train as one rank does: tight memory") {
  std::string model(kPlacedLlama3);  // a search under tight memory is long for several layers
  model.replace(model.find("n_layers = 3"), 12, "n_layers = 1");
  CheckTrainsAlike(model, {{1, 2, 2, "cpu", 0.8}, {1, 4, 1, "cpu", 0.8}});
}

TEST_CASE("T116: ranks that were placed automatically train as one rank does: uneven parts") {
  std::string model(kPlacedLlama3);
  model.replace(model.find("vocab_size = 64"), 15, "vocab_size = 41");
  constexpr const char* kInParts =
      "parameter = [{ name = \"*\", fsdp = \"S(0)\", uneven = true }]\n";
  CheckTrainsAlike(model,
                   {{1, 4, 1, "cpu", 1.0, 1, kInParts}, {2, 2, 2, "h100", 1.0, 1, kInParts}});
}

TEST_CASE("T116: ranks that were placed automatically train as one rank does: Qwen3") {
  CheckTrainsAlike(kQwen3, {{1, 2, 2, "cpu", 1.0}});
}

TEST_CASE("T116: ranks that were placed automatically train as manual ones do: DeepSeek-V3") {
  // Rows of experts are summed in another order on several ranks, by any plan.
  CheckTrainsAlike(kPlacedDeepSeekV3,
                   {{1, 2, 2, "cpu", 1.0},
                    {1, 4, 1, "cpu", 1.0, 2},
                    {1, 4, 1, "cpu", 1.0, 4, kExpertsApart},
                    {1, 2, 2, "cpu", 1.0, 2, kExpertsApart}},
                   /*by_family=*/true);
}

}  // namespace
}  // namespace strata
