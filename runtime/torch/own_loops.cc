#include "runtime/torch/own_loops.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/loops/loops.h"
#include "runtime/torch/literals.h"
#include "runtime/torch/out_variants.h"
#include "runtime/torch/step_binder.h"

namespace strata {
namespace {

using at::Tensor;
using Candidates = std::vector<std::unique_ptr<OwnLoop>>;

/// ATen computes fewer elements in one thread (at::internal::GRAIN_SIZE).
constexpr int64_t kMostElements = 32768;

/// What a loop is made from.
struct Request {
  const PlanStep& step;
  const std::vector<Tensor>& operands;
  const std::vector<PlanLayout>& results;
  const Loops& loops;

  bool HasOperands(size_t count) const { return operands.size() == count; }
};

bool IsContiguous(const PlanLayout& layout) {
  int64_t stride = 1;
  for (size_t dim = layout.sizes.size(); dim-- > 0; stride *= layout.sizes[dim]) {
    if (layout.sizes[dim] != 1 && layout.strides[dim] != stride) return false;
  }
  return true;
}

/// Plain floats, one after the other, as many as `like` has.
bool IsLine(const Tensor& tensor, const PlanLayout& like) {
  return tensor.scalar_type() == at::kFloat && IsPlain(tensor) && tensor.is_contiguous() &&
         tensor.sizes() == at::IntArrayRef(like.sizes) && like.dtype == DType::kF32 &&
         IsContiguous(like);
}

/// A loop over elements at the same place of operands and result.
template <class Fn>
class ElementwiseLoop final : public OwnLoop {
 public:
  ElementwiseLoop(Fn fn, bool has_atens_bits) : fn_(std::move(fn)), is_exact_(has_atens_bits) {}
  void Run(void* const* addresses) override { fn_(reinterpret_cast<float* const*>(addresses)); }
  bool is_elementwise() const override { return true; }
  bool has_atens_bits() const override { return is_exact_; }

 private:
  Fn fn_;
  bool is_exact_;
};

template <class Fn>
std::unique_ptr<OwnLoop> Elementwise(Fn fn, bool has_atens_bits = false) {
  return std::make_unique<ElementwiseLoop<Fn>>(std::move(fn), has_atens_bits);
}

/// Neighbouring dimensions that both operands walk as one are one, as ATen's loops merge them.
std::optional<ComplexProduct> ComplexProductOf(const Tensor& a, const Tensor& b,
                                               const PlanLayout& result) {
  const auto rank = static_cast<int64_t>(result.sizes.size());
  if (!IsContiguous(result) || !IsPlain(a) || !IsPlain(b) || a.dim() > rank || b.dim() > rank)
    return std::nullopt;
  const auto stride_of = [&](const Tensor& tensor, int64_t dim) {
    const int64_t own = dim - (rank - tensor.dim());
    return own < 0 || tensor.size(own) == 1 ? 0 : tensor.stride(own);
  };
  struct Dim {
    int64_t size, a, b;
  };
  std::vector<Dim> dims;  // the last first
  for (int64_t dim = rank; dim-- > 0;) {
    const Dim outer{result.sizes[static_cast<size_t>(dim)], stride_of(a, dim), stride_of(b, dim)};
    if (outer.size == 1) continue;
    if (!dims.empty() && outer.a == dims.back().a * dims.back().size &&
        outer.b == dims.back().b * dims.back().size) {
      dims.back().size *= outer.size;
    } else {
      dims.push_back(outer);
    }
  }
  if (dims.empty() || dims.size() > ComplexProduct::kRank || dims[0].a != 1 || dims[0].b != 1)
    return std::nullopt;
  ComplexProduct product;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t at = ComplexProduct::kRank - 1 - i;
    product.sizes[at] = dims[i].size;
    product.a_strides[at] = dims[i].a;
    product.b_strides[at] = dims[i].b;
  }
  return product;
}

Candidates MakeProducts(const Request& request) {
  Candidates candidates;
  if (!request.HasOperands(2) || !request.step.kwargs.empty()) return candidates;
  const Tensor &a = request.operands[0], &b = request.operands[1];
  const PlanLayout& result = request.results[0];
  const Loops& loops = request.loops;
  if (IsLine(a, result) && IsLine(b, result)) {
    candidates.push_back(Elementwise(
        [&loops, count = a.numel()](float* const* x) { loops.product(x[0], x[1], x[2], count); },
        /*has_atens_bits=*/true));
  } else if (result.dtype == DType::kC64 && a.scalar_type() == at::kComplexFloat &&
             b.scalar_type() == at::kComplexFloat) {
    std::optional<ComplexProduct> product = ComplexProductOf(a, b, result);
    for (int rounding = 0; product && rounding < kNumComplexRoundings; ++rounding) {
      product->rest = static_cast<ComplexRounding>(rounding);
      candidates.push_back(Elementwise(
          [&loops, p = *product](float* const* x) { loops.complex_product(p, x[0], x[1], x[2]); }));
    }
  }
  return candidates;
}

/// ATen computes two vectors at a time, and what is left by other functions.
bool AreWholeVectors(int64_t count) {
  return count % 32 == 0;
}

/// A copy that takes the conjugate.
Candidates MakeConjugates(const Request& request) {
  Candidates candidates;
  const Tensor& from = request.operands[0];
  const PlanLayout& result = request.results[0];
  if (!request.HasOperands(1) || from.scalar_type() != at::kComplexFloat || !from.is_conj() ||
      from.is_neg() || !from.is_contiguous() || result.dtype != DType::kC64 ||
      from.sizes() != at::IntArrayRef(result.sizes) || !IsContiguous(result)) {
    return candidates;
  }
  candidates.push_back(Elementwise([&loops = request.loops, count = from.numel()](
                                       float* const* x) { loops.conjugate(x[0], x[1], count); },
                                   /*has_atens_bits=*/true));
  return candidates;
}

Candidates MakeSilu(const Request& request) {
  Candidates candidates;
  if (!request.HasOperands(1) || !IsLine(request.operands[0], request.results[0]) ||
      !AreWholeVectors(request.operands[0].numel())) {
    return candidates;
  }
  candidates.push_back(Elementwise([&loops = request.loops, count = request.operands[0].numel()](
                                       float* const* x) { loops.silu(x[0], x[1], count); }));
  return candidates;
}

Candidates MakeSiluBackward(const Request& request) {
  Candidates candidates;
  if (!request.HasOperands(2) || !IsLine(request.operands[0], request.results[0]) ||
      !IsLine(request.operands[1], request.results[0]) ||
      !AreWholeVectors(request.operands[0].numel())) {
    return candidates;
  }
  for (const bool contracts : {false, true}) {
    candidates.push_back(Elementwise(
        [&loops = request.loops, contracts, count = request.operands[0].numel()](float* const* x) {
          loops.silu_backward(x[0], x[1], x[2], count, contracts);
        }));
  }
  return candidates;
}

class ColumnSumLoop final : public OwnLoop {
 public:
  ColumnSumLoop(const ColumnSum& sum, const Loops& loops) : sum_(sum), loops_(loops) {}
  void Run(void* const* addresses) override {
    loops_.column_sum(sum_, static_cast<const float*>(addresses[0]),
                      static_cast<float*>(addresses[1]));
  }

