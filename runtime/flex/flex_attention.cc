#include "runtime/flex/flex_attention.h"

#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "passes/flex/flex_body.h"
#include "runtime/aten/literals.h"
#include "runtime/flex/reference.h"

namespace strata {
namespace {

using at::IntArrayRef;
using at::Tensor;
using at::TensorList;
using torch::autograd::AutogradContext;

using Forward = std::tuple<Tensor, Tensor>(const Tensor& query, const Tensor& key,
                                           const Tensor& value, std::string_view score_mod,
                                           TensorList block_mask, IntArrayRef block_sizes,
                                           std::string_view mask_mod, double scale,
                                           TensorList score_buffers, TensorList mask_buffers);
using Backward = std::tuple<Tensor, Tensor, Tensor>(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, const Tensor& gradient, std::string_view score_mod,
    std::string_view joint_graph, TensorList block_mask, IntArrayRef block_sizes,
    std::string_view mask_mod, double scale, TensorList score_buffers, TensorList mask_buffers);
using BlockMask = std::vector<Tensor>(std::string_view mask_mod, IntArrayRef sizes,
                                      TensorList mask_buffers, at::Device device);

template <class Signature>
const c10::TypedOperatorHandle<Signature>& Handle(const char* name) {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
  return handle;
}

// --- Shapes --------------------------------------------------------------------------------------

/// As the query lies in memory, with the value's width.
Tensor OutputLike(const Tensor& query, const Tensor& value) {
  if (query.size(3) == value.size(3)) return at::empty_like(query);
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes[3] = value.size(3);
  return at::empty(sizes, query.options());
}

std::tuple<Tensor, Tensor> ForwardShape(const Tensor& query, const Tensor& /*key*/,
                                        const Tensor& value, std::string_view /*score_mod*/,
                                        TensorList /*block_mask*/, IntArrayRef /*block_sizes*/,
                                        std::string_view /*mask_mod*/, double /*scale*/,
                                        TensorList /*score_buffers*/, TensorList /*mask_buffers*/) {
  const bool is_double = query.scalar_type() == at::kDouble;
  return {OutputLike(query, value),
          at::empty({query.size(0), query.size(1), query.size(2)},
                    query.options().dtype(is_double ? at::kDouble : at::kFloat))};
}

std::tuple<Tensor, Tensor, Tensor> BackwardShape(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& /*out*/,
    const Tensor& /*logsumexp*/, const Tensor& /*gradient*/, std::string_view /*score_mod*/,
    std::string_view /*joint_graph*/, TensorList /*block_mask*/, IntArrayRef /*block_sizes*/,
    std::string_view /*mask_mod*/, double /*scale*/, TensorList /*score_buffers*/,
    TensorList /*mask_buffers*/) {
  return {at::empty_like(query), at::empty_like(key), at::empty_like(value)};
}

std::vector<Tensor> BlockMaskShape(IntArrayRef sizes, at::Device device) {
  const int64_t rows = (sizes[2] + sizes[4] - 1) / sizes[4];
  const int64_t columns = (sizes[3] + sizes[5] - 1) / sizes[5];
  const auto options = at::TensorOptions().dtype(at::kInt).device(device);
  std::vector<Tensor> blocks;
  for (const bool is_row : {true, true, false, false}) {
    const int64_t count = is_row ? rows : columns, others = is_row ? columns : rows;
    blocks.push_back(at::empty({sizes[0], sizes[1], count}, options));
    blocks.push_back(at::empty({sizes[0], sizes[1], count, others}, options));
  }
  return blocks;
}

// --- Kernels -------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor> ForwardKernel(const Tensor& query, const Tensor& key,
                                         const Tensor& value, std::string_view score_mod,
                                         TensorList /*block_mask*/, IntArrayRef /*block_sizes*/,
                                         std::string_view mask_mod, double scale,
                                         TensorList score_buffers, TensorList mask_buffers) {
  return FlexForward(query, key, value, score_mod, mask_mod, scale, score_buffers, mask_buffers);
}

std::tuple<Tensor, Tensor, Tensor> BackwardKernel(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, const Tensor& gradient, std::string_view score_mod,
    std::string_view joint_graph, TensorList /*block_mask*/, IntArrayRef /*block_sizes*/,
    std::string_view mask_mod, double scale, TensorList score_buffers, TensorList mask_buffers) {
  return FlexBackward({query, key, value, out, logsumexp}, gradient, score_mod, joint_graph,
                      mask_mod, scale, score_buffers, mask_buffers);
}

std::vector<Tensor> BlockMaskKernel(std::string_view mask_mod, IntArrayRef sizes,
                                    TensorList mask_buffers, at::Device device) {
  TORCH_CHECK(sizes.size() == 6, "a block mask has six sizes");
  if (device.is_meta()) return BlockMaskShape(sizes, device);
  return BlocksOf(mask_mod, sizes.slice(0, 4), sizes.slice(4, 2), mask_buffers, device);
}

// --- Autograd ------------------------------------------------------------------------------------

/// What both directions take beside tensors that have gradients.
struct Arguments {
  std::string score_mod, mask_mod;
  std::vector<Tensor> block_mask, score_buffers, mask_buffers;
  std::vector<int64_t> block_sizes;
  double scale = 1.0;
};

class FlexFunction final : public torch::autograd::Function<FlexFunction> {
 public:
  static torch::autograd::variable_list forward(AutogradContext* context, const Tensor& query,
                                                const Tensor& key, const Tensor& value,
                                                const Arguments& a) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, logsumexp] = Handle<Forward>("strata::flex_attention")
                                .call(query, key, value, a.score_mod, a.block_mask, a.block_sizes,
                                      a.mask_mod, a.scale, a.score_buffers, a.mask_buffers);
    context->save_for_backward({query, key, value, out, logsumexp});
    context->mark_non_differentiable({logsumexp});
    auto& saved = context->saved_data;
    saved["score_mod"] = a.score_mod;
    saved["mask_mod"] = a.mask_mod;
    saved["block_mask"] = a.block_mask;
    saved["score_buffers"] = a.score_buffers;
    saved["mask_buffers"] = a.mask_buffers;
    saved["block_sizes"] = a.block_sizes;
    saved["scale"] = a.scale;
    return {out, logsumexp};
  }

  static torch::autograd::variable_list backward(AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::autograd::variable_list t = context->get_saved_variables();
    auto& saved = context->saved_data;
    const std::string score_mod = saved["score_mod"].toStringRef();
    const Result<std::string> joint = JointText(score_mod);
    TORCH_CHECK(joint.has_value(), joint.has_value() ? "" : joint.error().message());
    auto [query, key, value] =
        Handle<Backward>("strata::flex_attention_backward")
            .call(t[0], t[1], t[2], t[3], t[4], gradients[0], score_mod, *joint,
                  saved["block_mask"].toTensorVector(), saved["block_sizes"].toIntVector(),
                  saved["mask_mod"].toStringRef(), saved["scale"].toDouble(),
                  saved["score_buffers"].toTensorVector(), saved["mask_buffers"].toTensorVector());
    return {query, key, value, Tensor()};
  }
};

