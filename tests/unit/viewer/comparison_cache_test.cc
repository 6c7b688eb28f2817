#include "viewer/compare/comparison_cache.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text/native_text.h"
#include "viewer/compare/workers.h"

namespace strata::viewer {
namespace {

/// A comparison of a chain of `nodes` nodes with itself.
std::shared_ptr<const Comparison> Chain(int nodes) {
  std::string text = "graph chain\n  r0 = placeholder : f32[2]\n";
  for (int i = 1; i < nodes; ++i)
    text += fmt::format("  r{} = aten.relu.default(r{}) : f32[2]\n", i, i - 1);
  text += fmt::format("  output([r{}])\n", nodes - 1);
  Result<std::unique_ptr<Module>> module = ParseText(text);
  REQUIRE_MESSAGE(module, module.error().message());
  const std::shared_ptr<const Module> shared = std::move(*module);
  SharedLanes lanes;
  Result<std::shared_ptr<const Comparison>> made = Comparison::Make(
      {.title = "chain", .before = shared, .after = shared, .options = {.stable_ids = true}}, lanes,
      Outdated(std::make_shared<std::atomic<bool>>(false)));
  REQUIRE_MESSAGE(made, made.error().message());
  return *made;
}

TEST_CASE("comparisons that were used last stay, as many as their nodes allow") {
  const std::shared_ptr<const Comparison> chain = Chain(10);
  ComparisonCache cache(3 * chain->size());
  for (const char* key : {"a", "b", "c"})
    CHECK(cache.Put(key, Chain(10)).empty());
  CHECK(cache.Find("a") != nullptr);  // now used after b
  CHECK(cache.Put("d", chain).size() == 1);
  CHECK(cache.Peek("a") != nullptr);
  CHECK(cache.Peek("b") == nullptr);
  CHECK(cache.Find("b") == nullptr);
  CHECK(cache.Find("d") == chain);
}

TEST_CASE("a comparison takes the place of the one with its key") {
  ComparisonCache cache(1000);
  const std::shared_ptr<const Comparison> first = Chain(3), second = Chain(4);
  cache.Put("a", first);
  CHECK(cache.Put("a", second) == std::vector{first});
  CHECK(cache.Find("a") == second);
  CHECK(cache.size() == 1);
  CHECK(cache.Clear() == std::vector{second});
  CHECK(cache.size() == 0);
}

TEST_CASE("a comparison larger than the cache is not kept") {
  ComparisonCache cache(5);
  cache.Put("small", Chain(1));
  CHECK(cache.Put("large", Chain(50)).size() == 2);
  CHECK(cache.size() == 0);
}

}  // namespace
}  // namespace strata::viewer