 private:
  ColumnSum sum_;
  const Loops& loops_;
};

/// Sums over the leading dimensions.
Candidates MakeColumnSums(const Request& request) {
  Candidates candidates;
  const PlanStep& step = request.step;
  if (!request.HasOperands(1) || step.args.size() < 2 || !step.kwargs.empty() ||
      step.args[1].elements.empty()) {
    return candidates;
  }
  const Tensor& from = request.operands[0];
  const PlanLayout& result = request.results[0];
  if (from.scalar_type() != at::kFloat || !IsPlain(from) || !from.is_contiguous() ||
      result.dtype != DType::kF32 || !IsContiguous(result)) {
    return candidates;
  }
  const std::vector<PlanArg>& dims = step.args[1].elements;
  ColumnSum sum{.rows = 1, .columns = from.numel()};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].kind != ArgKind::kInt || dims[i].integer != static_cast<int64_t>(i))
      return candidates;
    sum.rows *= from.size(static_cast<int64_t>(i));
  }
  if (sum.rows == 0) return candidates;
  sum.columns /= sum.rows;
  if (sum.columns < 2) return candidates;
  candidates.push_back(std::make_unique<ColumnSumLoop>(sum, request.loops));
  return candidates;
}

constexpr std::pair<std::string_view, Candidates (*)(const Request&)> kMakers[] = {
    {"aten.clone.default", MakeConjugates},   {"aten.mul.Tensor", MakeProducts},
    {"aten.silu.default", MakeSilu},          {"aten.silu_backward.default", MakeSiluBackward},
    {"aten.sum.dim_IntList", MakeColumnSums},
};

/// Numbers of several magnitudes, all digits of them drawn, and zeros; ATen's generator is left
/// alone.
Tensor Drawn(const Tensor& like, std::minstd_rand& random) {
  const Tensor drawn = at::empty_strided(like.sizes(), like.strides(), like.options());
  const size_t count = drawn.storage().nbytes() / sizeof(float);
  auto* const numbers = static_cast<float*>(drawn.storage().mutable_data());
  const auto share = [&] { return static_cast<float>(random()) / 2147483648.0F; };
  for (size_t i = 0; i < count; ++i)
    numbers[i] = i % 7 == 3 ? 0.0F : (share() - 0.5F) * (share() + 0.1F) * 8.0F;
  return like.is_conj() ? drawn.conj() : drawn;
}

Tensor EmptyOf(const PlanLayout& layout) {
  return at::empty_strided(layout.sizes, layout.strides, ToScalarType(layout.dtype));
}

