#include "passes/passes.h"

#include <utility>

#include <fmt/format.h>

#include "bench/bench.h"
#include "cli/flags.h"
#include "ir/rewriter.h"
#include "passes/core/pass_manager.h"

namespace strata::cli {
namespace {

constexpr int kRuns = 9;

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
  const Timing timing = Measure(kRuns, run, [&] { module = input.Clone(); });
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
  return Exit::kOk;
}

}  // namespace strata::cli
