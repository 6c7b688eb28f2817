#include "passes/flex/flex_program.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata {
namespace {

using Kind = FlexProgram::Kind;

/// How the kind of a result follows from those of the operands.
enum class Rule : uint8_t {
  kPromote,  ///< the widest: bool, then int, then float
  kFloat,    ///< always float
  kBool,     ///< always bool
  kChoose,   ///< the widest of the operands after the first
};

struct OperatorRow {
  std::string_view op, code;
  size_t num_operands;
  Rule rule;
};

// Sorted by name.
constexpr OperatorRow kFlexOperators[] = {
    {"aten.abs.default", "abs", 1, Rule::kPromote},
    {"aten.add.Scalar", "add", 2, Rule::kPromote},
    {"aten.add.Tensor", "add", 2, Rule::kPromote},
    {"aten.bitwise_and.Tensor", "and", 2, Rule::kBool},
    {"aten.bitwise_not.default", "not", 1, Rule::kBool},
    {"aten.bitwise_or.Tensor", "or", 2, Rule::kBool},
    {"aten.div.Scalar", "div", 2, Rule::kFloat},
    {"aten.div.Tensor", "div", 2, Rule::kFloat},
    {"aten.eq.Scalar", "eq", 2, Rule::kBool},
    {"aten.eq.Tensor", "eq", 2, Rule::kBool},
    {"aten.exp.default", "exp", 1, Rule::kFloat},
    {"aten.floor_divide.Scalar", "floor_divide", 2, Rule::kPromote},
    {"aten.floor_divide.default", "floor_divide", 2, Rule::kPromote},
    {"aten.ge.Scalar", "ge", 2, Rule::kBool},
    {"aten.ge.Tensor", "ge", 2, Rule::kBool},
    {"aten.gt.Scalar", "gt", 2, Rule::kBool},
    {"aten.gt.Tensor", "gt", 2, Rule::kBool},
    {"aten.le.Scalar", "le", 2, Rule::kBool},
    {"aten.le.Tensor", "le", 2, Rule::kBool},
    {"aten.log.default", "log", 1, Rule::kFloat},
    {"aten.logical_and.default", "and", 2, Rule::kBool},
    {"aten.logical_not.default", "not", 1, Rule::kBool},
    {"aten.logical_or.default", "or", 2, Rule::kBool},
    {"aten.lt.Scalar", "lt", 2, Rule::kBool},
    {"aten.lt.Tensor", "lt", 2, Rule::kBool},
    {"aten.maximum.default", "maximum", 2, Rule::kPromote},
    {"aten.minimum.default", "minimum", 2, Rule::kPromote},
    {"aten.mul.Scalar", "mul", 2, Rule::kPromote},
    {"aten.mul.Tensor", "mul", 2, Rule::kPromote},
    {"aten.ne.Scalar", "ne", 2, Rule::kBool},
    {"aten.ne.Tensor", "ne", 2, Rule::kBool},
    {"aten.neg.default", "neg", 1, Rule::kPromote},
    {"aten.relu.default", "relu", 1, Rule::kPromote},
    {"aten.remainder.Scalar", "remainder", 2, Rule::kPromote},
    {"aten.remainder.Tensor", "remainder", 2, Rule::kPromote},
    {"aten.rsub.Scalar", "rsub", 2, Rule::kPromote},
    {"aten.sigmoid.default", "sigmoid", 1, Rule::kFloat},
    {"aten.sqrt.default", "sqrt", 1, Rule::kFloat},
    {"aten.sub.Scalar", "sub", 2, Rule::kPromote},
    {"aten.sub.Tensor", "sub", 2, Rule::kPromote},
    {"aten.tanh.default", "tanh", 1, Rule::kFloat},
    {"aten.where.Scalar", "where", 3, Rule::kChoose},
    {"aten.where.ScalarOther", "where", 3, Rule::kChoose},
    {"aten.where.ScalarSelf", "where", 3, Rule::kChoose},
    {"aten.where.self", "where", 3, Rule::kChoose},
};
static_assert(std::ranges::is_sorted(kFlexOperators, {}, &OperatorRow::op));

const OperatorRow* FindRow(std::string_view op) {
  const auto found = std::ranges::lower_bound(kFlexOperators, op, {}, &OperatorRow::op);
  return found != std::end(kFlexOperators) && found->op == op ? found : nullptr;
}

Kind KindOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return Kind::kBool;
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return Kind::kInt;
    default:
      return Kind::kFloat;
  }
}

int Width(Kind kind) {
  return kind == Kind::kFloat ? 2 : kind == Kind::kInt ? 1 : 0;
}

Kind Wider(Kind a, Kind b) {
  return Width(a) >= Width(b) ? a : b;
}

