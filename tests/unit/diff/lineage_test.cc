#include "diff/history/lineage.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// Graphs of a pipeline with the lineage along them.
struct Pipeline {
  explicit Pipeline(std::initializer_list<std::string_view> texts) {
    for (std::string_view text : texts)
      modules.push_back(ParseBody(text));
    lineage.emplace(Listing(graph(0)).size());
    for (size_t i = 1; i < modules.size(); ++i)
      lineage->Add(OrDie(Diff(graph(i - 1), graph(i))));
  }
  const Graph& graph(size_t snapshot) const { return modules[snapshot]->graph({0}); }
  NodeHistoryId Named(int32_t snapshot, std::string_view name) const {
    return lineage->NodeHistoryAt(snapshot,
                                  Listing(graph(static_cast<size_t>(snapshot))).FindName(name));
  }
  std::string NameAt(NodeHistoryId life, int32_t snapshot) const {
    const EntityId id = lineage->At(life, snapshot);
    return id.valid() ? Listing(graph(static_cast<size_t>(snapshot))).name(id) : "-";
  }
  /// "0 given, 1 changed, 2 deleted".
  std::string Story(NodeHistoryId life) const {
    std::vector<std::string> parts;
    for (const NodeEvent& event : lineage->events(life)) {
      static constexpr std::string_view kKinds[] = {"given", "born", "", "deleted"};
      std::string what = event.kind == NodeEvent::Kind::kKept
                             ? ToString(event.status)
                             : std::string(kKinds[static_cast<size_t>(event.kind)]);
      for (NodeHistoryId relative : event.relatives) {
        const int32_t snapshot =
            event.kind == NodeEvent::Kind::kCreated ? event.snapshot - 1 : event.snapshot;
        what += " " + NameAt(relative, snapshot);
      }
      parts.push_back(fmt::format("{} {}", event.snapshot, what));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  std::vector<std::unique_ptr<Module>> modules;
  std::optional<Lineage> lineage;
};

const std::initializer_list<std::string_view> kTexts = {
    R"(
  x = placeholder
  a = aten.sin.default(x)
  b = aten.view.default(a, [2])
  output(b)
)",
    R"(
  x = placeholder
  a = aten.sin.default(x)
  k = aten._to_copy.default(a)
  b = aten.view.default(k, [2])
  output(b)
)",
    R"(
  x = placeholder
  a = aten.sin.default(x)
  b_1 = aten.view.default(a, [4])
  output(b_1)
)"};

TEST_CASE("lineage: a node's events along a pipeline") {
  const Pipeline pipeline(kTexts);
  CHECK_EQ(pipeline.Story(pipeline.Named(0, "b")), "0 given, 1 changed, 2 renamed+changed");
  CHECK_EQ(pipeline.Story(pipeline.Named(0, "a")), "0 given");
  CHECK_EQ(pipeline.Story(pipeline.Named(1, "k")), "1 born, 2 deleted");
}

TEST_CASE("lineage: composed maps tell what became of the first graph, and what came and went") {
  const Pipeline pipeline(kTexts);
  std::vector<std::string> links;
  for (const Lineage::Link& link : pipeline.lineage->Compose(0, 2)) {
    links.push_back(Listing(pipeline.graph(0)).name(link.before) + "=" +
                    Listing(pipeline.graph(2)).name(link.after));
  }
  CHECK_EQ(fmt::format("{}", fmt::join(links, " ")), "x=x a=a b=b_1 output=output");
  const std::vector<NodeHistoryId> transients = pipeline.lineage->Transients(0, 2);
  REQUIRE_EQ(transients.size(), 1);
  CHECK_EQ(pipeline.NameAt(transients[0], 1), "k");
  const GraphDiff direct = OrDie(Diff(pipeline.graph(0), pipeline.graph(2)));
  CHECK(pipeline.lineage->Contradictions(direct, 0, 2).empty());
}

TEST_CASE("lineage: a direct comparison that says otherwise is told") {
  const Pipeline pipeline(kTexts);
  const GraphDiff direct =
      OrDie(Diff(pipeline.graph(0), pipeline.graph(2), {.pins = {{"a", "b_1"}}}));
  const auto contradictions = pipeline.lineage->Contradictions(direct, 0, 2);
  REQUIRE_EQ(contradictions.size(), 2);
  CHECK_EQ(contradictions[0].before, Listing(pipeline.graph(0)).FindName("a"));
  CHECK_EQ(contradictions[0].composed, Listing(pipeline.graph(2)).FindName("a"));
  CHECK_EQ(contradictions[0].direct, Listing(pipeline.graph(2)).FindName("b_1"));
}

TEST_CASE("lineage: an unchanged snapshot keeps all lives, and confidences multiply") {
  const Pipeline pipeline({kTexts.begin()[0]});
  Lineage lineage = *pipeline.lineage;
  lineage.AddUnchanged();
  GraphDiff diff = OrDie(Diff(pipeline.graph(0), pipeline.graph(0)));
  diff.pairs[PairId{1}].confidence = 0.5;
  lineage.Add(diff);
  diff.pairs[PairId{1}].confidence = 0.25;
  lineage.Add(diff);
  CHECK_EQ(lineage.num_snapshots(), 4);
  const NodeHistoryId life = lineage.NodeHistoryAt(0, diff.pairs[PairId{1}].before);
  CHECK_EQ(lineage.Confidence(life, 0, 1), 1);
  CHECK_EQ(lineage.Confidence(life, 0, 3), 0.125);
  CHECK_EQ(lineage.last(life), 3);
}

TEST_CASE("lineage: provenance names ancestors across nodes of intermediate graphs") {
  const auto before = ParseBody(R"(
  x = placeholder
  a = f(x)
  output(a)
)");
  const auto after = before->Clone();
  Graph& graph = after->graph({0});
  Rewriter rewriter(graph);
  const NodeId a = testing::NodeNamed(graph, "a");
  rewriter.SetCursorAfter(a);
  const NodeId middle = rewriter.Create("g", {Arg(graph.result(a))}, From{a});
  const NodeId made = rewriter.Create("h", {Arg(graph.result(testing::NodeNamed(graph, "x")))},
                                      From({middle}, Origin::kReplaced));
  rewriter.ReplaceUses(graph.result(a), graph.result(made));
  rewriter.Erase(middle);
  rewriter.Erase(a);
  const std::vector<Provenance> provenance = after->TakeProvenance();
  const GraphDiff diff = OrDie(Diff(before->graph({0}), graph, {.stable_ids = true}));
  Lineage lineage(diff.before.size());
  lineage.Add(diff, provenance);
  const NodeHistoryId old_life = lineage.NodeHistoryAt(0, diff.before.FindName("a"));
  REQUIRE_EQ(diff.inserted.size(), 1);
  const NodeHistoryId new_life = lineage.NodeHistoryAt(1, diff.inserted[0]);
  CHECK_EQ(lineage.events(new_life)[0].relatives, std::vector<NodeHistoryId>{old_life});
  CHECK_EQ(lineage.events(new_life)[0].origin, Origin::kReplaced);
  CHECK_EQ(lineage.events(old_life).back().relatives, std::vector<NodeHistoryId>{new_life});
}

}  // namespace
}  // namespace strata
