#include <algorithm>
#include <array>

#include "ir/fx/parser.h"

namespace strata::fx {

bool Parser::ParseSignature(Scope& scope) {
  if (!Eat(kDef)) return Fail("expected 'def forward('");
  if (TakeName().empty()) return Fail("expected the name of the method");
  if (!Expect("(")) return false;
  scope.is_expanded = Peek() == '\n' || Peek() == '\r';
  SkipBlanks();
  if (Eat("self")) {
    Eat(",");
    SkipBlanks();
  }
  while (!Eat(")")) {
    if (!ParseParameter(scope)) return false;
    const bool has_comma = Eat(",");
    if (Eat("  # ")) {
      const size_t end = LineEnd(at_);
      scope.statements.back().descriptor = module_.Intern(Trim(text_.substr(at_, end - at_)));
      at_ = end;
    }
    SkipBlanks();
    if (!has_comma && Peek() != ')') return Fail("expected ',' or ')'");
  }
  if (Eat(" -> ")) {
    // The colon that ends the line is not the type's.
    const size_t begin = at_;
    const std::string_view rest = Trim(text_.substr(at_, LineEnd(at_) - at_));
    if (!rest.ends_with(':')) return Fail("expected ':' at the end of the line");
    scope.return_type = module_.Intern(rest.substr(0, rest.size() - 1));
    at_ = begin + rest.size() - 1;
  }
  return Expect(":");
}

/// `*name: "type" = default`
bool Parser::ParseParameter(Scope& scope) {
  const size_t begin = at_;
  while (Eat("*")) {
  }
  if (!IsNameStart(Peek())) return Fail("expected a parameter");
  Statement input;
  input.kind = NodeKind::kPlaceholder;
  if (counted_to_ < line_begin_ || counted_to_ > at_) {
    counted_to_ = line_begin_;
    counted_line_ = line_;
  }
  counted_line_ +=
      static_cast<int32_t>(std::ranges::count(text_.substr(counted_to_, at_ - counted_to_), '\n'));
  counted_to_ = at_;
  input.line = counted_line_;
  const size_t name_at = at_;
  input.name = module_.Intern(TakeName());
  if (name_at != begin) input.argument = module_.Intern(text_.substr(begin, at_ - begin));
  if (Eat(": ")) {
    if (!ParseQuotedType(&input.type)) return false;
  } else if (Eat(" : ")) {
    if (!ParsePythonType(&input.python_type, ",=)")) return false;
  }
  if (Eat(" = ")) {
    Arg value;
    ++depth_;
    if (!ParseValue(scope, &value)) return false;
    --depth_;
    SetArgs(scope, input, std::array{value});
  }
  AddStatement(scope, input);
  return true;
}

}  // namespace strata::fx