class Maker {
 public:
  Maker(const Graph& body, FlexRole role) : body_(body), module_(body.module()) {
    program_.role = role;
  }

  Result<FlexProgram> Run() {
    STRATA_RETURN_IF_ERROR(AddInputs());
    for (const NodeId node : body_.nodes()) {
      switch (body_.node(node).kind) {
        case NodeKind::kPlaceholder:
          break;
        case NodeKind::kCall:
          STRATA_RETURN_IF_ERROR(AddCall(node));
          break;
        case NodeKind::kOutput:
          STRATA_RETURN_IF_ERROR(SetResult(node));
          break;
        default:
          return Refuse(node, "only operators of ATen can be compiled");
      }
    }
    return std::move(program_);
  }

 private:
  Status AddInputs() {
    const std::vector<NodeId> inputs = body_.placeholders();
    const size_t num_scalars = NumScalars(program_.role);
    if (inputs.size() < num_scalars) {
      return Error("{} takes {} inputs: {}: a {} takes {}, then its buffers", body_.name_text(),
                   inputs.size(), "flex attention", ToString(program_.role), num_scalars);
    }
    const size_t num_before_indices = program_.role == FlexRole::kMask ? 0 : 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i >= num_scalars) {
        buffer_of_[body_.result(inputs[i]).index] = static_cast<int32_t>(program_.num_buffers++);
        continue;
      }
      const bool is_index = i >= num_before_indices && i < num_before_indices + 4;
      Define(inputs[i], {.code = "input",
                         .kind = is_index ? Kind::kInt : Kind::kFloat,
                         .operands = {},
                         .index = static_cast<int32_t>(i),
                         .node = inputs[i]});
    }
    return Ok();
  }

  Status AddCall(NodeId node) {
    const std::string_view op = body_.op(node);
    if (op == "aten.index.Tensor") return AddLoad(node);
    if (op == "aten._to_copy.default") return AddCast(node);
    if (op == "aten.full.default" || op == "aten.scalar_tensor.default") return AddConstant(node);
    const OperatorRow* const row = FindRow(op);
    if (row == nullptr) {
      return Refuse(node,
                    fmt::format("{} is no operator of bodies: docs/attention.md lists them", op));
    }
    const std::span<const Arg> args = body_.args(node);
    if (args.size() != row->num_operands || body_.node(node).num_kwargs > 0) {
      return Refuse(node, fmt::format("{} takes {} arguments here", op, row->num_operands));
    }
    FlexProgram::Op made{
        .code = std::string(row->code), .kind = Kind::kBool, .operands = {}, .node = node};
    for (const Arg& arg : args) {
      STRATA_TRY(const FlexProgram::Operand operand, OperandOf(node, arg));
      made.operands.push_back(operand);
    }
    made.kind = ResultKind(*row, made.operands);
    if (row->rule == Rule::kBool && (made.code == "and" || made.code == "or" || made.code == "not"))
      STRATA_RETURN_IF_ERROR(CheckLogical(node, made));
    Define(node, std::move(made));
    return Ok();
  }

  static Kind ResultKind(const OperatorRow& row,
                         const std::vector<FlexProgram::Operand>& operands) {
    if (row.rule == Rule::kFloat) return Kind::kFloat;
    if (row.rule == Rule::kBool) return Kind::kBool;
    Kind widest = Kind::kBool;
    for (size_t i = row.rule == Rule::kChoose ? 1 : 0; i < operands.size(); ++i)
      widest = Wider(widest, operands[i].kind);
    return widest;
  }

  Status CheckLogical(NodeId node, const FlexProgram::Op& op) const {
    for (const FlexProgram::Operand& operand : op.operands) {
      if (operand.kind != Kind::kBool)
        return Refuse(node, "its operands must be conditions: compare numbers first");
    }
    return Ok();
  }

  Status AddLoad(NodeId node) {
    const std::span<const Arg> args = body_.args(node);
    const auto buffer = args.size() == 2 && args[0].is_value()
                            ? buffer_of_.find(args[0].value().index)
                            : buffer_of_.end();
    if (buffer == buffer_of_.end() || !args[1].is_span())
      return Refuse(node, "only buffers are indexed, with a list of numbers");
    FlexProgram::Op made{.code = "load",
                         .kind = Kind::kFloat,
                         .operands = {},
                         .index = buffer->second,
                         .node = node};
    const TypeId type = body_.value(args[0].value()).type;
    if (type.valid()) made.kind = KindOf(module_.types()[type].dtype);
    for (const Arg& element : body_.elements(args[1])) {
      STRATA_TRY(const FlexProgram::Operand operand, OperandOf(node, element));
      if (operand.kind != Kind::kInt) return Refuse(node, "an index must be a whole number");
      made.operands.push_back(operand);
    }
    Define(node, std::move(made));
    return Ok();
  }

  Status AddCast(NodeId node) {
    const Arg* const dtype = body_.FindKwarg(node, "dtype");
    const std::span<const Arg> args = body_.args(node);
    if (args.size() != 1 || dtype == nullptr || dtype->kind() != ArgKind::kDType)
      return Refuse(node, "a cast names its dtype");
    STRATA_TRY(const FlexProgram::Operand operand, OperandOf(node, args[0]));
    Define(node,
           {.code = "cast", .kind = KindOf(dtype->dtype()), .operands = {operand}, .node = node});
    return Ok();
  }

  /// `full([], 2.0)` and `scalar_tensor(2.0)`.
  Status AddConstant(NodeId node) {
    const std::span<const Arg> args = body_.args(node);
    if (args.empty()) return Refuse(node, "a constant has a number");
    STRATA_TRY(FlexProgram::Operand operand, OperandOf(node, args.back()));
    const Arg* const dtype = body_.FindKwarg(node, "dtype");
    const Kind kind = dtype != nullptr && dtype->kind() == ArgKind::kDType ? KindOf(dtype->dtype())
                                                                           : operand.kind;
    Define(node, {.code = "constant", .kind = kind, .operands = {operand}, .node = node});
    return Ok();
  }

  Result<FlexProgram::Operand> OperandOf(NodeId node, const Arg& arg) const {
    switch (arg.kind()) {
      case ArgKind::kInt:
        return FlexProgram::Operand{.number = static_cast<double>(arg.as_int()),
                                    .kind = Kind::kInt};
      case ArgKind::kFloat:
        return FlexProgram::Operand{.number = arg.as_float(), .kind = Kind::kFloat};
      case ArgKind::kBool:
        return FlexProgram::Operand{.number = arg.as_bool() ? 1.0 : 0.0, .kind = Kind::kBool};
      case ArgKind::kValue: {
        const auto known = op_of_.find(arg.value().index);
        if (known == op_of_.end())
          return Refuse(node, "a buffer is read by aten.index.Tensor only");
        return FlexProgram::Operand{.op = known->second,
                                    .kind = program_.ops[static_cast<size_t>(known->second)].kind};
      }
      default:
        return Refuse(node, "an argument must be a number or a value of the body");
    }
  }

  Status SetResult(NodeId node) {
    Arg result = body_.args(node).empty() ? Arg::None() : body_.args(node)[0];
    if (result.is_span() && result.span_size() > 0) result = body_.elements(result)[0];
    STRATA_TRY(program_.result, OperandOf(node, result));
    if (program_.role == FlexRole::kMask && program_.result.kind != Kind::kBool)
      return Refuse(node, "a mask_mod returns a condition: compare numbers");
    if (program_.role != FlexRole::kMask && program_.result.kind != Kind::kFloat)
      return Refuse(node, "a score_mod returns a score");
    return Ok();
  }

  void Define(NodeId node, FlexProgram::Op op) {
    op_of_[body_.result(node).index] = static_cast<int32_t>(program_.ops.size());
    program_.ops.push_back(std::move(op));
  }

  Error Refuse(NodeId node, std::string_view why) const {
    return Error(ErrorCode::kUnsupported, "{}: {}: {}", body_.name_text(), body_.name(node), why);
  }

  const Graph& body_;
  const Module& module_;
  FlexProgram program_;
  std::map<int32_t, int32_t> op_of_, buffer_of_;  // by value
};

}  // namespace

std::string_view ToString(FlexRole role) {
  switch (role) {
    case FlexRole::kScore:
      return "score_mod";
    case FlexRole::kMask:
      return "mask_mod";
    case FlexRole::kJoint:
      return "joint_graph";
  }
  return "";
}

size_t NumScalars(FlexRole role) {
  switch (role) {
    case FlexRole::kScore:
      return 5;
    case FlexRole::kMask:
      return 4;
    case FlexRole::kJoint:
      return 6;
  }
  return 0;
}

bool FlexProgram::Reads(size_t input) const {
  std::vector<bool> is_read(ops.size(), false);
  if (result.op >= 0) is_read[static_cast<size_t>(result.op)] = true;
  for (size_t i = ops.size(); i-- > 0;) {
    if (!is_read[i]) continue;
    if (ops[i].code == "input" && ops[i].index == static_cast<int32_t>(input)) return true;
    for (const Operand& operand : ops[i].operands)
      if (operand.op >= 0) is_read[static_cast<size_t>(operand.op)] = true;
  }
  return false;
}

Result<FlexProgram> MakeFlexProgram(const Graph& body, FlexRole role) {
  return Maker(body, role).Run();
}

}  // namespace strata
