#include "passes/compile/kernel_maker.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/compile/iteration_space.h"
#include "passes/compile/no_kernel.h"
#include "passes/compile/pointwise.h"

namespace strata {
namespace {

using Sizes = std::vector<int64_t>;

/// A value of the body.
struct Known {
  Sizes sizes;
  int32_t op = -1;     // in the kernel; for inputs -1: each use loads it as it needs
  int32_t input = -1;  // the input that this is, or a view of an input's elements
  Sizes strides;       // of an input
  DType dtype = DType::kUnknown;
};

class KernelMaker {
 public:
  KernelMaker(const Graph& body, bool exact, const SymbolSizes& sizes)
      : body_(body),
        exact_(exact),
        symbols_(sizes),
        module_(body.module()),
        known_(ByValue<Known>(body)) {}

  Result<Kernel> Run() {
    STRATA_RETURN_IF_ERROR(ReadInputs());
    STRATA_RETURN_IF_ERROR(BuildSpace());
    for (const NodeId node : body_.nodes()) {
      if (body_.node(node).kind == NodeKind::kCall) STRATA_RETURN_IF_ERROR(AddNode(node));
    }
    STRATA_RETURN_IF_ERROR(AddStores());
    Coalesce(kernel_);
    return std::move(kernel_);
  }

 private:
  Known& At(ValueId value) { return known_[value]; }

  Result<PlanLayout> LayoutOf(ValueId value) const {
    const TypeId id = body_.value(value).type;
    if (!id.valid() || !module_.types()[id].has_strides) return NoKernel("types must be known");
    const Type& type = module_.types()[id];
    PlanLayout layout{.dtype = type.dtype, .sizes = {}, .strides = {}, .offset = 0};
    STRATA_TRY(layout.sizes, NumbersOf(module_, type.sizes, symbols_));
    STRATA_TRY(layout.strides, NumbersOf(module_, type.strides, symbols_));
    return layout;
  }

  Status ReadInputs() {
    for (const NodeId node : body_.placeholders()) {
      STRATA_TRY(PlanLayout layout, LayoutOf(body_.result(node)));
      At(body_.result(node)) = {.sizes = layout.sizes,
                                .op = -1,
                                .input = kernel_.num_inputs++,
                                .strides = layout.strides,
                                .dtype = layout.dtype};
    }
    kernel_.num_arguments = kernel_.num_inputs;
    return Ok();
  }

  /// Columns are the dimensions that reductions run over; without reductions, what values of two
  /// sizes differ in.
  Status BuildSpace() {
    int64_t most = 1, least = INT64_MAX, reduced_over = 0;
    for (const NodeId node : body_.nodes()) {
      if (body_.node(node).kind != NodeKind::kCall) continue;
      const FusibleOp* entry = FindFusible(body_.op(node));
      if (entry == nullptr) return NoKernel(body_.op(node));
      STRATA_TRY(const PlanLayout layout, LayoutOf(body_.result(node)));
      most = std::max(most, layout.num_elements());
      least = std::min(least, layout.num_elements());
      if (entry->kind != FusionKind::kReduction) continue;
      STRATA_TRY(const PlanLayout reduced, LayoutOf(body_.args(node)[0].value()));
      most = std::max(most, reduced.num_elements());
      const int64_t columns = ColumnsOf(node, reduced.sizes);
      if (reduced_over != 0 && columns != reduced_over) {
        return NoKernel("reductions over different sizes");
      }
      reduced_over = columns;
    }
    elements_ = most;
    if (elements_ == 0 || least == 0) return NoKernel("no elements");
    kernel_.has_rows = reduced_over != 0 || least != most;
    if (kernel_.has_rows) columns_ = reduced_over != 0 ? reduced_over : most / least;

    SpaceBuilder space;
    space.Add(Sizes{elements_ / columns_}, columns_);
    for (const NodeId node : body_.nodes()) {
      if (body_.node(node).kind != NodeKind::kCall) continue;
      STRATA_TRY(const PlanLayout layout, LayoutOf(body_.result(node)));
      const int64_t count = layout.num_elements();
      if (count == elements_) {
        space.Add(layout.sizes, 1);
      } else if (kernel_.has_rows && count == elements_ / columns_) {
        space.Add(layout.sizes, columns_);
      } else {
        return NoKernel("values of different sizes");
      }
    }
    const std::optional<Sizes> sizes = space.Build();
    if (!sizes) return NoKernel("shapes that do not nest");
    kernel_.sizes = *sizes;
    kernel_.num_row_dims = kernel_.sizes.size();
    for (int64_t columns = 1; kernel_.has_rows && columns < columns_;)
      columns *= kernel_.sizes[--kernel_.num_row_dims];
    return Ok();
  }