std::tuple<Tensor, Tensor> ForwardAutograd(const Tensor& query, const Tensor& key,
                                           const Tensor& value, std::string_view score_mod,
                                           TensorList block_mask, IntArrayRef block_sizes,
                                           std::string_view mask_mod, double scale,
                                           TensorList score_buffers, TensorList mask_buffers) {
  auto results = FlexFunction::apply(query, key, value,
                                     Arguments{.score_mod = std::string(score_mod),
                                               .mask_mod = std::string(mask_mod),
                                               .block_mask = block_mask.vec(),
                                               .score_buffers = score_buffers.vec(),
                                               .mask_buffers = mask_buffers.vec(),
                                               .block_sizes = block_sizes.vec(),
                                               .scale = scale});
  return {results[0], results[1]};
}

}  // namespace

void RegisterFlexAttention() {
  static const std::vector<torch::Library> libraries = [] {
    std::vector<torch::Library> made;
    const auto library = [&](torch::Library::Kind kind,
                             std::optional<c10::DispatchKey> key) -> torch::Library& {
      return made.emplace_back(kind, "strata", key, __FILE__, __LINE__);
    };
    torch::Library& own = library(torch::Library::FRAGMENT, std::nullopt);
    own.def(
        "flex_attention(Tensor query, Tensor key, Tensor value, str score_mod, "
        "Tensor[] block_mask, int[] block_sizes, str mask_mod, float scale, "
        "Tensor[] score_buffers, Tensor[] mask_buffers) -> (Tensor, Tensor)");
    own.def(
        "flex_attention_backward(Tensor query, Tensor key, Tensor value, Tensor out, "
        "Tensor logsumexp, Tensor gradient, str score_mod, str joint_graph, "
        "Tensor[] block_mask, int[] block_sizes, str mask_mod, float scale, "
        "Tensor[] score_buffers, Tensor[] mask_buffers) -> (Tensor, Tensor, Tensor)");
    own.def(
        "create_block_mask(str mask_mod, int[] sizes, Tensor[] mask_buffers, Device device) -> "
        "Tensor[]");
    for (const c10::DispatchKey device : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA}) {
      torch::Library& kernels = library(torch::Library::IMPL, device);
      kernels.impl("flex_attention", ForwardKernel);
      kernels.impl("flex_attention_backward", BackwardKernel);
    }
    torch::Library& meta = library(torch::Library::IMPL, c10::DispatchKey::Meta);
    meta.impl("flex_attention", ForwardShape);
    meta.impl("flex_attention_backward", BackwardShape);
    torch::Library& any =
        library(torch::Library::IMPL, c10::DispatchKey::CompositeExplicitAutograd);
    any.impl("create_block_mask", BlockMaskKernel);
    torch::Library& autograd = library(torch::Library::IMPL, c10::DispatchKey::Autograd);
    autograd.impl("flex_attention", ForwardAutograd);
    autograd.impl("flex_attention_backward", torch::CppFunction::makeFallthrough());
    return made;
  }();
}

