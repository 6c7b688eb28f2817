#include "runtime/flex/reference.h"

#include <limits>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include "runtime/flex/body_evaluator.h"

namespace strata {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Row, head, query and key of each score, broadcast against `[batch, heads, queries, keys]`.
std::vector<Tensor> IndicesOf(at::IntArrayRef scores, c10::Device device) {
  std::vector<Tensor> indices;
  for (size_t dim = 0; dim < 4; ++dim) {
    std::vector<int64_t> shape(4, 1);
    shape[dim] = scores[dim];
    indices.push_back(
        at::arange(scores[dim], at::TensorOptions(at::kInt).device(device)).view(shape));
  }
  return indices;
}

void Append(std::vector<Tensor>& inputs, at::TensorList more) {
  inputs.insert(inputs.end(), more.begin(), more.end());
}

Tensor MaskOf(std::string_view mask_mod, at::IntArrayRef scores, at::TensorList buffers,
              c10::Device device) {
  std::vector<Tensor> inputs = IndicesOf(scores, device);
  Append(inputs, buffers);
  return EvaluateFlexBody(mask_mod, FlexRole::kMask, inputs)[0];
}

Tensor ScoresOf(std::string_view score_mod, const Tensor& scores, at::TensorList buffers) {
  std::vector<Tensor> inputs = {scores};
  Append(inputs, IndicesOf(scores.sizes(), scores.device()));
  Append(inputs, buffers);
  return EvaluateFlexBody(score_mod, FlexRole::kScore, inputs)[0].to(scores.scalar_type());
}

at::ScalarType WorkingType(const Tensor& query) {
  return query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

Tensor RepeatHeads(const Tensor& x, const Tensor& query) {
  const int64_t group = query.size(1) / x.size(1);
  return group == 1 ? x : x.repeat_interleave(group, 1);
}

/// Gradients of heads that queries share.
Tensor SumHeads(const Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.unflatten(1, {heads, -1}).sum(2);
}

Tensor RawScores(const Tensor& query, const Tensor& key, double scale) {
  const at::ScalarType type = WorkingType(query);
  return at::matmul(query.to(type), RepeatHeads(key, query).to(type).transpose(-2, -1)) * scale;
}

/// `values` where tensors of that shape and layout lie.
Tensor LaidOutLike(const Tensor& values, const Tensor& like) {
  Tensor out = at::empty_like(like);
  out.copy_(values);
  return out;
}

/// Blocks in the order of their indices: those that are set come first.
void AddBlocks(const Tensor& blocks, std::vector<Tensor>& out) {
  out.push_back(blocks.sum(-1, /*keepdim=*/false, at::kInt));
  out.push_back(at::argsort(blocks.to(at::kInt), /*stable=*/true, -1, /*descending=*/true)
                    .to(at::kInt)
                    .contiguous());
}

}  // namespace

std::tuple<Tensor, Tensor> FlexForward(const Tensor& query, const Tensor& key, const Tensor& value,
                                       std::string_view score_mod, std::string_view mask_mod,
                                       double scale, at::TensorList score_buffers,
                                       at::TensorList mask_buffers) {
  const Tensor raw = RawScores(query, key, scale);
  const Tensor scores = at::where(MaskOf(mask_mod, raw.sizes(), mask_buffers, raw.device()),
                                  ScoresOf(score_mod, raw, score_buffers), at::Scalar(-kInfinity));
  const Tensor weights = at::_safe_softmax(scores, -1).to(query.scalar_type());
  const Tensor out = at::matmul(weights, RepeatHeads(value, query));
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes[3] = value.size(3);
  const Tensor layout =
      at::empty_like(query.size(3) == value.size(3) ? query : query.new_empty(sizes));
  return {LaidOutLike(out, layout), at::logsumexp(scores, {-1}) / std::numbers::ln2};
}

std::tuple<Tensor, Tensor, Tensor> FlexBackward(const FlexSaved& saved, const Tensor& gradient,
                                                std::string_view score_mod,
                                                std::string_view joint_graph,
                                                std::string_view mask_mod, double scale,
                                                at::TensorList score_buffers,
                                                at::TensorList mask_buffers) {
  const Tensor& query = saved.query;
  const at::ScalarType narrow = query.scalar_type(), wide = WorkingType(query);
  const Tensor key = RepeatHeads(saved.key, query), value = RepeatHeads(saved.value, query);
  const Tensor raw = RawScores(query, saved.key, scale);
  const Tensor mask = MaskOf(mask_mod, raw.sizes(), mask_buffers, raw.device());
  const Tensor logsumexp = (saved.logsumexp * std::numbers::ln2).unsqueeze(-1);
  const Tensor scores = ScoresOf(score_mod, raw, score_buffers);
  // A row without keys has the logsumexp -inf.
  const Tensor weights = at::where(mask, at::exp(scores - logsumexp), at::Scalar(0.0));
  const Tensor value_gradient = at::matmul(weights.to(narrow).transpose(-2, -1), gradient);
  const Tensor weight_gradient = at::matmul(gradient.to(wide), value.to(wide).transpose(-2, -1));
  const Tensor sums = (saved.out.to(wide) * gradient.to(wide)).sum(-1, /*keepdim=*/true);
  const Tensor modified_gradient = weights * (weight_gradient - sums);
  std::vector<Tensor> inputs = {raw};
  Append(inputs, IndicesOf(raw.sizes(), raw.device()));
  inputs.push_back(modified_gradient);
  Append(inputs, score_buffers);
  const Tensor joint = EvaluateFlexBody(joint_graph, FlexRole::kJoint, inputs)[0];
  const Tensor score_gradient = at::where(mask, joint * scale, at::Scalar(0.0)).to(narrow);
  const Tensor key_gradient = at::matmul(score_gradient.transpose(-2, -1), query);
  return {LaidOutLike(at::matmul(score_gradient, key), query),
          LaidOutLike(SumHeads(key_gradient, saved.key.size(1)), saved.key),
          LaidOutLike(SumHeads(value_gradient, saved.value.size(1)), saved.value)};
}

std::vector<Tensor> BlocksOf(std::string_view mask_mod, at::IntArrayRef scores,
                             at::IntArrayRef block, at::TensorList mask_buffers,
                             c10::Device device) {
  const auto missing = [&](size_t dim, int64_t size) { return (size - scores[dim] % size) % size; };
  const Tensor mask = MaskOf(mask_mod, scores, mask_buffers, device).expand(scores);
  const Tensor padded =
      at::constant_pad_nd(mask, {0, missing(3, block[1]), 0, missing(2, block[0])}, false);
  // [batch, heads, rows of blocks, columns of blocks]
  const Tensor counts =
      padded.unflatten(2, {-1, block[0]}).unflatten(4, {-1, block[1]}).sum(at::IntArrayRef{3, 5});
  const Tensor full = counts.eq(block[0] * block[1]), partial = counts.gt(0).logical_and(~full);
  std::vector<Tensor> blocks;
  for (const Tensor& kind : {partial, full})
    AddBlocks(kind, blocks);
  for (const Tensor& kind : {partial, full})
    AddBlocks(kind.transpose(-2, -1), blocks);
  return blocks;
}

}  // namespace strata
