#include "runtime/codegen/cuda_source.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/codegen/emitter.h"
#include "runtime/codegen/formulas.h"

namespace strata {

// __expf would be faster and 2 ulp worse; kernels state one numerics for both devices.
const std::string_view kCudaPreamble = R"(typedef long long int64_t;
struct strata_bf16 { unsigned short bits; };
__device__ inline double strata_inf() { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ inline double strata_nan() { return __longlong_as_double(0x7ff8000000000000ll); }
__device__ inline float strata_load(float x) { return x; }
__device__ inline double strata_load(double x) { return x; }
__device__ inline float strata_load(strata_bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline void strata_store(float* p, float x) { *p = x; }
__device__ inline void strata_store(double* p, double x) { *p = x; }
__device__ inline void strata_store(strata_bf16* p, float x) {
  const unsigned bits = __float_as_uint(x);
  p->bits = x != x ? 0x7fc0 : (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
__device__ inline float strata_round(float x) {
  strata_bf16 y;
  strata_store(&y, x);
  return strata_load(y);
}
__device__ inline float strata_abs(float x) { return fabsf(x); }
__device__ inline double strata_abs(double x) { return fabs(x); }
__device__ inline float strata_fma(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double strata_fma(double a, double b, double c) { return fma(a, b, c); }
__device__ inline float strata_sqrt(float x) { return sqrtf(x); }
__device__ inline double strata_sqrt(double x) { return sqrt(x); }
__device__ inline float strata_log(float x) { return logf(x); }
__device__ inline double strata_log(double x) { return log(x); }
__device__ inline float strata_exp(float x) { return expf(x); }
__device__ inline double strata_exp(double x) { return exp(x); }
__device__ inline float strata_tanh(float x) { return tanhf(x); }
__device__ inline double strata_tanh(double x) { return tanh(x); }
template <class T> __device__ inline T strata_silu_backward(T g, T x) {
  const T s = (T)1 / ((T)1 + strata_exp(-x));
  return g * s * ((T)1 + x * ((T)1 - s));
}
struct strata_join_sum { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
struct strata_join_max { template <class T> __device__ T operator()(T a, T b) const { return b > a || b != b ? b : a; } };
template <class T, class Join> __device__ T strata_join(T value, Join join) {
  __shared__ T parts[1024];
  __syncthreads();
  parts[threadIdx.x] = value;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] = join(parts[threadIdx.x], parts[threadIdx.x + half]);
  }
  __syncthreads();
  return parts[0];
}
)";

namespace {

constexpr int64_t kMaxBlocks = 65536;

/// Elements that a thread computes at once: all are loaded before the first is computed. A thread
/// that waits for one element of two bytes leaves most of a large GPU's bandwidth unused. Where
/// there is little to do, more blocks count for more.
int64_t ElementsOfThread(const Kernel& kernel) {
  constexpr int64_t kLarge = 1 << 20;
  const bool is_large = !kernel.has_rows && kernel.rows() >= kLarge;
  return is_large && kernel.written_inputs.empty() ? 4 : 1;
}

class CudaEmitter final : public Emitter {
 public:
  CudaEmitter(const Kernel& kernel, std::string_view name)
      : Emitter(kernel, name), int_(FitsInt(kernel) ? "int" : "int64_t") {}

 private:
  void EmitHead() override {
    std::string parameters;
    for (size_t i = 0; i < kernel().accesses.size(); ++i) {
      const std::string_view type = MemoryType(kernel().accesses[i].dtype);
      if (i > 0) parameters += ", ";
      parameters += IsOnlyRead(i) ? fmt::format("const {}* __restrict__ a{}", type, i)
                                  : fmt::format("{}* a{}", type, i);
    }
    // Without bounds, the compiler may give each of 1024 threads more registers than there are.
    Line("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{", LaunchOf(kernel()).threads,
         name(), parameters);
  }

  void EmitBody() override {
    if (kernel().has_rows) {
      EmitRows();
    } else {
      EmitElements();
    }
  }

  /// Whether places, and counters beyond the last element, are numbers of 32 bits: half the work of
  /// 64, where most of an index is divisions.
  static bool FitsInt(const Kernel& kernel) {
    int64_t most = 1;
    for (const int64_t size : kernel.sizes)
      most *= size;
    for (const Kernel::Access& access : kernel.accesses) {
      int64_t last = 0;
      for (size_t dim = 0; dim < kernel.sizes.size(); ++dim)
        last += (kernel.sizes[dim] - 1) * access.strides[dim];
      most = std::max(most, last);
    }
    return most <= INT32_MAX - kMaxBlocks * 1024;
  }

  /// Nothing writes to its memory while the kernel runs: loads may be reordered and cached.
  bool IsOnlyRead(size_t access) const {
    return kernel().written_inputs.empty() &&
           kernel().accesses[access].argument < kernel().num_inputs;
  }

  /// Declares i<dim> of dimensions [from, to), counted by `counter`.
  void EmitIndices(std::string_view counter, size_t from, size_t to) {
    if (from == to) return;
    std::string rest(counter);
    for (size_t dim = to; dim-- > from + 1;) {
      Line("const {} i{} = {} % {};", int_, dim, rest, kernel().sizes[dim]);
      rest = fmt::format("({} / {})", rest, kernel().sizes[dim]);
    }
    Line("const {} i{} = {};", int_, from, rest);
  }

  void EmitElements() {
    if (ElementsOfThread(kernel()) > 1) return EmitTiles();
    Begin(
        "for ({0} e = blockIdx.x * ({0})blockDim.x + threadIdx.x; e < {1}; "
        "e += ({0})(gridDim.x * blockDim.x)) {{",
        int_, kernel().rows());
    EmitIndices("e", 0, kernel().sizes.size());
    EmitOps(schedule().stages[0].column_ops);
    EmitStores(schedule().stages[0].column_stores);
    End();
  }

  /// Loads in a loop of their own: what computes may branch, and nothing is loaded across that.
  void EmitTiles() {
    const int64_t each = ElementsOfThread(kernel()), tile = each * LaunchOf(kernel()).threads;
    Begin(
        "for ({0} first = blockIdx.x * ({0}){1} + threadIdx.x; first < {2}; "
        "first += gridDim.x * ({0}){1}) {{",
        int_, tile, kernel().rows());
    const std::vector<int32_t>& ops = schedule().stages[0].column_ops;
    for (const int32_t op : ops) {
      if (Op(op).code == "load") Line("{} load{}[{}];", ComputeType(Op(op).dtype), op, each);
    }
    BeginPart(each, tile);
    for (const int32_t op : ops) {
      if (Op(op).code == "load") Line("load{}[part] = {};", op, LoadText(Op(op)));
    }
    End();
    BeginPart(each, tile);
    for (const int32_t op : ops) {
      if (Op(op).code == "load") {
        Line("const {} v{} = load{}[part];", ComputeType(Op(op).dtype), op, op);
      } else {
        EmitOp(op);
      }
    }
    EmitStores(schedule().stages[0].column_stores);
    End();
    End();
  }

  void BeginPart(int64_t each, int64_t tile) {
    Line("#pragma unroll");
    Begin("for (int part = 0; part < {}; ++part) {{", each);
    Line("const {} e = first + part * {};", int_, tile / each);
    if (kernel().rows() % tile != 0) Line("if (e >= {}) break;", kernel().rows());
    EmitIndices("e", 0, kernel().sizes.size());
  }

  void EmitRows() {
    Begin("for ({} row = blockIdx.x; row < {}; row += gridDim.x) {{", int_, kernel().rows());
    EmitIndices("row", 0, kernel().num_row_dims);
    for (const Schedule::Stage& stage : schedule().stages)
      EmitStage(stage);
    End();
  }

  void EmitStage(const Schedule::Stage& stage) {
    EmitOps(stage.row_ops);
    if (!stage.row_stores.empty()) {
      Begin("if (threadIdx.x == 0) {{");
      EmitStores(stage.row_stores);
      End();
    }
    if (!stage.has_loop()) return;
    for (const int32_t op : stage.reductions) {
      const Kernel::Op& o = Op(op);
      Line("{} part{} = {};", ComputeType(o.dtype), op, o.code != "max" ? "0" : "-1.0 / 0.0");
    }
    const int32_t threads = LaunchOf(kernel()).threads;
    if (kernel().columns() > threads) Line("#pragma unroll 4");
    Begin("for ({} column = threadIdx.x; column < {}; column += {}) {{", int_, kernel().columns(),
          threads);
    EmitIndices("column", kernel().num_row_dims, kernel().sizes.size());
    EmitOps(stage.column_ops);
    for (const int32_t op : stage.reductions)
      Line("part{0} = strata_join_{1}()(part{0}, v{2});", op, Op(op).code, Op(op).operands[0]);
    EmitStores(stage.column_stores);
    End();
    for (const int32_t op : stage.reductions) {
      Line("const {0} v{1} = strata_join(part{1}, strata_join_{2}());", ComputeType(Op(op).dtype),
           op, Op(op).code);
    }
  }

  std::string Index(size_t access, bool is_row) const {
    std::string text = "0";
    const size_t end = is_row ? kernel().num_row_dims : kernel().sizes.size();
    for (size_t dim = 0; dim < end; ++dim) {
      const int64_t stride = kernel().accesses[access].strides[dim];
      if (stride != 0) text += fmt::format(" + i{} * {}", dim, stride);
    }
    return text;
  }

  std::string LoadText(const Kernel::Op& op) const override {
    return fmt::format("strata_load(a{}[{}])", op.access,
                       Index(static_cast<size_t>(op.access), op.level == Kernel::Level::kRow));
  }

  std::string StoreAddress(const Kernel::Store& store) const override {
    const auto access = static_cast<size_t>(store.access);
    const bool is_row =
        kernel().has_rows &&
        std::ranges::all_of(
            std::span(kernel().accesses[access].strides).subspan(kernel().num_row_dims),
            [](int64_t stride) { return stride == 0; });
    return fmt::format("a{} + ({})", access, Index(access, is_row));
  }

  std::string_view int_;  // of indices
};

}  // namespace

CudaLaunch LaunchOf(const Kernel& kernel) {
  if (kernel.has_rows) {
    int32_t threads = 32;
    while (threads < 1024 && threads < kernel.columns())
      threads *= 2;
    return {.blocks = std::clamp<int64_t>(kernel.rows(), 1, kMaxBlocks), .threads = threads};
  }
  constexpr int32_t kThreads = 256;
  const int64_t tile = kThreads * ElementsOfThread(kernel);
  const int64_t blocks = (kernel.rows() + tile - 1) / tile;
  return {.blocks = std::clamp<int64_t>(blocks, 1, kMaxBlocks), .threads = kThreads};
}

std::string CudaFunction(const Kernel& kernel, std::string_view name) {
  return CudaEmitter(kernel, name).Run();
}

std::string CudaSource(std::span<const Kernel> kernels) {
  return SourceOf(kCudaPreamble, kernels, CudaFunction);
}

}  // namespace strata
