#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

/// A node of a snapshot, for the brute-force count.
struct Entity {
  uint64_t stable_id;
  std::string content;
  std::vector<std::pair<size_t, TypeId>> elements;  // that are printed: result and type
  int64_t printed() const { return 1 + static_cast<int64_t>(elements.size()); }
};

std::vector<Entity> EntitiesOf(const Module& module) {
  std::vector<Entity> entities;
  for (size_t g = 0; g < module.num_graphs(); ++g) {
    const Graph& graph = module.graph(GraphId{static_cast<int32_t>(g)});
    for (NodeId id : graph.nodes()) {
      const Node& node = graph.node(id);
      Entity entity{static_cast<uint64_t>(node.stable_id), "", {}};
      // Operands by stable id; everything else by the ids of this module, which Clone keeps.
      entity.content = fmt::format("{} {} {} {} ", static_cast<int>(node.kind), graph.op(id),
                                   module.str(node.module), static_cast<int>(node.phase));
      const auto append = [&](const auto& self, const Arg& arg) -> void {
        entity.content += fmt::format("{}:", static_cast<int>(arg.kind()));
        if (arg.is_value()) {
          const Node& producer = graph.node(graph.value(arg.value()).def);
          entity.content += fmt::format("{}.{} ", static_cast<uint64_t>(producer.stable_id),
                                        graph.result_index(arg.value()));
        } else if (arg.is_span()) {
          entity.content += fmt::format("[{} ", arg.span_size());
          for (const Arg& element : graph.elements(arg))
            self(self, element);
        } else if (arg.kind() == ArgKind::kInt) {
          entity.content += fmt::format("{} ", arg.as_int());
        } else if (!arg.is_none() && arg.kind() != ArgKind::kFloat) {
          entity.content += fmt::format("{} ", arg.str().index);
        }
      };
      for (const Arg& arg : graph.args(id))
        append(append, arg);
      for (size_t i = 0; i < node.num_kwargs; ++i)
        append(append, graph.kwarg(id, i).value);
      for (size_t i = 0; i < node.num_results; ++i) {
        const Value& value = graph.value(graph.result(id, i));
        if (!node.returns_tuple) entity.content += fmt::format("r{} ", value.type.index);
        if (node.returns_tuple && value.name.valid()) entity.elements.emplace_back(i, value.type);
      }
      entities.push_back(std::move(entity));
    }
  }
  return entities;
}

/// The definition of ChangeCounts by brute force.
ChangeCounts CountSlowly(const std::vector<Entity>& before, const std::vector<Entity>& after) {
  ChangeCounts counts;
  std::map<uint64_t, size_t> old_places;
  for (size_t i = 0; i < before.size(); ++i)
    old_places[before[i].stable_id] = i;
  std::vector<size_t> kept;
  for (const Entity& entity : after) {
    const auto found = old_places.find(entity.stable_id);
    if (found == old_places.end()) {
      counts.inserted += entity.printed();
      continue;
    }
    kept.push_back(found->second);
    const Entity& old = before[found->second];
    counts.changed += entity.content != old.content ? 1 : 0;
    for (const auto& [result, type] : entity.elements) {
      const auto same = std::ranges::find(old.elements, result, &std::pair<size_t, TypeId>::first);
      counts.changed += same != old.elements.end() && same->second != type ? 1 : 0;
    }
    old_places.erase(found);
  }
  for (const auto& [stable_id, place] : old_places)
    counts.deleted += before[place].printed();
  std::vector<int64_t> longest(kept.size(), 1);
  int64_t best = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (kept[k] < kept[i]) longest[i] = std::max(longest[i], longest[k] + 1);
    }
    best = std::max(best, longest[i]);
  }
  counts.moved = static_cast<int64_t>(kept.size()) - best;
  return counts;
}

struct Recorded {
  ChangeCounts counts;
  int64_t nodes_before, nodes_after;
};

/// The store's counts between two states of a module.
Recorded Record(const Module& before, const Module& after) {
  const TempDir folder;
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata", TraceWriter::Mode::kAside));
  const RunId run = OrDie(writer->BeginRun({}));
  PassRecord pass;
  pass.graph = "step";
  pass.before = OrDie(writer->AddSnapshot(run, "step", before.graph(GraphId{0})));
  const StoredPass stored = OrDie(writer->RecordPass(run, pass, &after.graph(GraphId{0})));
  return {*stored.record.counts, writer->snapshot(stored.record.before).nodes,
          writer->snapshot(stored.record.after).nodes};
}

TEST_CASE("counts of random edits equal the brute-force counts") {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    CAPTURE(seed);
    const auto before = MakeModule(seed, 400);
    const auto after = before->Clone();
    Random random(seed);
    Edit(*after, random, seed * 4);
    const Recorded recorded = Record(*before, *after);
    const ChangeCounts expected = CountSlowly(EntitiesOf(*before), EntitiesOf(*after));
    CHECK_EQ(recorded.counts.inserted, expected.inserted);
    CHECK_EQ(recorded.counts.deleted, expected.deleted);
    CHECK_EQ(recorded.counts.changed, expected.changed);
    CHECK_EQ(recorded.counts.moved, expected.moved);
    CHECK_EQ(recorded.nodes_after,
             recorded.nodes_before + recorded.counts.inserted - recorded.counts.deleted);
  }
}

constexpr std::string_view kChain = R"(
graph step
  x = placeholder
  a = aten.relu.default(x)
  b = aten.neg.default(x)
  (c, d) = aten.split.Tensor(a, 2) as split
  output([b, c])
)";

