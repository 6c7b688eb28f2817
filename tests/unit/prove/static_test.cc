#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/mutations/mutations.h"
#include "prove/prove_pass.h"
#include "prove/static/placement_check.h"
#include "tests/support/graphs.h"
#include "tests/unit/prove/lowered.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

/// Two products, whose gradients ranks sum.
constexpr std::string_view kTwoLayerStep = R"(
  w = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  v = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  x = placeholder : f32[8, 8][8, 1]cpu {+fqn='x' +input='batch'}
  m = aten.mm.default(x, w) : f32[8, 8][8, 1]cpu {forward module=layers.0.a}
  n = aten.mm.default(m, v) : f32[8, 8][8, 1]cpu {forward module=layers.0.b}
  h = aten.mul.Tensor(n, 0.5) : f32[8, 8][8, 1]cpu {forward module=layers.0.b}
  loss = aten.sum.default(h) : f32[][]cpu {loss module=loss}
  p = aten.pow.Tensor_Scalar(h, 2) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  mt = aten.t.default(m) : f32[8, 8][1, 8]cpu ~m {backward module=layers.0.b}
  gv = aten.mm.default(mt, p) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  vt = aten.t.default(v) : f32[8, 8][1, 8]cpu ~v {backward module=layers.0.b}
  q = aten.mm.default(p, vt) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  xt = aten.t.default(x) : f32[8, 8][1, 8]cpu ~x {backward module=layers.0.a}
  gw = aten.mm.default(xt, q) : f32[8, 8][8, 1]cpu {backward module=layers.0.a}
  output([loss, gw, gv])
)";

/// A value that ranks hold in one way, and what reads it in another.
std::string RedistributedSquare(std::string_view from, std::string_view to) {
  return fmt::format(R"(
  x = placeholder : DTensor(f32[8, 12][12, 1]cpu, {0}) {{+fqn='x' +input='parameter'}}
  r = strata.redistribute.default(x, '{1}') : DTensor(f32[8, 12][12, 1]cpu, {1})
  z = aten.mul.Tensor(r, r) : DTensor(f32[8, 12][12, 1]cpu, {1})
  output([z]) {{+mesh='fsdp=2,tp=2'}}
)",
                     from, to);
}

/// Sequences and their positions as one dimension, cut by two axes, and apart again.
std::string Unflattened(int sequences, std::string_view to) {
  const int rows = sequences * 4;
  return fmt::format(R"(
  x = placeholder : DTensor(f32[{0}, 8][8, 1]cpu, S(0)S(0)) {{+fqn='x' +input='batch'}}
  y = aten.view.default(x, [{1}, 4, 8]) : DTensor(f32[{1}, 4, 8][32, 8, 1]cpu, {2}) ~x
  output([y]) {{+mesh='fsdp=2,tp=2'}}
)",
                     rows, sequences, to);
}

PlacementCheck CheckOf(const Lowered& lowered) {
  return CheckPlacements(lowered.before(), lowered.after());
}

std::string TextOf(const PlacementCheck& check) {
  std::string text = fmt::format("{} unknown", check.unknown);
  for (const PlacementFinding& finding : check.findings)
    text += "\n" + ToString(finding);
  return text;
}

TEST_CASE("PV-31: what lowering makes has the placements that were planned") {
  for (const char* mesh : {"fsdp=2", "fsdp=4", "dp_replicate=2,fsdp=2", "fsdp=2,tp=2"}) {
    CAPTURE(mesh);
    CHECK_EQ(TextOf(CheckOf(Lowered(mesh, kTwoLayerStep))), "0 unknown");
  }
}

TEST_CASE("PV-31: averages are summed over ranks, and divided after it") {
  for (const std::string_view to : {"R", "S(0)"}) {
    const std::string text = fmt::format(R"(
  x = placeholder : DTensor(f32[8, 12][12, 1]cpu, S(0)) {{+fqn='x' +input='batch'}}
  m = aten.mean.dim(x, [0]) : DTensor(f32[12][1]cpu, P(avg))
  r = strata.redistribute.default(m, '{0}') : DTensor(f32[12][1]cpu, {0})
  z = aten.mul.Tensor(r, r) : DTensor(f32[12][1]cpu, {0})
  output([z]) {{+mesh='fsdp=2'}}
)",
                                         to);
    CHECK_EQ(TextOf(CheckOf(Lowered(ParseBody(text)))), "1 unknown");
  }
}

TEST_CASE("PV-31: parts that collectives pack and unpack are followed") {
  for (const std::string_view from : {"RR", "S(0)R", "RS(1)", "S(0)S(1)", "S(1)S(0)"}) {
    for (const std::string_view to : {"RR", "S(0)R", "S(1)R", "RS(1)", "S(0)S(1)", "S(1)S(0)"}) {
      CAPTURE(from);
      CAPTURE(to);
      CHECK_EQ(TextOf(CheckOf(Lowered(ParseBody(RedistributedSquare(from, to))))), "0 unknown");
    }
  }
}

TEST_CASE("PV-31: parts of parts are followed, in the order in which axes cut") {
  for (const std::string_view from : {"_S(0, 2)S(0)", "S(0)S(0)", "RS(0)", "S(0)R", "RR"}) {
    for (const std::string_view to : {"_S(0, 2)S(0)", "S(0)S(0)", "RS(0)", "S(0)R", "RR"}) {
      CAPTURE(from);
      CAPTURE(to);
      const PlacementCheck check = CheckOf(Lowered(ParseBody(RedistributedSquare(from, to))));
      CHECK_EQ(TextOf(check), "0 unknown");
    }
  }
}

