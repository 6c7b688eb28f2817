#include "ir/stated_path.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/graphs.h"

namespace strata {
namespace {

/// The path that the first node of a body states.
std::string PathOf(std::string_view node) {
  const auto module = testing::ParseBody(fmt::format("  {}\n  output(None)\n", node));
  const Graph& graph = module->graph({0});
  return StatedPath(graph, *graph.nodes().begin());
}

TEST_CASE("stated path: an attribute, a descriptor, the target of a constant") {
  CHECK_EQ(PathOf("x = placeholder {+fqn='layers.0.wq.weight'}"), "layers.0.wq.weight");
  CHECK_EQ(PathOf("x = placeholder {+descriptor='ParamAOTInput(target=\\'fc1.weight\\')'}"),
           "fc1.weight");
  CHECK_EQ(PathOf("x = placeholder {+descriptor='PlainAOTInput(idx=3)'}"), "");
  CHECK_EQ(PathOf("x = attr fc1.weight"), "fc1.weight");
  CHECK_EQ(PathOf("x = attr _tensor_constant0"), "");
}

TEST_CASE("stated path: names of inputs of Dynamo") {
  CHECK_EQ(PathOf("L_self_modules_layers_modules_0_modules_wq_parameters_weight_ = placeholder"),
           "layers.0.wq.weight");
  CHECK_EQ(PathOf("L_m_modules_r_modules_0_parameters_weight_ = placeholder"), "r.0.weight");
  CHECK_EQ(PathOf("l_model_buffers_freqs_cis_ = placeholder"), "freqs_cis");
  CHECK_EQ(PathOf("x = placeholder {+argument='L_self_modules_feed_forward_parameters_w_'}"),
           "feed_forward.w");
  CHECK_EQ(PathOf("l_x_ = placeholder {+argument='L_x_'}"), "");
}

TEST_CASE("stated path: names of inputs of torch.export") {
  CHECK_EQ(PathOf("p_layers_0_wq_weight = placeholder"), "layers.0.wq_weight");
  CHECK_EQ(PathOf("p_embed_tokens_weight = placeholder"), "embed_tokens_weight");
  CHECK_EQ(PathOf("b_0_running_mean = placeholder"), "0.running_mean");
  CHECK_EQ(PathOf("x = placeholder"), "");
}

TEST_CASE("stated path: the module of a path") {
  CHECK_EQ(ModuleOfPath("layers.0.wq.weight"), "layers.0.wq");
  CHECK_EQ(ModuleOfPath("scale"), "");
}

}  // namespace
}  // namespace strata
