#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/allclose.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/placement/lowering/lower.h"
#include "runtime/exec/graph_ranks.h"
#include "runtime/exec/graph_run.h"
#include "runtime/files/tensor_io.h"
#include "tests/support/graphs.h"
#include "tests/support/strategies.h"

namespace strata {
namespace {

using testing::AllStrategies;
using testing::OrDie;
using testing::ParseBody;
using testing::PlacedBy;
using testing::TextStrategy;

/// Inputs, and the nodes of the graph; all tensors are contiguous on the CPU. All results of the
/// last call are outputs.
struct Call {
  std::string_view inputs;  ///< "a f32[4, 6]; b f32[6]"
  std::string_view nodes;   ///< "y = aten.relu.default(a) : f32[4, 6]"
};

constexpr Call kCalls[] = {
    {"g f32[4, 6]; a f32[4, 6]", "y = aten.gelu_backward.default(g, a) : f32[4, 6]"},
    {"", "y = aten.neg.default(2.0) : f32[]"},
    {"a f32[4, 6]", "y = aten.div.Tensor(2.0, a) : f32[4, 6]"},
    {"a f32[4, 6]", "y = aten.div.Tensor_mode(a, 0.25, rounding_mode='floor') : f32[4, 6]"},
    {"a i64[4, 6]", "y = aten.__rshift__.Scalar(a, 1) : i64[4, 6]"},
    {"a f32[4, 6]", "y = aten.threshold.default(a, 0.5, 2) : f32[4, 6]"},
    {"a f32[4, 6]", "y = aten.rot90.default(a, 1, [0, 1]) : f32[6, 4]"},
    {"a f32[4, 6, 2]", "y = aten.rot90.default(a, 3, [1, -1]) : f32[4, 2, 6]"},
    {"a f32[4, 6, 2]", "y = aten.logsumexp.default(a, [0]) : f32[6, 2]"},
    {"a f32[4, 6, 2]", "y = aten.logsumexp.default(a, [1, -1], True) : f32[4, 1, 1]"},
    {"a f32[4, 6]", "y = aten.argmax.default(a) : i64[]"},
    {"a f32[4, 6]", "(y, i) = aten.median.dim(a, -1) as m : (f32[4], i64[4])"},
    {"a f32[4, 6]", "y = aten.median.default(a) : f32[]"},
    {"a f32[4, 6]", "(y, i) = aten.kthvalue.default(a, 3, 0, True) as k : (f32[1, 6], i64[1, 6])"},
    {"a f32[4, 6]", "(y, i) = aten.mode.default(a) as m : (f32[4], i64[4])"},
    {"a f32[4, 6]", "y = aten.norm.ScalarOpt_dim(a, 2, [1], True) : f32[4, 1]"},
    {"a f32[4, 6]", "y = aten.norm.Scalar(a, 1) : f32[]"},
    {"a f32[4, 3]; b f32[4, 3]", "y = aten.linalg_cross.default(a, b) : f32[4, 3]"},
    {"", "y = aten.triu_indices.default(4, 4, 1) : i64[2, 6]"},
    {"", "y = aten.linspace.default(0, 1, 6) : f32[6]"},
    {"a f32[6]; b f32[6]", "y = aten.vdot.default(a, b) : f32[]"},
    {"x f32[4]; a f32[4, 6]; b f32[6]", "y = aten.addmv.default(x, a, b) : f32[4]"},
    {"g f32[4, 6, 2]; i i64[4, 6]",
     "y = aten.embedding_dense_backward.default(g, i, 8, -1, True) : f32[8, 2]"},
    {"a f32[4, 6, 2]; i i64[4, 1]; j i64[2]", "y = aten.index.Tensor(a, [i, j]) : f32[4, 2, 2]"},
    {"a f32[4, 6, 2]; i i64[8]; j i64[8]", "y = aten.index.Tensor(a, [i, None, j]) : f32[8, 6]"},
    {"a f32[4, 6, 2]; i b8[4, 6]; v f32[]", "y = aten.index_put.default(a, [i], v) : f32[4, 6, 2]"},
    {"a f32[4, 6, 2]; i b8[6]; v f32[1]",
     "y = aten.index_put.default(a, [None, i], v) : f32[4, 6, 2]"},
    {"a f32[4, 6, 2]; i i64[8]; v f32[2]",
     "y = aten.index_put.default(a, [None, i], v, True) : f32[4, 6, 2]"},
    {"a f32[4, 6, 2]; i i64[4, 1]; j i64[2]; v f32[]",
     "y = aten.index_put.default(a, [i, None, j], v) : f32[4, 6, 2]"},
    {"a f32[4, 6, 2]; i i64[2]", "y = aten.index_fill.int_Scalar(a, 1, i, 0.5) : f32[4, 6, 2]"},
    {"a f32[4, 6]; i i64[2, 8]", "y = aten.take.default(a, i) : f32[2, 8]"},
    {"a f32[4, 6, 2, 2]; i i64[4, 2, 2]",
     "(y, w) = aten.nll_loss2d_forward.default(a, i, None, 2, -100) as n : (f32[], f32[])"},
    {"a f32[4, 6, 2, 2]; i i64[4, 2, 2]",
     "(y, w) = aten.nll_loss2d_forward.default(a, i, None, 1, -100) as n : (f32[], f32[])"},
    {"a f32[4, 6, 2, 2]; i i64[4, 2, 2]; v f32[6]",
     "(y, w) = aten.nll_loss2d_forward.default(a, i, v, 0, 1) as n : (f32[4, 2, 2], f32[])"},
    {"g f32[]; a f32[4, 6, 2, 2]; i i64[4, 2, 2]; v f32[6]; w f32[]",
     "y = aten.nll_loss2d_backward.default(g, a, i, v, 2, -100, w) : f32[4, 6, 2, 2]"},
    {"g f32[]; a f32[4, 6, 2, 2]; i i64[4, 2, 2]; w f32[]",
     "y = aten.nll_loss2d_backward.default(g, a, i, None, 1, 1, w) : f32[4, 6, 2, 2]"},
    {"g f32[4, 6]; a f32[4, 6]", "y = aten.softplus_backward.default(g, a, 1, 20) : f32[4, 6]"},
    {"g f32[4, 6]; a f32[4, 6]", "y = aten.elu_backward.default(g, 1, 1, 1, False, a) : f32[4, 6]"},
    {"g f32[4, 6]; a f32[4, 6]", "y = aten.hardtanh_backward.default(g, a, -1, 0.5) : f32[4, 6]"},
    {"a f32[4, 6]; w f32[1, 6]", "y = aten._prelu_kernel.default(a, w) : f32[4, 6]"},
    {"a f32[4, 6]; b f32[4, 1]", "y = aten.atan2.default(a, b) : f32[4, 6]"},
    {"a f32[4, 6]", "y = prims.convert_element_type.default(a, torch.float64) : f64[4, 6]"},
    {"g f32[4, 2]", "y = aten.select_backward.default(g, [4, 6, 2], 1, 3) : f32[4, 6, 2]"},
    {"a f32[4, 6, 2]; s f32[4, 2]", "y = aten.select_scatter.default(a, s, 1, -1) : f32[4, 6, 2]"},
    {"a f32[4, 6]; s f32[4, 2]", "y = aten.slice_scatter.default(a, s, 1, 2, 4) : f32[4, 6]"},
    {"a f32[4, 6, 2]", "y = aten.flip.default(a, [1, -1]) : f32[4, 6, 2]"},
    {"a f32[4, 6, 2]", "y = prims.rev.default(a, [1]) : f32[4, 6, 2]"},
    {"a f32[4, 6]", "y = aten.roll.default(a, [1], [0]) : f32[4, 6]"},
    {"a f32[4, 6]", "y = aten.roll.default(a, [5]) : f32[4, 6]"},
    {"a f32[4, 6]", "y = aten.repeat.default(a, [2, 1, 3]) : f32[2, 4, 18]"},
    {"a f32[4, 6]", "(y, z) = aten.unsafe_split.Tensor(a, 3, 1) as s : (f32[4, 3], f32[4, 3])"},
    {"a f32[4, 2, 6]", "(y, z) = aten.unbind.int(a, 1) as s : (f32[4, 6], f32[4, 6])"},
    {"a f32[4, 6, 8]", "y = aten.diagonal.default(a, 1, 2, 1) : f32[4, 5]"},
    {"a f32[4, 6, 8]", "y = aten.diagonal_copy.default(a, 0, 0, 2) : f32[6, 4]"},
    {"g f32[6, 4]", "y = aten.diagonal_backward.default(g, [4, 6, 8], 0, 0, 2) : f32[4, 6, 8]"},
    {"a f32[4, 6, 8]; s f32[6, 4]",
     "y = aten.diagonal_scatter.default(a, s, 0, 0, -1) : f32[4, 6, 8]"},
    {"a f32[4, 6]; i i64[4, 2]; s f32[4, 2]",
     "y = aten.scatter_reduce.two(a, 1, i, s, 'amax') : f32[4, 6]"},
    {"a f32[4, 6, 2]", "y = aten.unfold.default(a, 1, 3, 1) : f32[4, 4, 2, 3]"},
    {"g f32[4, 4, 2, 3]", "y = aten.unfold_backward.default(g, [4, 6, 2], 1, 3, 1) : f32[4, 6, 2]"},
    {"v f32[4, 6]; g f32[4, 1]",
     "(y, n) = aten._weight_norm_interface.default(v, g) as w : (f32[4, 6], f32[4, 1])"},
    {"a f32[4, 6]", "y = aten.argmin.default(a, -1) : i64[4]"},
    {"a f32[4, 6]", "y = aten.var.correction(a, [1], correction=1) : f32[4]"},
    {"a f32[4, 6, 2]",
     "(y, m) = aten.var_mean.correction(a, [0, 2], correction=0, keepdim=True) as v : "
     "(f32[1, 6, 1], f32[1, 6, 1])"},
    {"a f32[4, 6]", "y = aten.prod.dim_int(a, 1) : f32[4]"},
    {"a f32[4, 6]", "y = aten.cumprod.default(a, 0) : f32[4, 6]"},
    {"a f32[4, 6]", "(y, i) = aten.cummax.default(a, -1) as c : (f32[4, 6], i64[4, 6])"},
    {"a f32[4, 6, 2]", "y = aten._fft_r2c.default(a, [1], 0, True) : c64[4, 4, 2]"},
    {"a c64[4, 4, 2]", "y = aten._fft_c2r.default(a, [1], 2, 6) : f32[4, 6, 2]"},
    {"a f32[4, 6]; b f32[8]", "y = aten.bucketize.Tensor(a, b) : i64[4, 6]"},
    {"g f32[4, 6]; a f32[4, 6]", "y = aten.softshrink_backward.default(g, a, 0.5) : f32[4, 6]"},
    {"a f32[4, 6, 6]",
     "(s, y, l, p) = aten._linalg_slogdet.default(a) as d : "
     "(f32[4], f32[4], f32[4, 6, 6], i32[4, 6])"},
    {"x f32[4, 8, 6, 6]", "y = aten.pixel_shuffle.default(x, 2) : f32[4, 2, 12, 12]"},
    {"x f32[4, 2, 6, 6]",
     "y = aten.im2col.default(x, [2, 2], [1, 1], [0, 0], [2, 2]) : f32[4, 8, 9]"},
    {"x f32[4, 8, 9]",
     "y = aten.col2im.default(x, [6, 6], [2, 2], [1, 1], [0, 0], [2, 2]) : f32[4, 2, 6, 6]"},
    {"x f32[4, 2, 6, 6]; g f32[4, 3, 3, 2]",
     "y = aten.grid_sampler_2d.default(x, g, 0, 0, False) : f32[4, 2, 3, 3]"},
    {"x f32[4, 2, 6]", "y = aten.replication_pad1d.default(x, [1, 2]) : f32[4, 2, 9]"},
    {"c f32[8]; a f32[2, 4, 6]; b f32[2, 6, 8]",
     "y = aten.baddbmm.default(c, a, b) : f32[2, 4, 8]"},
    {"a f32[4, 6]; i i64[8]", "y = aten._unsafe_index.Tensor(a, [i]) : f32[8, 6]"},
    {"a f32[4, 6, 2]; i i64[8]", "y = aten.index.Tensor(a, [None, i]) : f32[4, 8, 2]"},
    {"a f32[4, 6, 2, 2]; i i64[2, 4]; j i64[2, 4]",
     "y = aten.index.Tensor(a, [None, i, j]) : f32[4, 2, 4, 2]"},
    {"a f32[4, 6, 2]; i i64[8]; v f32[4, 8, 2]",
     "y = aten.index_put.default(a, [None, i], v, True) : f32[4, 6, 2]"},
    {"a f32[4, 6]", "y = aten.glu.default(a, 1) : f32[4, 3]"},
    {"g f32[4, 3]; a f32[4, 6]", "y = aten.glu_backward.default(g, a, -1) : f32[4, 6]"},
    {"a f32[4, 6]", "(y, u) = aten.log_sigmoid_forward.default(a) as s : (f32[4, 6], f32[4, 6])"},
    {"x f32[4, 2, 8]; w f32[6, 2, 3]; b f32[6]",
     "y = aten.convolution.default(x, w, b, [1], [1], [1], False, [0], 1) : f32[4, 6, 8]"},
    {"x f32[4, 2, 8]; w f32[6, 2, 3]",
     "y = aten.convolution.default(x, w, None, [2], [1], [1], False, [0], 1) : f32[4, 6, 4]"},
    {"x f32[4, 2, 8]; w f32[2, 6, 3]; b f32[6]",
     "y = aten.convolution.default(x, w, b, [1], [1], [1], True, [0], 1) : f32[4, 6, 8]"},
    {"x f32[4, 2, 8]; w f32[6, 1, 3]; b f32[6]",
     "y = aten.convolution.default(x, w, b, [1], [1], [1], False, [0], 2) : f32[4, 6, 8]"},
    {"x f32[2, 4, 8]; w f32[6, 4, 8]",
     "y = aten.convolution.default(x, w, None, [1], [0], [1], False, [0], 1) : f32[2, 6, 1]"},
    {"g f32[4, 6, 8]; x f32[4, 2, 8]; w f32[6, 2, 3]",
     "(y, z, v) = aten.convolution_backward.default(g, x, w, [6], [1], [1], [1], False, [0], 1, "
     "[True, True, True]) as c : (f32[4, 2, 8], f32[6, 2, 3], f32[6])"},
    {"x f32[4, 6, 8]; w f32[6]; b f32[6]; m f32[6]; v f32[6]",
     "(y, s, i, n, u) = aten._native_batch_norm_legit_functional.default(x, w, b, m, v, True, "
     "0.1, 1e-05) as bn : (f32[4, 6, 8], f32[6], f32[6], f32[6], f32[6])"},
    {"g f32[4, 6, 8]; x f32[4, 6, 8]; w f32[6]; m f32[6]; v f32[6]; s f32[6]; i f32[6]",
     "(y, z, u) = aten.native_batch_norm_backward.default(g, x, w, m, v, s, i, True, 1e-05, "
     "[True, True, True]) as bn : (f32[4, 6, 8], f32[6], f32[6])"},
    {"x f32[4, 6, 8]; w f32[6]; b f32[6]",
     "(y, m, r) = aten.native_group_norm.default(x, w, b, 4, 6, 8, 2, 1e-05) as gn : "
     "(f32[4, 6, 8], f32[4, 2], f32[4, 2])"},
    {"g f32[4, 6, 8]; x f32[4, 6, 8]; m f32[4, 2]; r f32[4, 2]; w f32[6]",
     "(y, z, v) = aten.native_group_norm_backward.default(g, x, m, r, w, 4, 6, 8, 2, "
     "[True, True, True]) as gn : (f32[4, 6, 8], f32[6], f32[6])"},
    {"x f32[4, 2, 8, 8]",
     "(y, i) = aten.max_pool2d_with_indices.default(x, [2, 2], [2, 2]) as p : "
     "(f32[4, 2, 4, 4], i64[4, 2, 4, 4])"},
    {"g f32[4, 2, 4, 4]; x f32[4, 2, 8, 8]; i i64[4, 2, 4, 4]",
     "y = aten.max_pool2d_with_indices_backward.default(g, x, [2, 2], [2, 2], [0, 0], [1, 1], "
     "False, i) : f32[4, 2, 8, 8]"},
    {"x f32[2, 8, 8]", "y = aten.avg_pool2d.default(x, [2, 2], [2, 2]) : f32[2, 4, 4]"},
    {"x f32[4, 2, 8, 6]", "y = aten._adaptive_avg_pool2d.default(x, [2, 2]) : f32[4, 2, 2, 2]"},
    {"x f32[4, 2, 4, 4]", "y = aten.upsample_nearest2d.default(x, [8, 8]) : f32[4, 2, 8, 8]"},
    {"g f32[4, 2, 8, 8]",
     "y = aten.upsample_nearest2d_backward.default(g, [8, 8], [4, 2, 4, 4]) : f32[4, 2, 4, 4]"},
    {"x f32[4, 2, 8]", "y = aten.reflection_pad1d.default(x, [1, 2]) : f32[4, 2, 11]"},
    {"a f32[4, 6]; b f32[4, 6]", "y = aten.mse_loss.default(a, b, 0) : f32[4, 6]"},
    {"a f32[4, 6]; b f32[4, 6]", "y = aten.mse_loss.default(a, b) : f32[]"},
    {"a f32[4, 6]; b f32[4, 6]", "y = aten.smooth_l1_loss.default(a, b, 2) : f32[]"},
    {"a f32[4, 6]; b f32[4, 6]", "y = aten.binary_cross_entropy.default(a, b) : f32[]"},
    {"a f32[4, 6]; b f32[4, 6]; w f32[6]",
     "y = aten.binary_cross_entropy.default(a, b, w, 2) : f32[]"},
    {"a f32[4, 6]; b f32[4, 6]", "y = aten.binary_cross_entropy_with_logits.default(a, b) : f32[]"},
    {"a f32[4, 6]; b f32[4, 6]; w f32[6]",
     "y = aten.binary_cross_entropy_with_logits.default(a, b, None, w, 2) : f32[]"},
    {"a f32[4, 6]; b f32[4, 6]", "y = aten.soft_margin_loss.default(a, b) : f32[]"},
    {"g f32[4, 6]; a f32[4, 6]; b f32[4, 6]",
     "y = aten.mse_loss_backward.default(g, a, b, 0) : f32[4, 6]"},
    {"g f32[]; a f32[4, 6]; b f32[4, 6]",
     "y = aten.mse_loss_backward.default(g, a, b, 1) : f32[4, 6]"},
    {"g f32[]; a f32[4, 6]; b f32[4, 6]",
     "y = aten.huber_loss_backward.default(g, a, b, 2, 0.5) : f32[4, 6]"},
    {"g f32[]; a f32[4, 6]; b f32[4, 6]; w f32[4, 6]",
     "y = aten.binary_cross_entropy_backward.default(g, a, b, w, 2) : f32[4, 6]"},
};

/// Takes what stands before `separator`, or all, off `text`.
std::string_view TakeUntil(std::string_view& text, std::string_view separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + separator.size(), text.size()));
  return taken;
}

