#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/compare/stated_paths.h"
#include "diff/diff.h"
#include "diff/graph/hash.h"
#include "diff/graph/sequence.h"
#include "ir/fx/fx.h"
#include "ir/stated_path.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;

std::unique_ptr<Module> Read(const std::string& name) {
  std::ifstream file(fmt::format("tests/data/exported/{}.txt", name));
  std::stringstream text;
  text << file.rdbuf();
  return std::move(OrDie(ParseFx(text.str(), {})).module);
}

/// What a reader knows a line by: its operator and the parameters that it reads, or the name of an
/// input.
std::vector<uint64_t> LinesOf(const Graph& graph) {
  std::vector<uint64_t> lines;
  const Listing listing(graph);
  for (EntityId id : listing.ids()) {
    const Entity& entity = listing[id];
    if (entity.kind == EntityKind::kOutput) continue;
    uint64_t line = entity.kind == EntityKind::kInput ? HashText(listing.name(id))
                                                      : HashText(listing.target(id));
    for (const Arg& arg : graph.args(entity.node)) {
      if (arg.kind() != ArgKind::kValue) continue;
      const EntityId operand = listing.FindValue(graph.id(), arg.value());
      const bool is_input = operand.valid() && listing[operand].kind == EntityKind::kInput;
      line = Mix(line, is_input ? HashText(listing.name(operand)) : 0);
    }
    lines.push_back(line);
  }
  return lines;
}

TEST_CASE("exported models: layers differ by the names of their parameters") {
  for (const std::string_view name :
       {"gpt", "conv", "enc", "mlp", "norm", "moved", "residual", "regrouped", "inserted", "unet",
        "level", "vit", "translator", "experts", "graph"}) {
    CAPTURE(name);
    const auto before = Read(fmt::format("{}_before", name)),
               after = Read(fmt::format("{}_after", name));
    const Graph &a = before->graph({0}), &b = after->graph({0});
    const GraphDiff diff = OrDie(Diff(a, b));
    const std::vector<uint64_t> x = LinesOf(a), y = LinesOf(b);
    const size_t by_names = x.size() + y.size() - 2 * CommonSubsequence(x, y).size();
    const auto changes = static_cast<size_t>(CountChanges(diff));
    const auto touched = static_cast<size_t>(CountTouched(diff));
    INFO(changes, " changes, ", touched, " nodes touched, ", by_names, " lines");
    CHECK_LE(10 * changes, 11 * by_names);
    // A line by names does not show that two nodes read the inserted layer's result.
    const size_t unseen = name == "inserted" ? 2 : 0;
    CHECK_LE(10 * (touched - unseen), 11 * by_names);
    for (const Pair& pair : diff.pairs) {
      if (diff.before[pair.before].kind != EntityKind::kInput) continue;
      CHECK_EQ(StatedPath(a, diff.before[pair.before].node),
               StatedPath(b, diff.after[pair.after].node));
    }
  }
}

TEST_CASE("exported models: a norm stays the same node when it is exchanged") {
  for (const std::string_view name : {"norm", "unet", "translator"}) {
    CAPTURE(name);
    const auto before = Read(fmt::format("{}_before", name)),
               after = Read(fmt::format("{}_after", name));
    const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
    // Biases and statistics are gone, and nothing else.
    CHECK(diff.inserted.empty());
    for (EntityId id : diff.deleted)
      CHECK_EQ(diff.before[id].kind, EntityKind::kInput);
  }
}

TEST_CASE("exported models: the computations that read the parameters of a level are the level") {
  // The sizes of the images say otherwise: level `b` has those now that `x` has before it.
  const auto before = Read("level_before"), after = Read("level_after");
  const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
  for (const Pair& pair : diff.pairs) {
    for (const FieldDiff& field : pair.fields) {
      if (!field.before || !field.path.starts_with("operands[")) continue;
      CHECK_FALSE(field.before->starts_with("p_"));
    }
  }
}

}  // namespace
}  // namespace strata
