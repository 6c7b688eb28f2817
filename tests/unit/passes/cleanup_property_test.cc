#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "passes/core/pass_manager.h"
#include "passes/passes.h"
#include "tests/support/graphs.h"
#include "tests/support/mini_eval.h"
#include "tests/support/random_graph.h"

namespace strata {
namespace {

using testing::Evaluate;
using testing::OrDie;
using testing::RandomGraph;

Result<Changed> RunPipeline(std::string_view pipeline, Module& module) {
  PassManager manager;
  for (auto& pass : OrDie(ParsePipeline(pipeline, AllPasses())))
    manager.Add(std::move(pass));
  return manager.Run(module);
}

TEST_CASE("random graphs compute the same after every cleanup, and a second run changes nothing") {
  int changed = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    for (const char* pipeline :
         {"dce", "canonicalize", "dce,canonicalize", "remove-detach,dce", "remove-identity-views",
          "remove-double-transposes", "remove-identity-slices", "normalize-views"}) {
      const auto module = RandomGraph(
          seed, {.num_nodes = 20 + static_cast<int>(seed % 60), .in_place = seed % 2 == 0});
      const Graph& graph = *module->FindGraph("g");
      const std::string before = PrintText(graph);
      const auto expected = Evaluate(graph);
      REQUIRE_MESSAGE(expected, expected.error().message());
      const Result<Changed> first = RunPipeline(pipeline, *module);
      REQUIRE_MESSAGE(first, first.error().message());
      changed += *first == Changed::kYes ? 1 : 0;
      const auto actual = Evaluate(graph);
      REQUIRE_MESSAGE(actual, actual.error().message());
      CHECK_MESSAGE(*actual == *expected, "seed ", seed, ", ", pipeline, "\n", before, "\n",
                    PrintText(graph));
      CHECK_MESSAGE(OrDie(RunPipeline(pipeline, *module)) == Changed::kNo, "seed ", seed, ", ",
                    pipeline);
    }
  }
  CHECK(changed > 1000);  // of 2400: the graphs do have something to clean up
}

TEST_CASE("the result of canonicalize does not depend on the order of its parts") {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const auto a = RandomGraph(seed, {.in_place = false});
    const auto b = RandomGraph(seed, {.in_place = false});
    OrDie(RunPipeline("remove-detach,remove-identity-views,remove-identity-slices", *a));
    OrDie(RunPipeline("remove-identity-slices,remove-identity-views,remove-detach", *b));
    CHECK_EQ(testing::BodyOf(*a), testing::BodyOf(*b));
  }
}

}  // namespace
}  // namespace strata
