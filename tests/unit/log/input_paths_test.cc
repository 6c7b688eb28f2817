#include "tlparse-export/torch_trace/read/input_paths.h"

#include <string>

#include <doctest/doctest.h>

#include "ir/stated_path.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::ParseBody;

/// What the inputs of a body state, after the compilation's graphs were read.
std::string PathsOf(const InputPaths& paths, std::string_view compile, std::string_view body) {
  const auto module = ParseBody(body);
  paths.Apply(compile, *module);
  const Graph& graph = module->graph({0});
  std::string text;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).kind == NodeKind::kPlaceholder) text += StatedPath(graph, id) + ";";
  }
  return text;
}

TEST_CASE("input paths: inputs of AOTAutograd and Inductor are those of Dynamo's graph") {
  constexpr std::string_view kAot = R"(
  primals_1 = placeholder {+descriptor='PlainAOTInput(idx=0)'}
  primals_2 = placeholder {+descriptor='PlainAOTInput(idx=1)'}
  tangents_1 = placeholder {+descriptor='TangentAOTInput(output=PlainAOTOutput(idx=0))'}
  output(None)
)";
  InputPaths paths;
  paths.Learn("0/0", ParseBody(R"(
  l_x_ = placeholder {+argument='L_x_'}
  w = placeholder {+argument='L_m_modules_r_modules_0_parameters_weight_'}
  output(None)
)")
                         ->graph({0}));
  paths.Learn("0/0", ParseBody(kAot)->graph({0}));
  CHECK_EQ(PathsOf(paths, "0/0", kAot), ";r.0.weight;;");
  CHECK_EQ(PathsOf(paths, "0/0", "  primals_2 = placeholder\n  mm = placeholder\n  output(None)\n"),
           "r.0.weight;;");
  CHECK_EQ(PathsOf(paths, "1/0", kAot), ";;;");
}

TEST_CASE("input paths: a path of parameters of two modules is the name of neither") {
  constexpr std::string_view kAot = R"(
  primals_1 = placeholder {+descriptor='PlainAOTInput(idx=0)'}
  primals_2 = placeholder {+descriptor='PlainAOTInput(idx=1)'}
  primals_3 = placeholder {+descriptor='PlainAOTInput(idx=2)'}
  output(None)
)";
  InputPaths paths;
  paths.Learn("0/0", ParseBody(R"(
  v = placeholder {+argument='L_a_parameters_weight_'}
  w = placeholder {+argument='L_b_parameters_weight_'}
  b = placeholder {+argument='L_b_parameters_bias_'}
  output(None)
)")
                         ->graph({0}));
  paths.Learn("0/0", ParseBody(kAot)->graph({0}));
  CHECK_EQ(PathsOf(paths, "0/0", kAot), ";;bias;");
}

}  // namespace
}  // namespace strata
