#include <algorithm>
#include <array>

#include "ir/fx/operators.h"
#include "ir/fx/parser.h"

namespace strata::fx {

/// Leaves `statement.op` unset when the statement makes no node.
bool Parser::ParseRightSide(Scope& scope, Statement& statement) {
  if (const Operator* op = PrefixOperator()) return ParsePrefix(scope, statement, *op);
  if (!IsNameStart(Peek())) return ParseLiteralSide(scope, statement);
  const size_t begin = at_;
  const std::string_view first = TakeName();
  const Binding* binding = Find(module_.Intern(first));
  const bool is_attribute =
      first == "self" ||
      (first == "getattr" && (Rest().starts_with("(self") || Rest().starts_with("(getattr(")));
  if (binding == nullptr && is_attribute) return ParseAttribute(scope, statement, begin);
  if (binding == nullptr || binding->statement == kSkipped) {
    return ParseTarget(scope, statement, begin);
  }
  if (binding->statement <= kFirstList) return Fail("a list cannot stand here");
  if (AtOperationEnd()) return RenameInput(scope, statement, binding->statement, begin);
  if (AtMember()) return ParseMember(scope, statement, binding->statement);
  return ParseOperation(scope, statement, Use(binding->statement));
}

/// The operator of one operand that begins here, or null: `-1.0` and `-inf` are literals.
const Operator* Parser::PrefixOperator() const {
  const auto* const op =
      std::ranges::find(kPrefixOperators, Rest().substr(0, 1), &Operator::symbol);
  if (op == kPrefixOperators.end()) return nullptr;
  const bool is_infinity = Rest().substr(1).starts_with("inf") && !IsNameChar(Peek(4));
  if (op->symbol == "-" && (!IsNameStart(Peek(1)) || is_infinity)) return nullptr;
  return op;
}

/// `-a`
bool Parser::ParsePrefix(Scope& scope, Statement& statement, const Operator& op) {
  ++at_;
  Arg operand;
  if (!ParseValue(scope, &operand)) return false;
  statement.op = module_.Intern(op.op);
  SetArgs(scope, statement, std::array{operand});
  return true;
}

/// A right side that begins with a literal: `2 * a`, `-1`, `[a, b]`.
bool Parser::ParseLiteralSide(Scope& scope, Statement& statement) {
  const size_t begin = at_;
  Arg left;
  if (!ParseValue(scope, &left)) return false;
  if (!AtOperationEnd()) return ParseOperation(scope, statement, left);
  if (text_[begin] == '-') {
    // A literal alone is not an operation, so its sign is.
    at_ = begin;
    return ParsePrefix(scope, statement, kPrefixOperators[0]);
  }
  if (!left.is_span()) return ParseOperation(scope, statement, left);
  // `n_boxed_arg_0 = [a, b]`: no node, the name stands for the list.
  if (!ParseEnd(scope)) return false;
  lists_.push_back(left);
  Bind(statement.name, kFirstList - static_cast<int32_t>(lists_.size()) + 1);
  return true;
}

/// `self.weight`, or the call of a submodule, `self.layer(a)`.
bool Parser::ParseAttribute(Scope& scope, Statement& statement, size_t begin) {
  at_ = begin;
  std::string path;
  if (!ParseSelfPath(path)) return false;
  if (path.empty()) return FailAt(begin, "expected an attribute of self");
  statement.op = module_.Intern(path);
  const bool is_call = Peek() == '(';
  statement.kind = is_call ? NodeKind::kCallModule : NodeKind::kGetAttr;
  return !is_call || ParseCall(scope, statement);
}

/// `torch.ops.aten.mm.default(a, b)`; or a value without a name and an operator,
/// `slice(None) == a`.
bool Parser::ParseTarget(Scope& scope, Statement& statement, size_t begin) {
  SkipMembers();
  const std::string_view name = text_.substr(begin, at_ - begin);
  if (Peek() == '(') {
    constexpr std::string_view kOps = "torch.ops.";
    const bool is_op =
        name.starts_with(kOps) && name.find('.', kOps.size()) != std::string_view::npos;
    statement.op = module_.Intern(is_op ? name.substr(kOps.size()) : name);
    if (ParseCall(scope, statement) && AtOperationEnd()) return true;
    if (wants_more_ || AtEnd() || Peek() != ' ') return false;
  }
  at_ = begin;
  Arg left;
  if (!ParseValue(scope, &left)) return false;
  return ParseOperation(scope, statement, left);
}

/// `l_x_ = L_x_`: the input `source` gets the name that the body uses.
bool Parser::RenameInput(Scope& scope, const Statement& statement, int32_t source, size_t begin) {
  Statement& input = scope.statements[static_cast<size_t>(source)];
  if (input.kind != NodeKind::kPlaceholder) return FailAt(begin, "expected an operation");
  const Binding* taken = Find(statement.name);
  if (taken != nullptr && taken->statement >= 0) {
    return FailAt(begin, "this name is defined already");
  }
  if (!ParseEnd(scope)) return false;
  if (!input.argument.valid()) input.argument = input.name;
  bindings_[static_cast<size_t>(input.name.index)].is_renamed = true;
  if (known_lines_ != nullptr && !OnlyInputs(scope)) known_lines_->ForgetPlaces();
  input.name = statement.name;
  Bind(statement.name, source);
  return true;
}

/// `a.shape`, or the call of a method, `a.view(2, 3)`; `a` has been read.
bool Parser::ParseMember(Scope& scope, Statement& statement, int32_t source) {
  const size_t begin = at_ + 1;
  SkipMembers();
  const StrId path = module_.Intern(text_.substr(begin, at_ - begin));
  stack_.push_back(Use(source));
  if (Peek() == '(') {
    statement.kind = NodeKind::kCallMethod;
    statement.op = path;
    return ParseCall(scope, statement);
  }
  statement.op = module_.Intern(kGetAttr);
  SetArgs(scope, statement, std::array{stack_.back(), Arg::String(path)});
  return true;
}

/// `[index]` or an operator and its right operand.
bool Parser::ParseOperation(Scope& scope, Statement& statement, Arg left) {
  Arg right;
  if (Eat("[")) {
    ++depth_;
    if (!ParseValue(scope, &right) || !Expect("]")) return false;
    --depth_;
    statement.op = module_.Intern(kGetItem);
    SetArgs(scope, statement, std::array{left, right});
    return true;
  }
  if (!Expect(" ")) return false;
  const auto* const op = std::ranges::find_if(
      kBinaryOperators, [&](const Operator& o) { return Rest().starts_with(o.symbol); });
  if (op == kBinaryOperators.end()) return Fail("expected an operator");
  at_ += op->symbol.size();
  if (!Expect(" ") || !ParseValue(scope, &right)) return false;
  statement.op = module_.Intern(op->op);
  SetArgs(scope, statement, std::array{left, right});
  return true;
}

/// `self.a.b` or `getattr(self.a, "0").b`, as the path `a.0.b`.
bool Parser::ParseSelfPath(std::string& path) {
  if (Eat("getattr(")) {
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    if (!ParseSelfPath(path) || !Expect(", \"")) return false;
    --depth_;
    const size_t close = text_.find("\")", at_);
    if (close == std::string_view::npos || close >= limit_) return Fail("expected '\")'");
    if (!path.empty()) path += '.';
    path += text_.substr(at_, close - at_);
    at_ = close + 2;
  } else if (!Eat("self")) {
    return Fail("expected 'self'");
  }
  while (AtMember()) {
    ++at_;
    if (!path.empty()) path += '.';
    path += TakeName();
  }
  return true;
}

/// `(arguments)`; what is on the stack already stands before them.
bool Parser::ParseCall(Scope& scope, Statement& statement) {
  ++at_;
  call_args_.assign(stack_.begin(), stack_.end());
  call_kwargs_.clear();
  stack_.clear();
  if (!ParseArguments(scope)) return false;
  SetArgs(scope, statement, call_args_, call_kwargs_);
  return true;
}

}  // namespace strata::fx
