#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "runtime/exec/executor.h"
#include "runtime/train/programs/programs.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using at::Tensor;
using testing::Case;
using testing::Compiled;
using testing::Eager;
using testing::kCases;
using testing::kSmallDeepSeekV3;
using testing::kSmallLlama3;
using testing::kSmallQwen3;
using testing::OrDie;
using testing::Overrides;
using testing::SmallConfig;
using testing::Tensors;
using testing::Title;

/// Compares what operators return with the types of the graph.
class CheckTypes final : public ExecutionObserver {
 public:
  CheckTypes(const Graph& graph, const Tensors& inputs)
      : graph_(graph), memory_(static_cast<size_t>(graph.value_bound())) {
    const std::vector<NodeId> placeholders = graph.placeholders();
    for (size_t i = 0; i < inputs.size(); ++i)
      Memory(graph.result(placeholders[i])) = inputs[i].const_data_ptr();
  }

  void OnStep(const PlanStep& step, std::span<const Tensor> results) override {
    INFO(graph_.name(step.node));
    REQUIRE_EQ(results.size(), graph_.node(step.node).num_results);
    for (size_t i = 0; i < results.size(); ++i) {
      const TypeId type = graph_.value(graph_.result(step.node, i)).type;
      if (type.valid() && !IsOfKnownSize(graph_.module().types()[type])) continue;
      REQUIRE_EQ(type.valid(), results[i].defined());
      if (!type.valid()) continue;
      CHECK_EQ(graph_.module().types().ToString(type), Describe(results[i]));
      const DimId offset = graph_.module().types()[type].dim;
      CHECK_EQ(offset.valid() ? *graph_.module().dims().AsConst(offset) : 0,
               results[i].storage_offset());
      CheckAlias(step.node, graph_.result(step.node, i), results[i]);
      ++checked;
    }
  }
  int checked = 0;

 private:
  /// False for types with data-dependent sizes.
  bool IsOfKnownSize(const Type& type) const {
    return type.kind == TypeKind::kTensor && std::ranges::all_of(type.sizes, [&](DimId size) {
             return graph_.module().dims().AsConst(size).has_value();
           });
  }

  /// As the IR prints types.
  static std::string Describe(const Tensor& tensor) {
    constexpr std::pair<at::ScalarType, std::string_view> kNames[] = {
        {at::kFloat, "f32"}, {at::kDouble, "f64"}, {at::kLong, "i64"},
        {at::kInt, "i32"},   {at::kBool, "b8"},    {at::kComplexFloat, "c64"}};
    for (const auto& [dtype, name] : kNames) {
      if (dtype == tensor.scalar_type()) {
        return fmt::format("{}{}{}cpu", name, c10::str(tensor.sizes()), c10::str(tensor.strides()));
      }
    }
    return c10::str(tensor.scalar_type());
  }

  /// Memory is shared with the value that the graph names, and else with no operand.
  void CheckAlias(NodeId node, ValueId value, const Tensor& result) {
    const void* memory = result.storage().data();
    Memory(value) = memory;
    if (const ValueId owner = graph_.value(value).alias_of; owner.valid()) {
      CHECK_EQ(memory, Memory(owner));
      return;
    }
    graph_.ForEachOperand(node, [&](ValueId operand) { CHECK_NE(memory, Memory(operand)); });
  }
  const void*& Memory(ValueId value) { return memory_[static_cast<size_t>(value.index)]; }

  const Graph& graph_;
  std::vector<const void*> memory_;  // by value: start of its storage
};

