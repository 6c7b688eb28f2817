#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "ir/fx/operators.h"
#include "ir/fx/parser.h"

namespace strata::fx {
namespace {

/// Functions of torch/utils/_sympy/functions.py: a size, not a call, stands in the arguments.
bool IsSizeFunction(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {
      "Max",     "Min",          "Mod",     "FloorDiv",   "PythonMod",    "CleanDiv",
      "CeilDiv", "PowByNatural", "ToFloat", "TruncToInt", "FloatTrueDiv", "IntTrueDiv"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// Whether nothing of a value can follow a name before `c`.
bool EndsName(char c) {
  switch (c) {
    case '\0':
    case ',':
    case ';':
    case ')':
    case ']':
    case '}':
    case ':':
    case '\n':
    case ' ':
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Parser::ParseValue(Scope& scope, Arg* value) {
  if (AtEnd()) {
    wants_more_ = true;
    return Fail("expected a value");
  }
  const char c = Peek();
  if (c == '[' || c == '(' || c == '{') {
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    bool ok = false;
    if (c == '[') {
      ++at_;
      ok = ParseContainer(scope, ']', ArgKind::kList, value);
    } else {
      ok = c == '(' ? ParseParenthesized(scope, value) : ParseDict(scope, value);
    }
    --depth_;
    return ok;
  }
  if (c == '\'' || c == '"') return ParseString(value);
  if ((c == 'b' || c == 'r' || c == 'u') && (Peek(1) == '\'' || Peek(1) == '"')) {
    return ParseRaw(value, /*only_size=*/false);
  }
  if (IsDigit(c) || c == '-') return ParseNumber(value);
  if (IsNameStart(c)) return ParseNamedValue(scope, value);
  if (c == '<') return ParseRaw(value, /*only_size=*/false);
  return Fail("expected a value");
}

Arg Parser::MakeSpan(Scope& scope, ArgKind kind, size_t stack_begin) {
  const auto begin = static_cast<uint32_t>(scope.pool.size());
  const auto size = static_cast<uint32_t>(stack_.size() - stack_begin);
  scope.pool.insert(scope.pool.end(), stack_.begin() + static_cast<std::ptrdiff_t>(stack_begin),
                    stack_.end());
  stack_.resize(stack_begin);
  return Arg::Span(kind, begin, size);
}

/// Elements up to `close`, which is consumed. The opening bracket has been read.
bool Parser::ParseContainer(Scope& scope, char close, ArgKind kind, Arg* value) {
  const size_t begin = stack_.size();
  SkipBlanks();
  while (Peek() != close) {
    Arg element;
    if (!ParseValue(scope, &element)) {
      stack_.resize(begin);
      return false;
    }
    stack_.push_back(element);
    SkipBlanks();
    if (Eat(",")) {
      SkipBlanks();
    } else if (Peek() != close) {
      stack_.resize(begin);
      wants_more_ = AtEnd();
      return Fail(close == ']' ? "expected ',' or ']'" : "expected ',' or ')'");
    }
  }
  ++at_;
  *value = MakeSpan(scope, kind, begin);
  return true;
}

/// A tuple, or a size in parentheses (`((s0 + 1)//2)`), or a complex number (`(2+3j)`).
bool Parser::ParseParenthesized(Scope& scope, Arg* value) {
  const size_t open = at_;
  const size_t stack_begin = stack_.size();
  const size_t pool_begin = scope.pool.size();
  ++at_;
  if (ParseContainer(scope, ')', ArgKind::kTuple, value)) {
    // Only a comma makes a tuple of one.
    const bool has_comma =
        value->span_size() != 1 || text_[text_.find_last_not_of(" \n", at_ - 2)] == ',';
    const bool ends = AtEnd() ||
                      std::string_view(",;)]}: ").find(Peek()) != std::string_view::npos ||
                      (Peek() == '[' && depth_ == 1);
    if (has_comma && ends) return true;
    failed_at_ = at_ - 1;
    failure_ = "expected ','";
  } else if (wants_more_) {
    return false;
  }
  const size_t failed_at = failed_at_;
  const std::string failure = failure_;
  stack_.resize(stack_begin);
  scope.pool.resize(pool_begin);
  at_ = open;
  if (ParseRaw(value, /*only_size=*/true)) return true;
  // Python writes a complex number in parentheses, and nothing else.
  at_ = open;
  const std::string_view text = text_.substr(open, EndOfValue(open).value_or(open) - open);
  if (text.ends_with("j)") && std::ranges::all_of(text.substr(1, text.size() - 2), [](char c) {
        return IsDigit(c) || c == '.' || c == '+' || c == '-' || c == 'e' || c == 'j' || c == 'i' ||
               c == 'n' || c == 'f' || c == 'a';
      })) {
    at_ += text.size();
    *value = Arg::Raw(module_.Intern(text));
    return true;
  }
  failed_at_ = failed_at;
  failure_ = failure;
  return false;
}

bool Parser::ParseDict(Scope& scope, Arg* value) {
  const size_t begin = stack_.size();
  const auto fail = [&](std::string_view what) {
    stack_.resize(begin);
    wants_more_ = wants_more_ || AtEnd();
    return Fail(what);
  };
  ++at_;
  SkipBlanks();
  while (Peek() != '}') {
    Arg key, item;
    if (!ParseValue(scope, &key)) {
      stack_.resize(begin);
      return false;
    }
    SkipBlanks();
    if (!Eat(":")) return fail("expected ':'");
    SkipBlanks();
    if (!ParseValue(scope, &item)) {
      stack_.resize(begin);
      return false;
    }
    stack_.push_back(key);
    stack_.push_back(item);
    SkipBlanks();
    if (Eat(",")) {
      SkipBlanks();
    } else if (Peek() != '}') {
      return fail("expected ',' or '}'");
    }
  }
  ++at_;
  *value = MakeSpan(scope, ArgKind::kDict, begin);
  return true;
}

bool Parser::ParseNamedValue(Scope& scope, Arg* value) {
  const size_t begin = at_;
  const std::string_view first = TakeName();
  const char next = Peek();
  if (next != '.' && next != '(') {
    if (first == "None") return *value = Arg::None(), true;
    if (first == "True") return *value = Arg::Bool(true), true;
    if (first == "False") return *value = Arg::Bool(false), true;
    if (first == "inf") return *value = Arg::Float(INFINITY), true;
    if (first == "nan") return *value = Arg::Float(NAN), true;
    if (first == "Ellipsis") return *value = Arg::Raw(module_.Intern(first)), true;

    const Binding* binding = Find(module_.Intern(first));
    // Inside brackets `s77 + 3` is one size, though s77 may be a node too.
    const bool is_sum = depth_ > 0 && next == ' ' && (Peek(1) == '+' || Peek(1) == '-');
    if (binding != nullptr && EndsName(next) && !is_sum) {
      if (binding->statement <= kFirstList) return FailAt(begin, "a list cannot stand here");
      if (binding->statement == kSkipped) return *value = Arg::Raw(module_.Intern(first)), true;
      *value = Use(binding->statement);
      return true;
    }
    if (IsSymbol(first)) {
      at_ = begin;
      return ParseRaw(value, /*only_size=*/true);
    }
    at_ = begin;
    return Fail(binding != nullptr ? "expected ',' after this name" : "unknown name");
  }
  SkipMembers();
  const std::string_view name = text_.substr(begin, at_ - begin);
  if (Peek() == '(') return ParseCallValue(scope, name, value);
  if (Find(module_.Intern(first)) != nullptr) {
    at_ = begin;
    return Fail("an attribute of a node cannot stand here");
  }
  const std::optional<DType> dtype = DTypeFromTorchName(name);
  *value = dtype ? Arg::DType(*dtype) : Arg::Raw(module_.Intern(name));
  return true;
}

/// `name` has been read, '(' is next.
bool Parser::ParseCallValue(Scope& scope, std::string_view name, Arg* value) {
  const size_t begin = at_ - name.size();
  if (name == "device") {
    if (ParseDevice(value)) return true;
    at_ = begin;
    return ParseRaw(value, /*only_size=*/false);
  }
  if (IsSizeFunction(name)) {
    at_ = begin;
    return ParseRaw(value, /*only_size=*/true);
  }
  if (++depth_ > kMaxDepth) return Fail("nested too deeply");
  const size_t stack_begin = stack_.size();
  const size_t pool_begin = scope.pool.size();
  const uint64_t uses_before = num_uses_;
  stack_.push_back(Arg::String(module_.Intern(name)));
  const bool is_python = PushCallArguments(scope);
  --depth_;
  const bool has_operands = num_uses_ != uses_before;
  // A call is taken apart when it holds operands; slices always. Other literals stay as they are.
  if (is_python && (name == "slice" || has_operands)) {
    *value = MakeSpan(scope, ArgKind::kCall, stack_begin);
    return true;
  }
  stack_.resize(stack_begin);
  if (!is_python && (wants_more_ || has_operands)) return false;
  scope.pool.resize(pool_begin);
  if (is_python) {
    *value = Arg::Raw(module_.Intern(text_.substr(begin, at_ - begin)));
    return true;
  }
  // The repr of a foreign object need not be Python: `Mesh(<objects at 0x…>)`.
  at_ = begin;
  return ParseRaw(value, /*only_size=*/false);
}

/// `(a, key=b)`, pushed onto the stack.
bool Parser::PushCallArguments(Scope& scope) {
  ++at_;
  SkipBlanks();
  while (Peek() != ')') {
    Arg element;
    if (!ParseCallArgument(scope, &element)) return false;
    stack_.push_back(element);
    SkipBlanks();
    if (Eat(",")) {
      SkipBlanks();
    } else if (Peek() != ')') {
      wants_more_ = AtEnd();
      return Fail("expected ',' or ')'");
    }
  }
  ++at_;
  return true;
}

/// A value or `key=value`, which becomes a call named `key=`.
bool Parser::ParseCallArgument(Scope& scope, Arg* value) {
  const size_t begin = at_;
  const std::string_view key = IsNameStart(Peek()) ? TakeName() : std::string_view{};
  if (key.empty() || Peek() != '=' || Peek(1) == '=') {
    at_ = begin;
    return ParseValue(scope, value);
  }
  ++at_;
  if (!ParseValue(scope, value)) return false;
  const size_t stack_begin = stack_.size();
  stack_.push_back(Arg::String(module_.Intern(std::string(key) + "=")));
  stack_.push_back(*value);
  *value = MakeSpan(scope, ArgKind::kCall, stack_begin);
  return true;
}

/// A value, or a list by its name: nested, a few lines of those could make a huge graph.
bool Parser::ParseArgument(Scope& scope, Arg* value) {
  if (lists_.empty()) return ParseValue(scope, value);
  const size_t begin = at_;
  const std::string_view name = IsNameStart(Peek()) ? TakeName() : std::string_view{};
  const Arg* list = name.empty() ? nullptr : FindList(name);
  if (list != nullptr && (Peek() == ',' || Peek() == ')')) {
    *value = *list;
    return true;
  }
  at_ = begin;
  return ParseValue(scope, value);
}

/// Arguments of a call up to ')', which is consumed.
bool Parser::ParseArguments(Scope& scope) {
  ++depth_;
  SkipBlanks();
  while (Peek() != ')') {
    const size_t begin = at_;
    const std::string_view key = IsNameStart(Peek()) ? TakeName() : std::string_view{};
    bool is_keyword = false;
    if (!key.empty()) {
      is_keyword = Eat(" = ") || (Peek() == '=' && Peek(1) != '=' && Eat("="));
    }
    if (!is_keyword) at_ = begin;
    Arg value;
    if (!ParseArgument(scope, &value)) return false;
    if (is_keyword) {
      call_kwargs_.push_back({module_.Intern(key), value});
    } else if (!call_kwargs_.empty()) {
      at_ = begin;
      return Fail("a positional argument after keywords");
    } else {
      call_args_.push_back(value);
    }
    SkipBlanks();
    if (Eat(",")) {
      SkipBlanks();
    } else if (Peek() != ')') {
      wants_more_ = AtEnd();
      return Fail("expected ',' or ')'");
    }
  }
  ++at_;
  --depth_;
  return true;
}

}  // namespace strata::fx
