// Plans with all that they may do, against operators called one after the other, on random graphs.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "runtime/exec/executor.h"
#include "tests/support/graphs.h"
#include "tests/support/random_graph.h"

namespace strata {
namespace {

using at::Tensor;
using testing::OrDie;
using testing::RandomGraph;

/// The results of a run, and its inputs after it.
using Tensors = std::vector<Tensor>;

Tensors InputsOf(const Plan& plan, uint64_t seed) {
  at::manual_seed(seed);
  Tensors inputs;
  for (const Plan::Input& input : plan.inputs)
    inputs.push_back(at::randn(input.sizes));
  return inputs;
}

/// The second of two runs: the first may leave something behind. The executor is gone by then.
Result<Tensors> RunTwice(const Graph& graph, const PlanOptions& options) {
  STRATA_TRY(Plan plan, Lower(graph, options));
  STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), {}));
  STRATA_TRY(const Tensors first, executor.Run(InputsOf(executor.plan(), 1)));
  Tensors inputs = InputsOf(executor.plan(), 2);
  STRATA_TRY(Tensors results, executor.Run(inputs));
  results.insert(results.end(), inputs.begin(), inputs.end());
  return results;
}

struct Way {
  const char* name;
  PlanOptions options;
};

std::vector<Way> Ways() {
  PlanOptions separate = PlanOptions::Fastest(), training = PlanOptions::FastestTraining();
  separate.separate_outputs = true;
  return {{"keep values", {.keep_values = true}},
          {"fold views", {.fold_views = true}},
          {"static memory", {.static_memory = true}},
          {"in place", {.static_memory = true, .in_place = true}},
          {"fastest", PlanOptions::Fastest()},
          {"training", training},
          {"separate outputs", separate}};
}

void CheckWays(bool states_aliases) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const auto module = RandomGraph(seed, {.num_nodes = 12 + static_cast<int>(seed % 40),
                                           .in_place = seed % 3 != 0,
                                           .reshapes_in_place = false,
                                           .states_aliases = states_aliases});
    const Graph& graph = *module->FindGraph("g");
    if (!states_aliases) module->MarkForeign(graph.id());
    const auto expected = RunTwice(graph, {});
    if (!expected) continue;  // ATen refuses to write to memory that it reads otherwise
    for (const Way& way : Ways()) {
      const Tensors actual = OrDie(RunTwice(graph, way.options));
      REQUIRE_EQ(actual.size(), expected->size());
      bool are_equal = true;
      for (size_t i = 0; i < actual.size(); ++i)
        are_equal = are_equal && at::equal(actual[i], (*expected)[i]);
      CHECK_MESSAGE(are_equal, "seed ", seed, ", ", way.name, "\n", PrintText(graph));
      ++compared;
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("random graphs with aliases run the same in every kind of plan") {
  CheckWays(/*states_aliases=*/true);
}

TEST_CASE("random graphs whose text states no aliases run the same in every kind of plan") {
  CheckWays(/*states_aliases=*/false);
}

}  // namespace
}  // namespace strata
