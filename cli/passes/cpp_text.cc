#include "cli/passes/cpp_text.h"

#include <cmath>

#include <fmt/format.h>

namespace strata::cli {
namespace {

/// Words of C++, and of the text around the nodes, each with a space behind it.
constexpr std::string_view kReserved =
    "Arg Call CallAll CallInt EOF INFINITY INT64_MIN Input List NAN NULL NamedArg Release Step "
    "Tensor alignas alignof and and_eq asm assert at auto bitand bitor bool break c10 case "
    "catch char class compl concept const const_cast constexpr continue decltype default "
    "delete do double dynamic_cast else enum errno explicit export extern false float for "
    "friend given goto has_prims if inline int int64_t kInputs kOutputs linux long main mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires return short signed sizeof static static_assert "
    "static_cast std stderr stdin stdout struct switch template this thread_local throw "
    "torch true try typedef typeid typename union unix unsigned using virtual void volatile "
    "while xor ";

bool IsReserved(std::string_view word) {
  const std::string wanted = fmt::format("{} ", word);
  for (size_t at = kReserved.find(wanted); at != kReserved.npos;
       at = kReserved.find(wanted, at + 1))
    if (at == 0 || kReserved[at - 1] == ' ') return true;
  return false;
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// Implementations of C++ own names with two underscores, or with one before a capital letter.
std::string AsIdentifier(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) {
    if (IsLetter(c) || IsDigit(c))
      name += c;
    else if (name.empty() || name.back() != '_')
      name += '_';
  }
  const bool is_plain = name.size() > 1 && name[0] == '_' && name[1] >= 'a' && name[1] <= 'z';
  return is_plain || (!name.empty() && IsLetter(name[0])) ? name : "v" + name;
}

}  // namespace

std::string CppNames::Take(std::string_view wanted) {
  const std::string base = AsIdentifier(wanted);
  std::string name = IsReserved(base) ? base + '_' : base;
  for (int copy = 2; !taken_.insert(name).second; ++copy)
    name = fmt::format("{}{}{}", base, base.back() == '_' ? "" : "_", copy);
  return name;
}

std::string CppString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::string CppDouble(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string CppComment(std::string_view text) {
  if (text.empty()) return "";
  std::string out = "// ";
  for (const char c : text)
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  // A line that ends with a backslash goes on in the next one, even with spaces behind it.
  out.erase(out.find_last_not_of(' ') + 1);
  return out.back() == '\\' ? out + '.' : out;
}

std::string_view CppScalarType(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "at::kDouble";
    case DType::kF32:
      return "at::kFloat";
    case DType::kF16:
      return "at::kHalf";
    case DType::kBF16:
      return "at::kBFloat16";
    case DType::kI64:
      return "at::kLong";
    case DType::kI32:
      return "at::kInt";
    case DType::kI16:
      return "at::kShort";
    case DType::kI8:
      return "at::kChar";
    case DType::kU8:
      return "at::kByte";
    case DType::kBool:
      return "at::kBool";
    case DType::kC64:
      return "at::kComplexFloat";
    case DType::kC128:
      return "at::kComplexDouble";
    default:
      return "";
  }
}

}  // namespace strata::cli
