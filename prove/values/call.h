#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ir/ids.h"
#include "ir/type.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// A value of a graph in a proof; none: the operator returned None.
using Value = std::variant<std::monostate, Tensor, int64_t, GraphId>;

/// An argument of an operator.
struct Argument {
  std::variant<std::monostate, Tensor, int64_t, double, bool, DType, std::string, GraphId,
               std::vector<Argument>>
      value;

  bool is_none() const { return std::holds_alternative<std::monostate>(value); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(value); }
};

/// One call of an operator: what its definition reads.
class Call {
 public:
  using RunBody =
      std::function<Result<std::vector<Value>>(GraphId body, std::span<const Value> inputs)>;

  Call(std::string_view op, std::vector<Argument> args,
       std::vector<std::pair<std::string, Argument>> kwargs, size_t num_results)
      : op_(op), args_(std::move(args)), kwargs_(std::move(kwargs)), num_results_(num_results) {}

  std::string_view op() const { return op_; }
  size_t num_args() const { return args_.size(); }
  size_t num_results() const { return num_results_; }
  std::span<Argument> args() { return args_; }
  std::span<const std::pair<std::string, Argument>> kwargs() const { return kwargs_; }

  /// The argument at a position or of a name; null: it is absent or None.
  const Argument* Find(size_t position, std::string_view name) const;

  /// A tensor; a number is a tensor without dimensions. Errors: absent, or neither.
  Result<Tensor> TensorAt(size_t position, std::string_view name = {}) const;
  /// The tensors of a list. Errors: not a list of tensors.
  Result<std::vector<Tensor>> TensorsAt(size_t position, std::string_view name = {}) const;
  int64_t IntegerAt(size_t position, std::string_view name, int64_t otherwise) const;
  bool FlagAt(size_t position, std::string_view name, bool otherwise = false) const;
  std::string TextAt(size_t position, std::string_view name) const;
  /// The image of a number. Errors: absent, or not a number.
  Result<Residue> NumberAt(size_t position, std::string_view name, Residue otherwise) const;
  /// A number that the call states; none: absent, or a value of the graph.
  std::optional<double> LiteralAt(size_t position, std::string_view name) const;
  /// Integers of a list, or one integer; none: absent.
  std::optional<Sizes> IntegersAt(size_t position, std::string_view name) const;
  /// The domain of the keyword `dtype`, else `otherwise`.
  Domain DomainOr(Domain otherwise, size_t position = SIZE_MAX) const;

  /// Literals of the call, for functions that are not known: equal for equal calls.
  std::string Literals() const;

  /// Runs a body of the module: for operators that have one.
  RunBody run_body;

 private:
  std::string_view op_;
  std::vector<Argument> args_;
  std::vector<std::pair<std::string, Argument>> kwargs_;
  size_t num_results_;
};

using Values = std::vector<Value>;

Domain DomainOf(DType dtype);

}  // namespace strata::prove