  int64_t ColumnsOf(NodeId node, const Sizes& sizes) const {
    const std::span<const Arg> args = body_.args(node);
    const std::string_view code = FindFusible(body_.op(node))->code;
    const Arg& dims = args[code.ends_with("_backward") ? 2 : 1];
    const size_t count = dims.is_span() ? body_.elements(dims).size() : 1;
    return Product(std::span(sizes).last(count));
  }

  /// Strides over the space of a tensor that is read where a value of `shape` is computed; none
  /// when its dimensions do not line up.
  std::optional<Sizes> StridesOver(const Sizes& shape, const Sizes& sizes,
                                   const Sizes& strides) const {
    if (sizes.size() > shape.size()) return std::nullopt;
    const int64_t count = Product(shape);
    if (count != elements_ && count * columns_ != elements_ && count != 1) return std::nullopt;
    Sizes result(kernel_.sizes.size(), 0);
    if (count == 1) return result;
    int64_t below = count == elements_ ? 1 : columns_;  // elements of the space in one of `dim`
    for (size_t dim = shape.size(); dim-- > 0;) {
      const size_t missing = shape.size() - sizes.size();
      const int64_t size = dim < missing ? 1 : sizes[dim - missing];
      if (size != 1 && size != shape[dim]) return std::nullopt;
      const int64_t stride = size == 1 ? 0 : strides[dim - missing];
      int64_t step = 1;
      for (size_t k = kernel_.sizes.size(); k-- > 0;) {
        step = k + 1 == kernel_.sizes.size() ? 1 : step * kernel_.sizes[k + 1];
        if (step >= below && step < below * shape[dim]) result[k] = stride * (step / below);
      }
      below *= shape[dim];
    }
    return result;
  }

  /// Whether a value of the kernel, broadcast to `shape`, has its rows and columns where they are.
  bool LinesUp(const Sizes& sizes, const Sizes& shape) const {
    if (Product(sizes) == Product(shape)) return true;
    if (Product(shape) != elements_ || sizes.size() > shape.size()) return false;
    int64_t columns = 1;
    for (size_t i = 0; columns < columns_ && i < sizes.size(); ++i) {
      if (sizes[sizes.size() - 1 - i] != 1) return false;
      columns *= shape[shape.size() - 1 - i];
    }
    return columns == columns_;
  }

  int32_t AddAccess(Kernel::Access access) {
    const auto same = std::ranges::find(kernel_.accesses, access);
    if (same != kernel_.accesses.end()) {
      return static_cast<int32_t>(same - kernel_.accesses.begin());
    }
    kernel_.accesses.push_back(std::move(access));
    return static_cast<int32_t>(kernel_.accesses.size()) - 1;
  }

  int32_t AddOp(Kernel::Op op) {
    kernel_.ops.push_back(std::move(op));
    return static_cast<int32_t>(kernel_.ops.size()) - 1;
  }

  /// The op that gives `value` where a result of `shape` is computed.
  Result<int32_t> Operand(ValueId value, const Sizes& shape) {
    const Known& known = At(value);
    if (known.op >= 0) {
      if (!LinesUp(known.sizes, shape)) return NoKernel("a value does not line up");
      return known.op;
    }
    const std::optional<Sizes> strides = StridesOver(shape, known.sizes, known.strides);
    if (!strides) return NoKernel("an operand does not line up");
    const int32_t access =
        AddAccess({.argument = known.input, .dtype = known.dtype, .strides = *strides});
    const auto loaded = loads_.find(access);
    if (loaded != loads_.end()) return loaded->second;
    const bool is_row =
        kernel_.has_rows && std::ranges::all_of(std::span(*strides).subspan(kernel_.num_row_dims),
                                                [](int64_t stride) { return stride == 0; });
    const int32_t op = AddOp({.code = "load",
                              .dtype = known.dtype,
                              .level = is_row ? Kernel::Level::kRow : Kernel::Level::kColumn,
                              .operands = {},
                              .numbers = {},
                              .access = access});
    return loads_[access] = op;
  }

