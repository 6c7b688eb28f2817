#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/diff.h"
#include "scene/scene.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::ParseOrDie;

/// `blocks` blocks of five operators, without modules, between an embedding and a loss.
std::string Repeating(int blocks, bool backward) {
  std::string text = "graph step\n  x = placeholder\n  e = aten.embedding.default(x)\n";
  std::string last = "e";
  const std::string phase = backward ? " {forward}" : "";
  for (int i = 0; i < blocks; ++i) {
    for (std::string_view op : {"pow", "mean", "rsqrt", "mul", "mm"}) {
      const std::string name = fmt::format("{}{}", op, i);
      text += fmt::format("  {} = aten.{}.default({}){}\n", name, op, last, phase);
      last = name;
    }
  }
  for (int i = blocks; backward && i-- > 0;) {
    for (std::string_view op : {"neg", "exp", "bmm", "sum"}) {
      const std::string name = fmt::format("{}{}", op, i);
      text += fmt::format("  {} = aten.{}.default({}) {{backward}}\n", name, op, last);
      last = name;
    }
  }
  return text + fmt::format("  output([{}])\n", last);
}

Scene SceneOf(const std::string& text, const SceneOptions& options = {}) {
  const auto module = ParseOrDie(text);
  const auto diff = Diff(module->graph({0}), module->graph({0}), {.pins = {}, .stable_ids = true});
  REQUIRE(diff.has_value());
  return MakeScene(*diff, options);
}

const SceneCluster* Find(const Scene& scene, std::string_view path) {
  const auto found = std::ranges::find(scene.clusters, path, &SceneCluster::path);
  return found == scene.clusters.end() ? nullptr : &*found;
}

TEST_CASE("without modules, repetitions become blocks") {
  const Scene scene = SceneOf(Repeating(6, false));
  const SceneCluster* group = Find(scene, "place.{0..5}");
  REQUIRE(group != nullptr);
  CHECK(group->repeats == 6);
  REQUIRE(Find(scene, "place.3") != nullptr);
  CHECK(Find(scene, "place.3")->counts.nodes == 5);
}

TEST_CASE("backward blocks are beside their forward blocks") {
  const Scene scene = SceneOf(Repeating(4, true));
  const SceneCluster* block = Find(scene, "place.0");
  REQUIRE(block != nullptr);
  CHECK(block->counts.nodes == 9);
  // The last four backward nodes belong to the first layers.
  const SceneNode& last = scene.nodes[SceneNodeId{scene.nodes.end_id().index - 2}];
  CHECK(scene.clusters[last.cluster].path == "place.0");
}

TEST_CASE("a single occurrence is not a repetition, and modules take precedence over structure") {
  CHECK(Find(SceneOf(Repeating(1, false)), "place.0") == nullptr);
  std::string text = Repeating(6, false);
  text.replace(text.find("(x)\n"), 3, "(x) {forward module=tok}");
  CHECK(Find(SceneOf(text), "place.0") == nullptr);
}

TEST_CASE("a slab of too many nodes is split into parts with slices of both lanes") {
  const Scene scene = SceneOf(Repeating(1, true), {.max_nodes = 4});
  const SceneCluster* part = Find(scene, "part 1 of 6");
  REQUIRE(part != nullptr);
  int backward = 0;
  for (SceneNodeId node : scene.NodesBelow(*part))
    backward += scene.nodes[node].backward ? 1 : 0;
  CHECK(backward > 0);
  CHECK(backward < part->counts.nodes);
  CHECK(scene.clusters[Scene::kRoot].counts.nodes == static_cast<int32_t>(scene.nodes.size()));
}

TEST_CASE("a residual edge is drawn beside the rows that it skips") {
  const Scene scene = SceneOf(R"(graph step
  x = placeholder
  a = aten.neg.default(x) {forward module=layer.norm}
  b = aten.mm.default(a, a) {forward module=layer.attention}
  c = aten.add.Tensor(b, a) {forward module=layer}
  output([c])
)");
  const SceneCluster* layer = Find(scene, "layer");
  REQUIRE(layer != nullptr);
  CHECK(layer->skips == std::vector<SceneSkip>{{.from = 0, .to = 2}});
}

}  // namespace
}  // namespace strata
