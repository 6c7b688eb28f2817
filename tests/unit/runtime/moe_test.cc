#include "runtime/models/moe.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

namespace strata {
namespace {

using at::Tensor;

constexpr int64_t kDim = 6;
constexpr int64_t kTokens = 20;

TrainConfig MoeModel(const MoeConfig& moe) {
  TrainConfig config;
  config.model = ModelFamily::kDeepSeekV3;
  config.dim = kDim;
  config.moe = moe;
  return config;
}

std::vector<float> Row(const Tensor& matrix, int64_t row) {
  const Tensor values = matrix[row].contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

/// The expert ids that the paper's words give for one token.
std::set<int64_t> BestExperts(const std::vector<float>& appeal, const MoeConfig& moe) {
  std::vector<int64_t> allowed(appeal.size());
  std::iota(allowed.begin(), allowed.end(), 0);
  if (moe.num_expert_groups > 0) {
    const int64_t size = moe.num_experts / moe.num_expert_groups;
    std::vector<std::pair<float, int64_t>> groups;
    for (int64_t group = 0; group < moe.num_expert_groups; ++group) {
      std::vector<float> members(appeal.begin() + group * size,
                                 appeal.begin() + (group + 1) * size);
      std::ranges::sort(members, std::greater());
      groups.emplace_back(members[0] + members[1], group);
    }
    std::ranges::sort(groups, std::greater());
    groups.resize(static_cast<size_t>(moe.num_limited_groups));
    std::erase_if(allowed, [&](int64_t expert) {
      return std::ranges::none_of(groups,
                                  [&](const auto& group) { return group.second == expert / size; });
    });
  }
  std::ranges::sort(allowed, std::greater(),
                    [&](int64_t expert) { return appeal[static_cast<size_t>(expert)]; });
  return {allowed.begin(), allowed.begin() + moe.top_k};
}

TEST_CASE("a router chooses by biased scores within groups and weighs by the scores alone") {
  at::manual_seed(3);
  const MoeConfig plain = {.num_experts = 12, .top_k = 3, .moe_hidden_dim = 4};
  std::vector<MoeConfig> cases(5, plain);
  cases[1].score_func = ScoreFunction::kSoftmax;
  cases[2].route_norm = true;
  cases[2].route_scale = 2.5;
  cases[3].num_expert_groups = 4;
  cases[3].num_limited_groups = 2;
  cases[4].num_expert_groups = 3;
  cases[4].num_limited_groups = 1;
  for (const MoeConfig& moe : cases) {
    const Tensor gate = at::randn({12, kDim});
    const Tensor x = at::randn({kTokens, kDim});
    for (const Tensor& bias : {Tensor(), at::randn({12})}) {
      const std::vector<Tensor> parameters = {gate};
      GivenWeights weights(parameters, {});
      const Router router(Slot(weights), MoeModel(moe), 0);
      const auto [scores, experts] = router(x, bias);

      const Tensor logits = x.matmul(gate.t());
      const Tensor all =
          moe.score_func == ScoreFunction::kSoftmax ? logits.softmax(1) : logits.sigmoid();
      const Tensor appeal = bias.defined() ? all + bias : all;
      for (int64_t token = 0; token < kTokens; ++token) {
        std::set<int64_t> chosen;
        float sum = 0.0F;
        for (int64_t k = 0; k < moe.top_k; ++k) {
          chosen.insert(experts[token][k].item<int64_t>());
          sum += all[token][experts[token][k].item<int64_t>()].item<float>();
        }
        CHECK(chosen == BestExperts(Row(appeal, token), moe));
        for (int64_t k = 0; k < moe.top_k; ++k) {
          const float score = all[token][experts[token][k].item<int64_t>()].item<float>();
          const double expected = moe.route_scale * score / (moe.route_norm ? sum : 1.0);
          CHECK_EQ(scores[token][k].item<double>(), doctest::Approx(expected).epsilon(1e-5));
        }
      }
    }
  }
}

TEST_CASE("a router that is told to gives experts in turn, weighed by their scores") {
  at::manual_seed(4);
  const MoeConfig moe = {
      .num_experts = 5, .top_k = 3, .moe_hidden_dim = 4, .force_load_balance = true};
  const std::vector<Tensor> parameters = {at::randn({5, kDim})};
  const Tensor x = at::randn({kTokens, kDim});
  GivenWeights weights(parameters, {});
  const Router router(Slot(weights), MoeModel(moe), 0);
  const auto [scores, experts] = router(x, Tensor());
  const Tensor all = x.matmul(parameters[0].t()).sigmoid();
  for (int64_t i = 0; i < kTokens * 3; ++i) {
    CHECK_EQ(experts[i / 3][i % 3].item<int64_t>(), i % 5);
    CHECK_EQ(scores[i / 3][i % 3].item<float>(), all[i / 3][i % 5].item<float>());
  }
}

TEST_CASE("grouped experts are each expert's feed-forward layer on its rows, of any width") {
  at::manual_seed(4);
  for (const auto& [dim, hidden] : {std::pair<int64_t, int64_t>{8, 4}, {6, 4}, {8, 5}, {3, 7}}) {
    TrainConfig config = MoeModel({.num_experts = 5, .top_k = 1, .moe_hidden_dim = hidden});
    config.dim = dim;
    const std::vector<Tensor> parameters = {
        at::randn({5, hidden, dim}), at::randn({5, dim, hidden}), at::randn({5, hidden, dim})};
    GivenWeights weights(parameters, {});
    const Experts experts(Slot(weights), config, 0);
    const Tensor x = at::randn({9, dim});
    // The second and the last expert get nothing.
    const std::vector<int64_t> ends = {4, 4, 5, 9, 9};
    const Tensor y = experts(x, at::tensor(ends, at::kInt));
    int64_t begin = 0;
    for (size_t e = 0; e < ends.size(); ++e) {
      const auto of_expert = [&](size_t which) {
        return parameters[which][static_cast<int64_t>(e)].t();
      };
      const Tensor rows = x.slice(0, begin, ends[e]);
      const Tensor gate = at::silu(rows.matmul(of_expert(0))) * rows.matmul(of_expert(2));
      CHECK(at::allclose(y.slice(0, begin, ends[e]), gate.matmul(of_expert(1)), 1e-5, 1e-6));
      begin = ends[e];
    }
  }
}

TEST_CASE("biases move against the load, and their mean stays") {
  const Tensor bias = at::tensor({0.5, 0.0, -0.5, 0.25}, at::kFloat);
  UpdateExpertBias(bias, at::tensor({4, 0, 4, 8}, at::kLong), 0.1);
  // Loads 4, 0, 4, 8 around 4: steps 0, +, 0, -, of mean 0.
  CHECK(at::allclose(bias, at::tensor({0.5, 0.1, -0.5, 0.15}, at::kFloat), 0, 1e-7));

  const Tensor uneven = at::zeros({4});
  UpdateExpertBias(uneven, at::tensor({9, 1, 1, 1}, at::kLong), 0.1);
  CHECK(at::allclose(uneven, at::tensor({-0.15, 0.05, 0.05, 0.05}, at::kFloat), 0, 1e-7));
}

}  // namespace
}  // namespace strata
