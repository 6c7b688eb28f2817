#pragma once
#include <cstdint>
#include <source_location>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

/// The interface between `strata train --model FILE.so` and a model in a shared library, which
/// needs this header and LibTorch, of the version that Strata was built with, and does not link
/// Strata:
///
///     class Mine final : public strata::user::Model { … };
///     STRATA_MODEL(Mine)
///
/// The model is traced, not run: its operators see tensors without values, and become nodes of the
/// graph of a step. docs/examples/own-model is an example.
namespace strata::user {

/// Of this header; Strata rejects libraries that were built with another.
inline constexpr int kModelInterface = 1;

/// What the configuration says; 0: nothing.
struct Sizes {
  int64_t vocab_size = 0, seq_len = 0;
  int64_t dim = 0, n_layers = 0, n_heads = 0, n_kv_heads = 0, hidden_dim = 0;
};

/// First values of a parameter: N(mean, std²); std 0: all are `mean`.
struct Init {
  double mean = 0.0, std = 0.02;
};

/// What a model gets of Strata. Lives as long as the model.
class Context {
 public:
  virtual ~Context() = default;
  virtual const Sizes& sizes() const = 0;
  /// A parameter, fp32 (in the step also bf16, as the configuration says) and trained. For the
  /// constructor of a model: it asks for the same parameters in the same order every time. Names
  /// are unique, `layers.0.mlp.weight`; checkpoints and `--init` use them.
  virtual at::Tensor Parameter(std::string_view name, const std::vector<int64_t>& shape,
                               const Init& init = {}) = 0;
  /// Nodes that are recorded until `LeaveModule` belong to module `name` of the current one, and
  /// come from `where`.
  virtual void EnterModule(std::string_view name, std::source_location where) = 0;
  virtual void LeaveModule() = 0;
};

/// Enters a module for the lifetime of this object.
class [[nodiscard]] ModuleScope {
 public:
  ModuleScope(Context& context, std::string_view name,
              std::source_location where = std::source_location::current())
      : context_(context) {
    context_.EnterModule(name, where);
  }
  ~ModuleScope() { context_.LeaveModule(); }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  Context& context_;
};

/// A language model. The loss, a mean cross-entropy over the labels that count, is Strata's.
class Model {
 public:
  virtual ~Model() = default;
  /// `tokens` int64 `[batch, seq]`; `positions` of the same shape, from 0 in each document, or
  /// undefined where each row is one document. Returns hidden states `[batch, seq, …]`.
  virtual at::Tensor Hidden(const at::Tensor& tokens, const at::Tensor& positions) = 0;
  /// Next-token logits `[batch, seq, vocab]` of hidden states.
  virtual at::Tensor Logits(const at::Tensor& hidden) = 0;
};

}  // namespace strata::user

/// Exports `Type`, which is constructed from a `strata::user::Context&`. Once in a library.
#define STRATA_MODEL(Type)                                                                  \
  extern "C" __attribute__((visibility("default"))) int strata_model_interface() {          \
    return strata::user::kModelInterface;                                                   \
  }                                                                                         \
  extern "C" __attribute__((visibility("default"))) strata::user::Model* strata_make_model( \
      strata::user::Context& context) {                                                     \
    return new Type(context);                                                               \
  }
