#pragma once
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/models/weights.h"

namespace strata {

/// What a forward pass reads.
struct ModelInput {
  at::Tensor tokens;  ///< int64 `[batch, seq]`
  /// int64 `[batch, seq]`, from 0 in each document: separates the documents of a sequence.
  /// Undefined: each sequence is one document.
  at::Tensor positions = {};
};

/// What a forward pass gives.
struct ModelOutput {
  at::Tensor hidden;  ///< `[batch, seq, dim]`: what the head reads
  /// Per layer of experts, how many (token, choice) pairs each expert got: int64 `[experts]`.
  std::vector<at::Tensor> tokens_per_expert;
};

/// A language model from plain ATen calls: the same code runs eagerly and is traced. Holds
/// references to its weights and no state of its own.
class Model {
 public:
  virtual ~Model() = default;
  /// All but the head.
  virtual ModelOutput Forward(const ModelInput& input) const = 0;
  /// Next-token logits `[…, vocab]` of hidden states `[…, dim]`.
  virtual at::Tensor Logits(const at::Tensor& hidden) const = 0;
};

/// The model that `config` describes, which is not kProgram. `rope_table` of `RopeTable`, for
/// `config.rope_dim()`.
std::unique_ptr<Model> MakeModel(const TrainConfig& config, Weights& weights,
                                 at::Tensor rope_table);

/// What that model is made of, named as torchtitan names it. First values are those of
/// `config.init`:
///
///   embedding N(0, 1); linear layers a normal of deviation 0.02, those that write to the residual
///   stream 0.02 / sqrt(2·(layer + 1)), cut at ±2; head 1/sqrt(dim), cut at ±3 deviations; norms 1
ModelSpecs SpecsOf(const TrainConfig& config);

}  // namespace strata
