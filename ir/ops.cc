#include "ir/ops.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/op_name.h"

namespace strata {
namespace {

enum Trait : uint8_t { kView = 1, kMutates = 2, kEffect = 4, kRandom = 8, kCollective = 16 };

struct Entry {
  std::string_view op;  // without overload, but for the few whose overloads differ
  uint8_t traits;
};

constexpr uint8_t kLaunch = kEffect | kCollective;

// Operators whose traits do not follow from their name, sorted. Everything else in the namespaces
// of `kNamespaces` is a pure function, or follows the naming rules of `TraitsByName`. Sources:
// native_functions.yaml (alias annotations, tag nondeterministic_seeded), torch/_prims,
// torch/fx/node.py (_side_effectful_functions), csrc/distributed/c10d/Functional.cpp.
constexpr Entry kTable[] = {
    {"_c10d_functional.all_gather_into_tensor", kLaunch},
    {"_c10d_functional.all_gather_into_tensor_coalesced", kLaunch},
    {"_c10d_functional.all_gather_into_tensor_out", kLaunch | kMutates},
    {"_c10d_functional.all_reduce", kLaunch},
    {"_c10d_functional.all_reduce_", kLaunch | kMutates},
    {"_c10d_functional.all_reduce_coalesced", kLaunch},
    {"_c10d_functional.all_reduce_coalesced_", kLaunch | kMutates},
    {"_c10d_functional.all_to_all_single", kLaunch},
    {"_c10d_functional.broadcast", kLaunch},
    {"_c10d_functional.broadcast_", kLaunch | kMutates},
    {"_c10d_functional.reduce_scatter_tensor", kLaunch},
    {"_c10d_functional.reduce_scatter_tensor_coalesced", kLaunch},
    {"_c10d_functional.reduce_scatter_tensor_out", kLaunch | kMutates},
    {"_c10d_functional.wait_tensor", kEffect},
    {"_c10d_functional_autograd.all_gather_into_tensor", kLaunch},
    {"_c10d_functional_autograd.all_to_all_single", kLaunch},
    {"_c10d_functional_autograd.reduce_scatter_tensor", kLaunch},
    {"_operator.delitem", kMutates},
    {"_operator.iadd", kMutates},
    {"_operator.iand", kMutates},
    {"_operator.iconcat", kMutates},
    {"_operator.ifloordiv", kMutates},
    {"_operator.ilshift", kMutates},
    {"_operator.imatmul", kMutates},
    {"_operator.imod", kMutates},
    {"_operator.imul", kMutates},
    {"_operator.ior", kMutates},
    {"_operator.ipow", kMutates},
    {"_operator.irshift", kMutates},
    {"_operator.isub", kMutates},
    {"_operator.itruediv", kMutates},
    {"_operator.ixor", kMutates},
    {"_operator.setitem", kMutates},
    {"ao.wait_tensor", kEffect},
    {"aten._assert_async", kEffect},
    {"aten._assert_scalar", kEffect},
    {"aten._assert_tensor_metadata", kEffect},
    {"aten._autocast_to_full_precision", kView},
    {"aten._autocast_to_reduced_precision", kView},
    {"aten._batch_norm_with_update", kMutates},
    {"aten._conj", kView},
    {"aten._cudnn_attention_backward", kRandom},
    {"aten._cudnn_attention_forward", kRandom},
    {"aten._cudnn_init_dropout_state", kRandom},
    {"aten._cudnn_rnn", kRandom},
    {"aten._cummax_helper", kMutates},
    {"aten._cummin_helper", kMutates},
    {"aten._efficient_attention_forward", kRandom},
    {"aten._fill_mem_eff_dropout_mask_", kMutates | kRandom},
    {"aten._flash_attention_forward", kRandom},
    {"aten._fused_dropout", kRandom},
    {"aten._fused_moving_avg_obs_fq_helper", kMutates},
    {"aten._fused_sdp_choice", kRandom},
    {"aten._fw_primal", kView},
    {"aten._indices", kView},
    {"aten._lstm_mps", kRandom},
    {"aten._make_dual", kView},
    {"aten._native_batch_norm_legit", kMutates},
    {"aten._native_batch_norm_legit.no_stats", 0},
    {"aten._neg_view", kView},
    {"aten._nested_get_values", kView},
    {"aten._nested_tensor_softmax_with_shape", kRandom},
    {"aten._nested_view_from_buffer", kView},
    {"aten._nested_view_from_jagged", kView},
    {"aten._print", kEffect},
    {"aten._reshape_alias", kView},
    {"aten._sample_dirichlet", kRandom},
    {"aten._scaled_dot_product_attention_math", kRandom},
    {"aten._scaled_dot_product_attention_math_for_mps", kRandom},
    {"aten._scaled_dot_product_cudnn_attention", kRandom},
    {"aten._scaled_dot_product_cudnn_attention_backward", kRandom},
    {"aten._scaled_dot_product_efficient_attention", kRandom},
    {"aten._scaled_dot_product_efficient_attention_backward", kRandom},
    {"aten._scaled_dot_product_flash_attention", kRandom},
    {"aten._scaled_dot_product_flash_attention_for_cpu", kRandom},
    {"aten._scaled_dot_product_fused_attention_overrideable", kRandom},
    {"aten._sparse_broadcast_to", kView},
    {"aten._standard_gamma", kRandom},
    {"aten._test_autograd_multiple_dispatch_view", kView},
    {"aten._triton_scaled_dot_attention", kRandom},
    {"aten._unpack_dual", kView},
    {"aten._values", kView},
    {"aten.adjoint", kView},
    {"aten.alias", kView},
    {"aten.align_to", kView},
    {"aten.alpha_dropout", kRandom},
    {"aten.alpha_dropout_", kMutates | kRandom},
    {"aten.as_strided", kView},
    {"aten.bernoulli", kRandom},
    {"aten.bernoulli_", kMutates | kRandom},
    {"aten.binomial", kRandom},
    {"aten.broadcast_to", kView},
    {"aten.cauchy", kRandom},
    {"aten.cauchy_", kMutates | kRandom},
    {"aten.ccol_indices", kView},
    {"aten.chunk", kView},
    {"aten.coalesce", kView},
    {"aten.col_indices", kView},
    {"aten.conj", kView},
    {"aten.contiguous", kView},
    {"aten.crow_indices", kView},
    {"aten.detach", kView},
    {"aten.diagonal", kView},
    {"aten.dropout", kRandom},
    {"aten.dropout_", kMutates | kRandom},
    {"aten.dsplit", kView},
    {"aten.expand", kView},
    {"aten.expand_as", kView},
    {"aten.exponential", kRandom},
    {"aten.exponential_", kMutates | kRandom},
    {"aten.feature_alpha_dropout", kRandom},
    {"aten.feature_alpha_dropout_", kMutates | kRandom},
    {"aten.feature_dropout", kRandom},
    {"aten.feature_dropout_", kMutates | kRandom},
    {"aten.flatten", kView},
    {"aten.fused_moving_avg_obs_fake_quant", kMutates},
    {"aten.geometric", kRandom},
    {"aten.geometric_", kMutates | kRandom},
    {"aten.geqrf.a", kMutates},
    {"aten.gru", kRandom},
    {"aten.hsplit", kView},
    {"aten.imag", kView},
    {"aten.indices", kView},
    {"aten.lift_fresh", kView},
    {"aten.linalg_diagonal", kView},
    {"aten.log_normal", kRandom},
    {"aten.log_normal_", kMutates | kRandom},
    {"aten.lstm", kRandom},
    {"aten.mH", kView},
    {"aten.mT", kView},
    {"aten.matrix_H", kView},
    {"aten.miopen_rnn", kRandom},
    {"aten.moveaxis", kView},
    {"aten.movedim", kView},
    {"aten.multinomial", kRandom},
    {"aten.narrow", kView},
    {"aten.native_dropout", kRandom},
    {"aten.normal", kRandom},
    {"aten.normal_", kMutates | kRandom},
    {"aten.normal_functional", kRandom},
    {"aten.numpy_T", kView},
    {"aten.permute", kView},
    {"aten.pin_memory", kView},
    {"aten.poisson", kRandom},
    {"aten.positive", kView},
    {"aten.rand", kRandom},
    {"aten.rand_like", kRandom},
    {"aten.randint", kRandom},
    {"aten.randint_like", kRandom},
    {"aten.randn", kRandom},
    {"aten.randn_like", kRandom},
    {"aten.random", kRandom},
    {"aten.random_", kMutates | kRandom},
    {"aten.randperm", kRandom},
    {"aten.ravel", kView},
    {"aten.real", kView},
    {"aten.record_stream", kMutates},
    {"aten.refine_names", kView},
    {"aten.rename", kView},
    {"aten.reshape", kView},
    {"aten.reshape_as", kView},
    {"aten.resolve_conj", kView},
    {"aten.resolve_neg", kView},
    {"aten.retain_grad", kMutates},
    {"aten.rnn_relu", kRandom},
    {"aten.rnn_tanh", kRandom},
    {"aten.row_indices", kView},
    {"aten.rrelu", kRandom},
    {"aten.rrelu_", kMutates | kRandom},
    {"aten.rrelu_with_noise", kMutates | kRandom},
    {"aten.rrelu_with_noise_", kMutates | kRandom},
    {"aten.rrelu_with_noise_functional", kRandom},
    {"aten.scaled_dot_product_attention", kRandom},
    {"aten.select", kView},
    {"aten.set_data", kMutates},
    {"aten.slice", kView},
    {"aten.slice_inverse", kView},
    {"aten.split", kView},
    {"aten.split_with_sizes", kView},
    {"aten.squeeze", kView},
    {"aten.swapaxes", kView},
    {"aten.swapdims", kView},
    {"aten.sym_constrain_range", kEffect},
    {"aten.sym_constrain_range_for_size", kEffect},
    {"aten.t", kView},
    {"aten.tensor_split", kView},
    {"aten.to", kView},
    {"aten.transpose", kView},
    {"aten.unbind", kView},
    {"aten.unflatten", kView},
    {"aten.unfold", kView},
    {"aten.uniform", kRandom},
    {"aten.uniform_", kMutates | kRandom},
    {"aten.unsqueeze", kView},
    {"aten.values", kView},
    {"aten.view", kView},
    {"aten.view_as", kView},
    {"aten.view_as_complex", kView},
    {"aten.view_as_real", kView},
    {"aten.vsplit", kView},
    {"getattr", 0},
    {"higher_order.call_torchbind", kEffect},
    {"higher_order.graphsafe_run_with_rng_state", kRandom},
    {"higher_order.print", kEffect},
    {"higher_order.run_and_save_rng_state", kRandom},
    {"higher_order.run_with_rng_state", kRandom},
    {"higher_order.triton_kernel_wrapper_mutation", kMutates},
    {"prims._sink_tokens", kEffect},
    {"prims.as_strided", kView},
    {"prims.broadcast_in_dim", kView},
    {"prims.collapse_view", kView},
    {"prims.conj", kView},
    {"prims.copy_to", kMutates},
    {"prims.imag", kView},
    {"prims.normal", kRandom},
    {"prims.real", kView},
    {"prims.resize", kMutates},
    {"prims.split_dim", kView},
    {"prims.squeeze", kView},
    {"prims.transpose", kView},
    {"prims.view_element_type", kView},
    {"prims.view_of", kView},
    {"profiler._record_function_enter", kEffect},
    {"profiler._record_function_enter_new", kEffect},
    {"profiler._record_function_exit", kEffect},
    {"torch._C._set_grad_enabled", kEffect},
    {"torch._assert", kEffect},
    {"torch._assert_async", kEffect},
    {"torch.amp.autocast_mode._enter_autocast", kEffect},
    {"torch.amp.autocast_mode._exit_autocast", kEffect},
    {"torch.manual_seed", kEffect},
    {"torch.seed", kEffect},
    {"torch.set_default_device", kEffect},
    {"torch.set_default_dtype", kEffect},
    {"torch.set_grad_enabled", kEffect},
    {"torch.set_num_threads", kEffect},
    {"torch.use_deterministic_algorithms", kEffect},
};
static_assert(std::ranges::is_sorted(kTable, {}, &Entry::op));

// Namespaces that `kTable` covers in full: what it does not list there has no trait beyond its
// name.
constexpr std::string_view kNamespaces[] = {"_c10d_functional",
                                            "_c10d_functional_autograd",
                                            "_operator",
                                            "aten",
                                            "builtins",
                                            "higher_order",
                                            "math",
                                            "prims",
                                            "profiler"};

// Modules of Python whose functions are ATen's operators of that name: `torch.relu`.
constexpr std::string_view kAtenModules[] = {
    "torch.",        "torch._C._nn.",        "torch.fft.",
    "torch.linalg.", "torch.nn.functional.", "torch.special."};

// Overloads that write to arguments, beside those with "out" in their name: ATen calls some after
// the written argument.
// clang-format off
constexpr std::string_view kOutOverloads[] = {
    "L", "OutScalar_Other", "OutScalar_Self", "OutTensor", "Q", "U", "X", "dim_max", "dim_min",
    "dim_values", "dimname_values", "dimname_values_stable", "eigenvalues", "eigvals",
    "grad_input", "inverse", "names_dim_max", "names_dim_min", "names_dim_values", "output",
    "result", "sign", "values", "values_stable",
};
// clang-format on

// The entry of the very overload, else the one of the operator, else null.
const Entry* FindEntry(const OpName& name, std::string_view op) {
  // Graphs ask for every node, so a search by comparing strings shows.
  static const auto kByOp = [] {
    std::unordered_map<std::string_view, const Entry*> entries;
    for (const Entry& entry : kTable)
      entries.emplace(entry.op, &entry);
    return entries;
  }();
  const auto find = [&](std::string_view key) {
    const auto entry = kByOp.find(key);
    return entry == kByOp.end() ? nullptr : entry->second;
  };
  const Entry* own = find(op);
  return own != nullptr || name.overload.empty() ? own : find(name.qualified);
}

// ATen's naming rules: `add_`, `__iadd__`, `mm.out`.
uint8_t TraitsByName(const OpName& name) {
  const bool dunder = name.base.starts_with("__") && name.base.ends_with("__");
  const bool in_place =
      dunder ? name.base.starts_with("__i") && name.base != "__invert__" : name.base.ends_with('_');
  const bool out = name.overload == "out" || name.overload.ends_with("_out") ||
                   name.overload.starts_with("out_") ||
                   std::ranges::find(kOutOverloads, name.overload) != std::end(kOutOverloads);
  return in_place || out ? kMutates : 0;
}

// `aten.silu` for `torch.nn.functional.silu`; nothing for other functions of Python.
std::optional<std::string> AtenName(std::string_view op) {
  for (const std::string_view module : kAtenModules) {
    if (!op.starts_with(module)) continue;
    const std::string_view function = op.substr(module.size());
    if (function.find('.') == std::string_view::npos) return fmt::format("aten.{}", function);
  }
  return std::nullopt;
}

}  // namespace

OpTraits TraitsOf(std::string_view op) {
  const OpName name = SplitOpName(op);
  const Entry* entry = FindEntry(name, op);
  if (entry == nullptr) {
    if (const auto aten = AtenName(op)) return TraitsOf(*aten);
  }
  const uint8_t traits = TraitsByName(name) | (entry != nullptr ? entry->traits : uint8_t{0});
  const bool known =
      entry != nullptr || std::ranges::find(kNamespaces, name.library) != std::end(kNamespaces);
  OpTraits result{.known = known};
  // An `out=` overload of a view operator copies.
  result.view = (traits & kView) && !(traits & kMutates);
  result.mutates = traits & kMutates;
  result.effectful = traits & kEffect;
  result.random = traits & kRandom;
  result.collective = traits & kCollective;
  return result;
}

std::string_view BaseName(std::string_view op) {
  const std::string_view base = SplitOpName(op).base;
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos ? base : base.substr(dot + 1);
}

bool IsOverloadOf(std::string_view op, std::string_view base) {
  return op.starts_with(base) && (op.size() == base.size() || op[base.size()] == '.');
}

}  // namespace strata