std::vector<Tensor> MakeBlockMask(const FlexMask& mask, int64_t batch, int64_t heads, int64_t seq,
                                  c10::Device device) {
  RegisterFlexAttention();
  Module scratch;
  std::vector<TypeId> buffers;
  for (const Tensor& buffer : mask.mask_buffers)
    buffers.push_back(scratch.types().Tensor(ToDType(buffer.scalar_type()), buffer.sizes(), "cpu"));
  const Result<GraphId> body =
      AddFlexBody(scratch, mask.mask_mod, FlexRole::kMask, "mask_mod", buffers, "cpu");
  TORCH_CHECK(body.has_value(), body.has_value() ? "" : body.error().message());
  const Result<FlexProgram> program = MakeFlexProgram(scratch.graph(*body), FlexRole::kMask);
  const bool reads_row = program->Reads(0), reads_head = program->Reads(1);
  return Handle<BlockMask>("strata::create_block_mask")
      .call(mask.mask_mod,
            {reads_row ? batch : 1, reads_head ? heads : 1, seq, seq, mask.block_size,
             mask.block_size},
            mask.mask_buffers, device);
}

Tensor FlexAttention(const Tensor& q, const Tensor& k, const Tensor& v, const FlexMask& mask,
                     double scale) {
  RegisterFlexAttention();
  return std::get<0>(Handle<Forward>("strata::flex_attention")
                         .call(q, k, v, mask.score_mod, mask.blocks,
                               {q.size(2), k.size(2), mask.block_size, mask.block_size},
                               mask.mask_mod, scale, mask.score_buffers, mask.mask_buffers));
}

}  // namespace strata
