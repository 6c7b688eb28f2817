#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/fx/operators.h"
#include "ir/fx/parser.h"

namespace strata::fx {

bool Parser::FailAt(size_t offset, std::string_view what) {
  failed_at_ = offset;
  failure_ = what;
  return false;
}

bool Parser::Expect(std::string_view token) {
  if (Eat(token)) return true;
  wants_more_ = AtEnd();
  return Fail(fmt::format("expected '{}'", token));
}

/// Blanks and line ends; values may go over several lines.
void Parser::SkipBlanks() {
  while (at_ < limit_ && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

std::string_view Parser::TakeName() {
  const size_t begin = at_;
  if (!IsNameStart(Peek())) return {};
  size_t end = begin + 1;
  while (end < limit_ && IsNameChar(text_[end]))
    ++end;
  at_ = end;
  return text_.substr(begin, end - begin);
}

void Parser::SkipMembers() {
  while (AtMember()) {
    ++at_;
    TakeName();
  }
}

void Parser::Bind(StrId name, int32_t statement) {
  const auto index = static_cast<size_t>(name.index);
  if (bindings_.size() <= index) bindings_.resize(index + index / 2 + 64);
  bindings_[index] = {scope_number_, statement, false};
}

const Parser::Binding* Parser::BindingOf(StrId name) const {
  const auto index = static_cast<size_t>(name.index);
  if (index >= bindings_.size() || bindings_[index].scope != scope_number_) return nullptr;
  return &bindings_[index];
}

const Parser::Binding* Parser::Find(StrId name) {
  const Binding* const binding = BindingOf(name);
  if (known_lines_ != nullptr)
    lookups_.push_back({name, MeaningOf(binding), binding == nullptr ? 0 : binding->statement});
  return binding;
}

const Arg* Parser::FindList(std::string_view name) {
  const StrId id = module_.strings().Find(name);
  const Binding* binding = id.valid() ? Find(id) : nullptr;
  if (binding == nullptr || binding->statement > kFirstList) return nullptr;
  return &lists_[static_cast<size_t>(kFirstList - binding->statement)];
}

int32_t Parser::AddStatement(Scope& scope, const Statement& statement) {
  const auto index = static_cast<int32_t>(scope.statements.size());
  scope.statements.push_back(statement);
  if (const Binding* earlier = Find(statement.name);
      earlier != nullptr && earlier->statement >= 0) {
    Diagnose(line_begin_, "this name is defined twice");
    scope.statements.back().name = UnusedName(statement.name);
    Bind(scope.statements.back().name, index);
  }
  Bind(statement.name, index);
  bindings_[static_cast<size_t>(statement.name.index)].is_renamed =
      scope.statements.back().name != statement.name;
  return index;
}

StrId Parser::UnusedName(StrId base) {
  for (int suffix = 1;; ++suffix) {
    const StrId name = module_.Intern(fmt::format("{}_{}", module_.str(base), suffix));
    if (Find(name) == nullptr) return name;
  }
}

void Parser::SetArgs(Scope& scope, Statement& statement, std::span<const Arg> args,
                     std::span<const NamedArg> kwargs) {
  statement.args_begin = static_cast<uint32_t>(scope.pool.size());
  statement.num_args = static_cast<uint32_t>(args.size());
  scope.pool.insert(scope.pool.end(), args.begin(), args.end());
  statement.kwargs_begin = static_cast<uint32_t>(scope.kwargs.size());
  statement.num_kwargs = static_cast<uint32_t>(kwargs.size());
  scope.kwargs.insert(scope.kwargs.end(), kwargs.begin(), kwargs.end());
}

bool Parser::ParseStatement(Scope& scope) {
  depth_ = 0;
  stack_.clear();
  lookups_.clear();
  annotation_ = {};
  is_repeatable_ = lists_.empty();
  if (!IsNameStart(Peek())) return Fail("expected a statement");
  const StrId name = module_.Intern(TakeName());

  Statement statement;
  statement.name = name;
  statement.line = line_;
  statement.comment = static_cast<int32_t>(scope.comments.size()) - 1;
  if (Eat(" = ")) return ParseAssignment(scope, statement);
  if (Peek() == ':' || Rest().starts_with(" :")) return ParseAnnotatedName(scope, name);
  if (Peek() == ',') return ParsePrologueNames(scope, name);
  if (Peek() == '[') return ParseSetItem(scope, name);
  if (Rest() == ".clear()") {
    // The last line of a boxed prologue.
    at_ = limit_;
    return true;
  }
  if (Peek() == ' ') return ParseInplace(scope, name);
  return Fail("expected a statement");
}

/// `"f32[2]"` with its quotes.
bool Parser::ParseQuotedType(TypeId* type) {
  if (!Eat("\"")) return Fail("expected a type in quotes");
  const size_t close = text_.find('"', at_);
  if (close == std::string_view::npos || close >= limit_) return Fail("this type does not end");
  annotation_ = text_.substr(at_, close - at_);
  *type = module_.types().Parse(annotation_);
  at_ = close + 1;
  return true;
}

/// A Python type up to one of `stops` (or the end of the line) outside brackets.
bool Parser::ParsePythonType(StrId* type, std::string_view stops) {
  const size_t begin = at_;
  int depth = 0;
  for (; !AtEnd(); ++at_) {
    const char c = Peek();
    if (c == '[' || c == '(') ++depth;
    if (depth == 0 && (stops.find(c) != std::string_view::npos || c == '\n')) break;
    if (c == ']' || c == ')') --depth;
  }
  std::string_view text = text_.substr(begin, at_ - begin);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  at_ = begin + text.size();
  if (text.empty()) return Fail("expected a type");
  *type = module_.Intern(text);
  return true;
}

/// After `name`: a type, then an assignment, or the end of a prologue's line.
bool Parser::ParseAnnotatedName(Scope& scope, StrId name) {
  Statement statement;
  statement.name = name;
  statement.line = line_;
  statement.comment = static_cast<int32_t>(scope.comments.size()) - 1;
  while (true) {
    statement.type = {};
    statement.python_type = {};
    if (Eat(": ")) {
      if (!ParseQuotedType(&statement.type)) return false;
    } else if (Eat(" : ")) {
      if (!ParsePythonType(&statement.python_type, "=;#")) return false;
    } else {
      return Fail("expected ':'");
    }
    if (Eat(" = ")) return ParseAssignment(scope, statement);

    Scope::Announced announced{statement.name, statement.type, {}};
    if (Eat("  # ")) {
      announced.descriptor = module_.Intern(Rest());
      at_ = limit_;
    }
    scope.announced.push_back(announced);
    // The compact prologue announces all on one line: `a: "f32[2]"; b: "f32[2]"; `.
    if (Eat(";")) {
      SkipBlanks();
      if (AtEnd()) return true;
      if (!IsNameStart(Peek())) return Fail("expected a name");
      statement.name = module_.Intern(TakeName());
      continue;
    }
    if (!AtEnd()) return Fail("expected '=' or the end of the line");
    return true;
  }
}

bool Parser::OnlyInputs(const Scope& scope) {
  // Inputs stand before everything else.
  return scope.statements.empty() || scope.statements.back().kind == NodeKind::kPlaceholder;
}

/// Parameters of a prologue's signature are not the graph's inputs.
void Parser::ClearParameters(Scope& scope) {
  for (const Statement& statement : scope.statements)
    bindings_[static_cast<size_t>(statement.name.index)] = {};
  scope.statements.clear();
}

/// `a, b, = fx_pytree.tree_flatten_spec([x], self._in_spec)`: a and b are the inputs.
bool Parser::ParsePrologueNames(Scope& scope, StrId first) {
  std::vector<StrId> names = {first};
  while (Eat(",")) {
    SkipBlanks();
    const std::string_view name = TakeName();
    if (!name.empty()) names.push_back(module_.Intern(name));
  }
  if (!Eat("= ") && !Eat(" = ")) return Fail("expected '='");
  const std::string_view source = Rest();
  if (source.starts_with("pytree.tree_leaves(")) {
    // Export takes its arguments apart first, and shuffles them into inputs on the next line.
    scope.num_tree_leaves = names.size();
    at_ = limit_;
    return true;
  }
  const bool is_prologue = source.starts_with("fx_pytree.tree_flatten_spec(") ||
                           source.starts_with("self._in_shuffle_graph(");
  if (!is_prologue || !OnlyInputs(scope)) return Fail("expected a pytree prologue");
  at_ = limit_;
  if (source.starts_with("fx_pytree.")) {
    scope.flatten = module_.Intern(source);
    std::string arguments;
    for (const Statement& outer : scope.statements) {
      if (!arguments.empty()) arguments += ", ";
      arguments += module_.str(outer.name);
    }
    scope.arguments = module_.Intern(arguments);
  }
  ClearParameters(scope);
  std::unordered_map<StrId, const Scope::Announced*> announced;
  for (const Scope::Announced& input : scope.announced)
    announced.emplace(input.name, &input);
  for (StrId name : names) {
    Statement input;
    input.kind = NodeKind::kPlaceholder;
    input.name = name;
    input.line = line_;
    if (const auto found = announced.find(name); found != announced.end()) {
      input.type = found->second->type;
      input.descriptor = found->second->descriptor;
    }
    AddStatement(scope, input);
  }
  return true;
}

/// `a += b;  iadd = a`
bool Parser::ParseInplace(Scope& scope, StrId base) {
  ++at_;
  const auto* const op = std::ranges::find_if(
      kInplaceOperators, [&](const Operator& o) { return Rest().starts_with(o.symbol); });
  if (op == kInplaceOperators.end()) return Fail("expected a statement");
  at_ += op->symbol.size();
  if (!Expect(" ")) return false;
  const Binding* binding = Find(base);
  if (binding == nullptr || binding->statement < 0) {
    return FailAt(at_, fmt::format("unknown name '{}'", module_.str(base)));
  }
  Arg value;
  const Arg target = Use(binding->statement);
  if (!ParseValue(scope, &value)) return false;
  Statement statement;
  statement.op = module_.Intern(op->op);
  SetArgs(scope, statement, std::array{target, value});
  return ParseInplaceResult(scope, base, statement);
}

/// `a[i] = b;  setitem = a`
bool Parser::ParseSetItem(Scope& scope, StrId base) {
  const Binding* binding = Find(base);
  if (binding == nullptr || binding->statement < 0) {
    return FailAt(at_, fmt::format("unknown name '{}'", module_.str(base)));
  }
  const Arg target = Use(binding->statement);
  Arg index, value;
  ++at_;
  ++depth_;
  if (!ParseValue(scope, &index) || !Expect("]")) return false;
  --depth_;
  if (!Expect(" = ") || !ParseValue(scope, &value)) return false;
  Statement statement;
  statement.op = module_.Intern(kSetItem);
  SetArgs(scope, statement, std::array{target, index, value});
  return ParseInplaceResult(scope, base, statement);
}

bool Parser::ParseInplaceResult(Scope& scope, StrId base, Statement statement) {
  if (!Expect(";")) return false;
  SkipBlanks();
  const std::string_view name = TakeName();
  if (name.empty()) return Fail("expected the name of the result");
  statement.name = module_.Intern(name);
  statement.line = line_;
  statement.comment = static_cast<int32_t>(scope.comments.size()) - 1;
  if (Eat(": ") && !ParseQuotedType(&statement.type)) return false;
  if (Eat(" : ") && !ParsePythonType(&statement.python_type, "=")) return false;
  if (!Expect(" = ")) return false;
  if (TakeName() != module_.str(base)) return Fail("expected the operand of the statement before");
  if (!ParseEnd(scope)) return false;
  AddStatement(scope, statement);
  return true;
}

/// `s0 = x.shape[1]`: what `s0*2` in later arguments means, which their own text says.
bool Parser::ParseSymbolBinding(Scope& scope, StrId name) {
  if (!IsSymbol(module_.str(name)) || Find(name) != nullptr) return false;
  const size_t begin = at_;
  const StrId source = module_.strings().Find(TakeName());
  const bool is_value = source.valid() && Find(source) != nullptr;
  if (is_value && Eat(".shape[") && IsDigit(Peek())) {
    while (IsDigit(Peek()))
      ++at_;
    if (Eat("]") && AtEnd()) {
      scope.binds_symbols = true;
      return true;
    }
  }
  at_ = begin;
  return false;
}

/// The right side and what follows; `name` and its type have been read.
bool Parser::ParseAssignment(Scope& scope, Statement statement) {
  const std::string_view rest = Rest();
  // Boxed prologue: `args_iter = iter(args_list)`, then `x = next(args_iter)` for each input.
  if (rest.starts_with("iter(") || rest.starts_with("next(")) is_repeatable_ = false;
  if (rest.ends_with(')') && OnlyInputs(scope)) {
    if (rest.starts_with("iter(")) {
      at_ = limit_;
      ClearParameters(scope);
      scope.is_boxed = true;
      return true;
    }
    if (rest.starts_with("next(")) {
      at_ = limit_;
      statement.kind = NodeKind::kPlaceholder;
      AddStatement(scope, statement);
      return true;
    }
  }
  if (ParseSymbolBinding(scope, statement.name)) return true;
  if (!ParseRightSide(scope, statement)) return false;
  if (!statement.op.valid()) return ParseEnd(scope);  // an alias, or a name for a list
  if (!ParseEnd(scope)) return false;
  AddStatement(scope, statement);
  return true;
}

/// Nothing more, or `;  a = b = None`. What is freed follows from the uses, see CheckFrees.
bool Parser::ParseEnd(Scope& scope) {
  if (AtEnd()) return true;
  if (!Eat(";")) return Fail("expected the end of the statement");
  SkipBlanks();
  if (AtEnd()) return true;
  while (true) {
    const size_t begin = at_;
    const std::string_view name = TakeName();
    if (name.empty()) return Fail("expected a name that is freed");
    if (name == "None" && AtEnd()) return true;
    scope.frees.push_back(
        {module_.Intern(name), static_cast<int32_t>(scope.statements.size()), begin});
    if (!Eat(" = ")) return Fail("expected ' = None'");
  }
}

}  // namespace strata::fx
