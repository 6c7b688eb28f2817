#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "ir/fx/fx.h"
#include "passes/core/pass_manager.h"
#include "passes/passes.h"
#include "tests/support/graphs.h"
#include "tests/support/log_files.h"

namespace strata {
namespace {

using testing::OrDie;

constexpr const char* kLog = "tests/data/logs/graph_trainer_2layer_torch2.14.1.log.zst";

/// The payload of the log's artifact `name`: the lines after its header that begin with a tab.
std::string Payload(const std::string& name) {
  std::istringstream log(testing::ReadLogText(kLog));
  const std::string key = fmt::format("\"name\": \"{}\"", name);
  std::string payload;
  bool inside = false;
  for (std::string line; std::getline(log, line);) {
    if (!line.starts_with('\t')) {
      if (inside) break;
      inside = line.find(key) != line.npos;
    } else if (inside) {
      payload += line.substr(1) + "\n";
    }
  }
  return payload;
}

/// Names, operators, arguments and types as FX text.
std::string TextOf(const Graph& graph) {
  return PrintFx(graph, {.comments = false});
}

TEST_CASE("every cleanup pass changes a Llama3 step exactly as torchtitan's own pass") {
  for (const auto& [theirs, ours] : {std::pair{"eliminate_dead_code_pass", "dce"},
                                     {"canonicalize_graph_pass", "canonicalize"},
                                     {"remove_detach_pass", "remove-detach"},
                                     {"remove_identity_view_pass", "remove-identity-views"},
                                     {"remove_b2b_transpose_pass", "remove-double-transposes"},
                                     {"remove_identity_slice_pass", "remove-identity-slices"},
                                     {"normalize_view_ops_as_reshape", "normalize-views"}}) {
    CAPTURE(std::string(ours));
    const FxDocument input = OrDie(ParseFx(Payload(fmt::format("before_{}", theirs))));
    const FxDocument expected = OrDie(ParseFx(Payload(fmt::format("after_{}", theirs))));
    CHECK(input.graph().num_nodes() > 400);
    PassManager manager;
    for (auto& pass : OrDie(ParsePipeline(ours, AllPasses())))
      manager.Add(std::move(pass));
    OrDie(manager.Run(*input.module));
    CHECK_EQ(input.graph().num_printed_nodes(), expected.graph().num_printed_nodes());
    CHECK(TextOf(input.graph()) == TextOf(expected.graph()));
  }
}

}  // namespace
}  // namespace strata
