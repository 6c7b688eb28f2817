#include "runtime/codegen/cpp_source.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/codegen/emitter.h"
#include "runtime/codegen/formulas.h"

namespace strata {

// exp: range reduction to [-ln2/2, ln2/2] and a polynomial (Cephes), within 2 ulp; written without
// branches so that a loop over it becomes vector code. Beyond the range of float it is 0 or
// infinity, NaN stays.
const std::string_view kCppPreamble = R"(#include <stdint.h>
#define STRATA_INLINE inline __attribute__((always_inline))  // also in loops that become vector code
#define STRATA_UNROLLED _Pragma("GCC unroll 8")
namespace {
// ATen's sum of a row (SumKernel.cpp): vectors of 32 bytes, four sums of them side by side, each in
// four levels that are added up every 2^k vectors; then the four, the rest, the lanes.
#if defined(__x86_64__) || defined(_M_X64)
typedef float strata_vec __attribute__((vector_size(32), aligned(4)));
#else
typedef float strata_vec __attribute__((vector_size(16), aligned(4)));
#endif
template <class V> inline V strata_sum_vectors(const V* x, int64_t size) {
  const int64_t quarter = size / 4;
  int64_t log2 = 0;
  while (((int64_t)1 << log2) < quarter) ++log2;
  const int64_t power = log2 / 4 > 4 ? log2 / 4 : 4, step = (int64_t)1 << power;
  V sums[4][4] = {};
  int64_t i = 0;
  while (i + step <= quarter) {
    for (int64_t j = 0; j < step; ++j, ++i)
      STRATA_UNROLLED
      for (int k = 0; k < 4; ++k) sums[0][k] += x[4 * i + k];
    STRATA_UNROLLED
    for (int level = 1; level < 4; ++level) {
      STRATA_UNROLLED
      for (int k = 0; k < 4; ++k) {
        sums[level][k] += sums[level - 1][k];
        sums[level - 1][k] = V{};
      }
      if ((i & ((step - 1) << (level * power))) != 0) break;
    }
  }
  for (; i < quarter; ++i)
    STRATA_UNROLLED
    for (int k = 0; k < 4; ++k) sums[0][k] += x[4 * i + k];
  STRATA_UNROLLED
  for (int level = 1; level < 4; ++level)
    STRATA_UNROLLED
    for (int k = 0; k < 4; ++k) sums[0][k] += sums[level][k];
  for (i = 4 * quarter; i < size; ++i) sums[0][0] += x[i];
  STRATA_UNROLLED
  for (int k = 1; k < 4; ++k) sums[0][0] += sums[0][k];
  return sums[0][0];
}
template <int64_t n> inline float strata_aten_sum(const float* x) {
  constexpr int64_t lanes = sizeof(strata_vec) / sizeof(float);
  if (n < lanes) return 0.0f + strata_sum_vectors<float>(x, n);
  const strata_vec sums = strata_sum_vectors((const strata_vec*)x, n / lanes);
  float sum = 0;
  for (int64_t i = n / lanes * lanes; i < n; ++i) sum += x[i];
  for (int64_t i = 0; i < lanes; ++i) sum += sums[i];
  return sum;
}
struct strata_bf16 { uint16_t bits; };
STRATA_INLINE float strata_load(float x) { return x; }
STRATA_INLINE double strata_load(double x) { return x; }
STRATA_INLINE float strata_load(strata_bf16 x) {
  return __builtin_bit_cast(float, (uint32_t)x.bits << 16);
}
STRATA_INLINE void strata_store(float* p, float x) { *p = x; }
STRATA_INLINE void strata_store(double* p, double x) { *p = x; }
STRATA_INLINE void strata_store(strata_bf16* p, float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  p->bits = x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
STRATA_INLINE float strata_round(float x) {
  strata_bf16 y;
  strata_store(&y, x);
  return strata_load(y);
}
STRATA_INLINE float strata_abs(float x) { return __builtin_fabsf(x); }
STRATA_INLINE double strata_abs(double x) { return __builtin_fabs(x); }
STRATA_INLINE float strata_fma(float a, float b, float c) { return STRATA_CONTRACTS ? __builtin_fmaf(a, b, c) : a * b + c; }
STRATA_INLINE double strata_fma(double a, double b, double c) { return STRATA_CONTRACTS ? __builtin_fma(a, b, c) : a * b + c; }
STRATA_INLINE double strata_inf() { return __builtin_inf(); }
STRATA_INLINE double strata_nan() { return __builtin_nan(""); }
STRATA_INLINE float strata_sqrt(float x) { return __builtin_sqrtf(x); }
STRATA_INLINE double strata_sqrt(double x) { return __builtin_sqrt(x); }
STRATA_INLINE float strata_log(float x) { return __builtin_logf(x); }
STRATA_INLINE double strata_log(double x) { return __builtin_log(x); }
STRATA_INLINE double strata_exp(double x) { return __builtin_exp(x); }
STRATA_INLINE float strata_exp(float x) {
  const float low = -104.0f, high = 88.8f;
  float c = x < low ? low : x;
  c = c > high ? high : c;
  const float n = (c * 1.44269504f + 12582912.0f) - 12582912.0f;
  float r = __builtin_fmaf(n, -0.693359375f, c);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  p = __builtin_fmaf(p, r * r, r) + 1.0f;
  const int32_t half = (int32_t)n >> 1, rest = (int32_t)n - half;
  p *= __builtin_bit_cast(float, (half + 127) << 23);
  return p * __builtin_bit_cast(float, (rest + 127) << 23);
}
template <class T> STRATA_INLINE T strata_tanh(T x) {
  const T e = strata_exp((T)-2 * strata_abs(x));
  const T t = ((T)1 - e) / ((T)1 + e);
  return x < 0 ? -t : t;
}
template <class T> STRATA_INLINE T strata_silu_backward(T g, T x) {
  const T s = (T)1 / ((T)1 + strata_exp(-x));
  return g * s * ((T)1 + x * ((T)1 - s));
}
template <class T> STRATA_INLINE T strata_max(T a, T b) { return a > b || a != a ? a : b; }
// OpenMP's own max loses nan.
#pragma omp declare reduction(strata_max : float, double : omp_out = strata_max(omp_out, omp_in)) initializer(omp_priv = -__builtin_inf())
}  // namespace
)";

namespace {

class CppEmitter final : public Emitter {
 public:
  using Emitter::Emitter;

