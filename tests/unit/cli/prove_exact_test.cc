#include "cli/prove_exact.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "passes/core/pass_manager.h"
#include "tests/support/graphs.h"

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

Result<Changed> RunOn(std::string_view body, std::unique_ptr<Pass> pass) {
  const std::unique_ptr<Module> module = testing::ParseBody(body);
  PassManager manager;
  manager.Add(std::move(pass));
  ProveExactly watcher;
  manager.Watch(watcher);
  return manager.Run(*module);
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

}  // namespace
}  // namespace strata::cli