  int32_t Constant(double number, DType dtype) {
    return AddOp({.code = "constant",
                  .dtype = dtype,
                  .level = kernel_.has_rows ? Kernel::Level::kRow : Kernel::Level::kColumn,
                  .operands = {},
                  .numbers = {number},
                  .access = -1});
  }

  int32_t Compute(std::string_view code, DType dtype, std::vector<int32_t> operands,
                  std::vector<double> numbers = {}) {
    const bool has_columns = std::ranges::any_of(operands, [&](int32_t op) {
      return kernel_.ops[static_cast<size_t>(op)].level == Kernel::Level::kColumn;
    });
    Kernel::Op op{.code = std::string(code),
                  .dtype = dtype,
                  .level = Kernel::Level::kRow,
                  .operands = std::move(operands),
                  .numbers = std::move(numbers),
                  .access = -1};
    if (has_columns && !IsReduction(op)) op.level = Kernel::Level::kColumn;
    return AddOp(std::move(op));
  }

  static double Number(const Arg& arg) {
    return arg.kind() == ArgKind::kInt ? static_cast<double>(arg.as_int()) : arg.as_float();
  }

  Status AddNode(NodeId node) {
    const FusibleOp& entry = *FindFusible(body_.op(node));
    STRATA_TRY(const PlanLayout layout, LayoutOf(body_.result(node)));
    const std::span<const Arg> args = body_.args(node);
    if (entry.kind == FusionKind::kReshape) return AddReshape(node, layout);

    int32_t op = -1;
    if (entry.kind == FusionKind::kReduction) {
      STRATA_TRY(op, AddReduction(node, entry.code, layout));
    } else {
      std::vector<int32_t> operands;
      std::vector<double> numbers;
      for (const Arg& arg : args) {
        if (arg.is_value()) {
          STRATA_TRY(int32_t operand, Operand(arg.value(), layout.sizes));
          operands.push_back(As(operand, entry.code == "cast" ? DType::kUnknown : layout.dtype));
        } else if (arg.kind() == ArgKind::kInt || arg.kind() == ArgKind::kFloat) {
          numbers.push_back(Number(arg));
        }
      }
      for (size_t i = 0; i < body_.node(node).num_kwargs; ++i) {
        const Arg& value = body_.kwarg(node, i).value;
        if (value.kind() == ArgKind::kInt || value.kind() == ArgKind::kFloat) {
          numbers.push_back(Number(value));
        }
      }
      STRATA_TRY(op, AddPointwise(entry.code, layout.dtype, std::move(operands), numbers, args));
    }
    At(body_.result(node)) = {
        .sizes = layout.sizes, .op = op, .input = -1, .strides = {}, .dtype = layout.dtype};
    return Ok();
  }

  /// `op` in another dtype, as ATen casts an operand to the type of the result.
  int32_t As(int32_t op, DType dtype) {
    const Kernel::Op& known = kernel_.ops[static_cast<size_t>(op)];
    if (dtype == DType::kUnknown || known.dtype == dtype) return op;
    return Compute("cast", dtype, {op});
  }

  /// Numbers that stand for a tensor become constants; the others are part of the formula.
  Result<int32_t> AddPointwise(std::string_view code, DType dtype, std::vector<int32_t> operands,
                               std::vector<double> numbers, std::span<const Arg> args) {
    const bool is_binary = code == "add" || code == "sub" || code == "mul" || code == "div";
    if (is_binary && operands.size() == 1) {
      if (args.size() < 2 || numbers.empty()) return NoKernel("an operand is missing");
      operands.push_back(Constant(numbers[0], dtype));
      numbers.erase(numbers.begin());
    }
    if ((code == "add" || code == "sub") && !numbers.empty()) {
      if (numbers[0] == 1.0) numbers.clear();
    }
    if (code == "pow") {
      code = numbers[0] == 1.0    ? "copy"
             : numbers[0] == 2.0  ? "square"
             : numbers[0] == 3.0  ? "cube"
             : numbers[0] == -1.0 ? "reciprocal"
             : numbers[0] == 0.5  ? "sqrt"
                                  : "rsqrt";
      numbers.clear();
    }
    return Compute(code, dtype, std::move(operands), std::move(numbers));
  }

