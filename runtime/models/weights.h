#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/config/parameters.h"

namespace strata {

/// The tensors that a model holds, each in the order in which its layers ask for them.
struct ModelSpecs {
  std::vector<ParameterSpec> parameters;  ///< trained
  std::vector<ParameterSpec> buffers;     ///< saved with the parameters, not trained
};

/// Where a model's layers get their tensors from while they are constructed. Asking names the
/// tensor and describes it, so that constructing a model also lists what it is made of.
class Weights {
 public:
  virtual ~Weights() = default;
  virtual at::Tensor Parameter(ParameterSpec spec) = 0;
  virtual at::Tensor Buffer(ParameterSpec spec) = 0;
};

/// A place in a model: what a layer calls `wo.weight` is `layers.0.attention.wo.weight` in
/// `Slot(…).In("layers.0").In("attention")`.
class Slot {
 public:
  explicit Slot(Weights& weights) : weights_(&weights) {}

  Slot In(std::string_view module) const;
  const std::string& module() const { return module_; }
  at::Tensor Parameter(std::string_view name, std::vector<int64_t> shape, ParameterInit init) const;
  at::Tensor Buffer(std::string_view name, std::vector<int64_t> shape, ParameterInit init) const;

 private:
  std::string Path(std::string_view name) const;

  Weights* weights_;
  std::string module_;
};

/// Hands out undefined tensors and keeps what was asked for. The model cannot be run.
class ListingWeights final : public Weights {
 public:
  at::Tensor Parameter(ParameterSpec spec) override;
  at::Tensor Buffer(ParameterSpec spec) override;
  ModelSpecs specs;
};

/// Hands out given tensors. REQUIRES: as many as are asked for, of the shapes asked for.
class GivenWeights final : public Weights {
 public:
  GivenWeights(std::span<const at::Tensor> parameters, std::span<const at::Tensor> buffers)
      : parameters_(parameters), buffers_(buffers) {}

  at::Tensor Parameter(ParameterSpec spec) override { return Next(parameters_, spec); }
  at::Tensor Buffer(ParameterSpec spec) override { return Next(buffers_, spec); }
  bool all_used() const { return parameters_.empty() && buffers_.empty(); }

 private:
  static at::Tensor Next(std::span<const at::Tensor>& rest, const ParameterSpec& spec);

  std::span<const at::Tensor> parameters_, buffers_;
};

}  // namespace strata
