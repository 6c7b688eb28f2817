#include "cli/prove/prove_exact.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "cli/render/proof_text.h"
#include "ir/rewriter.h"
#include "passes/core/pass_manager.h"
#include "passes/placement/lowering/lower.h"
#include "refs/recording/recording.h"
#include "store/proofs.h"
#include "store/trace_reader.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata::cli {
namespace {

/// Adds 2·x instead of x: finds the node `sum` and scales its second operand.
class AddTwice final : public Pass {
 public:
  AddTwice() { SetText("add-twice", ""); }
  Result<Changed> Run(Module& module) override {
    Graph& graph = *module.FindGraph("g");
    const NodeId sum = testing::NodeNamed(graph, "sum");
    Rewriter rewriter(graph);
    rewriter.SetCursorBefore(sum);
    const NodeId twice = rewriter.Create(
        "aten.mul.Tensor", {Arg(testing::ValueNamed(graph, "x")), Arg::Float(2.0)}, From{sum});
    rewriter.SetSlot(sum, graph.node(sum).args_begin + 1, Arg(graph.result(twice)));
    return Changed::kYes;
  }
};

/// Replaces mul(x, 2.0) by add(x, x): equal numbers.
class AddToItself final : public Pass {
 public:
  AddToItself() { SetText("add-to-itself", ""); }
  Result<Changed> Run(Module& module) override {
    Graph& graph = *module.FindGraph("g");
    const NodeId twice = testing::NodeNamed(graph, "twice");
    Rewriter rewriter(graph);
    rewriter.SetCursorBefore(twice);
    const Arg x(testing::ValueNamed(graph, "x"));
    const NodeId sum = rewriter.Create("aten.add.Tensor", {x, x}, From{twice});
    rewriter.ReplaceUses(graph.result(twice), graph.result(sum));
    rewriter.Erase(twice);
    return Changed::kYes;
  }
};

Result<Changed> RunOn(std::string_view body, std::unique_ptr<Pass> pass, Recording recording = {}) {
  const std::unique_ptr<Module> module = testing::ParseBody(body);
  PassManager manager;
  manager.Add(std::move(pass));
  if (recording.trace() != nullptr) manager.Watch(recording.watcher());
  ProveExactly watcher(recording);
  manager.Watch(watcher);
  Result<Changed> changed = manager.Run(*module);
  REQUIRE_OK(recording.End(changed ? Ok() : Status(changed.error())));
  return changed;
}

constexpr std::string_view kBody = R"(
  x = placeholder : f32[2, 3]
  twice = aten.mul.Tensor(x, 2.0) : f32[2, 3]
  sum = aten.add.Tensor(twice, x) : f32[2, 3]
  output(sum)
)";

TEST_CASE("prove-exact: a pass that keeps every value passes") {
  const Result<Changed> changed = RunOn(kBody, std::make_unique<AddToItself>());
  REQUIRE_MESSAGE(changed, changed.error().message());
  CHECK(*changed == Changed::kYes);
}

TEST_CASE("prove-exact: a pass that changes a value ends the pipeline, with its node") {
  const Result<Changed> changed = RunOn(kBody, std::make_unique<AddTwice>());
  REQUIRE_FALSE(changed);
  const std::string message = changed.error().message();
  CHECK_MESSAGE(
      message.find("pass add-twice changes what is computed: graph g: sum") != std::string::npos,
      message);
}