  Result<int32_t> AddReduction(NodeId node, std::string_view code, const PlanLayout& layout) {
    const std::span<const Arg> args = body_.args(node);
    const auto operand = [&](size_t index) -> Result<int32_t> {
      STRATA_TRY(const PlanLayout reduced, LayoutOf(args[index].value()));
      STRATA_TRY(const int32_t op, Operand(args[index].value(), reduced.sizes));
      return op;
    };
    const DType dtype = layout.dtype;
    STRATA_TRY(const int32_t x, operand(0));
    if (code == "max") return Compute(code, dtype, {x});
    if (code == "sum" || code == "mean") {
      const int64_t rows = elements_ / columns_;
      if (exact_ && (rows == 1 || columns_ == 1 || columns_ > kMostExactColumns)) {
        return NoKernel("ATen adds in another order");
      }
      const int32_t sum = Compute(exact_ ? "aten sum" : "sum", dtype, {x});
      if (code == "sum") return sum;
      return Compute("div", dtype, {sum, Constant(static_cast<double>(columns_), dtype)});
    }
    if (code == "softmax_backward" || code == "log_softmax_backward") {
      STRATA_TRY(const int32_t y, operand(1));
      if (code == "log_softmax_backward") {
        const int32_t sum = Compute("sum", dtype, {x});
        const int32_t share = Compute("mul", dtype, {Compute("exp", dtype, {y}), sum});
        return Compute("sub", dtype, {x, share});
      }
      const int32_t sum = Compute("sum", dtype, {Compute("mul", dtype, {x, y})});
      return Compute("mul", dtype, {Compute("sub", dtype, {x, sum}), y});
    }
    const int32_t shifted = Compute("sub", dtype, {x, Compute("max", dtype, {x})});
    const int32_t power = Compute("exp", dtype, {shifted});
    const int32_t sum = Compute("sum", dtype, {power});
    if (code == "softmax") return Compute("div", dtype, {power, sum});
    return Compute("sub", dtype, {shifted, Compute("log", dtype, {sum})});
  }

  /// The same elements under another shape.
  Status AddReshape(NodeId node, const PlanLayout& layout) {
    const Known& known = At(body_.args(node)[0].value());
    if (known.op < 0) return NoKernel("a view of an input");
    At(body_.result(node)) = {
        .sizes = layout.sizes, .op = known.op, .input = -1, .strides = {}, .dtype = layout.dtype};
    return Ok();
  }

  /// The input whose memory a value is: reached over in-place results.
  int32_t InputOf(ValueId value) const {
    while (body_.value(value).alias_of.valid())
      value = body_.value(value).alias_of;
    const std::vector<NodeId> placeholders = body_.placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
      if (body_.result(placeholders[i]) == value) return static_cast<int32_t>(i);
    }
    return -1;
  }

  Status AddStores() {
    for (const Arg& output : body_.elements(body_.args(body_.output())[0])) {
      const ValueId value = output.value();
      const Known& known = At(value);
      if (known.op < 0) return NoKernel("a result that is an input");
      STRATA_TRY(const PlanLayout layout, LayoutOf(value));
      const std::optional<Sizes> strides = StridesOver(layout.sizes, layout.sizes, layout.strides);
      if (!strides) return NoKernel("a result does not line up");
      int32_t argument = InputOf(value);
      if (argument >= 0) {
        if (kernel_.has_rows) return NoKernel("writes an input that a reduction reads");
        kernel_.written_inputs.push_back(argument);
      } else {
        argument = kernel_.num_arguments++;
      }
      kernel_.result_arguments.push_back(argument);
      const int32_t access =
          AddAccess({.argument = argument, .dtype = layout.dtype, .strides = *strides});
      kernel_.stores.push_back({.op = known.op, .access = access});
    }
    std::ranges::sort(kernel_.written_inputs);
    return Ok();
  }

  const Graph& body_;
  bool exact_;
  const SymbolSizes& symbols_;
  const Module& module_;
  IdVector<ValueId, Known> known_;
  std::map<int32_t, int32_t> loads_;  // by access
  int64_t elements_ = 1, columns_ = 1;
  Kernel kernel_;
};

}  // namespace

Result<Kernel> MakeFixedKernel(const Graph& body, bool exact, const SymbolSizes& sizes) {
  return KernelMaker(body, exact, sizes).Run();
}

}  // namespace strata