/// "f32[4, 6][6, 1]cpu" of "f32[4, 6]": the part that a contiguous tensor's type has after its
/// sizes.
std::string Layout(std::string_view sizes) {
  std::vector<int64_t> numbers, strides;
  for (std::string_view rest = sizes; !rest.empty();)
    numbers.push_back(std::stoll(std::string(TakeUntil(rest, ", "))));
  int64_t stride = 1;
  for (size_t i = numbers.size(); i-- > 0; stride *= numbers[i])
    strides.insert(strides.begin(), stride);
  return fmt::format("[{}]cpu", fmt::join(strides, ", "));
}

/// Adds layouts to all types.
std::string WithLayouts(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    const bool is_type = text[at] == '[' && at >= 2 && std::isdigit(text[at - 1]) != 0 &&
                         std::isalnum(text[at - 2]) != 0;
    if (!is_type) continue;
    const size_t end = text.find(']', at);
    const std::string_view sizes = text.substr(at + 1, end - at - 1);
    out += fmt::format("{}]{}", sizes, Layout(sizes));
    at = end;
  }
  return out;
}

std::string BodyOf(const Call& call) {
  std::string body = "\n";
  for (std::string_view rest = call.inputs; !rest.empty();) {
    std::string_view input = TakeUntil(rest, "; ");
    const std::string_view name = TakeUntil(input, " ");
    body += fmt::format("  {} = placeholder : {}\n", name, input);
  }
  std::string_view results = call.nodes.substr(0, call.nodes.find(" = "));
  if (results.starts_with('(')) results = results.substr(1, results.size() - 2);
  body += fmt::format("  {}\n  output([{}])\n", call.nodes, results);
  return WithLayouts(body);
}