 private:
  void EmitHead() override {
    Line(
        "extern \"C\" void {}(void* const* arguments, int64_t begin, int64_t end, "
        "const int64_t* open) {{",
        name());
  }

  void EmitBody() override {
    for (size_t i = 0; i < kernel().accesses.size(); ++i) {
      const std::string_view type = MemoryType(kernel().accesses[i].dtype);
      Line("{0}* const a{1} = ({0}*)arguments[{2}];", type, i, kernel().accesses[i].argument);
    }
    // One dimension: the loop over units is the loop over elements.
    if (schedule().num_inner_dims == 0 && !kernel().has_rows && !kernel().sizes.empty()) {
      EmitElements();
    } else {
      EmitUnits();
    }
  }

  void EmitElements() {
    const int64_t last = static_cast<int64_t>(kernel().sizes.size()) - 1;
    for (size_t i = 0; i < kernel().accesses.size(); ++i)
      Line("auto* const q{0} = a{0};", i);
    const Schedule::Stage& stage = schedule().stages[0];
    EmitUniformLoads(stage);
    Line("#pragma omp simd");
    Begin("for (int64_t i{0} = begin; i{0} < end; ++i{0}) {{", last);
    EmitColumn(stage);
    End();
  }

  void EmitUnits() {
    Begin("for (int64_t unit = begin; unit < end; ++unit) {{");
    if (schedule().num_outer_dims > 0) {
      if (schedule().num_outer_dims > 1) Line("int64_t rest = unit;");
      for (size_t dim = schedule().num_outer_dims; dim-- > 1;) {
        Line("const int64_t i{} = rest % {};", dim, SizeText(dim));
        Line("rest /= {};", SizeText(dim));
      }
      Line("const int64_t i0 = {};", schedule().num_outer_dims > 1 ? "rest" : "unit");
    }
    for (size_t i = 0; i < kernel().accesses.size(); ++i)
      Line("auto* const q{0} = a{0}{1};", i, Index(i, 0, schedule().num_outer_dims));
    for (const Schedule::Stage& stage : schedule().stages)
      EmitStage(stage);
    End();
  }

  static bool IsDynamic(const std::vector<bool>& open, size_t dim) {
    return dim < open.size() && open[dim];
  }

  std::string SizeText(size_t dim) const {
    if (!IsDynamic(kernel().dynamic_sizes, dim)) return std::to_string(kernel().sizes[dim]);
    return fmt::format(
        "open[{}]",
        std::count(kernel().dynamic_sizes.begin(),
                   kernel().dynamic_sizes.begin() + static_cast<std::ptrdiff_t>(dim), true));
  }

  std::string StrideText(size_t access, size_t dim) const {
    const std::vector<bool>& open = kernel().accesses[access].dynamic_strides;
    if (!IsDynamic(open, dim)) return std::to_string(kernel().accesses[access].strides[dim]);
    auto index = std::ranges::count(kernel().dynamic_sizes, true);
    for (size_t i = 0; i < access; ++i)
      index += std::ranges::count(kernel().accesses[i].dynamic_strides, true);
    index += std::count(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(dim), true);
    return fmt::format("open[{}]", index);
  }

