#include "ir/rewriter.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::ParseOrDie;
using testing::ValueNamed;

constexpr std::string_view kChain = R"(graph step
  x = placeholder
  a = aten.relu.default(x) {forward module=layers.0 seq=4}
  b = aten.add.Tensor(a, a)
  output([b, a])
)";

std::string Text(const Graph& graph) {
  return PrintText(graph);
}

TEST_CASE("a created node is placed at the cursor and inherits metadata from its first ancestor") {
  auto module = ParseOrDie(kChain);
  Graph& graph = *module->FindGraph("step");
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(NodeNamed(graph, "b"));
  const NodeId neg =
      rewriter.Create("aten.neg.default", {ValueNamed(graph, "a")}, From{NodeNamed(graph, "a")});
  CHECK(graph.node(neg).next == NodeNamed(graph, "b"));
  CHECK(graph.name(neg) == "neg");
  CHECK(module->str(graph.node(neg).module) == "layers.0");
  CHECK(graph.node(neg).phase == Phase::kForward);
  CHECK(graph.node(neg).seq_nr == 4);
  CHECK(Verify(graph).has_value());
}

TEST_CASE("Create records provenance, tracing does not") {
  auto module = ParseOrDie(kChain);
  Graph& graph = *module->FindGraph("step");
  CHECK(module->provenance().empty());
  Rewriter rewriter(graph);
  const NodeId a = NodeNamed(graph, "a"), b = NodeNamed(graph, "b");
  const NodeId made = rewriter.Create("aten.mul.Tensor", {graph.result(a), graph.result(b)},
                                      From({a, b}, Origin::kReplaced));
  const std::vector<Provenance> births = module->TakeProvenance();
  REQUIRE(births.size() == 1);
  CHECK(births[0].node == graph.node(made).stable_id);
  CHECK(births[0].origin == Origin::kReplaced);
  CHECK(births[0].from == std::vector<StableId>{graph.node(a).stable_id, graph.node(b).stable_id});
  CHECK(module->provenance().empty());
}

TEST_CASE("ReplaceUses reaches arguments inside lists") {
  auto module = ParseOrDie(kChain);
  Graph& graph = *module->FindGraph("step");
  Rewriter rewriter(graph);
  rewriter.ReplaceUses(ValueNamed(graph, "a"), ValueNamed(graph, "x"));
  rewriter.Erase(NodeNamed(graph, "a"));
  CHECK(Text(graph) == R"(graph step
  x = placeholder
  b = aten.add.Tensor(x, x)
  output([b, x])
)");
  CHECK(Verify(graph).has_value());
}

TEST_CASE("uses are listed oldest first, one per argument") {
  auto module = ParseOrDie(kChain);
  Graph& graph = *module->FindGraph("step");
  std::vector<std::string> users;
  for (const Use use : graph.uses(ValueNamed(graph, "a"))) {
    users.emplace_back(graph.name(use.user));
  }
  CHECK(users == std::vector<std::string>{"b", "b", "output"});
  CHECK(graph.value(ValueNamed(graph, "a")).num_uses == 3);
}

TEST_CASE("uses stay in order, whichever of them goes and comes") {
  for (uint32_t gone = 0; gone < 3; ++gone) {
    auto module = ParseOrDie(R"(graph g
  x = placeholder
  y = placeholder
  a = aten.cat.default(x, x, x)
  output(a)
)");
    Graph& graph = *module->FindGraph("g");
    Rewriter rewriter(graph);
    const ValueId x = ValueNamed(graph, "x");
    const NodeId a = NodeNamed(graph, "a");
    const uint32_t begin = graph.node(a).args_begin;
    std::vector<uint32_t> expected{begin, begin + 1, begin + 2};
    const auto listed = [&] {
      std::vector<uint32_t> slots;
      for (const Use use : graph.uses(x))
        slots.push_back(use.slot);
      return slots;
    };
    CHECK_EQ(listed(), expected);
    rewriter.SetSlot(a, begin + gone, Arg(ValueNamed(graph, "y")));
    expected.erase(expected.begin() + gone);
    CHECK_EQ(listed(), expected);
    rewriter.SetSlot(a, begin + gone, Arg(x));
    expected.push_back(begin + gone);
    CHECK_EQ(listed(), expected);
    CHECK(Verify(graph).has_value());
    rewriter.ReplaceUses(x, ValueNamed(graph, "y"));
    CHECK(listed().empty());
    CHECK(Verify(graph).has_value());
  }
}

TEST_CASE("an erased node is removed from order, uses and count") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder
  a = aten.relu.default(x)
  b = aten.neg.default(a)
  output(x)
)");
  Graph& graph = *module->FindGraph("g");
  Rewriter rewriter(graph);
  rewriter.Erase(NodeNamed(graph, "b"));
  rewriter.Erase(NodeNamed(graph, "a"));
  CHECK(graph.num_nodes() == 2);
  CHECK(graph.value(ValueNamed(graph, "x")).num_uses == 1);
  CHECK(Verify(graph).has_value());
}

TEST_CASE("a moved node keeps identity and uses") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder
  a = aten.relu.default(x) #7
  b = aten.neg.default(x)
  output([a, b])
)");
  Graph& graph = *module->FindGraph("g");
  Rewriter rewriter(graph);
  rewriter.MoveBefore(NodeNamed(graph, "b"), NodeNamed(graph, "a"));
  CHECK(graph.node(NodeNamed(graph, "a")).stable_id == StableId{7});
  CHECK(graph.node(NodeNamed(graph, "b")).next == NodeNamed(graph, "a"));
  CHECK(Verify(graph).has_value());
}

