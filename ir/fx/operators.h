#pragma once
#include <array>
#include <string_view>

#include "base/text.h"

namespace strata::fx {

/// A function of Python's `operator` module that FX prints as an operator.
struct Operator {
  std::string_view symbol;
  std::string_view op;  ///< as Strata names it
};

// Source: torch/fx/graph.py, `magic_methods` and `inplace_methods`. Where one symbol is a prefix of
// another, the longer stands first. `div` prints as `truediv` does and is read as that.

constexpr std::array<Operator, 20> kBinaryOperators = {{
    {"**", "_operator.pow"},    {"//", "_operator.floordiv"}, {"<<", "_operator.lshift"},
    {">>", "_operator.rshift"}, {"==", "_operator.eq"},       {"!=", "_operator.ne"},
    {"<=", "_operator.le"},     {">=", "_operator.ge"},       {"<", "_operator.lt"},
    {">", "_operator.gt"},      {"+", "_operator.add"},       {"-", "_operator.sub"},
    {"*", "_operator.mul"},     {"/", "_operator.truediv"},   {"%", "_operator.mod"},
    {"@", "_operator.matmul"},  {"&", "_operator.and_"},      {"|", "_operator.or_"},
    {"^", "_operator.xor"},     {"/", "_operator.div"},
}};

constexpr std::array<Operator, 3> kPrefixOperators = {{
    {"-", "_operator.neg"},
    {"+", "_operator.pos"},
    {"~", "_operator.invert"},
}};

constexpr std::array<Operator, 13> kInplaceOperators = {{
    {"**=", "_operator.ipow"},
    {"//=", "_operator.ifloordiv"},
    {"<<=", "_operator.ilshift"},
    {">>=", "_operator.irshift"},
    {"+=", "_operator.iadd"},
    {"-=", "_operator.isub"},
    {"*=", "_operator.imul"},
    {"/=", "_operator.itruediv"},
    {"%=", "_operator.imod"},
    {"@=", "_operator.imatmul"},
    {"&=", "_operator.iand"},
    {"|=", "_operator.ior"},
    {"^=", "_operator.ixor"},
}};

constexpr std::string_view kGetItem = "_operator.getitem";
constexpr std::string_view kSetItem = "_operator.setitem";
constexpr std::string_view kGetAttr = "getattr";

// Attributes for the content of a text that the IR does not represent; see fx.h.
constexpr std::string_view kArgumentKey = "argument";
constexpr std::string_view kDescriptorKey = "descriptor";
constexpr std::string_view kDescriptorsKey = "descriptors";
constexpr std::string_view kPythonTypeKey = "python_type";
constexpr std::string_view kClassKey = "class";
constexpr std::string_view kSignatureKey = "signature";
constexpr std::string_view kBackwardKey = "backward";
/// Begins the names of inputs that are gradients of outputs.
constexpr std::string_view kTangents = "tangents_";
constexpr std::string_view kReturnKey = "return";
constexpr std::string_view kReturnTypeKey = "return_type";
constexpr std::string_view kArgumentsKey = "arguments";
constexpr std::string_view kFlattenKey = "flatten";
constexpr std::string_view kSymbolsKey = "symbols";
constexpr std::string_view kCustomPrefix = "custom.";

/// A name that Python accepts. Letters beyond ASCII are let through.
constexpr bool IsNameStart(char c) {
  return (IsWordChar(c) && !IsDigit(c)) || static_cast<unsigned char>(c) >= 0x80;
}
constexpr std::array<bool, 256> kNameChars = [] {
  std::array<bool, 256> chars{};
  for (size_t i = 0; i < chars.size(); ++i)
    chars[i] = IsNameStart(static_cast<char>(i)) || IsDigit(static_cast<char>(i));
  return chars;
}();
constexpr bool IsNameChar(char c) {
  return kNameChars[static_cast<unsigned char>(c)];
}
constexpr bool IsIdentifier(std::string_view text) {
  if (text.empty() || !IsNameStart(text[0])) return false;
  for (char c : text) {
    if (!IsNameChar(c)) return false;
  }
  return true;
}

}  // namespace strata::fx