constexpr std::string_view kTyped = R"(
graph step
  x = placeholder : f32[2][1]cpu
  a = aten.relu.default(x) : f32[2][1]cpu
  output([a])
)";

TEST_CASE("differences in names, attributes and other metadata are not changes") {
  const auto before = OrDie(ParseText(kChain));
  const auto after = before->Clone();
  Graph& graph = after->graph(GraphId{0});
  {
    Rewriter rewriter(graph);
    const NodeId a = graph.node(graph.first()).next;
    rewriter.SetName(a, "other");
    rewriter.SetAttribute(a, "recompute", "1");
    rewriter.SetSeqNr(a, 4);
    rewriter.SetStream(a, 1);
  }
  CHECK_EQ(Record(*before, *after).counts, ChangeCounts{});
}

TEST_CASE("differences in operator, argument, type, module and phase are changes") {
  const auto before = OrDie(ParseText(kChain));
  const auto count = [&](const auto& edit) {
    const auto after = before->Clone();
    Graph& graph = after->graph(GraphId{0});
    Rewriter rewriter(graph);
    edit(rewriter, graph, graph.node(graph.first()).next);
    return Record(*before, *after).counts;
  };
  const ChangeCounts one{.inserted = 0, .deleted = 0, .changed = 1, .moved = 0};
  CHECK_EQ(count([](Rewriter& r, Graph&, NodeId a) { r.SetOp(a, "aten.exp.default"); }), one);
  CHECK_EQ(count([](Rewriter& r, Graph&, NodeId a) { r.SetPhase(a, Phase::kLoss); }), one);
  CHECK_EQ(count([](Rewriter& r, Graph&, NodeId a) { r.SetModule(a, "layers.0"); }), one);
  CHECK_EQ(count([](Rewriter& r, Graph& g, NodeId a) {
             r.SetType(g.result(a), g.module().types().Parse("f32[2]cpu"));
           }),
           one);
  CHECK_EQ(count([](Rewriter& r, Graph& g, NodeId a) { r.SetArgs(a, {}, {}), (void)g; }), one);
}

TEST_CASE("placements that only one graph has are not changes, those of both are") {
  const auto plain = OrDie(ParseText(kTyped));
  const auto placed = [&](std::string_view placement) {
    auto module = plain->Clone();
    Graph& graph = module->graph(GraphId{0});
    const NodeId a = graph.node(graph.first()).next;
    Rewriter(graph).SetType(graph.result(a), module->types().Parse(fmt::format(
                                                 "DTensor(f32[2][1]cpu, {})", placement)));
    return module;
  };
  const ChangeCounts one{.inserted = 0, .deleted = 0, .changed = 1, .moved = 0};
  CHECK_EQ(Record(*plain, *placed("S(0)")).counts, ChangeCounts{});
  CHECK_EQ(Record(*placed("S(0)"), *plain).counts, ChangeCounts{});
  CHECK_EQ(Record(*placed("S(0)"), *placed("S(0)")).counts, ChangeCounts{});
  CHECK_EQ(Record(*placed("S(0)"), *placed("R")).counts, one);
}

TEST_CASE("every element of a tuple whose type differs is a change, and the tuple is none") {
  const auto before = OrDie(ParseText(kChain));
  const auto after = before->Clone();
  Graph& graph = after->graph(GraphId{0});
  {
    Rewriter rewriter(graph);
    const NodeId split = graph.node(graph.node(graph.node(graph.first()).next).next).next;
    for (const size_t i : {0, 1})
      rewriter.SetType(graph.result(split, i), graph.module().types().Parse("f32[2]cpu"));
  }
  const ChangeCounts two{.inserted = 0, .deleted = 0, .changed = 2, .moved = 0};
  CHECK_EQ(Record(*before, *after).counts, two);
}

TEST_CASE("an element without users counts as deleted, an element in another position as moved") {
  const auto before = OrDie(ParseText(kChain));
  const auto after = before->Clone();
  Graph& graph = after->graph(GraphId{0});
  {
    Rewriter rewriter(graph);
    const NodeId a = graph.node(graph.first()).next;
    const NodeId b = graph.node(a).next;
    const NodeId split = graph.node(b).next;
    rewriter.SetElementName(graph.result(split, 1), "");
    rewriter.MoveBefore(b, a);
  }
  const ChangeCounts expected{.inserted = 0, .deleted = 1, .changed = 0, .moved = 1};
  CHECK_EQ(Record(*before, *after).counts, expected);
}

TEST_CASE("all nodes of a graph that a pass added are inserted") {
  const auto module = MakeModule(1, 20);
  const TempDir folder;
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  PassRecord pass;
  pass.graph = "step";
  const StoredPass stored = OrDie(writer->RecordPass(run, pass, &module->graph(GraphId{0})));
  CHECK_EQ(stored.record.counts->inserted, writer->snapshot(stored.record.after).nodes);
}

TEST_CASE("counts given by an importer are stored unchanged") {
  const auto module = MakeModule(1, 20);
  const TempDir folder;
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  PassRecord pass;
  pass.counts = ChangeCounts{1, 2, 3, 4};
  pass.graph = "step";
  OrDie(writer->RecordPass(run, pass, &module->graph(GraphId{0})));
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  CHECK_EQ(*reader->runs()[0].passes[0].record.counts, ChangeCounts{1, 2, 3, 4});
}

}  // namespace
}  // namespace strata::store_test
