#include "scene/scene.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/diff.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::ParseOrDie;

/// A diff together with its modules.
struct Compared {
  std::unique_ptr<Module> before, after;
  GraphDiff diff;
};

Compared Compare(std::string_view before, std::string_view after) {
  std::unique_ptr<Module> a = ParseOrDie(before), b = ParseOrDie(after);
  Result<GraphDiff> diff = Diff(a->graph({0}), b->graph({0}));
  REQUIRE(diff.has_value());
  return {std::move(a), std::move(b), std::move(diff).value()};
}

/// `layers` blocks of three forward and two backward nodes each; block `changed` has another
/// operator.
std::string Blocks(int layers, int changed = -1) {
  std::string text = "graph step\n  x_in = placeholder\n";
  std::string x = "x_in";
  for (int i = 0; i < layers; ++i) {
    text += fmt::format("  t{0} = aten.t.default({1}) {{forward module=layers.{0}.wq}}\n", i, x);
    text += fmt::format("  mm{0} = aten.mm.default({1}, t{0}) {{forward module=layers.{0}.wq}}\n",
                        i, x);
    text += fmt::format("  act{0} = aten.{1}.default(mm{0}) {{forward module=layers.{0}}}\n", i,
                        i == changed ? "gelu" : "relu");
    x = fmt::format("act{}", i);
  }
  for (int i = layers - 1; i >= 0; --i) {
    text += fmt::format("  ga{0} = aten.mul.Tensor({1}, act{0}) {{backward module=layers.{0}}}\n",
                        i, x);
    text += fmt::format(
        "  gm{0} = aten.mm.default(ga{0}, t{0}) {{backward module=layers.{0}.wq}}\n", i);
    x = fmt::format("gm{}", i);
  }
  return text + fmt::format("  output([{}])\n", x);
}

const SceneCluster& ClusterOf(const Scene& scene, std::string_view path) {
  const auto found = std::ranges::find(scene.clusters, path, &SceneCluster::path);
  REQUIRE(found != scene.clusters.end());
  return *found;
}

std::string NameOf(const GraphDiff& diff, const SceneNode& node) {
  return node.after.valid() ? diff.after.name(node.after) : diff.before.name(node.before);
}

/// The invariants of every scene.
void CheckSound(const GraphDiff& diff, const Scene& scene) {
  CHECK(scene.nodes.size() == diff.pairs.size() + diff.inserted.size() + diff.deleted.size());
  IdVector<SceneNodeId, int> placed(scene.nodes.size(), 0);
  for (ClusterId id : IdsOf(scene.clusters)) {
    const SceneCluster& cluster = scene.clusters[id];
    CHECK(cluster.parent < id);
    CHECK(cluster.counts.nodes == cluster.subtree_end - cluster.subtree_begin);
    for (const SceneBlock& block : cluster.blocks) {
      std::set<std::tuple<bool, int, int>> taken;
      for (const ScenePlace& place : block.places) {
        CHECK(place.row >= 0);
        CHECK(place.row < block.rows);
        // Boxes are two half columns wide.
        for (int x = place.x - 1; x <= place.x + 1; ++x) {
          CHECK_MESSAGE(!taken.contains({place.backward, place.row, x}), "overlap");
        }
        taken.emplace(place.backward, place.row, place.x);
        CHECK(scene.nodes[place.node].backward == place.backward);
        ++placed[place.node];
      }
      for (ClusterId child : block.clusters)
        CHECK(scene.clusters[child].parent == id);
    }
  }
  CHECK(std::ranges::all_of(placed, [](int times) { return times == 1; }));
  for (const SceneEdge& edge : scene.edges)
    CHECK(edge.from != edge.to);
}

TEST_CASE("every node has one position, also in graphs that differ") {
  for (int layers : {1, 2, 5}) {
    const Compared c = Compare(Blocks(layers), Blocks(layers, layers / 2));
    CheckSound(c.diff, MakeScene(c.diff));
  }
}