TEST_CASE("every result has the dtype, sizes, strides, offset and memory that the trace says") {
  for (const Case& c : kCases) {
    INFO(Title(c));
    const Eager run(SmallConfig(c.text, c.overrides));
    const Compiled compiled(run.config, "");
    const Tensors step_inputs = run.Inputs(0);
    CheckTypes step(*compiled.module.FindGraph(kStepGraph), step_inputs);
    const Tensors outputs = OrDie(compiled.Bind(kStepGraph).Run(step_inputs, &step));
    CHECK_GT(step.checked, 100);

    Tensors inputs = run.parameters;
    for (size_t i = 1; i <= run.parameters.size(); ++i)
      inputs.push_back(outputs[i].clone(at::MemoryFormat::Contiguous));
    for (const Tensors& group : {run.state.exp_avg, run.state.exp_avg_sq, run.buffers})
      inputs.insert(inputs.end(), group.begin(), group.end());
    inputs.insert(inputs.end(), outputs.end() - std::ssize(run.buffers), outputs.end());
    inputs.insert(inputs.end(), {run.state.step, run.state.lr});
    CheckTypes optimizer(*compiled.module.FindGraph(kOptimizerGraph), inputs);
    REQUIRE_OK(compiled.Bind(kOptimizerGraph).Run(inputs, &optimizer));
    CHECK_GT(optimizer.checked, 80);
  }
}

/// Of every call: module, line, phase; of those of the backward, a forward one with the number.
void CheckLabels(const Module& module, const Graph& graph) {
  const std::string_view name = module.str(graph.name());
  const bool is_update = name == kOptimizerGraph || name == kAccumulateGraph;
  std::map<int32_t, std::string_view> forward;  // module paths
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::kCall) continue;
    INFO(name, " ", graph.name(id));
    CHECK_FALSE(module.str(node.module).empty());
    REQUIRE(node.loc.valid());
    CHECK_FALSE(module.str(module.loc(node.loc).code).empty());
    CHECK_NE(node.phase, Phase::kUnknown);
    CHECK_EQ(node.phase == Phase::kOptimizer, is_update);
    if (node.phase != Phase::kBackward) {
      forward.try_emplace(node.seq_nr, module.str(node.module));
      continue;
    }
    REQUIRE_GE(node.seq_nr, 0);
    REQUIRE(forward.contains(node.seq_nr));
    CHECK_EQ(forward.at(node.seq_nr), module.str(node.module));
  }
}

TEST_CASE("the traced graphs are sound, deterministic and fully labelled") {
  std::vector<Case> cases = kCases;
  for (const std::string_view family : {kSmallLlama3, kSmallQwen3, kSmallDeepSeekV3}) {
    Overrides way = {"loss.name=chunked_cross_entropy", "loss.num_chunks=5",
                     "validator.enable=true", "validator.steps=1"};
    cases.push_back({family, way});
    way.push_back("enable_weight_tying=true");
    cases.push_back({family, way});
    way.push_back("training.mixed_precision_param=bfloat16");
    way.push_back("training.num_tokens_per_train_step=60");
    way.push_back("compile.symbolic_dims=batch_and_seq");
    cases.push_back({family, way});
  }
  for (const Case& c : cases) {
    INFO(Title(c));
    const TrainConfig config = SmallConfig(c.text, c.overrides);
    const Compiled compiled(config, "");
    const Module& module = compiled.module;
    CHECK_OK(Verify(module));
    CHECK_EQ(PrintText(module), PrintText(Compiled(config, "").module));
    CHECK(compiled.constants.empty());

    for (const GraphId id : module.programs())
      CheckLabels(module, module.graph(id));
  }
}

TEST_CASE("forward and backward of a product have the weight's path, one number, one line") {
  const Compiled compiled(SmallConfig(kSmallLlama3), "");
  const Graph& graph = *compiled.module.FindGraph(kStepGraph);
  std::vector<int32_t> forward, backward;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (graph.op(id) != "aten.mm.default") continue;
    if (compiled.module.str(node.module) != "layers.1.attention.qkv_linear.wk") continue;
    (node.phase == Phase::kForward ? forward : backward).push_back(node.seq_nr);
    const SourceLoc& loc = compiled.module.loc(node.loc);
    CHECK_EQ(compiled.module.str(loc.file), "runtime/models/layers.cc");
    CHECK_EQ(compiled.module.str(loc.function), "GroupedQueryAttention");
    CHECK_EQ(compiled.module.str(loc.code), "Tensor k = heads(wk_(x));");
  }
  REQUIRE_EQ(forward.size(), 1);
  CHECK_EQ(backward, std::vector<int32_t>(2, forward[0]));
}

}  // namespace
}  // namespace strata
