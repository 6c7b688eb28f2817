#include "ir/text/native_operands.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ir/text/native_words.h"

namespace strata {
namespace {

/// A hostile text must not exhaust the stack.
constexpr int kMaxDepth = 200;

}  // namespace

Result<TypeId> NativeOperands::ParseType() {
  SkipBlanks();
  if (Take('?')) return TypeId{};
  if (TakeCall("opaque")) {
    STRATA_TRY(const std::string_view text, Quoted());
    STRATA_RETURN_IF_ERROR(Expect(')'));
    Type type;
    type.kind = TypeKind::kOpaque;
    type.text = module_->Intern(text);
    return module_->types().Intern(type);
  }
  const size_t begin = at_;
  const size_t end = TypeTextEnd(text_, at_);
  if (end == begin) return Fail("expected a type");
  TypeId id = module_->types().Parse(text_.substr(begin, end - begin));
  if (module_->types()[id].kind == TypeKind::kOpaque) {
    return Fail(
        "not a type; expected something like f32[4, 8][8, 1]cpu, Sym(s0), ? or opaque('…')");
  }
  at_ = end;
  if (module_->types()[id].kind != TypeKind::kTensor) return id;
  Type type = module_->types()[id];
  if (Peek() == '@' && Peek(1) == '(') {
    ++at_;
    const size_t close = ClosingParenthesis(at_);
    if (close == std::string_view::npos) return Fail("expected '@(offset)'");
    STRATA_TRY(type.dim, ParseDim(at_ + 1, close));
    at_ = close + 1;
  }
  if (text_.substr(at_).starts_with("+grad")) {
    at_ += 5;
    type.requires_grad = true;
  }
  return module_->types().Intern(type);
}

size_t NativeOperands::ClosingParenthesis(size_t open) const {
  int depth = 0;
  for (size_t i = open; i < text_.size() && text_[i] != '\n'; ++i) {
    if (text_[i] == '(') ++depth;
    if (text_[i] == ')' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

Result<DimId> NativeOperands::ParseDim(size_t begin, size_t end) {
  Result<DimId> dim = module_->dims().Parse(text_.substr(begin, end - begin));
  if (!dim) return FailAt(begin, dim.error().message());
  return dim;
}

Result<ValueId> NativeOperands::ParseAlias() {
  if (TakeWord("_")) return ValueId{};
  return ParseValue();
}

NativeOperands::Named& NativeOperands::Meaning(StrId name) {
  if (static_cast<size_t>(name.index) >= names_.size()) names_.resize(module_->strings().size());
  Named& named = names_[name];
  if (named.graph != rewriter_->graph().id()) named = {};
  return named;
}

Result<ValueId> NativeOperands::ParseValue() {
  SkipBlanks();
  const size_t begin = at_;
  STRATA_TRY(const std::string_view name, Name());
  const Named& named = Meaning(module_->Intern(name));
  if (Peek() == '$') {
    ++at_;
    STRATA_TRY(const int64_t element, Integer(0, UINT16_MAX));
    if (!named.tuple.valid()) return FailAt(begin, fmt::format("no tuple '{}' above", name));
    const Graph& graph = rewriter_->graph();
    if (element >= graph.node(named.tuple).num_results) {
      return FailAt(begin,
                    fmt::format("'{}' has {} elements", name, graph.node(named.tuple).num_results));
    }
    return graph.result(named.tuple, static_cast<size_t>(element));
  }
  if (!named.value.valid()) return FailAt(begin, fmt::format("no value '{}' above", name));
  return named.value;
}

Status NativeOperands::ParseArguments(std::vector<Arg>& args, std::vector<NamedArg>& kwargs) {
  STRATA_RETURN_IF_ERROR(Expect('('));
  while (!Take(')')) {
    if (const std::optional<std::string_view> key = TakeKeyword()) {
      STRATA_TRY(const Arg value, ParseArg(0));
      kwargs.push_back({module_->Intern(*key), value});
    } else if (!kwargs.empty()) {
      return Fail("a positional argument after a keyword argument");
    } else {
      STRATA_TRY(args.emplace_back(), ParseArg(0));
    }
    if (!Take(',') && Peek() != ')') return Fail("expected ',' or ')'");
  }
  if (kwargs.size() > UINT16_MAX) return Fail("too many keyword arguments");
  return Ok();
}

std::optional<std::string_view> NativeOperands::TakeKeyword() {
  const std::string_view word = PeekWord();
  if (!word.empty() && !(word[0] >= '0' && word[0] <= '9') && TakeKey(word)) return word;
  if (Peek() != '%') return std::nullopt;
  const size_t begin = at_;
  if (const Result<std::string_view> name = Name(); name && Peek() == '=') {
    ++at_;
    return *name;
  }
  at_ = begin;
  return std::nullopt;
}

Result<Arg> NativeOperands::ParseArg(int depth) {
  if (depth > kMaxDepth) return Fail("arguments nested too deeply");
  SkipBlanks();
  const char c = Peek();
  if (c == '\'' || c == '"') {
    STRATA_TRY(const std::string_view text, Quoted());
    return Arg::String(module_->Intern(text));
  }
  if (c == '[') return ParseSequence(ArgKind::kList, ']', depth);
  if (c == '(') return ParseSequence(ArgKind::kTuple, ')', depth);
  if (c == '{') return ParseDict(depth);
  if ((c >= '0' && c <= '9') || c == '-') return ParseNumber();
  if (TakeWord("None")) return Arg::None();
  if (TakeWord("True")) return Arg::Bool(true);
  if (TakeWord("False")) return Arg::Bool(false);
  if (TakeWord("inf")) return Arg::Float(HUGE_VAL);
  if (TakeWord("nan")) return Arg::Float(std::numeric_limits<double>::quiet_NaN());
  if (TakeCall("sym")) {
    const size_t end = TypeTextEnd(text_, at_);
    // Blanks belong to an expression: take up to the closing parenthesis.
    size_t close = end;
    while (close < text_.size() && text_[close] != ')' && text_[close] != '\n') {
      close = TypeTextEnd(text_, close + 1);
    }
    if (close >= text_.size() || text_[close] != ')') return Fail("expected ')'");
    STRATA_TRY(const DimId dim, ParseDim(at_, close));
    at_ = close + 1;
    return Arg::Dim(dim);
  }
  if (TakeCall("device")) return ParseTextArg(&Arg::Device);
  if (TakeCall("raw")) return ParseTextArg(&Arg::Raw);
  if (TakeCall("graph")) {
    STRATA_TRY(const int64_t index, Integer(0, static_cast<int64_t>(module_->num_graphs()) - 1));
    STRATA_RETURN_IF_ERROR(Expect(')'));
    return Arg::Graph({static_cast<int32_t>(index)});
  }
  if (TakeCall("call")) {
    --at_;
    return ParseSequence(ArgKind::kCall, ')', depth);
  }
  if (PeekWord() == "torch" && Peek(5) == '.') {
    size_t end = at_ + 6;
    while (end < text_.size() && IsNameChar(text_[end]))
      ++end;
    const auto dtype = DTypeFromTorchName(text_.substr(at_, end - at_));
    if (!dtype) return Fail("unknown dtype; another literal is written raw('…')");
    at_ = end;
    return Arg::DType(*dtype);
  }
  STRATA_TRY(const ValueId value, ParseValue());
  return Arg(value);
}

Result<Arg> NativeOperands::ParseTextArg(Arg (*make)(StrId)) {
  STRATA_TRY(const std::string_view text, Quoted());
  STRATA_RETURN_IF_ERROR(Expect(')'));
  return make(module_->Intern(text));
}

Result<Arg> NativeOperands::ParseSequence(ArgKind kind, char close, int depth) {
  ++at_;
  std::vector<Arg> elements;
  while (!Take(close)) {
    STRATA_TRY(elements.emplace_back(), ParseArg(depth + 1));
    if (!Take(',') && Peek() != close) return Fail(fmt::format("expected ',' or '{}'", close));
  }
  if (kind == ArgKind::kCall && (elements.empty() || elements[0].kind() != ArgKind::kString)) {
    return Fail("a call starts with its name in quotes");
  }
  return rewriter_->MakeSpan(kind, elements);
}

Result<Arg> NativeOperands::ParseDict(int depth) {
  ++at_;
  std::vector<Arg> parts;
  while (!Take('}')) {
    STRATA_TRY(parts.emplace_back(), ParseArg(depth + 1));
    STRATA_RETURN_IF_ERROR(Expect(':'));
    STRATA_TRY(parts.emplace_back(), ParseArg(depth + 1));
    if (!Take(',') && Peek() != '}') return Fail("expected ',' or '}'");
  }
  return rewriter_->MakeSpan(ArgKind::kDict, parts);
}

Result<Arg> NativeOperands::ParseNumber() {
  if (Peek() == '-' && text_.substr(at_ + 1).starts_with("inf")) {
    at_ += 4;
    return Arg::Float(-HUGE_VAL);
  }
  const char* begin = text_.data() + at_;
  const char* end = text_.data() + text_.size();
  int64_t integer = 0;
  const auto as_integer = std::from_chars(begin, end, integer);
  const bool ends = as_integer.ptr == end || (*as_integer.ptr != '.' && *as_integer.ptr != 'e');
  if (as_integer.ec == std::errc{} && ends) {
    at_ = static_cast<size_t>(as_integer.ptr - text_.data());
    return Arg::Int(integer);
  }
  double number = 0;
  const auto as_float = std::from_chars(begin, end, number);
  if (as_float.ec != std::errc{}) return Fail("expected a number");
  at_ = static_cast<size_t>(as_float.ptr - text_.data());
  if (as_integer.ec == std::errc{} && as_integer.ptr == as_float.ptr) return Arg::Int(integer);
  if (std::string_view(begin, as_float.ptr).find_first_of(".e") == std::string_view::npos) {
    return FailAt(static_cast<size_t>(begin - text_.data()), "this number exceeds 64 bits");
  }
  return Arg::Float(number);
}

}  // namespace strata
