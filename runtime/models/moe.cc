#include "runtime/models/moe.h"

#include <limits>
#include <optional>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "runtime/models/chunks.h"
#include "runtime/trace/scope.h"

namespace strata {
namespace {

using at::Tensor;

Tensor TopIndices(const Tensor& scores, int64_t k) {
  return std::get<1>(at::topk(scores, k, /*dim=*/-1, /*largest=*/true, /*sorted=*/false));
}

/// How many of the (token, choice) pairs are each expert's. Sums of ones: no atomics, no order.
Tensor CountChoices(const Tensor& experts, int64_t num_experts) {
  return at::zeros({experts.size(0), num_experts}, experts.options().dtype(at::kBool))
      .scatter(1, experts, true)
      .sum(0);
}

/// x W^T per group of rows. `weight` `[groups, out, in]`.
Tensor GroupedLinear(const Tensor& x, const Tensor& weight, const Tensor& ends) {
  // The kernel wants rows of a multiple of 16 bytes; zeros at their ends change no product.
  const auto missing = [&](int64_t size) {
    const int64_t unit = 16 / x.element_size();
    return (unit - size % unit) % unit;
  };
  const int64_t in = missing(weight.size(2));
  const int64_t out = missing(weight.size(1));
  if (in == 0 && out == 0) return at::_grouped_mm(x, weight.transpose(1, 2), ends);
  const Tensor padded = at::constant_pad_nd(weight, {0, in, 0, out});
  const Tensor y =
      at::_grouped_mm(in == 0 ? x : at::constant_pad_nd(x, {0, in}), padded.transpose(1, 2), ends);
  return out == 0 ? y : y.slice(1, 0, weight.size(1));
}

/// In fp32.
Tensor Score(const Tensor& rows, const Tensor& weight) {
  return (rows * weight).to(rows.scalar_type());
}

}  // namespace

Router::Router(const Slot& slot, const TrainConfig& config, int64_t layer)
    : config_(*config.moe),
      gate_(slot, "gate", config.dim, config_.num_experts, ResidualInit(layer)) {}

Router::Choice Router::operator()(const Tensor& x, const Tensor& bias,
                                  std::source_location location) const {
  ModuleScope scope("router", location);
  const Tensor logits = gate_.InFloat(x);
  const Tensor scores =
      config_.score_func == ScoreFunction::kSoftmax ? at::softmax(logits, 1) : at::sigmoid(logits);
  Tensor experts;
  {
    const at::NoGradGuard choosing_has_no_gradient;
    Tensor appeal = bias.defined() ? scores + bias : scores;
    if (config_.num_expert_groups > 0) appeal = ForbidWeakGroups(appeal);
    experts = TopIndices(appeal, config_.top_k);
    if (config_.force_load_balance) experts = InTurn(experts);
  }
  Tensor chosen = scores.gather(1, experts);
  if (config_.route_norm) chosen = chosen / (chosen.sum(1, /*keepdim=*/true) + 1e-20);
  return {.scores = chosen * config_.route_scale, .experts = experts};
}

Tensor Router::InTurn(const Tensor& like) const {
  return at::arange(like.numel(), like.options()).remainder(config_.num_experts).view_as(like);
}

Tensor Router::ForbidWeakGroups(const Tensor& scores) const {
  const Tensor grouped = scores.unflatten(1, {config_.num_expert_groups, -1});
  const Tensor group_scores = std::get<0>(at::topk(grouped, 2, -1)).sum(-1);
  const Tensor best = TopIndices(group_scores, config_.num_limited_groups);
  const Tensor is_weak = at::ones_like(group_scores, at::kBool).scatter(1, best, false);
  return grouped.masked_fill(is_weak.unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .flatten(1);
}

Experts::Experts(const Slot& slot, const TrainConfig& config, int64_t layer) {
  const int64_t count = config.moe->num_experts;
  const int64_t hidden = config.moe->moe_hidden_dim;
  w1_ = slot.Parameter("w1", {count, hidden, config.dim}, kLinearInit);
  w2_ = slot.Parameter("w2", {count, config.dim, hidden}, ResidualInit(layer));
  w3_ = slot.Parameter("w3", {count, hidden, config.dim}, ResidualInit(layer));
}

Tensor Experts::operator()(const Tensor& x, const Tensor& ends,
                           std::source_location location) const {
  ModuleScope scope("experts", location);
  const Tensor gate = at::silu(GroupedLinear(x, w1_, ends));
  return GroupedLinear(gate * GroupedLinear(x, w3_, ends), w2_, ends);
}

std::vector<Experts::Expert> Experts::Each() const {
  const std::vector<Tensor> w1 = w1_.unbind(), w2 = w2_.unbind(), w3 = w3_.unbind();
  std::vector<Expert> experts;
  for (size_t e = 0; e < w1.size(); ++e)
    experts.push_back({.w1 = w1[e], .w2 = w2[e], .w3 = w3[e]});
  return experts;
}

Tensor Experts::Expert::operator()(const Tensor& x) const {
  const Tensor gate = at::silu(at::mm(x, w1.t()));
  return at::mm(gate * at::mm(x, w3.t()), w2.t());
}

MixtureOfExperts::MixtureOfExperts(const Slot& slot, const TrainConfig& config, int64_t layer)
    : config_(*config.moe),
      experts_(slot.In("experts"), config, layer),
      router_(slot.In("router"), config, layer) {
  if (config_.num_shared_experts > 0) {
    shared_experts_.emplace(slot, "shared_experts", config.dim,
                            config_.num_shared_experts * config_.moe_hidden_dim, layer);
  }
  if (config_.load_balance_coeff) {
    expert_bias_ = slot.Buffer("expert_bias", {config_.num_experts}, {});
  }
}

Tensor MixtureOfExperts::operator()(const Tensor& x, std::vector<Tensor>& tokens_per_expert,
                                    std::source_location location) const {
  ModuleScope scope("moe", location);
  const Tensor tokens = x.flatten(0, 1);
  const auto [scores, experts] = router_(tokens, expert_bias_);
  tokens_per_expert.push_back(CountChoices(experts, config_.num_experts));

  // Dispatch: one row per (token, choice), ordered by expert, then by token.
  const Tensor order = std::get<1>(
      at::sort(experts.flatten(), /*stable=*/std::optional(true), /*dim=*/0, /*descending=*/false));
  const Tensor source = order.floor_divide(config_.top_k);
  const Tensor weight = scores.flatten().index_select(0, order).unsqueeze(1);
  const Tensor rows = tokens.index_select(0, source);
  const auto shared = [&] {
    return shared_experts_ ? (*shared_experts_)(x).flatten(0, 1) : at::zeros_like(tokens);
  };
  // Combine: per token ((shared + e_a) + e_b) + …, experts ascending.
  if (!config_.use_grouped_mm) {
    const std::vector<int64_t> sizes = ReadSizes(tokens_per_expert.back(), rows.size(0));
    return AddEach(shared(), source.split_with_sizes(sizes, 0), rows.split_with_sizes(sizes, 0),
                   weight.split_with_sizes(sizes, 0))
        .view_as(x);
  }
  const Tensor ends = tokens_per_expert.back().cumsum(0).to(at::kInt);
  const Tensor read = config_.score_before_experts ? Score(rows, weight) : rows;
  Tensor given = experts_(read, ends);
  if (!config_.score_before_experts) given = Score(given, weight);
  return shared().index_add(0, source, given).view_as(x);
}

Tensor MixtureOfExperts::AddEach(Tensor sum, const std::vector<Tensor>& source,
                                 const std::vector<Tensor>& rows,
                                 const std::vector<Tensor>& weight) const {
  ModuleScope scope("experts");
  const std::vector<Experts::Expert> experts = experts_.Each();
  for (size_t e = 0; e < experts.size(); ++e) {
    Tensor given = experts[e](config_.score_before_experts ? Score(rows[e], weight[e]) : rows[e]);
    if (!config_.score_before_experts) given = Score(given, weight[e]);
    sum = sum.index_add(0, source[e], given);
  }
  return sum;
}

DenseOrExperts::DenseOrExperts(const Slot& slot, const TrainConfig& config, int64_t layer)
    : chunks_(config.compile.ep_overlap), chunk_count_(config) {
  if (config.HasExperts(layer)) {
    experts_.emplace(slot.In("moe"), config, layer);
  } else {
    dense_.emplace(slot, "feed_forward", config.dim, config.hidden_dim, layer);
  }
}

Tensor DenseOrExperts::operator()(const Tensor& x, std::vector<Tensor>& tokens_per_expert,
                                  std::source_location location) const {
  if (dense_) return (*dense_)(x, location);
  if (!chunks_.InProgram() || chunks_.whole_layers)
    return (*experts_)(x, tokens_per_expert, location);
  return ChunkedModule("moe", chunk_count_)
      .Call(x, chunks_.along_seq, tokens_per_expert,
            [&](const Tensor& part, size_t, std::vector<Tensor>& counts) {
              return (*experts_)(part, counts, location);
            });
}

void UpdateExpertBias(const Tensor& bias, const Tensor& tokens_per_expert, double coeff) {
  const at::NoGradGuard no_grad;
  const Tensor tokens = tokens_per_expert.to(at::kFloat);
  const Tensor step = at::sign(tokens.mean() - tokens) * coeff;
  bias.add_(step - step.mean());
}

}  // namespace strata
