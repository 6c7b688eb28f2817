#include "runtime/aten/fast_products.h"

#include <optional>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/ATen_fwd.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "runtime/aten/float_product.h"
#include "runtime/aten/parallel.h"

namespace at::native {
/// LibTorch exports it without a header; null: this LibTorch does not.
__attribute__((weak)) void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result,
                                         float beta, float alpha);
}  // namespace at::native

namespace strata {
namespace {

using at::Tensor;

/// MKL is slow on it.
bool IsOfOthers() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel") && at::hasMKL();
#else
  return false;
#endif
}

bool HasWideRegisters() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

void MultiplyByOneDnn(const Tensor& a, const Tensor& b, const Tensor& out) {
  at::native::mkldnn_matmul(a, b, out, /*beta=*/0.0F, /*alpha=*/1.0F);
}

/// Whether it does not refuse to: it asks for instructions that ONEDNN_MAX_CPU_ISA may rule out.
bool Multiplies() {
  const Tensor a = at::zeros({1, 1}), out = at::zeros({1, 1});
  try {
    MultiplyByOneDnn(a, a, out);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

/// Its last two dimensions.
FloatMatrix MatrixOf(const Tensor& m) {
  const int64_t first = m.dim() - 2;
  return {.data = m.const_data_ptr<float>(),
          .rows = m.size(first),
          .columns = m.size(first + 1),
          .row_stride = m.stride(first),
          .column_stride = m.stride(first + 1)};
}

/// Whether MultiplyFloats takes them: anything but nothing, and rows of `out` without gaps.
bool AreForBlis(const Tensor& out, const Tensor& a, const Tensor& b) {
  const auto is_float = [](const Tensor& m) {
    return m.scalar_type() == at::kFloat && m.device().is_cpu() && m.numel() > 0;
  };
  return is_float(out) && is_float(a) && is_float(b) && out.stride(-1) == 1 &&
         IsForBlis(MatrixOf(a)) && IsForBlis(MatrixOf(b)) && IsForBlis(MatrixOf(out));
}

Tensor FastMmKernel(const Tensor& a, const Tensor& b) {
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  return FastMm(out, a, b);
}

Tensor FastBmmKernel(const Tensor& a, const Tensor& b) {
  Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  return FastBmm(out, a, b);
}

Tensor FastGroupedMmKernel(const Tensor& a, const Tensor& b, const Tensor& ends) {
  Tensor out = b.dim() == 3 ? at::empty({a.size(0), b.size(2)}, a.options())
                            : at::empty({ends.size(0), a.size(0), b.size(1)}, a.options());
  return FastGroupedMm(out, a, b, ends);
}

Tensor& FastMmOutKernel(const Tensor& a, const Tensor& b, Tensor& out) {
  return FastMm(out, a, b);
}

Tensor& FastBmmOutKernel(const Tensor& a, const Tensor& b, Tensor& out) {
  return FastBmm(out, a, b);
}

Tensor& FastGroupedMmOutKernel(const Tensor& a, const Tensor& b, const Tensor& ends, Tensor& out) {
  return FastGroupedMm(out, a, b, ends);
}

}  // namespace

FastProducts FastProductsHere() {
  static const bool has_one_dnn = at::hasMKLDNN() && at::native::mkldnn_matmul != nullptr &&
                                  IsOfOthers() && HasWideRegisters() && Multiplies();
  static const bool has_blis = IsOfOthers() && CanMultiplyFloats();
  if (has_one_dnn && at::globalContext().userEnabledMkldnn()) return FastProducts::kOneDnn;
  return has_blis ? FastProducts::kBlis : FastProducts::kMkl;
}

Tensor& FastMm(Tensor& out, const Tensor& a, const Tensor& b) {
  const FastProducts by = FastProductsHere();
  if (by == FastProducts::kOneDnn) {
    MultiplyByOneDnn(a, b, out);
  } else if (by == FastProducts::kBlis && AreForBlis(out, a, b)) {
    MultiplyFloats(MatrixOf(a), MatrixOf(b), out.mutable_data_ptr<float>(), out.stride(0));
  } else {
    at::cpu::mm_out(out, a, b);
  }
  return out;
}

Tensor& FastBmm(Tensor& out, const Tensor& a, const Tensor& b) {
  const FastProducts by = FastProductsHere();
  if (by == FastProducts::kOneDnn) {
    MultiplyByOneDnn(a, b, out);
  } else if (by == FastProducts::kBlis && AreForBlis(out, a, b)) {
    // Parts are whole matrices where there are enough of them: MultiplyFloats takes one thread
    // then.
    const int64_t grain = a.size(0) >= at::get_num_threads() ? 1 : a.size(0);
    ParallelFor(a.size(0), grain, [&](int64_t begin, int64_t end) {
      FloatMatrix left = MatrixOf(a), right = MatrixOf(b);
      for (int64_t i = begin; i < end; ++i) {
        left.data = a.const_data_ptr<float>() + i * a.stride(0);
        right.data = b.const_data_ptr<float>() + i * b.stride(0);
        MultiplyFloats(left, right, out.mutable_data_ptr<float>() + i * out.stride(0),
                       out.stride(1));
      }
    });
  } else {
    at::cpu::bmm_out(out, a, b);
  }
  return out;
}

Tensor& FastGroupedMm(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& ends) {
  int64_t begin = 0;
  for (int64_t group = 0; group < ends.size(0); ++group) {
    const int64_t end = ends.const_data_ptr<int32_t>()[group];
    Tensor product = b.dim() == 3 ? out.slice(0, begin, end) : out.select(0, group);
    if (begin == end) {
      product.zero_();
    } else if (b.dim() == 3) {
      FastMm(product, a.slice(0, begin, end), b.select(0, group));
    } else {
      FastMm(product, a.slice(1, begin, end), b.slice(0, begin, end));
    }
    begin = end;
  }
  return out;
}

void RegisterFastProducts() {
  static const std::vector<torch::Library> libraries = [] {
    std::vector<torch::Library> made;
    torch::Library& own =
        made.emplace_back(torch::Library::FRAGMENT, "strata", std::nullopt, __FILE__, __LINE__);
    own.def("fast_mm(Tensor a, Tensor b) -> Tensor");
    own.def("fast_bmm(Tensor a, Tensor b) -> Tensor");
    own.def("fast_grouped_mm(Tensor a, Tensor b, Tensor ends) -> Tensor");
    own.def("fast_mm.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)");
    own.def("fast_bmm.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)");
    own.def(
        "fast_grouped_mm.out(Tensor a, Tensor b, Tensor ends, *, Tensor(a!) out) -> Tensor(a!)");
    torch::Library& kernels = made.emplace_back(torch::Library::IMPL, "strata",
                                                c10::DispatchKey::CPU, __FILE__, __LINE__);
    kernels.impl("fast_mm", FastMmKernel);
    kernels.impl("fast_bmm", FastBmmKernel);
    kernels.impl("fast_grouped_mm", FastGroupedMmKernel);
    kernels.impl("fast_grouped_mm.out", FastGroupedMmOutKernel);
    kernels.impl("fast_mm.out", FastMmOutKernel);
    kernels.impl("fast_bmm.out", FastBmmOutKernel);
    return made;
  }();
}

}  // namespace strata
