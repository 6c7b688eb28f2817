#include <algorithm>
#include <array>

#include "ir/fx/parser.h"

namespace strata::fx {
namespace {

constexpr std::string_view kUnflatten = "pytree.tree_unflatten(";
constexpr std::string_view kOutSpec = ", self._out_spec)";
constexpr std::string_view kOutShuffle = "self._out_shuffle_graph(";

}  // namespace

/// The outputs one per line, each with a comma and perhaps a descriptor, after the bracket that
/// opens the list.
bool Parser::ParseReturnLines(Scope& scope, Arg* value) {
  const char close = Peek() == '(' ? ')' : ']';
  std::string descriptors;
  bool has_descriptors = false;
  size_t line = limit_;
  while (true) {
    if (line >= text_.size()) return Fail("this return does not end");
    line = line + (text_[line] == '\n' ? 1 : text_.substr(line).find('\n') + 1);
    at_ = line + Indent(line);
    limit_ = LineEnd(at_);
    line = limit_;
    while (limit_ > at_ && (text_[limit_ - 1] == ' ' || text_[limit_ - 1] == '\r'))
      --limit_;
    if (Peek() == close) break;
    Arg element;
    if (!ParseValue(scope, &element) || !Expect(",")) return false;
    stack_.push_back(element);
    if (stack_.size() > 1) descriptors += '\n';
    if (Eat("  # ")) {
      descriptors += Rest();
      has_descriptors = true;
      at_ = limit_;
    }
    if (!AtEnd()) return Fail("expected the end of the line");
  }
  ++at_;
  *value = MakeSpan(scope, close == ')' ? ArgKind::kTuple : ArgKind::kList, 0);
  if (has_descriptors) scope.descriptors = module_.Intern(descriptors);
  return true;
}

/// `return VALUE`, or one element per line with what it is behind it.
bool Parser::ParseReturn(Scope& scope) {
  depth_ = 0;
  stack_.clear();
  at_ += std::string_view("return").size();
  Eat(" ");
  const bool is_pytree = Eat(kUnflatten);
  Arg value;
  size_t passed = 0;  // elements that the shuffle graph is given besides the outputs
  const std::string_view rest = Rest();
  if (rest == "(" || rest == "[") {
    if (!ParseReturnLines(scope, &value)) return false;
  } else if (is_pytree && Eat(kOutShuffle)) {
    if (!ParseContainer(scope, ')', ArgKind::kList, &value)) return false;
    passed = std::min<size_t>(scope.num_tree_leaves, value.span_size());
    value = Arg::Span(ArgKind::kList, value.span_begin() + static_cast<uint32_t>(passed),
                      value.span_size() - static_cast<uint32_t>(passed));
  } else if (!AtEnd()) {
    ++depth_;
    if (!ParseValue(scope, &value)) return false;
    --depth_;
  }
  if (is_pytree) {
    if (!Expect(kOutSpec)) return false;
    scope.return_form = module_.Intern("pytree");
  }
  if (!AtEnd()) return Fail("expected the end of the line");

  Statement output;
  output.kind = NodeKind::kOutput;
  output.line = line_;
  SetArgs(scope, output, std::array{value});
  scope.statements.push_back(output);
  scope.has_return = true;
  return true;
}

}  // namespace strata::fx
