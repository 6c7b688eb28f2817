// The class of a bug, and its reason, from what a wrong value is.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/placement/lowering/lower.h"
#include "prove/mutations/mutations.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// What is said of the first node of a lowered graph to which the edit applies.
std::string TextOf(std::string_view placed_text, std::string_view edit) {
  const auto placed = ParseBody(placed_text);
  const auto lowered = placed->Clone();
  OrDie(LowerPlacements().Run(*lowered));
  const Graph &before = *placed->FindGraph("g"), &after = *lowered->FindGraph("g");
  const auto mutation = std::ranges::find(Mutations(), edit, &Mutation::name);
  REQUIRE(mutation != Mutations().end());
  for (const NodeId node : after.nodes()) {
    const auto result = TryMutant(before, after, *mutation, node, {.stable_ids = true});
    if (!result) continue;
    CHECK(result->outcome == MutantOutcome::kCaught);
    return fmt::format("{}: {}: {}", result->node, ToString(result->diagnosis.kind),
                       result->diagnosis.reason);
  }
  return "no site";
}

/// A value that ranks hold in one way, and what reads it in another.
std::string Redistributed(std::string_view from, std::string_view to) {
  return fmt::format(R"(
  x = placeholder : DTensor(f32[8, 12][12, 1]cpu, {0}) {{+fqn='x' +input='parameter'}}
  r = strata.redistribute.default(x, '{1}') : DTensor(f32[8, 12][12, 1]cpu, {1})
  z = aten.mul.Tensor(r, r) : DTensor(f32[8, 12][12, 1]cpu, {1})
  output([z]) {{+mesh='fsdp=2,tp=2'}}
)",
                     from, to);
}

TEST_CASE("ranks that take the part of the first one of an axis are named with the axis") {
  CHECK_EQ(TextOf(Redistributed("S(0)R", "S(0)S(1)"), "first-part"),
           "z: wrong-offset: each rank has what the first one of tp should have");
}

TEST_CASE("gathers over each other's ranks are of wrong groups") {
  CHECK_EQ(TextOf(Redistributed("S(0)S(0)", "RR"), "exchange-groups"),
           "z: wrong-group: all_gather over fsdp in the place of all_gather over tp");
}

TEST_CASE("a summand that is added behind the sum over the ranks is named with what adds it") {
  constexpr std::string_view kSum = R"(
  x = placeholder : DTensor(f32[8, 8][8, 1]cpu, S(1)) {+fqn='x' +input='batch'}
  v = placeholder : DTensor(f32[8, 8][8, 1]cpu, S(0)) {+fqn='v' +input='parameter'}
  w = placeholder : DTensor(f32[8, 8][8, 1]cpu, S(0)) {+fqn='w' +input='parameter'}
  a = aten.mm.default(x, v) : DTensor(f32[8, 8][8, 1]cpu, P(sum))
  b = aten.mm.default(x, w) : DTensor(f32[8, 8][8, 1]cpu, P(sum))
  s = aten.add.Tensor(a, b) : DTensor(f32[8, 8][8, 1]cpu, P(sum))
  r = strata.redistribute.default(s, 'R') : DTensor(f32[8, 8][8, 1]cpu, R)
  z = aten.mul.Tensor(r, r) : DTensor(f32[8, 8][8, 1]cpu, R)
  output([z]) {+mesh='tp=2'}
)";
  CHECK_EQ(TextOf(kSum, "reduce-one-summand"),
           "z: partial-operand: add adds a rank's summand to a sum over the ranks");
}

/// A table that ranks have some rows of: each looks up its own, and others are masked.
constexpr std::string_view kLookup = R"(
  w = placeholder : DTensor(f32[8, 4][4, 1]cpu, S(0)) {+fqn='w' +input='parameter'}
  t = placeholder : DTensor(i64[6][1]cpu, R) {+fqn='t' +input='batch'}
  e = aten.embedding.default(w, t) : DTensor(f32[6, 4][4, 1]cpu, P(sum))
  r = strata.redistribute.default(e, 'R') : DTensor(f32[6, 4][4, 1]cpu, R)
  z = aten.mul.Tensor(r, r) : DTensor(f32[6, 4][4, 1]cpu, R)
  output([z]) {+mesh='tp=2'}
)";

TEST_CASE("a mask of the rows of a rank is named with the rank's place and the comparison") {
  for (const std::string_view edit : {"other-comparison", "strict-comparison", "first-index"}) {
    CAPTURE(edit);
    CHECK_EQ(TextOf(kLookup, edit),
             "z: wrong-mask: a mask, ge, is made of the rank's place on tp, axis_index");
  }
}

/// Positions are cut, then joined with the batch: a part of each of two blocks.
constexpr std::string_view kBlocks = R"(
  x = placeholder : DTensor(f32[2, 4, 4][16, 4, 1]cpu, R) {+fqn='x' +input='batch'}
  y = placeholder : DTensor(f32[8, 4][4, 1]cpu, F(0, 2)) {+fqn='y' +input='batch'}
  s = strata.redistribute.default(x, 'S(1)') : DTensor(f32[2, 4, 4][16, 4, 1]cpu, S(1))
  f = aten.reshape.default(s, [8, 4]) : DTensor(f32[8, 4][4, 1]cpu, F(0, 2))
  t = aten.t.default(f) : DTensor(f32[4, 8][1, 4]cpu, F(1, 2))
  g = aten.mm.default(t, y) : DTensor(f32[4, 4][4, 1]cpu, P(sum))
  output([g]) {+mesh='cp=2'}
)";

TEST_CASE("what is wrong with a part of blocks, which is not compared, is named where it is read") {
  CHECK_EQ(TextOf(kBlocks, "other-dim"), "g: wrong-dim: a part of dimension 2 cp instead of 1 cp");
}

}  // namespace
}  // namespace strata::prove
