// An operator with its derivative, `mine::gated(a, b) = a · sigmoid(b)`. PyTorch loads this library
// by torch.ops.load_library, Strata by --operators.

#include <tuple>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using at::Tensor;
using Gradients = std::tuple<Tensor, Tensor>;

Tensor Gated(const Tensor& a, const Tensor& b) {
  return a * at::sigmoid(b);
}

Gradients GatedBackward(const Tensor& gradient, const Tensor& a, const Tensor& b) {
  const Tensor gate = at::sigmoid(b);
  return {gradient * gate, gradient * a * gate * (1 - gate)};
}

// Shapes alone: a graph is traced before it has values.
Tensor GatedShape(const Tensor& a, const Tensor& /*b*/) {
  return at::empty_like(a);
}
Gradients GatedBackwardShape(const Tensor& /*gradient*/, const Tensor& a, const Tensor& b) {
  return {at::empty_like(a), at::empty_like(b)};
}

// Calls go through the dispatcher, so that a trace sees the operators and not what they consist of.
template <typename Signature>
auto Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

class GatedFunction : public torch::autograd::Function<GatedFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& a,
                        const Tensor& b) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({a, b});
    return Find<Tensor(const Tensor&, const Tensor&)>("mine::gated").call(a, b);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const auto [a, b] =
        Find<Gradients(const Tensor&, const Tensor&, const Tensor&)>("mine::gated_backward")
            .call(gradients[0], saved[0], saved[1]);
    return {a, b};
  }
};

Tensor GatedWithDerivative(const Tensor& a, const Tensor& b) {
  return GatedFunction::apply(a, b);
}

}  // namespace

TORCH_LIBRARY(mine, library) {
  library.def("gated(Tensor a, Tensor b) -> Tensor");
  library.def("gated_backward(Tensor gradient, Tensor a, Tensor b) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(mine, CPU, library) {
  library.impl("gated", Gated);
  library.impl("gated_backward", GatedBackward);
}
TORCH_LIBRARY_IMPL(mine, Meta, library) {
  library.impl("gated", GatedShape);
  library.impl("gated_backward", GatedBackwardShape);
}
TORCH_LIBRARY_IMPL(mine, Autograd, library) {
  library.impl("gated", GatedWithDerivative);
}
