#include "passes/passes.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "bench/bench.h"
#include "cli/core/flags.h"
#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "passes/core/pass_manager.h"

namespace strata::cli {
namespace {

constexpr int kPassRuns = 9;

/// One value with `users` detached readers, none of which is needed: passes that walk use lists per
/// node are quadratic on it.
std::unique_ptr<Module> HubGraph(int users) {
  auto module = std::make_unique<Module>();
  Rewriter rewriter(module->AddGraph("hub"));
  NodeSpec input;
  input.kind = NodeKind::kPlaceholder;
  const ValueId x = rewriter.graph().result(rewriter.Create(input, From::Source()));
  for (int i = 0; i < users; ++i) {
    const NodeId detach = rewriter.Create("aten.detach.default", {x}, From::Source());
    rewriter.Create("aten.relu.default", {rewriter.graph().result(detach)}, From::Source());
  }
  NodeSpec output;
  output.kind = NodeKind::kOutput;
  const Arg result = x;
  output.args = {&result, 1};
  rewriter.Create(output, From::Source());
  return module;
}

/// Layers with experts, forward and backward, of about `nodes` nodes with a symbolic batch.
Result<std::unique_ptr<Module>> ExpertLayersGraph(int layers, int nodes) {
  constexpr std::string_view kType = "f32[s0, 8][8, 1]cpu";
  const int length = nodes / layers / 2 - 2;
  std::string text = fmt::format("symbol s0 hint=8 min=2\ngraph step\n");
  for (int layer = 0; layer < layers; ++layer)
    text += fmt::format("  w{} = placeholder : f32[8, 8][8, 1]cpu\n", layer);
  text += fmt::format("  v = placeholder : {}\n", kType);
  const auto add = [&](std::string_view name, std::string_view op, std::string_view args, int layer,
                       std::string_view phase, std::string_view module, std::string_view type) {
    text += fmt::format("  {} = aten.{}({}) : {} {{{} module=layers.{}.{}}}\n", name, op, args,
                        type, phase, layer, module);
  };
  std::string last = "v";
  for (int layer = 0; layer < layers; ++layer) {
    add(fmt::format("y{}_0", layer), "mm.default", fmt::format("{}, w{}", last, layer), layer,
        "forward", "moe", kType);
    for (int i = 1; i < length; ++i) {
      add(fmt::format("y{}_{}", layer, i), "relu.default", fmt::format("y{}_{}", layer, i - 1),
          layer, "forward", "moe", kType);
    }
    last = fmt::format("r{}", layer);
    add(last, "neg.default", fmt::format("y{}_{}", layer, length - 1), layer, "forward", "norm",
        kType);
  }
  text += fmt::format("  loss = aten.sum.default({}) : f32[][]cpu {{loss module=loss}}\n", last);
  std::string outputs = "loss";
  for (int layer = layers; layer-- > 0;) {
    for (int i = length; i-- > 1;) {
      const std::string name = fmt::format("g{}_{}", layer, i);
      add(name, "mul.Tensor", fmt::format("{}, y{}_{}", last, layer, i), layer, "backward", "moe",
          kType);
      last = name;
    }
    add(fmt::format("t{}", layer), "t.default", last, layer, "backward", "moe",
        "f32[8, s0][1, 8]cpu ~" + last);
    add(fmt::format("gw{}", layer), "mm.default", fmt::format("t{}, {}", layer, last), layer,
        "backward", "moe", "f32[8, 8][8, 1]cpu");
    outputs += fmt::format(", gw{}", layer);
  }
  return ParseText(text + fmt::format("  output([{}])\n", outputs), "experts");
}

Status MeasurePipeline(std::string_view text, const Module& input, double limit_ms) {
  const auto pipeline = [&]() -> Result<PassManager> {
    STRATA_TRY(auto passes, ParsePipeline(text, AllPasses()));
    PassManager manager;
    for (auto& pass : passes)
      manager.Add(std::move(pass));
    return manager;
  };
  STRATA_TRY(PassManager manager, pipeline());
  std::unique_ptr<Module> module;
  Status done;
  const auto run = [&] {
    if (const Result<Changed> changed = manager.Run(*module); !changed) done = changed.error();
  };
  const Timing timing = Measure(kPassRuns, run, [&] { module = input.Clone(); });
  PrintTiming(text.empty() ? "verify and fingerprint the input" : text, timing, limit_ms);
  return done;
}

}  // namespace

Result<Exit> BenchPasses(Args args) {
  Flags flags("bench passes", "measures passes on graphs of 100k nodes, with checks");
  flags.Example("strata bench passes");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  const auto step = TransformerLikeGraph(100'000);
  fmt::print("a training step of {} nodes\n", step->graph({0}).num_nodes());
  for (const auto& [pipeline, limit] :
       {std::pair{"", 0.0}, {"dce", 0.0}, {"canonicalize", 0.0}, {"dce,canonicalize", 100.0}}) {
    STRATA_RETURN_IF_ERROR(MeasurePipeline(pipeline, *step, limit));
  }
  const auto hub = HubGraph(50'000);
  fmt::print("\none value with 50,000 users\n");
  for (const auto* pipeline : {"", "dce", "canonicalize"})
    STRATA_RETURN_IF_ERROR(MeasurePipeline(pipeline, *hub, 0));
  for (const int nodes : {10'000, 100'000}) {
    const auto sharded = ShardedStepGraph(nodes);
    fmt::print("\nthe step of one of several ranks, {} nodes\n", sharded->graph({0}).num_nodes());
    for (const auto* pipeline :
         {"", "dedup-unshards", "reassign-groups", "isolate-expert-groups",
          "bucket-transformer-blocks", "bucket-transformer-blocks,schedule-dense-regions"})
      STRATA_RETURN_IF_ERROR(MeasurePipeline(pipeline, *sharded, 0));
  }
  for (const int nodes : {10'000, 100'000}) {
    STRATA_TRY(const auto experts, ExpertLayersGraph(61, nodes));
    fmt::print("\n61 layers with experts, {} nodes\n", experts->graph({0}).num_nodes());
    for (const auto* pipeline : {"", "ep-chunk{module_fqn=\"layers.*.moe\"}",
                                 "ep-chunk{module_fqn=\"layers.*.moe\"},concretize"}) {
      STRATA_RETURN_IF_ERROR(MeasurePipeline(pipeline, *experts, nodes == 10'000 ? 1000 : 0));
    }
  }
  return Exit::kOk;
}

}  // namespace strata::cli
