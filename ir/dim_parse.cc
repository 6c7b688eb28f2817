#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "ir/dim.h"
#include "ir/dim_operators.h"

namespace strata {
namespace {

bool IsNameStart(char c) {
  return IsWordChar(c) && !IsDigit(c);
}

/// Names that sympy prints for values, not for symbols.
bool IsNamedValue(std::string_view name) {
  constexpr std::array<std::string_view, 7> kValues = {"oo",   "int_oo", "zoo", "nan",
                                                       "True", "False",  "None"};
  return std::find(kValues.begin(), kValues.end(), name) != kValues.end();
}

}  // namespace

/// Precedence climbing over sympy's text. Python's precedences, which differ from sympy's inner
/// ones: relations bind weaker than `|` and `&` there, but sympy parenthesizes those.
class DimTable::Parser {
 public:
  Parser(DimTable& table, std::string_view text) : table_(table), text_(text) {}

  std::optional<DimId> ParseAll() {
    const std::optional<DimId> dim = ParseExpression(kPrecedenceLowest);
    SkipBlanks();
    if (!dim || position_ != text_.size()) return std::nullopt;
    return dim;
  }
  size_t position() const { return position_; }

 private:
  // Deeper than any size that a program has; keeps hostile text off the stack's end.
  static constexpr int kMaxDepth = 200;

