#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "ir/size_form.h"
#include "ir/type.h"

namespace strata {

/// 1 without sizes.
int64_t Product(std::span<const int64_t> sizes);

/// How a tensor lies in its storage; sizes, strides and offset in elements.
struct PlanLayout {
  DType dtype = DType::kUnknown;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  int64_t num_elements() const;
  /// Of the smallest storage that holds it.
  int64_t storage_bytes() const;
  friend bool operator==(const PlanLayout&, const PlanLayout&) = default;
};

using KernelId = Id<struct KernelTag>;

/// What a fused node computes, as loops over one iteration space: the same description becomes C++
/// and CUDA (runtime/codegen). Knows nothing of tensors.
///
/// The space may have rows and columns: some values are one per row, read in each of its columns.
/// Reductions run over the columns of a row.
struct Kernel {
  /// Where a value lies: elements to go per step of each dimension of the space; 0: broadcast.
  struct Access {
    int32_t argument = -1;  ///< of the kernel: inputs first, then outputs with memory of their own
    DType dtype = DType::kUnknown;
    std::vector<int64_t> strides;
    std::vector<bool> dynamic_strides = {};  ///< see `dynamic_sizes`
    friend bool operator==(const Access&, const Access&) = default;
  };

  enum class Level : uint8_t { kColumn, kRow };

  /// One value, computed from earlier ones.
  struct Op {
    std::string code;  ///< "load", "constant", "cast", a formula of runtime/codegen, or a reduction
    DType dtype = DType::kUnknown;
    Level level = Level::kColumn;
    std::vector<int32_t> operands;  ///< ops
    std::vector<double> numbers;    ///< literals of the operator
    int32_t access = -1;            ///< "load"
  };

  struct Store {
    int32_t op = -1;
    int32_t access = -1;
  };

  std::vector<int64_t> sizes;  ///< outermost first
  /// Which sizes are others where the graph's open ones are: code for this kernel may take them,
  /// and open strides, when it runs, and serve all sizes. Empty: none.
  std::vector<bool> dynamic_sizes = {};
  size_t num_row_dims = 0;  ///< leading dimensions that count rows; all, without rows and columns
  bool has_rows = false;
  std::vector<Access> accesses;
  std::vector<Op> ops;
  std::vector<Store> stores;
  int32_t num_inputs = 0;
  int32_t num_arguments = 0;
  /// Unbacked symbols of the body, ascending; `dynamic_forms` refers to them by index. `sizes` and
  /// strides are then those of a sample. Empty: all sizes are static.
  std::vector<std::string> unbacked_symbols = {};
  std::vector<SizeForm> dynamic_forms = {};
  /// Argument of each result: an input that is written in place, or one beyond the inputs.
  std::vector<int32_t> result_arguments;
  std::vector<int32_t> written_inputs;  ///< ascending

  /// What is open, in order: sizes, then strides, access by access.
  std::vector<int64_t> dynamic_numbers() const;
  int64_t rows() const;
  int64_t columns() const;
  /// Reads and writes each element of arguments that lie equally once, at the same place: a result
  /// may take the memory of such an input.
  bool IsElementwise(int32_t input, int32_t result) const;
};

/// "sum", "max", and "aten sum": in the order in which ATen's kernels for CPUs add.
bool IsReduction(const Kernel::Op& op);

}  // namespace strata
