#include "runtime/aten/out_variants.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "ir/op_name.h"
#include "runtime/aten/generator.h"
#include "runtime/aten/literals.h"
#include "runtime/aten/prims.h"

namespace strata {
namespace {

using OutVariants = std::multimap<std::string, c10::OperatorHandle, std::less<>>;

/// Write the loss of each element to the result, before they reduce it: a result of one number
/// would be resized. Source: ATen/native/BinaryOps.cpp, Loss.cpp.
constexpr std::string_view kResizing[] = {"aten::binary_cross_entropy", "aten::huber_loss",
                                          "aten::mse_loss", "aten::smooth_l1_loss",
                                          "aten::soft_margin_loss"};

/// By name, the overloads that write their results to arguments. With a kernel of their own: the
/// generated ones call the functional operator and copy.
const OutVariants& AllOutVariants() {
  static const OutVariants variants = [] {
    OutVariants found;
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findSchema(name);
      if (!op || op->schema().arguments().empty() || !op->schema().arguments().back().is_out()) {
        continue;
      }
      if (std::ranges::count(kResizing, name.name) > 0) continue;
      if (op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) found.emplace(name.name, *op);
    }
    return found;
  }();
  return variants;
}

/// Operators without a generator, and those that take one.
constexpr std::pair<std::string_view, std::string_view> kTakesGenerator[] = {
    {"aten.rand.default", "aten.rand.generator"},
    {"aten.rand_like.default", "aten.rand_like.generator"},
    {"aten.randint.default", "aten.randint.generator"},
    {"aten.randint.low", "aten.randint.low_generator"},
    {"aten.randint_like.Tensor", "aten.randint_like.Tensor_generator"},
    {"aten.randint_like.default", "aten.randint_like.generator"},
    {"aten.randint_like.low_dtype", "aten.randint_like.low_generator_dtype"},
    {"aten.randn.default", "aten.randn.generator"},
    {"aten.randn_like.default", "aten.randn_like.generator"},
    {"aten.randperm.default", "aten.randperm.generator"},
};

/// The operator that draws from the generator of the calling thread, where it has one of its own.
Result<std::string_view> WithOwnGenerator(std::string_view op) {
  if (!OwnGenerator()) return op;
  if (op == "aten.native_dropout.default") {
    return Error(ErrorCode::kUnsupported,
                 "draws from the generator of the process, which ranks that are threads share, of "
                 "a tensor that is not contiguous: run ranks as processes, with --nproc");
  }
  const auto* const found =
      std::ranges::find(kTakesGenerator, op, [](const auto& entry) { return entry.first; });
  return found == std::end(kTakesGenerator) ? op : found->second;
}

}  // namespace

std::optional<c10::OperatorHandle> OutVariantOf(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const auto [begin, end] = AllOutVariants().equal_range(schema.name());
  for (auto it = begin; it != end; ++it) {
    const c10::FunctionSchema& out = it->second.schema();
    const size_t count = schema.arguments().size();
    if (out.arguments().size() != count + schema.returns().size()) continue;
    bool fits = true;
    for (size_t i = 0; fits && i < out.arguments().size(); ++i) {
      const c10::Argument& argument = out.arguments()[i];
      fits = i < count ? argument.name() == schema.arguments()[i].name() &&
                             *argument.type() == *schema.arguments()[i].type()
                       : argument.is_out();
    }
    if (fits) return it->second;
  }
  return std::nullopt;
}

Result<c10::OperatorHandle> FindOp(std::string_view op) {
  RegisterPrims();
  STRATA_TRY(op, WithOwnGenerator(op));
  const auto found = c10::Dispatcher::singleton().findSchema(SchemaName(op));
  if (found) return *found;
  const OpName name = SplitOpName(op);
  if (name.library == "higher_order")
    return Error(ErrorCode::kUnsupported, "higher-order operators do not run yet: {}", op);
  if (op.starts_with("torch.sym_"))
    return Error(ErrorCode::kUnsupported, "numbers that are made of sizes do not run yet: {}", op);
  if (name.overload.empty()) {
    return Error(ErrorCode::kUnsupported,
                 "{} is a function of Python: name a graph that AOTAutograd made, such as "
                 "aot_joint_graph",
                 op);
  }
  return Error(ErrorCode::kUnsupported, "no operator {}: load its library with --operators FILE",
               op);
}

bool IsPlain(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kAllowed =
      c10::DispatchKeySet(c10::DispatchKey::CPU) | c10::autograd_dispatch_keyset |
      c10::autocast_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
  if (!tensor.defined()) return false;
  // A difference keeps the backends.
  return (tensor.key_set() - kAllowed).remove_backend(c10::BackendComponent::CPUBit).empty();
}

}  // namespace strata