  /// ` + i0 * 16 + i1`.
  std::string Index(size_t access, size_t from, size_t to) const {
    std::string text;
    for (size_t dim = from; dim < to; ++dim) {
      const int64_t stride = kernel().accesses[access].strides[dim];
      if (stride == 1) text += fmt::format(" + i{}", dim);
      if (stride != 0 && stride != 1)
        text += fmt::format(" + i{} * {}", dim, StrideText(access, dim));
    }
    return text;
  }

  void EmitStage(const Schedule::Stage& stage) {
    EmitOps(stage.row_ops);
    EmitStores(stage.row_stores);
    if (!stage.has_loop()) return;

    std::string reductions;
    for (const int32_t op : stage.reductions) {
      const Kernel::Op& o = Op(op);
      if (IsAtenSum(o)) {
        Line("float row{}[{}];", op, kernel().columns());
        continue;
      }
      const bool is_sum = o.code == "sum";
      Line("{} v{} = {};", ComputeType(o.dtype), op, is_sum ? "0" : "-__builtin_inf()");
      reductions += fmt::format(" reduction({}:v{})", is_sum ? "+" : "strata_max", op);
    }
    EmitUniformLoads(stage);
    const size_t first = schedule().num_outer_dims, rank = kernel().sizes.size();
    for (size_t dim = first; dim < rank; ++dim) {
      if (dim + 1 == rank) Line("#pragma omp simd{}", reductions);
      Begin("for (int64_t i{0} = 0; i{0} < {1}; ++i{0}) {{", dim, SizeText(dim));
    }
    EmitColumn(stage);
    for (size_t dim = first; dim < rank; ++dim)
      End();
    for (const int32_t op : stage.reductions) {
      if (IsAtenSum(Op(op))) {
        Line("const float v{0} = strata_aten_sum<{1}>(row{0});", op, kernel().columns());
      }
    }
  }

  static bool IsAtenSum(const Kernel::Op& op) { return op.code == "aten sum"; }

  /// The column of the row that the loops have reached: `(i1) * 16 + i2`.
  std::string ColumnIndex() const {
    std::string text;
    for (size_t dim = schedule().num_outer_dims; dim < kernel().sizes.size(); ++dim)
      text = text.empty() ? fmt::format("i{}", dim)
                          : fmt::format("({}) * {} + i{}", text, SizeText(dim), dim);
    return text.empty() ? "0" : text;
  }

  bool IsUniform(const Kernel::Op& op) const {
    if (op.code != "load") return false;
    const std::vector<int64_t>& strides = AccessOf(op).strides;
    // One dimension is walked by the loop itself.
    const size_t first = schedule().num_inner_dims == 0 ? 0 : schedule().num_outer_dims;
    return std::all_of(strides.begin() + static_cast<std::ptrdiff_t>(first), strides.end(),
                       [](int64_t stride) { return stride == 0; });
  }

  /// Loads that are the same in each iteration of the loop: the compiler cannot know that stores do
  /// not change them.
  void EmitUniformLoads(const Schedule::Stage& stage) {
    for (const int32_t op : stage.column_ops) {
      if (IsUniform(Op(op))) EmitOp(op);
    }
  }

  void EmitColumn(const Schedule::Stage& stage) {
    for (const int32_t op : stage.column_ops) {
      if (!IsUniform(Op(op))) EmitOp(op);
    }
    for (const int32_t op : stage.reductions) {
      const int32_t operand = Op(op).operands[0];
      if (IsAtenSum(Op(op))) {
        Line("row{}[{}] = v{};", op, ColumnIndex(), operand);
      } else if (Op(op).code == "sum") {
        Line("v{0} += v{1};", op, operand);
      } else {
        Line("v{0} = strata_max(v{0}, v{1});", op, operand);
      }
    }
    EmitStores(stage.column_stores);
  }

  std::string LoadText(const Kernel::Op& op) const override {
    return fmt::format(
        "strata_load(q{}[0{}])", op.access,
        InnerIndex(static_cast<size_t>(op.access), op.level == Kernel::Level::kColumn));
  }

  std::string StoreAddress(const Kernel::Store& store) const override {
    return fmt::format("q{0} + (0{1})", store.access,
                       InnerIndex(static_cast<size_t>(store.access), true));
  }

  std::string InnerIndex(size_t access, bool is_column) const {
    if (!is_column) return "";
    const size_t first =
        schedule().num_inner_dims == 0 && !kernel().has_rows ? 0 : schedule().num_outer_dims;
    return Index(access, first, kernel().sizes.size());
  }
};

}  // namespace

std::string CppFunction(const Kernel& kernel, std::string_view name) {
  return CppEmitter(kernel, name).Run();
}

std::string CppSource(std::span<const Kernel> kernels) {
  return SourceOf(kCppPreamble, kernels, CppFunction);
}

}  // namespace strata
