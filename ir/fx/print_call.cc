#include "ir/fx/print_call.h"

#include <algorithm>

#include "ir/fx/operators.h"
#include "ir/module.h"

namespace strata::fx {

void CallPrinter::PrintCallOf(std::string_view function, std::span<const Arg> args, NodeId id) {
  out_ += function;
  out_ += '(';
  values_.PrintList(args);
  for (size_t i = 0; i < graph_.node(id).num_kwargs; ++i) {
    if (i > 0 || !args.empty()) out_ += ", ";
    const NamedArg kwarg = graph_.kwarg(id, i);
    out_ += module_.str(kwarg.name);
    out_ += " = ";
    values_.Print(kwarg.value);
  }
  out_ += ')';
}

bool CallPrinter::PrintOperation(NodeId id) {
  const std::string_view op = graph_.op(id);
  const std::span<const Arg> args = graph_.args(id);
  if (graph_.node(id).num_kwargs > 0) return false;
  if (op == kGetAttr && args.size() == 2 && args[1].kind() == ArgKind::kString &&
      IsIdentifier(module_.str(args[1].str()))) {
    values_.Print(args[0]);
    out_ += '.';
    out_ += module_.str(args[1].str());
    return true;
  }
  if (!op.starts_with("_operator.")) return false;
  if (op == kGetItem && args.size() == 2) {
    values_.Print(args[0]);
    out_ += '[';
    values_.Print(args[1]);
    out_ += ']';
    return true;
  }
  if (args.size() == 1) {
    for (const Operator& prefix : kPrefixOperators) {
      if (prefix.op != op) continue;
      out_ += prefix.symbol;
      values_.Print(args[0]);
      return true;
    }
  }
  if (args.size() == 2) {
    for (const Operator& binary : kBinaryOperators) {
      if (binary.op != op) continue;
      values_.Print(args[0]);
      out_ += ' ';
      out_ += binary.symbol;
      out_ += ' ';
      values_.Print(args[1]);
      return true;
    }
  }
  return false;
}

bool CallPrinter::PrintInplace(NodeId id) {
  const std::string_view op = graph_.op(id);
  const std::span<const Arg> args = graph_.args(id);
  if (graph_.node(id).kind != NodeKind::kCall || !op.starts_with("_operator.") ||
      graph_.node(id).num_kwargs > 0) {
    return false;
  }
  if (op == kSetItem && args.size() == 3) {
    values_.Print(args[0]);
    out_ += '[';
    values_.Print(args[1]);
    out_ += "] = ";
    values_.Print(args[2]);
    out_ += ";  ";
    return true;
  }
  const auto* const found = std::ranges::find(kInplaceOperators, op, &Operator::op);
  if (found == kInplaceOperators.end() || args.size() != 2) return false;
  values_.Print(args[0]);
  out_ += ' ';
  out_ += found->symbol;
  out_ += ' ';
  values_.Print(args[1]);
  out_ += ";  ";
  return true;
}

void CallPrinter::PrintRightSide(NodeId id) {
  const Node& node = graph_.node(id);
  const std::string_view op = graph_.op(id);
  std::span<const Arg> args = graph_.args(id);
  if (!args.empty() && args[0].kind() == ArgKind::kGraph) {
    if (node.kind != NodeKind::kCall) args = args.subspan(1);
  }
  if (node.kind == NodeKind::kGetAttr) {
    out_ += TargetOf("self", op);
  } else if (node.kind == NodeKind::kCallModule) {
    PrintCallOf(TargetOf("self", op), args, id);
  } else if (node.kind == NodeKind::kCallMethod && !args.empty()) {
    const size_t begin = out_.size();
    values_.Print(args[0]);
    const std::string receiver = out_.substr(begin);
    out_.resize(begin);
    PrintCallOf(TargetOf(receiver, op), args.subspan(1), id);
  } else if (!PrintOperation(id)) {
    const bool is_torch_op = op.find('.') != std::string_view::npos && !op.starts_with("torch.");
    if (is_torch_op) out_ += "torch.ops.";
    PrintCallOf(op, args, id);
  }
}

}  // namespace strata::fx