  void SkipBlanks() {
    while (position_ < text_.size() && text_[position_] == ' ')
      ++position_;
  }
  bool Eat(char c) {
    SkipBlanks();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  std::optional<DimId> ParseExpression(int min_precedence) {
    if (++depth_ > kMaxDepth) return std::nullopt;
    std::optional<DimId> left = ParsePrefix();
    while (left) {
      SkipBlanks();
      const std::string_view rest = text_.substr(position_);
      if (rest.starts_with('+') || rest.starts_with('-')) {
        if (kPrecedenceAdd < min_precedence) break;
        left = ParseSum(*left);
        continue;
      }
      const auto* const op = std::ranges::find_if(
          kInfixOperators, [&](const InfixOperator& o) { return rest.starts_with(o.text); });
      if (op == kInfixOperators.end() || op->precedence < min_precedence) break;
      if (op->text == "*") {
        left = ParseProduct(*left);
        continue;
      }
      position_ += op->text.size();
      const bool right_associative = op->text == "**";
      const std::optional<DimId> right =
          ParseExpression(right_associative ? op->precedence : op->precedence + 1);
      if (!right) return std::nullopt;
      left = MakeInfix(op->text, *left, *right);
    }
    --depth_;
    return left;
  }

  /// `left + a - b …` at once: folding one by one would be quadratic.
  std::optional<DimId> ParseSum(DimId left) {
    std::vector<DimId> terms = {left};
    while (true) {
      const bool minus = Eat('-');
      if (!minus && !Eat('+')) break;
      std::optional<DimId> term = ParseExpression(kPrecedenceAdd + 1);
      if (!term) return std::nullopt;
      terms.push_back(minus ? table_.Mul(table_.Const(-1), *term) : *term);
    }
    return table_.MakeSum(terms);
  }

  std::optional<DimId> ParseProduct(DimId left) {
    std::vector<DimId> factors = {left};
    while (true) {
      SkipBlanks();
      const std::string_view rest = text_.substr(position_);
      if (!rest.starts_with('*') || rest.starts_with("**")) break;
      ++position_;
      std::optional<DimId> factor = ParseExpression(kPrecedenceMul + 1);
      if (!factor) return std::nullopt;
      factors.push_back(*factor);
    }
    return table_.MakeProduct(factors);
  }

  std::optional<DimId> ParsePrefix() {
    if (Eat('-')) {
      // A power binds tighter than the sign before it.
      const std::optional<DimId> operand = ParseExpression(kPrecedencePow);
      if (!operand) return std::nullopt;
      return table_.Mul(table_.Const(-1), *operand);
    }
    if (Eat('~')) {
      const std::optional<DimId> operand = ParseExpression(kPrecedenceNot);
      if (!operand) return std::nullopt;
      return MakeCall("~", {&*operand, 1});
    }
    if (Eat('(')) {
      const std::optional<DimId> inner = ParseExpression(kPrecedenceLowest);
      return Eat(')') ? inner : std::nullopt;
    }
    SkipBlanks();
    if (position_ >= text_.size()) return std::nullopt;
    if (IsDigit(text_[position_])) return ParseNumber();
    if (IsNameStart(text_[position_])) return ParseName();
    return std::nullopt;
  }

  std::optional<DimId> ParseNumber() {
    const size_t begin = position_;
    const auto skip_digits = [&] {
      while (position_ < text_.size() && IsDigit(text_[position_]))
        ++position_;
    };
    skip_digits();
    if (position_ < text_.size() && text_[position_] == '.') {
      ++position_;
      skip_digits();
    }
    if (position_ < text_.size() && (text_[position_] == 'e' || text_[position_] == 'E')) {
      const bool has_sign = position_ + 1 < text_.size() &&
                            (text_[position_ + 1] == '-' || text_[position_ + 1] == '+');
      const size_t digits = position_ + (has_sign ? 2 : 1);
      if (digits >= text_.size() || !IsDigit(text_[digits])) return std::nullopt;
      position_ = digits;
      skip_digits();
    }
    const std::string_view text = text_.substr(begin, position_ - begin);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_integer = error == std::errc() && end == text.data() + text.size();
    return is_integer ? table_.Const(number) : MakeCall(text, {});
  }

  std::optional<DimId> ParseName() {
    const size_t begin = position_;
    while (position_ < text_.size() && (IsNameStart(text_[position_]) ||
                                        IsDigit(text_[position_]) || text_[position_] == '.')) {
      ++position_;
    }
    const std::string_view name = text_.substr(begin, position_ - begin);
    if (position_ >= text_.size() || text_[position_] != '(') {
      return IsNamedValue(name) ? MakeCall(name, {}) : table_.Sym(name);
    }
    ++position_;
    std::vector<DimId> arguments;
    do {
      const std::optional<DimId> argument = ParseExpression(kPrecedenceLowest);
      if (!argument) return std::nullopt;
      arguments.push_back(*argument);
    } while (Eat(','));
    if (!Eat(')')) return std::nullopt;
    return MakeFunction(name, arguments);
  }

  DimId MakeCall(std::string_view head, std::span<const DimId> operands) {
    return table_.Make(DimKind::kCall, operands, table_.strings_.Intern(head));
  }

  DimId MakeInfix(std::string_view op, DimId left, DimId right) {
    if (op == "//") return table_.MakeFloorDiv(left, right);
    if (op == "%") return table_.MakeMod(left, right);
    if (op == "**") return table_.MakePower(left, right);
    return MakeCall(op, std::array{left, right});
  }

  /// Names of torch/utils/_sympy/functions.py with a DimKind.
  DimId MakeFunction(std::string_view name, std::span<const DimId> arguments) {
    if (name == "Max") return table_.MakeExtremum(DimKind::kMax, arguments);
    if (name == "Min") return table_.MakeExtremum(DimKind::kMin, arguments);
    if (arguments.size() == 2) {
      if (name == "FloorDiv" || name == "CleanDiv") {
        return table_.MakeFloorDiv(arguments[0], arguments[1]);
      }
      if (name == "Mod" || name == "PythonMod") return table_.MakeMod(arguments[0], arguments[1]);
      if (name == "PowByNatural") return table_.MakePower(arguments[0], arguments[1]);
    }
    return MakeCall(name, arguments);
  }

  DimTable& table_;
  std::string_view text_;
  size_t position_ = 0;
  int depth_ = 0;
};

Result<DimId> DimTable::Parse(std::string_view text) {
  Parser parser(*this, text);
  const std::optional<DimId> dim = parser.ParseAll();
  if (!dim) {
    return Error("not a size: '{}': stopped at column {}", text.substr(0, 80),
                 parser.position() + 1);
  }
  Entry& entry = entries_[Index(*dim)];
  if (!entry.parsed) {
    entry.parsed = true;
    std::string plain;
    PrintPlain(*dim, plain, kPrecedenceLowest);
    if (plain != text) entry.spelling = strings_.Intern(text);
  }
  return *dim;
}

}  // namespace strata
