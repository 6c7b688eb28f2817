#pragma once
// Trainings without graphs, to compare with, and the graphs of the same trainings.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/config/parameters.h"
#include "runtime/exec/executor.h"
#include "runtime/models/model.h"
#include "runtime/train/data/data.h"
#include "runtime/train/programs/trace_programs.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"

namespace strata::testing {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Overrides = std::vector<std::string>;

/// A configuration and what differs from it.
struct Case {
  std::string_view text;
  Overrides overrides;
};

/// What every property is checked on.
inline const std::vector<Case> kCases = {
    {kSmallLlama3, {}},
    {kSmallLlama3, {"n_kv_heads=4"}},
    {kSmallLlama3, {"n_kv_heads=1", "n_heads=8"}},
    {kSmallLlama3, {"dim=48", "n_heads=3", "n_kv_heads=3", "n_layers=1"}},
    {kSmallLlama3, {"head_dim=12", "hidden_dim=20"}},
    {kSmallLlama3, {"seq_len=1"}},
    {kSmallLlama3, {"batch_size=1", "seq_len=7"}},
    {kSmallLlama3, {"rope.scaling=none", "rope.theta=10000"}},
    {kSmallLlama3, {"rope.scaling=none", "rope.backend=cos_sin"}},
    {kSmallLlama3, {"rope.max_seq_len=32", "seed=9"}},
    {kSmallLlama3, {"enable_weight_tying=true"}},
    {kSmallLlama3, {"optimizer.max_grad_norm=null", "optimizer.weight_decay=0"}},
    {kSmallQwen3, {}},
    {kSmallQwen3, {"enable_weight_tying=false", "n_kv_heads=1"}},
    {kSmallQwen3, {"qk_norm=false", "batch_size=1"}},
    {kSmallQwen3,
     {"moe.num_experts=6", "moe.top_k=2", "moe.moe_hidden_dim=8", "moe.score_func=softmax"}},
    {kSmallDeepSeekV3, {}},
    {kSmallDeepSeekV3, {"mla.q_lora_rank=10", "mla.v_head_dim=16"}},
    {kSmallDeepSeekV3, {"mla.v_head_dim=12", "rope.scaling=none"}},
    // Neither rows of experts nor pairs of a head begin where the kernels want them.
    {kSmallDeepSeekV3, {"dim=22", "moe.moe_hidden_dim=7", "mla.qk_nope_head_dim=5"}},
    {kSmallDeepSeekV3, {"moe.score_func=softmax", "moe.route_norm=true", "moe.route_scale=2.5"}},
    {kSmallDeepSeekV3,
     {"moe.num_expert_groups=4", "moe.num_limited_groups=2", "moe.route_norm=true"}},
    {kSmallDeepSeekV3, {"moe.score_before_experts=true", "moe.num_shared_experts=0"}},
    {kSmallDeepSeekV3, {"moe.load_balance_coeff=null", "n_dense_layers=0"}},
    // More experts than rows: some get none.
    {kSmallDeepSeekV3, {"moe.num_experts=64", "moe.top_k=1", "seq_len=5", "batch_size=1"}},
    {kSmallDeepSeekV3, {"moe.num_experts=2", "moe.top_k=2", "seq_len=1"}},
    // Strides of a single expert's gradients are those of padded rows.
    {kSmallDeepSeekV3, {"dim=24", "moe.num_experts=1", "moe.top_k=1", "moe.moe_hidden_dim=7"}},
    {kSmallDeepSeekV3, {"n_dense_layers=3", "enable_weight_tying=true"}},
    {kSmallDeepSeekV3, {"moe.use_grouped_mm=false"}},
};

inline std::string Title(const Case& c) {
  std::string title(c.text.substr(0, c.text.find('\n', 1)));
  for (const std::string& text : c.overrides)
    title += " " + text;
  return title;
}

inline std::unique_ptr<DataSource> Synthetic(const TrainConfig& config) {
  return MakeTokenSource(TokenData::Synthetic(config));
}

/// Parameters and data of a run, and its eager steps.
struct Eager {
  TrainConfig config;
  TokenData tokens;
  Tensors parameters, buffers;
  Tensor rope_table;
  OptimizerState state;

  explicit Eager(const TrainConfig& c) : config(c), tokens(TokenData::Synthetic(c)) {
    const ModelSpecs specs = SpecsOf(config);
    parameters = FirstValues(specs.parameters);
    buffers = FirstValues(specs.buffers);
    rope_table = RopeTable(config);
    state = InitialState(config, parameters);
  }

  Tensors FirstValues(const std::vector<ParameterSpec>& specs) const {
    Tensors values;
    for (const ParameterSpec& spec : specs) {
      Tensor value = at::empty(spec.shape);
      InitializeParameter(spec, config.seed,
                          {value.data_ptr<float>(), static_cast<size_t>(value.numel())});
      values.push_back(std::move(value));
    }
    return values;
  }

  /// Ids [:, shift : shift + seq] of the step.
  Tensor Ids(int64_t step, int64_t shift) const {
    const Tensor all = at::tensor(tokens.Step(step)).view({config.batch_size, config.seq_len + 1});
    return all.slice(1, shift, config.seq_len + shift).clone(at::MemoryFormat::Contiguous);
  }
  /// What the graph `step` takes.
  Tensors Inputs(int64_t step) const {
    Tensors inputs = parameters;
    inputs.insert(inputs.end(), buffers.begin(), buffers.end());
    inputs.insert(inputs.end(), {rope_table, Ids(step, 0), Ids(step, 1)});
    return inputs;
  }
  Tensors LossAndGradients(int64_t step) const {
    Tensors trained;
    for (const Tensor& parameter : parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const ModelTensors model{.parameters = trained, .buffers = buffers, .rope_table = rope_table};
    return strata::LossAndGradients(TrainSpec(config), model,
                                    {.tokens = Ids(step, 0), .labels = Ids(step, 1)});
  }
  /// Takes what `LossAndGradients` gave; returns the gradient norm.
  Tensor Update(const Tensors& outputs) {
    Tensors gradients;
    for (size_t i = 1; i <= parameters.size(); ++i)
      gradients.push_back(outputs[i].clone(at::MemoryFormat::Contiguous));
    const Tensors tokens_per_expert(outputs.end() - std::ssize(buffers), outputs.end());
    const ModelTensors model{.parameters = parameters, .buffers = buffers, .rope_table = {}};
    return OptimizerStep(TrainSpec(config), model, gradients, tokens_per_expert, state)[0];
  }
};

/// The two graphs after passes.
struct Compiled {
  Module module;
  Constants constants;

  Compiled(const TrainConfig& config, std::string_view passes) {
    REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
    PassManager manager;
    for (auto& pass : OrDie(ParsePipeline(passes, AllPasses())))
      manager.Add(std::move(pass));
    OrDie(manager.Run(module));
  }
  Executor Bind(std::string_view graph, const PlanOptions& options = {}) const {
    return OrDie(Executor::Bind(OrDie(Lower(*module.FindGraph(graph), options)), constants));
  }
};

/// As std::ranges::equal, which compares byte by byte where nothing is optimized.
inline bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(),
                     a.nbytes()) == 0;
}

/// Largest difference of a loss or gradient, relative to the largest value of its tensor.
inline double WorstDifference(const Tensors& a, const Tensors& b) {
  REQUIRE_EQ(a.size(), b.size());
  double worst = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_floating_point()) continue;
    const double largest = b[i].abs().max().item<double>();
    worst = std::max(worst, (a[i] - b[i]).abs().max().item<double>() / (largest + 1e-30));
  }
  return worst;
}

}  // namespace strata::testing
