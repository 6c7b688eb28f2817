#include "runtime/models/weights.h"

#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace strata {

using at::Tensor;

Slot Slot::In(std::string_view module) const {
  Slot inner = *this;
  inner.module_ = Path(module);
  return inner;
}

Tensor Slot::Parameter(std::string_view name, std::vector<int64_t> shape,
                       ParameterInit init) const {
  return weights_->Parameter({.name = Path(name), .shape = std::move(shape), .init = init});
}

Tensor Slot::Buffer(std::string_view name, std::vector<int64_t> shape, ParameterInit init) const {
  return weights_->Buffer({.name = Path(name), .shape = std::move(shape), .init = init});
}

std::string Slot::Path(std::string_view name) const {
  return module_.empty() ? std::string(name) : fmt::format("{}.{}", module_, name);
}

Tensor ListingWeights::Parameter(ParameterSpec spec) {
  specs.parameters.push_back(std::move(spec));
  return {};
}

Tensor ListingWeights::Buffer(ParameterSpec spec) {
  specs.buffers.push_back(std::move(spec));
  return {};
}

Tensor GivenWeights::Next(std::span<const Tensor>& rest, const ParameterSpec& spec) {
  STRATA_CHECK(!rest.empty() && rest.front().sizes() == at::IntArrayRef(spec.shape), "{}",
               spec.name);
  Tensor tensor = rest.front();
  rest = rest.subspan(1);
  return tensor;
}

}  // namespace strata