TEST_CASE("modules nest by path, inputs have their own slab") {
  const Compared c = Compare(Blocks(2), Blocks(2));
  const Scene scene = MakeScene(c.diff);
  const SceneCluster& wq = ClusterOf(scene, "layers.1.wq");
  CHECK(wq.label == "wq");
  CHECK(scene.clusters[wq.parent].path == "layers.1");
  CHECK(wq.counts.nodes == 3);
  CHECK(ClusterOf(scene, "inputs").counts.nodes == 1);
  CHECK(scene.clusters[Scene::kRoot].path.empty());
  CHECK(scene.has_backward);
}

TEST_CASE("forward runs down, backward runs up") {
  const Compared c = Compare(Blocks(1), Blocks(1));
  const Scene scene = MakeScene(c.diff);
  std::map<std::string, int> row;
  for (const SceneBlock& block : ClusterOf(scene, "layers.0.wq").blocks) {
    for (const ScenePlace& place : block.places) {
      row[NameOf(c.diff, scene.nodes[place.node])] = place.row;
    }
  }
  CHECK(row.at("t0") < row.at("mm0"));
  const Compared chain = Compare(R"(graph g
  x = placeholder
  a = aten.neg.default(x) {backward module=m}
  b = aten.abs.default(a) {backward module=m}
  output([b])
)",
                                 R"(graph g
  x = placeholder
  a = aten.neg.default(x) {backward module=m}
  b = aten.abs.default(a) {backward module=m}
  output([b])
)");
  const Scene up = MakeScene(chain.diff);
  const std::vector<ScenePlace>& places = ClusterOf(up, "m").blocks[0].places;
  REQUIRE(places.size() == 2);
  CHECK(places[0].row > places[1].row);  // the first to run is the lowest
}

TEST_CASE("equal neighbours form one group, a deviating one is separate") {
  const Compared c = Compare(Blocks(8), Blocks(8, 3));
  const Scene scene = MakeScene(c.diff);
  std::vector<std::string> labels;
  for (const SceneCluster& cluster : scene.clusters) {
    if (cluster.parent.valid() && scene.clusters[cluster.parent].path == "layers")
      labels.push_back(cluster.label);
  }
  CHECK(std::ranges::find(labels, "3") != labels.end());
  CHECK(std::ranges::find(labels, "{4..7}") != labels.end());
  CHECK(ClusterOf(scene, "layers.{4..7}").repeats == 4);
}

TEST_CASE("a removed node keeps its position and its edges") {
  const Compared c = Compare(
      R"(
graph g
  x = placeholder
  a = aten.neg.default(x)
  b = aten.abs.default(a)
  output([b])
)",
      R"(
graph g
  x = placeholder
  b = aten.abs.default(x)
  output([b])
)");
  const Scene scene = MakeScene(c.diff);
  std::vector<std::string> order;
  for (const SceneNode& node : scene.nodes)
    order.push_back(NameOf(c.diff, node));
  CHECK(order == std::vector<std::string>{"x", "a", "b", "output"});
  CHECK(scene.nodes[SceneNodeId{1}].status == SceneStatus::kRemoved);
  const auto edge = [&](int32_t from, int32_t to) {
    const auto found = std::ranges::find_if(
        scene.edges, [&](const SceneEdge& e) { return e.from.index == from && e.to.index == to; });
    return found == scene.edges.end() ? std::string("none") : std::string(ToString(found->status));
  };
  CHECK(edge(0, 1) == "removed");
  CHECK(edge(1, 2) == "removed");
  CHECK(edge(0, 2) == "added");
  CHECK(edge(2, 3) == "same");
  CHECK(scene.clusters[Scene::kRoot].counts.removed == 1);
}

TEST_CASE("each node has its distance to the nearest difference") {
  std::string before = "graph g\n  v0 = placeholder {module=m}\n", after = before;
  for (int i = 1; i < 20; ++i) {
    before += fmt::format("  v{} = aten.neg.default(v{}) {{forward module=m}}\n", i, i - 1);
    after += fmt::format("  v{} = aten.{}.default(v{}) {{forward module=m}}\n", i,
                         i == 10 ? "abs" : "neg", i - 1);
  }
  const Compared c = Compare(before + "  output([v19])\n", after + "  output([v19])\n");
  const Scene scene = MakeScene(c.diff);
  CheckSound(c.diff, scene);
  for (SceneNodeId id : Ids<SceneNodeId>(20))
    CHECK(scene.nodes[id].distance == std::min(std::abs(id.index - 10), 4));
}