TEST_CASE("sharding rules: ranks compute with every strategy what one rank computes") {
  for (const Call& call : kCalls) {
    const std::string body = BodyOf(call);
    CAPTURE(body);
    const auto whole = ParseBody(body);
    const NamedTensors inputs = OrDie(DrawInputs(*whole->FindGraph("g"), 1));
    const GraphRun expected = OrDie(RunGraph(*whole->FindGraph("g"), inputs));
    for (const TextStrategy& strategy : AllStrategies(body)) {
      CAPTURE(strategy.Text());
      const auto lowered = PlacedBy(body, strategy);
      OrDie(LowerPlacements().Run(*lowered));
      const GraphRanks ranks = *OrDie(GraphRanks::Of(*lowered->FindGraph("g")));
      const GraphRun run = OrDie(ranks.Run(OrDie(ranks.Share(inputs))));
      REQUIRE_EQ(run.outputs.size(), expected.outputs.size());
      for (size_t i = 0; i < run.outputs.size(); ++i) {
        CAPTURE(i);
        CHECK(at::allclose(run.outputs[i].tensor, expected.outputs[i].tensor, 1e-5, 1e-6));
      }
    }
  }
}

/// The strategies of a call with a placement that contains `text`.
std::vector<std::string> StrategiesWith(std::string_view text, const Call& call) {
  std::vector<std::string> found;
  for (const TextStrategy& strategy : AllStrategies(BodyOf(call)))
    if (strategy.Text().find(text) != std::string::npos) found.push_back(strategy.Text());
  return found;
}