TEST_CASE("a clone has a new identity, its own lists and unused names") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder
  (a, b) = aten.split.Tensor(x, [1, 2]) as split {+recompute='must'}
  output([a, b])
)");
  Graph& graph = *module->FindGraph("g");
  Rewriter rewriter(graph);
  const NodeId split = NodeNamed(graph, "split");
  const NodeId copy = rewriter.Clone(split);
  CHECK(graph.node(copy).stable_id != graph.node(split).stable_id);
  CHECK(graph.name(copy) == "split_1");
  CHECK(graph.value_name(graph.result(copy, 1)) == "b_1");
  CHECK(graph.attribute(copy, "recompute") == "must");
  CHECK(graph.args(copy)[1].span_begin() != graph.args(split)[1].span_begin());
  CHECK(module->provenance()[0].origin == Origin::kCloned);
  CHECK(Verify(graph).has_value());
}

TEST_CASE("name suffixes count from the name without its number, as in FX") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder
  add = aten.add.Tensor(x, x)
  add_1 = aten.add.Tensor(x, x)
  output([add, add_1])
)");
  Graph& graph = *module->FindGraph("g");
  Rewriter rewriter(graph);
  CHECK(graph.name(rewriter.Clone(NodeNamed(graph, "add_1"))) == "add_2");
  CHECK(graph.name(rewriter.Create("aten.add.Tensor", {}, From{NodeNamed(graph, "add")})) ==
        "add_3");
}

TEST_CASE("alias_of names the owner of the storage") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder
  v = aten.view.default(x, [4]) ~x
  w = aten.t.default(v) ~v
  output([v, w])
)");
  Graph& graph = *module->FindGraph("g");
  CHECK(graph.value(ValueNamed(graph, "w")).alias_of == ValueNamed(graph, "x"));
  SUBCASE("removing a view from a chain keeps the other aliases") {
    Rewriter rewriter(graph);
    rewriter.ReplaceUses(ValueNamed(graph, "v"), ValueNamed(graph, "x"));
    rewriter.Erase(NodeNamed(graph, "v"));
    CHECK(graph.value(ValueNamed(graph, "w")).alias_of == ValueNamed(graph, "x"));
    CHECK(Verify(graph).has_value());
  }
  SUBCASE("aliases of an erased owner own their storage") {
    Rewriter rewriter(graph);
    for (const char* use : {"v", "w"}) {
      const NodeId node = NodeNamed(graph, use);
      rewriter.SetArgs(node, {}, {});
    }
    rewriter.Erase(NodeNamed(graph, "x"));
    CHECK_FALSE(graph.value(ValueNamed(graph, "v")).alias_of.valid());
    CHECK_FALSE(graph.value(ValueNamed(graph, "w")).alias_of.valid());
    CHECK(Verify(graph).has_value());
  }
  SUBCASE("views follow the replacement of their owner") {
    Rewriter rewriter(graph);
    rewriter.SetCursorAfter(NodeNamed(graph, "x"));
    const NodeId y = rewriter.Create("aten.empty.memory_format", {}, From{NodeNamed(graph, "x")});
    rewriter.ReplaceUses(ValueNamed(graph, "x"), graph.result(y));
    CHECK(graph.value(ValueNamed(graph, "v")).alias_of == graph.result(y));
    CHECK(graph.value(ValueNamed(graph, "w")).alias_of == graph.result(y));
    CHECK(Verify(graph).has_value());
  }
}

TEST_CASE("arguments may be replaced by spans of the same graph's arguments") {
  auto module = ParseOrDie(kChain);
  Graph& graph = *module->FindGraph("step");
  Rewriter rewriter(graph);
  const NodeId b = NodeNamed(graph, "b");
  for (int i = 0; i < 20; ++i)
    rewriter.SetArgs(b, graph.args(b), {});
  CHECK(Text(graph).find("b = aten.add.Tensor(a, a)") != std::string::npos);
  CHECK(Verify(graph).has_value());
}

TEST_CASE("a node that gains results keeps the uses of its old results") {
  auto module = ParseOrDie(kChain);
  Graph& graph = *module->FindGraph("step");
  Rewriter rewriter(graph);
  const NodeId a = NodeNamed(graph, "a");
  const std::vector<TypeId> two(2);
  rewriter.SetResults(a, two, true);
  rewriter.SetElementName(graph.result(a, 0), "a_0");
  CHECK(Text(graph).find("b = aten.add.Tensor(a_0, a_0)") != std::string::npos);
  CHECK(graph.num_printed_nodes() == graph.num_nodes() + 1);
  CHECK(Verify(graph).has_value());
}

TEST_CASE("a module's clone is independent and equal") {
  auto module = ParseOrDie(kChain);
  auto copy = module->Clone();
  CHECK(PrintText(*copy) == PrintText(*module));
  Graph& graph = *copy->FindGraph("step");
  Rewriter(graph).SetModule(NodeNamed(graph, "b"), "layers.9");
  CHECK(PrintText(*copy) != PrintText(*module));
  CHECK(Verify(*copy).has_value());
}

}  // namespace
}  // namespace strata
