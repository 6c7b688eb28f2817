#include <string>

#include <fmt/format.h>

#include "bench/bench.h"
#include "cli/core/flags.h"
#include "ir/fingerprint.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"

namespace strata::cli {
namespace {

constexpr int kGraphRuns = 9;

void MeasureGraph(int nodes, bool with_limits) {
  const auto limit = [&](double ms) { return with_limits ? ms : 0; };
  auto module = TransformerLikeGraph(nodes);
  const Graph& graph = module->graph({0});
  fmt::print("\n{} nodes\n", graph.num_nodes());
  std::unique_ptr<Module> scratch;
  std::string text;
  PrintTiming(
      "build",
      Measure(
          kGraphRuns, [&] { scratch = TransformerLikeGraph(nodes); }, [&] { scratch.reset(); }),
      limit(50));
  PrintTiming(
      "print native text",
      Measure(kGraphRuns, [&] { PrintText(graph, {}, text); }, [&] { text.clear(); }), limit(150));
  PrintTiming("parse native text", Measure(kGraphRuns, [&] { (void)ParseText(text); }));
  PrintTiming("fingerprint", Measure(kGraphRuns, [&] { (void)FingerprintOf(graph); }), limit(30));
  PrintTiming("fingerprint with names and metadata", Measure(kGraphRuns, [&] {
                (void)FingerprintOf(graph, FingerprintScope::kEverything);
              }));
  PrintTiming("verify", Measure(kGraphRuns, [&] { (void)Verify(graph); }));
  PrintTiming("clone", Measure(kGraphRuns, [&] { scratch = module->Clone(); }));
}

}  // namespace

Result<Exit> BenchIr(Args args) {
  Flags flags("bench ir", "measures the graph core on graphs of 10k and 100k nodes");
  flags.Example("strata bench ir");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  fmt::print("node {} bytes, value {} bytes, argument {} bytes\n", sizeof(Node), sizeof(Value),
             sizeof(Arg));
  MeasureGraph(10'000, false);
  MeasureGraph(100'000, true);
  return Exit::kOk;
}

}  // namespace strata::cli