/// Lowers, and then sums copies and halves the sum: right for two ranks, by chance.
class LowerWithFactor final : public Pass {
 public:
  LowerWithFactor() { SetText("lower-with-factor", ""); }
  Result<Changed> Run(Module& module) override {
    STRATA_TRY(const Changed changed, LowerPlacements().Run(module));
    Graph& graph = *module.FindGraph("g");
    const NodeId z = testing::NodeNamed(graph, "z");
    const ValueId y = testing::ValueNamed(graph, "y");
    Rewriter rewriter(graph);
    rewriter.SetCursorBefore(z);
    ValueId value = y;
    const auto then = [&](std::string_view op, std::initializer_list<Arg> args) {
      value = graph.result(rewriter.Create(op, args, From{z}));
      rewriter.SetType(value, graph.value(y).type);
    };
    then("_c10d_functional.all_reduce.default",
         {Arg(value), Arg::String(module.Intern("sum")), Arg::String(module.Intern("tp"))});
    then("_c10d_functional.wait_tensor.default", {Arg(value)});
    then("aten.mul.Tensor", {Arg(value), Arg::Float(0.5)});
    rewriter.SetSlot(z, graph.node(z).args_begin, Arg(value));
    return changed;
  }
};

constexpr std::string_view kPlaced = R"(
  x = placeholder : DTensor(f32[4, 6][6, 1]cpu, R) {+fqn='x' +input='parameter'}
  y = aten.mul.Tensor(x, x) : DTensor(f32[4, 6][6, 1]cpu, R)
  z = aten.mul.Tensor(y, 3.0) : DTensor(f32[4, 6][6, 1]cpu, R)
  output([z]) {+mesh='tp=2'}
)";

TEST_CASE("prove-exact: placement rules are asked, too") {
  CHECK(RunOn(kPlaced, std::make_unique<LowerPlacements>()));
  const Result<Changed> wrong = RunOn(kPlaced, std::make_unique<LowerWithFactor>());
  REQUIRE_FALSE(wrong);
  CHECK_EQ(
      wrong.error().message(),
      "error of Strata, or a factor that cancels on this mesh alone: pass lower-with-factor, "
      "g: placement rules and evaluation disagree at all_reduce; please report it: all_reduce: "
      "a sum of copies on tp: from y");
}

TEST_CASE("prove-exact: the trace of a run has the verdict, also of a pass that changes a value") {
  const testing::TempDir dir;
  const std::string path = dir / "t.strata";
  const auto verdict_of = [&](std::unique_ptr<Pass> pass) {
    const auto changed =
        RunOn(kBody, std::move(pass), testing::OrDie(Recording::Begin(path, RunInfo())));
    static_cast<void>(changed);
    return ProofsOf(testing::OrDie(TraceReader::Open(path))->runs()[0]).at({0, "g"});
  };
  CHECK_EQ(VerdictText(verdict_of(std::make_unique<AddToItself>())), "✓ proven");
  const PassProof proof = verdict_of(std::make_unique<AddTwice>());
  CHECK_EQ(VerdictText(proof), "✗ differs: sum");
  CHECK_FALSE(proof.bug.empty());
  CHECK_FALSE(proof.what.empty());
}

TEST_CASE("a recorded verdict says what of the graph was evaluated") {
  prove::Proof proof;
  CHECK_EQ(VerdictText(PassProofOf(proof, "g")), "✓ proven");
  proof.layers = 126;
  proof.layers_left_out = 123;
  const std::string layers = "3 of 126 layers evaluated, the others are the same";
  CHECK_EQ(VerdictText(PassProofOf(proof, "g")), "✓ proven, " + layers);
  proof.reduced_sizes = {{4096, 6}};
  CHECK_EQ(VerdictText(PassProofOf(proof, "g")), "✓ proven, on reduced sizes; " + layers);
  proof.assumptions = {{"the constant k is 3"}};
  CHECK_EQ(VerdictText(PassProofOf(proof, "g")),
           "✓ proven, on reduced sizes; " + layers + "; if the constant k is 3");
}

TEST_CASE("prove-exact: an unproven pass is recorded with one line of its reason") {
  prove::Proof proof;
  proof.verdict = prove::Verdict::kUnproven;
  proof.reason = "no definition\nof an operator";
  const PassProof record = PassProofOf(proof, "g");
  CHECK_EQ(VerdictText(record), "? unproven");
  CHECK_EQ(record.what, "no definition");
}

}  // namespace
}  // namespace strata::cli
