#include "scene/geometry.h"

#include <algorithm>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/diff.h"
#include "scene/open_slabs.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseOrDie;
using M = SceneMeasures;

/// A chain of `count` nodes in one module; node `changed` has another operator on the right side.
std::string Chain(int count, int changed = -1) {
  std::string text = "graph step\n  x = placeholder : f32[4][1]cpu\n";
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    text += fmt::format("  n{} = aten.{}.default({}) : f32[4][1]cpu {{forward module=net.body}}\n",
                        i, i == changed ? "relu" : "neg", last);
    last = fmt::format("n{}", i);
  }
  return text + fmt::format("  output([{}])\n", last);
}

struct ParsedPair {
  std::unique_ptr<Module> before, after;
};

ParsedPair ParsePair(const std::string& a, const std::string& b) {
  return {.before = ParseOrDie(a), .after = ParseOrDie(b)};
}

Scene SceneOf(const ParsedPair& c) {
  return MakeScene(OrDie(Diff(c.before->graph({0}), c.after->graph({0}))));
}

std::set<ClusterId> Everything(const Scene& scene) {
  std::set<ClusterId> open;
  for (ClusterId id : IdsOf(scene.clusters))
    open.insert(id);
  return open;
}

int32_t TotalMembers(const SceneGeometry& geometry) {
  int32_t sum = 0;
  for (const SceneBox& box : geometry.boxes)
    sum += static_cast<int32_t>(box.members.size());
  return sum;
}

TEST_CASE("rows far from every difference are folded, and every node is in exactly one box") {
  const ParsedPair c = ParsePair(Chain(30), Chain(30, 20));
  const Scene scene = SceneOf(c);
  const SceneGeometry geometry = MakeGeometry(scene, {.open = Everything(scene), .hops = 1});
  CHECK(TotalMembers(geometry) == static_cast<int32_t>(scene.nodes.size()));
  CHECK(geometry.drawn < 10);
  const auto folds = std::ranges::count_if(geometry.boxes, [](const SceneBox& box) {
    return !box.node.valid() && box.members.size() > 1;
  });
  CHECK(folds >= 2);
  const SceneGeometry all =
      MakeGeometry(scene, {.open = Everything(scene), .hops = SceneView::kAllHops});
  CHECK(all.drawn == static_cast<int32_t>(scene.nodes.size()));
}

TEST_CASE("a closed slab has no boxes, and its nodes are found by their slab") {
  const ParsedPair c = ParsePair(Chain(8), Chain(8, 3));
  const Scene scene = SceneOf(c);
  const SceneGeometry closed = MakeGeometry(scene, {});
  const SceneNodeId node{static_cast<int32_t>(
      std::ranges::find(scene.nodes, SceneStatus::kChanged, &SceneNode::status) -
      scene.nodes.begin())};
  const ClusterId cluster = scene.nodes[node].cluster;
  const SceneSlab* slab = closed.ClosedSlabOf(scene, cluster);
  REQUIRE(slab != nullptr);
  CHECK(slab->height == M::kSlab);
  CHECK(closed.BoxOf(node) == nullptr);
  const SceneGeometry open = MakeGeometry(scene, {.open = FirstOpen(scene)});
  REQUIRE(open.BoxOf(node) != nullptr);
  CHECK(open.ClosedSlabOf(scene, cluster) == nullptr);
}

TEST_CASE("boxes of a block do not overlap, and lines end at their boxes") {
  const ParsedPair c = ParsePair(Chain(12), Chain(12, 5));
  const Scene scene = SceneOf(c);
  const SceneGeometry geometry =
      MakeGeometry(scene, {.open = Everything(scene), .hops = SceneView::kAllHops});
  for (const BoxId i : IdsOf(geometry.boxes)) {
    for (BoxId k{0}; k < i; ++k.index)
      CHECK_FALSE(geometry.boxes[i].Meets(geometry.boxes[k]));
  }
  CHECK(geometry.lines.size() >= 11);
  for (const SceneLine& line : geometry.lines) {
    const SceneBox& from = geometry.boxes[line.from];
    const SceneBox& to = geometry.boxes[line.to];
    CHECK(from.feeds);
    CHECK(line.points.front().y == from.bottom());
    CHECK(line.points.back().y == to.y - 5);
    CHECK(line.points.back().x > to.x);
    CHECK(line.points.back().x < to.right());
  }
}

TEST_CASE("hidden nodes become a fold that says so, and an isolated set is shown alone") {
  const ParsedPair c = ParsePair(Chain(6), Chain(6, 2));
  const Scene scene = SceneOf(c);
  const SceneNodeId node{4};
  const SceneGeometry hidden = MakeGeometry(
      scene, {.open = Everything(scene), .hops = SceneView::kAllHops, .hidden = {node}});
  REQUIRE(hidden.BoxOf(node) != nullptr);
  CHECK_FALSE(hidden.BoxOf(node)->node.valid());
  CHECK(hidden.BoxOf(node)->by_hand);
  const SceneGeometry only =
      MakeGeometry(scene, {.open = Everything(scene), .only = std::set<SceneNodeId>{node}});
  CHECK(only.drawn == 1);
}

TEST_CASE("equal layers are one slab until one of them is opened") {
  std::string text = "graph step\n  x = placeholder\n";
  std::string last = "x";
  for (int i = 0; i < 5; ++i) {
    text += fmt::format("  a{0} = aten.neg.default({1}) {{forward module=layers.{0}}}\n", i, last);
    text += fmt::format("  b{0} = aten.relu.default(a{0}) {{forward module=layers.{0}}}\n", i);
    last = fmt::format("b{}", i);
  }
  text += fmt::format("  output([{}])\n", last);
  const ParsedPair c = ParsePair(text, text);
  const Scene scene = SceneOf(c);
  const auto group = std::ranges::find_if(
      scene.clusters, [](const SceneCluster& cluster) { return cluster.repeats == 5; });
  REQUIRE(group != scene.clusters.end());
  const ClusterId id{static_cast<int32_t>(group - scene.clusters.begin())};
  const ClusterId first{id.index + 1}, second{id.index + 2};
  SceneView view;
  OpenTo(scene, id, view.open);
  const SceneGeometry geometry = MakeGeometry(scene, view);
  CHECK(std::ranges::any_of(geometry.slabs,
                            [](const SceneSlab& slab) { return slab.run.size() == 5; }));
  view.open.insert(first);
  const SceneGeometry opened = MakeGeometry(scene, view);
  REQUIRE(opened.SlabOf(first) != nullptr);
  CHECK(opened.SlabOf(first)->open);
  CHECK(opened.SlabOf(second)->run.size() == 4);
}

}  // namespace
}  // namespace strata