bool AreEqual(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.strides() != b.strides()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// What ATen and the candidates make of the same drawn numbers; candidates that differ are erased
/// from `left`.
void Compare(const Candidates& candidates, const Request& request, const c10::OperatorHandle& op,
             const BoundStep& bound, std::minstd_rand& random, std::vector<size_t>& left) {
  std::map<int32_t, Tensor> drawn;  // by slot
  std::vector<void*> operands;
  size_t next = 0;
  request.step.ForEachOperand([&](int32_t slot) {
    const auto [entry, is_new] = drawn.try_emplace(slot);
    if (is_new) entry->second = Drawn(request.operands[next], random);
    ++next;
    operands.push_back(entry->second.storage().mutable_data());
  });
  torch::jit::Stack stack = bound.stack;
  for (const TensorSlot& tensor : bound.tensors)
    stack[tensor.arg] = drawn.at(tensor.slot);
  op.callBoxed(&stack);
  std::erase_if(left, [&](size_t candidate) {
    std::vector<Tensor> results;
    std::vector<void*> addresses = operands;
    for (const PlanLayout& layout : request.results) {
      results.push_back(EmptyOf(layout));
      addresses.push_back(results.back().storage().mutable_data());
    }
    candidates[candidate]->Run(addresses.data());
    bool is_equal = stack.size() == results.size();
    for (size_t i = 0; is_equal && i < results.size(); ++i)
      is_equal = AreEqual(results[i], stack[i].toTensor());
    return !is_equal;
  });
}

/// The first candidate that computes what ATen computes; -1: none. Few numbers may agree by chance,
/// so that they are drawn again and again.
int FindEqual(const Candidates& candidates, const Request& request) {
  constexpr int64_t kEnough = 32768, kLeast = 3, kMost = 64;
  const auto op = FindOp(request.step.op);
  if (!op) return -1;
  const auto bound = BindStep(request.step, *op);
  if (!bound || !bound->lists.empty() || !bound->numbers.empty()) return -1;
  std::vector<size_t> left(candidates.size());
  std::iota(left.begin(), left.end(), size_t{0});
  const int64_t rounds = std::clamp(kEnough / request.results[0].num_elements(), kLeast, kMost);
  std::minstd_rand random(1);
  for (int64_t round = 0; round < rounds && !left.empty(); ++round)
    Compare(candidates, request, *op, *bound, random, left);
  return left.empty() ? -1 : static_cast<int>(left[0]);
}

void PrintArg(std::string& text, const PlanArg& arg) {
  fmt::format_to(std::back_inserter(text), " {}:{}:{}", static_cast<int>(arg.kind), arg.integer,
                 arg.real);
  for (const PlanArg& element : arg.elements)
    PrintArg(text, element);
}

/// Equal for steps that compute the same from operands that lie equally.
std::string KeyOf(const Request& request) {
  std::string key = fmt::format("{} {}", request.step.op, at::get_num_threads());
  for (const PlanArg& arg : request.step.args)
    PrintArg(key, arg);
  for (const auto& [name, arg] : request.step.kwargs) {
    key += name;
    PrintArg(key, arg);
  }
  for (const Tensor& tensor : request.operands)
    key += fmt::format("; {} {} {} {}", static_cast<int>(tensor.scalar_type()), tensor.is_conj(),
                       fmt::join(tensor.sizes(), ","), fmt::join(tensor.strides(), ","));
  for (const PlanLayout& layout : request.results)
    key += fmt::format("; {} {}", fmt::join(layout.sizes, ","), fmt::join(layout.strides, ","));
  return key;
}

}  // namespace

std::unique_ptr<OwnLoop> OwnLoopFor(const PlanStep& step, const std::vector<Tensor>& operands,
                                    const std::vector<PlanLayout>& results) {
  const auto maker =
      std::ranges::find(kMakers, step.op, [](const auto& entry) { return entry.first; });
  const Loops* const loops = BestLoops();
  if (maker == std::end(kMakers) || loops == nullptr || operands.empty()) return nullptr;
  const bool are_few = std::ranges::all_of(
      operands, [](const Tensor& tensor) { return tensor.numel() < kMostElements; });
  if (!are_few || std::ranges::any_of(results, [](const PlanLayout& layout) {
        return layout.offset != 0 || layout.num_elements() == 0 ||
               layout.num_elements() >= kMostElements;
      })) {
    return nullptr;
  }
  const Request request{.step = step, .operands = operands, .results = results, .loops = *loops};
  Candidates candidates = maker->second(request);
  if (candidates.empty()) return nullptr;
  if (candidates[0]->has_atens_bits()) return std::move(candidates[0]);
  static std::mutex mutex;
  static std::map<std::string, int> known;
  const std::string key = KeyOf(request);
  const std::scoped_lock lock(mutex);
  auto found = known.find(key);
  if (found == known.end()) found = known.emplace(key, FindEqual(candidates, request)).first;
  if (found->second < 0) return nullptr;
  return std::move(candidates[static_cast<size_t>(found->second)]);
}

}  // namespace strata
