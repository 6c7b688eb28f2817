// Unrelated graphs are large enough to look alike here and there: what a diff claims of them.
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/patch/apply.h"
#include "diff/patch/make.h"
#include "diff/patch/parse.h"
#include "ir/fingerprint.h"
#include "ir/rewriter.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::OrDie;

/// Calls of 50 operators in an order of their own, each of two values that were computed before it.
std::unique_ptr<Module> RandomCalls(int nodes, uint32_t edges_seed, std::string_view prefix) {
  auto module = std::make_unique<Module>();
  Rewriter rewriter(module->AddGraph("g"));
  const TypeId type = module->types().Tensor(DType::kF32, std::array<int64_t, 2>{4, 4}, "cpu");
  std::mt19937 operators(1), edges(edges_seed);
  std::vector<ValueId> values;
  const auto add = [&](NodeKind kind, std::string_view op, const std::vector<Arg>& args) {
    NodeSpec spec;
    spec.kind = kind;
    spec.op = op;
    spec.args = args;
    spec.results = {&type, kind == NodeKind::kOutput ? 0u : 1u};
    const NodeId node = rewriter.Create(spec, From::Source());
    if (kind != NodeKind::kOutput) values.push_back(module->graph({0}).result(node));
  };
  add(NodeKind::kPlaceholder, "", {});
  for (int i = 0; i < nodes; ++i) {
    const ValueId a = values[edges() % values.size()], b = values[edges() % values.size()];
    add(NodeKind::kCall, fmt::format("{}{}", prefix, operators() % 50), {a, b});
  }
  add(NodeKind::kOutput, "", {values.back()});
  return module;
}

/// The share of the before nodes that a diff claims to find again, and checks that it is a diff.
double ShareClaimed(const Graph& before, const Graph& after) {
  const GraphDiff diff = OrDie(Diff(before, after));
  const auto patched = OrDie(ApplyPatch(before, OrDie(ParsePatch(MakePatch(diff)))));
  CHECK_EQ(ToString(FingerprintOf(patched->graph({0}))), ToString(FingerprintOf(after)));
  return static_cast<double>(diff.pairs.size()) / diff.before.size();
}

TEST_CASE("chance: of calls between other values, order is no evidence") {
  const auto before = RandomCalls(30'000, 1, "op"), after = RandomCalls(30'000, 2, "op");
  CHECK_LT(ShareClaimed(before->graph({0}), after->graph({0})), 0.05);
}

TEST_CASE("chance: what has neither operators nor edges in common is not found by types") {
  const auto before = RandomCalls(100'000, 1, "old.step"), after = RandomCalls(100'000, 2, "turn");
  CHECK_LT(ShareClaimed(before->graph({0}), after->graph({0})), 0.001);
}

TEST_CASE("chance: calls of other operators between the same values are found") {
  const auto before = RandomCalls(30'000, 1, "op"), after = RandomCalls(30'000, 1, "turn");
  CHECK_EQ(ShareClaimed(before->graph({0}), after->graph({0})), 1.0);
}

}  // namespace
}  // namespace strata
