// A model of gated layers that mix each token with the one before it.

#include <memory>
#include <strata/model.h>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

using strata::user::Context;
using strata::user::ModuleScope;

class Layer {
 public:
  Layer(Context& context, const std::string& name) : context_(context), name_(name) {
    const int64_t dim = context.sizes().dim;
    norm_ = context.Parameter(name + ".norm.weight", {dim}, {1.0, 0.0});
    mix_ = context.Parameter(name + ".mix.weight", {dim, dim});
    gate_ = context.Parameter(name + ".gate.weight", {dim, dim});
    out_ = context.Parameter(name + ".out.weight", {dim, dim}, {0.0, 0.02 / 4});
  }

  at::Tensor operator()(const at::Tensor& x) const {
    const ModuleScope scope(context_, name_);
    const at::Tensor y = at::layer_norm(x, {x.size(2)}, norm_);
    const at::Tensor before =
        at::cat({at::zeros_like(y.narrow(1, 0, 1)), y.narrow(1, 0, y.size(1) - 1)}, 1);
    const at::Tensor mixed = at::linear(before, mix_) * at::silu(at::linear(y, gate_));
    return x + at::linear(mixed, out_);
  }

 private:
  Context& context_;
  std::string name_;
  at::Tensor norm_, mix_, gate_, out_;
};

class Mine final : public strata::user::Model {
 public:
  explicit Mine(Context& context) {
    const strata::user::Sizes& sizes = context.sizes();
    embedding_ = context.Parameter("embedding.weight", {sizes.vocab_size, sizes.dim}, {0.0, 1.0});
    for (int64_t i = 0; i < sizes.n_layers; ++i)
      layers_.emplace_back(context, "layers." + std::to_string(i));
    head_ = context.Parameter("head.weight", {sizes.vocab_size, sizes.dim});
  }

  at::Tensor Hidden(const at::Tensor& tokens, const at::Tensor& /*positions*/) override {
    at::Tensor x = at::embedding(embedding_, tokens);
    for (const Layer& layer : layers_)
      x = layer(x);
    return x;
  }

  at::Tensor Logits(const at::Tensor& hidden) override { return at::linear(hidden, head_); }

 private:
  at::Tensor embedding_, head_;
  std::vector<Layer> layers_;
};

STRATA_MODEL(Mine)