/// The strategies of a call that cut something.
std::vector<std::string> Cuts(const Call& call) {
  return StrategiesWith("S(", call);
}

TEST_CASE("sharding rules: summands are not rounded") {
  using Texts = std::vector<std::string>;
  CHECK_EQ(StrategiesWith("P(", {"a f32[4, 6]", "y = aten.div.Tensor(a, 3) : f32[4, 6]"}),
           Texts{"P(sum) to P(sum)"});
  CHECK_EQ(StrategiesWith("P(", {"a f32[4, 6]",
                                 "y = aten.div.Tensor_mode(a, 3, rounding_mode='floor') : "
                                 "f32[4, 6]"}),
           Texts{});
}

TEST_CASE("sharding rules: convolutions share samples and channels") {
  using Texts = std::vector<std::string>;
  const auto of = [](std::string_view weight, std::string_view rest) {
    const std::string inputs = fmt::format("x f32[4, 2, 8]; w f32[{}]; b f32[6]", weight);
    const std::string nodes = fmt::format(
        "y = aten.convolution.default(x, w, b, [1], [1], [1], {}) : f32[4, 6, 8]", rest);
    return Cuts({inputs, nodes});
  };
  CHECK_EQ(of("6, 2, 3", "False, [0], 1"), Texts{"S(0) R R to S(0)", "R S(0) S(0) to S(1)"});
  CHECK_EQ(of("2, 6, 3", "True, [0], 1"), Texts{"S(0) R R to S(0)", "R S(1) S(0) to S(1)"});
  CHECK_EQ(of("6, 1, 3", "False, [0], 2"), Texts{"S(0) R R to S(0)"});
  CHECK_EQ(Cuts({"x f32[4, 2, 8]; w f32[6, 2, 3]",
                 "y = aten.convolution.default(x, w, None, [1], [1], [1], False, [0], 1) : "
                 "f32[4, 6, 8]"}),
           Texts{"S(0) R to S(0)", "R S(0) to S(1)", "S(1) S(1) to P(sum)"});
}

}  // namespace
}  // namespace strata
