#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// How the first values of a parameter are drawn: N(mean, std²) cut to [mean - cut, mean + cut],
/// then times `scale`, then plus jitter·N(0, 1).
struct ParameterInit {
  double mean = 0.0;
  double std = 0.0;  ///< 0: every element is `mean`
  double cut = 0.0;  ///< absolute; 0: not cut
  double scale = 1.0;
  double jitter = 0.0;
};

/// A tensor of a model, fp32, named as torchtitan names it
/// (`layers.0.attention.qkv_linear.wq.weight`).
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  ParameterInit init;
  bool is_integer = false;  ///< a constant of integers or truth values, as files have it

  int64_t elements() const;
};

/// The module that has the tensor: `layers.0.attention.wo` of `layers.0.attention.wo.weight`.
std::string ModuleOfTensor(std::string_view name);

/// Fills `values` with the initial values of the parameter's elements `first`, `first` + 1, … in
/// row-major order; by default with those of all spec.elements(). Each element depends on the seed,
/// the name and its index only: not on threads, on the other parameters, or on what is filled
/// before. Not torch's random numbers: who needs equal runs gives both the same file.
void InitializeParameter(const ParameterSpec& spec, uint64_t seed, std::span<float> values,
                         int64_t first = 0);

}  // namespace strata
