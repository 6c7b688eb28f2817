#include "runtime/offload/offload_ops.h"

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

namespace strata {
namespace {

using at::Tensor;

Tensor CopyTo(const Tensor& x, const at::TensorOptions& options) {
  Tensor copy = at::empty_strided(x.sizes(), x.strides(), options);
  copy.copy_(x, /*non_blocking=*/true);
  return copy;
}

Tensor OffloadKernel(const Tensor& x) {
  return CopyTo(x, x.options().device(at::kCPU).pinned_memory(!x.is_cpu()));
}

Tensor ReloadKernel(const Tensor& x, c10::Device device) {
  return CopyTo(x, x.options().device(device).pinned_memory(false));
}

Tensor WaitKernel(const Tensor& x, const std::optional<Tensor>& /*keepalive*/,
                  const std::optional<Tensor>& /*last_use*/) {
  return x;
}

}  // namespace

void RegisterOffloadOps() {
  static const std::vector<torch::Library> libraries = [] {
    std::vector<torch::Library> made;
    torch::Library& own =
        made.emplace_back(torch::Library::FRAGMENT, "ao", std::nullopt, __FILE__, __LINE__);
    own.def("offload(Tensor x) -> Tensor");
    own.def("reload(Tensor x, Device device) -> Tensor");
    own.def("wait_tensor(Tensor(a) x, Tensor? keepalive=None, Tensor? last_use=None) -> Tensor(a)");
    torch::Library& kernels =
        made.emplace_back(torch::Library::IMPL, "ao", c10::DispatchKey::CompositeExplicitAutograd,
                          __FILE__, __LINE__);
    kernels.impl("offload", OffloadKernel);
    kernels.impl("reload", ReloadKernel);
    kernels.impl("wait_tensor", WaitKernel);
    return made;
  }();
}

}  // namespace strata