TEST_CASE("siblings without data between them may share a row") {
  const std::string text = R"(graph g
  x = placeholder
  q = aten.neg.default(x) {forward module=a.wq}
  k = aten.abs.default(x) {forward module=a.wk}
  o = aten.mul.Tensor(q, k) {forward module=a.wo}
  output([o])
)";
  const Compared c = Compare(text, text);
  const Scene scene = MakeScene(c.diff);
  CHECK(ClusterOf(scene, "a.wk").joins_previous);
  CHECK_FALSE(ClusterOf(scene, "a.wo").joins_previous);
}

TEST_CASE("chunks of a module are slabs of it that share a row, equal ones a group") {
  const auto text = [](std::string_view second) {
    return fmt::format(R"(graph g
  x = placeholder
  a = aten.neg.default(x) {{forward module=l.moe.up +chunked_region_fqn='l.moe' +chunk_id='0'}}
  b = aten.{}.default(x) {{forward module=l.moe.up +chunked_region_fqn='l.moe' +chunk_id='1'}}
  o = aten.mul.Tensor(a, b) {{forward module=l.moe +chunked_region_fqn='l.moe'}}
  output([o])
)",
                       second);
  };
  const Compared apart = Compare(text("abs"), text("abs"));
  const Scene scene = MakeScene(apart.diff);
  CheckSound(apart.diff, scene);
  CHECK(ClusterOf(scene, "l.moe.chunk 0.up").counts.nodes == 1);
  CHECK(ClusterOf(scene, "l.moe.chunk 1").joins_previous);
  CHECK(ClusterOf(scene, "l.moe").counts.nodes == 3);
  const Compared alike = Compare(text("neg"), text("neg"));
  const Scene grouped = MakeScene(alike.diff);
  CheckSound(alike.diff, grouped);
  CHECK(ClusterOf(grouped, "l.moe.chunk {0..1}").repeats == 2);
  CHECK(ClusterOf(grouped, "l.moe.chunk 1").joins_previous);
}

TEST_CASE("stages of a pipeline are the outermost slabs, if there are several") {
  const auto text = [](int second) {
    return fmt::format(R"(graph g
  x = placeholder {{+stage='0'}}
  a = aten.neg.default(x) {{forward module=layers.0 +stage='0'}}
  b = aten.neg.default(a) {{forward module=layers.1 +stage='{}'}}
  output([b])
)",
                       second);
  };
  const Compared cut = Compare(text(0), text(1));
  const Scene scene = MakeScene(cut.diff);
  CheckSound(cut.diff, scene);
  CHECK(ClusterOf(scene, "stage 0.layers.0").counts.nodes == 1);
  CHECK(ClusterOf(scene, "stage 1.layers.1").counts.nodes == 1);
  CHECK(scene.clusters[ClusterOf(scene, "stage 1").parent].path.empty());
  const Compared whole = Compare(text(0), text(0));
  CHECK(ClusterOf(MakeScene(whole.diff), "layers.1").counts.nodes == 1);
}

TEST_CASE("hostile module paths nest to a limit and lose no node") {
  std::string path;
  for (int i = 0; i < 5000; ++i)
    path += "a.";
  for (const std::string& module :
       {path + "b", std::string("..."), std::string("</script>"), std::string(".a..b.")}) {
    const std::string text = "graph g\n  x = placeholder\n  y = aten.neg.default(x) {module=%'" +
                             module + "'}\n  output([y])\n";
    const Compared c = Compare(text, text);
    const Scene scene = MakeScene(c.diff);
    CheckSound(c.diff, scene);
    CHECK(scene.clusters.size() < 40);
  }
}

TEST_CASE("equal diffs give equal scenes") {
  const Compared c = Compare(Blocks(6), Blocks(6, 2));
  const Scene a = MakeScene(c.diff), b = MakeScene(c.diff);
  REQUIRE(a.clusters.size() == b.clusters.size());
  for (ClusterId id : IdsOf(a.clusters))
    CHECK(a.clusters[id].path == b.clusters[id].path);
  CHECK(a.by_cluster == b.by_cluster);
}

}  // namespace
}  // namespace strata
