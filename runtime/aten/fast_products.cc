#include "runtime/aten/fast_products.h"

#include <optional>
#include <vector>

#include <ATen/Context.h>
#include <ATen/core/ATen_fwd.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace at::native {
/// LibTorch exports it without a header; null: this LibTorch does not.
__attribute__((weak)) void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result,
                                         float beta, float alpha);
}  // namespace at::native

namespace strata {
namespace {

using at::Tensor;

bool HasWideRegistersOfOthers() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

void Multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  at::native::mkldnn_matmul(a, b, out, /*beta=*/0.0F, /*alpha=*/1.0F);
}

/// Whether it does not refuse to: it asks for instructions that ONEDNN_MAX_CPU_ISA may rule out.
bool Multiplies() {
  const Tensor a = at::zeros({1, 1}), out = at::zeros({1, 1});
  try {
    Multiply(a, a, out);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

Tensor FastMmKernel(const Tensor& a, const Tensor& b) {
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  return FastMm(out, a, b);
}

Tensor FastBmmKernel(const Tensor& a, const Tensor& b) {
  Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  return FastBmm(out, a, b);
}

Tensor& FastMmOutKernel(const Tensor& a, const Tensor& b, Tensor& out) {
  return FastMm(out, a, b);
}

Tensor& FastBmmOutKernel(const Tensor& a, const Tensor& b, Tensor& out) {
  return FastBmm(out, a, b);
}

}  // namespace

bool UsesOneDnn() {
  static const bool uses = at::hasMKLDNN() && at::hasMKL() &&
                           at::native::mkldnn_matmul != nullptr && HasWideRegistersOfOthers() &&
                           Multiplies();
  return uses && at::globalContext().userEnabledMkldnn();
}

Tensor& FastMm(Tensor& out, const Tensor& a, const Tensor& b) {
  if (!UsesOneDnn()) return at::cpu::mm_out(out, a, b);
  Multiply(a, b, out);
  return out;
}

Tensor& FastBmm(Tensor& out, const Tensor& a, const Tensor& b) {
  if (!UsesOneDnn()) return at::cpu::bmm_out(out, a, b);
  Multiply(a, b, out);
  return out;
}

void RegisterFastProducts() {
  static const std::vector<torch::Library> libraries = [] {
    std::vector<torch::Library> made;
    torch::Library& own =
        made.emplace_back(torch::Library::FRAGMENT, "strata", std::nullopt, __FILE__, __LINE__);
    own.def("fast_mm(Tensor a, Tensor b) -> Tensor");
    own.def("fast_bmm(Tensor a, Tensor b) -> Tensor");
    own.def("fast_mm.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)");
    own.def("fast_bmm.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)");
    torch::Library& kernels = made.emplace_back(torch::Library::IMPL, "strata",
                                                c10::DispatchKey::CPU, __FILE__, __LINE__);
    kernels.impl("fast_mm", FastMmKernel);
    kernels.impl("fast_bmm", FastBmmKernel);
    kernels.impl("fast_mm.out", FastMmOutKernel);
    kernels.impl("fast_bmm.out", FastBmmOutKernel);
    return made;
  }();
}

}  // namespace strata