TEST_CASE("PV-31: an inner axis cuts what outer axes leave of a dimension") {
  CHECK_EQ(TextOf(CheckOf(Lowered(ParseBody(Unflattened(2, "S(0)S(1)"))))), "0 unknown");
  CHECK_EQ(TextOf(CheckOf(Lowered(ParseBody(Unflattened(4, "S(0)S(0)"))))), "0 unknown");
}

TEST_CASE("PV-31: a sum over ranks that is missing is named at what reads it") {
  const Lowered lowered("fsdp=2", kTwoLayerStep);
  Graph& after = lowered.after();
  Rewriter(after).ReplaceUses(ValueNamed(after, "wait_tensor_2"), ValueNamed(after, "loss"));
  CHECK_EQ(TextOf(CheckOf(lowered)), "0 unknown\noutput: P(sum) on fsdp, expected R: from loss");
}

/// One after the other, nodes before another one, each of which makes a value of the same type.
class Chain {
 public:
  Chain(Graph& graph, ValueId value, NodeId before)
      : rewriter_(graph), before_(before), value_(value) {
    rewriter_.SetCursorBefore(before);
  }
  Arg value() const { return Arg(value_); }
  void Then(std::string_view op, std::initializer_list<Arg> args) {
    const TypeId type = rewriter_.graph().value(value_).type;
    value_ = rewriter_.graph().result(rewriter_.Create(op, args, From{before_}));
    rewriter_.SetType(value_, type);
  }
  void ThenSum(std::string_view axis) {
    Then("_c10d_functional.all_reduce.default", {value(), Text("sum"), Text(axis)});
    Then("_c10d_functional.wait_tensor.default", {value()});
  }
  /// The node reads the value instead of its first operand.
  void ReadIt() { rewriter_.SetSlot(before_, rewriter_.graph().node(before_).args_begin, value()); }

 private:
  Arg Text(std::string_view word) { return Arg::String(rewriter_.graph().module().Intern(word)); }

  Rewriter rewriter_;
  NodeId before_;
  ValueId value_;
};

TEST_CASE("PV-32: copies that are summed are named, though a factor cancels them on this mesh") {
  Lowered lowered(ParseBody(R"(
  x = placeholder : DTensor(f32[4, 6][6, 1]cpu, R) {+fqn='x' +input='parameter'}
  y = aten.mul.Tensor(x, x) : DTensor(f32[4, 6][6, 1]cpu, R)
  z = aten.mul.Tensor(y, 3.0) : DTensor(f32[4, 6][6, 1]cpu, R)
  output([z]) {+mesh='tp=2'}
)"));
  Graph& after = lowered.after();
  Chain chain(after, ValueNamed(after, "y"), NodeNamed(after, "z"));
  chain.ThenSum("tp");
  chain.Then("aten.mul.Tensor", {chain.value(), Arg::Float(0.5)});
  chain.ReadIt();
  CHECK(ProvePass(lowered.before(), after, {.stable_ids = true}).verdict == Verdict::kProven);
  CHECK_EQ(TextOf(CheckOf(lowered)), "1 unknown\nall_reduce: a sum of copies on tp: from y");
}

TEST_CASE("PV-32: memory that nothing or zeros were written to holds no copies that sums count") {
  for (const char* blank : {"empty_like", "zeros_like"}) {
    Lowered lowered(ParseBody(fmt::format(R"(
  x = placeholder : DTensor(f32[4, 6][6, 1]cpu, R) {{+fqn='x' +input='parameter'}}
  y = aten.{}.default(x) : DTensor(f32[4, 6][6, 1]cpu, R)
  w = aten.fill_.Scalar(y, 1.0) : DTensor(f32[4, 6][6, 1]cpu, R) ~y
  z = aten.sub_.Tensor(w, x) : DTensor(f32[4, 6][6, 1]cpu, R) ~y
  output([z]) {{+mesh='tp=2'}}
)",
                                          blank)));
    Graph& after = lowered.after();
    const auto sum_before = [&](std::string_view name, std::string_view value) {
      Chain chain(after, ValueNamed(after, value), NodeNamed(after, name));
      chain.ThenSum("tp");
      chain.ReadIt();
    };
    sum_before("w", "y");
    CHECK(ProvePass(lowered.before(), after, {.stable_ids = true}).verdict == Verdict::kProven);
    CHECK_EQ(TextOf(CheckOf(lowered)), "1 unknown");
    sum_before("z", "w");  // now it is written
    CHECK(ProvePass(lowered.before(), after, {.stable_ids = true}).verdict == Verdict::kDiffers);
    CHECK_EQ(TextOf(CheckOf(lowered)), "2 unknown\nall_reduce_1: a sum of copies on tp: from w");
  }
}

TEST_CASE("PV-31: of an edit that the placement rules refute, no value is proven") {
  std::set<std::string_view> kinds;
  for (const char* mesh : {"fsdp=2", "dp_replicate=2,fsdp=2", "fsdp=2,tp=2"}) {
    const Lowered lowered(mesh, kTwoLayerStep);
    for (const Mutation& mutation : Mutations()) {
      for (const NodeId node : lowered.after().nodes()) {
        const auto result =
            TryMutant(lowered.before(), lowered.after(), mutation, node, {.stable_ids = true});
        if (!result || !result->is_refuted_by_rules) continue;
        CAPTURE(mesh);
        CAPTURE(mutation.name);
        CAPTURE(lowered.after().name(node));
        CHECK(result->outcome != MutantOutcome::kEquivalent);
        kinds.insert(mutation.name);
      }
    }
  }
  CHECK_EQ(fmt::format("{}", fmt::join(kinds, " ")),
           "drop-all-reduce exchange-received-parts larger-group other-group other-value "
           "reduce-anything reduce-twice sum-or-maximum sum-or-mean");
}

}  // namespace
}  // namespace strata::prove
