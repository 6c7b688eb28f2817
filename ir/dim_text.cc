#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "ir/dim.h"

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

// How tight the outermost operator of a text binds, in sympy's numbers (sympy.printing.precedence,
// and `precedence` in torch/utils/_sympy/functions.py, where FloorDiv and its like have 35).
constexpr int kPrecedenceLowest = 0;
constexpr int kPrecedenceOr = 20;
constexpr int kPrecedenceAnd = 30;
constexpr int kPrecedenceRelation = 35;
constexpr int kPrecedenceFloorDiv = 35;
constexpr int kPrecedenceAdd = 40;
constexpr int kPrecedenceMul = 50;
constexpr int kPrecedencePow = 60;
constexpr int kPrecedenceNot = 100;
constexpr int kPrecedenceAtom = 1000;

struct InfixOperator {
  std::string_view text;
  int precedence;
};

/// Longer ones before their prefixes.
constexpr std::array<InfixOperator, 13> kInfixOperators = {{
    {"**", kPrecedencePow},
    {"//", kPrecedenceMul},
    {"<=", kPrecedenceRelation},
    {">=", kPrecedenceRelation},
    {"==", kPrecedenceRelation},
    {"!=", kPrecedenceRelation},
    {"<", kPrecedenceRelation},
    {">", kPrecedenceRelation},
    {"*", kPrecedenceMul},
    {"/", kPrecedenceMul},
    {"%", kPrecedenceMul},
    {"&", kPrecedenceAnd},
    {"|", kPrecedenceOr},
}};

const InfixOperator* FindInfix(std::string_view head) {
  for (const InfixOperator& op : kInfixOperators) {
    if (op.text == head) return &op;
  }
  return nullptr;
}

/// Writes expressions as sympy does, in parentheses where they bind weaker than their place wants.
class Printer {
 public:
  Printer(const DimTable& table, std::string& out) : table_(table), out_(out) {}

  void Print(DimId dim, int precedence) {
    const std::span<const DimId> parts = table_.operands(dim);
    const int own = PrecedenceOf(dim);
    if (own < precedence) out_ += '(';
    switch (table_.kind(dim)) {
      case DimKind::kConst:
        out_ += std::to_string(table_.value(dim));
        break;
      case DimKind::kSymbol:
        out_ += table_.name(dim);
        break;
      case DimKind::kAdd:
        PrintSum(parts);
        break;
      case DimKind::kMul:
        PrintProduct(parts);
        break;
      case DimKind::kPow:
        PrintList(parts, "**", kPrecedencePow + 1);
        break;
      case DimKind::kFloorDiv:
        out_ += '(';
        PrintList(parts, "//", kPrecedenceAtom);
        out_ += ')';
        break;
      case DimKind::kMod:
        PrintFunction("Mod", parts);
        break;
      case DimKind::kMin:
        PrintFunction("Min", parts);
        break;
      case DimKind::kMax:
        PrintFunction("Max", parts);
        break;
      case DimKind::kCall:
        PrintCall(table_.name(dim), parts);
        break;
    }
    if (own < precedence) out_ += ')';
  }

 private:
  static const InfixOperator* InfixOf(std::string_view name, std::span<const DimId> parts) {
    return parts.size() == 2 ? FindInfix(name) : nullptr;
  }

  int PrecedenceOf(DimId dim) const {
    const std::span<const DimId> parts = table_.operands(dim);
    switch (table_.kind(dim)) {
      case DimKind::kConst:
        return table_.value(dim) < 0 ? kPrecedenceAdd : kPrecedenceAtom;
      case DimKind::kAdd:
        return kPrecedenceAdd;
      case DimKind::kMul:
        return table_.AsConst(parts[0]).value_or(1) < 0 ? kPrecedenceAdd : kPrecedenceMul;
      case DimKind::kPow:
        return kPrecedencePow;
      case DimKind::kFloorDiv:
        return kPrecedenceFloorDiv;
      case DimKind::kCall: {
        const InfixOperator* const op = InfixOf(table_.name(dim), parts);
        return op != nullptr ? op->precedence : kPrecedenceAtom;
      }
      default:
        return kPrecedenceAtom;
    }
  }

  void PrintSum(std::span<const DimId> parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      std::string term;
      Printer(table_, term).Print(parts[i], kPrecedenceAdd);
      const bool negative = i > 0 && term.starts_with('-');
      if (i > 0) out_ += negative ? " - " : " + ";
      out_ += negative ? std::string_view(term).substr(1) : std::string_view(term);
    }
  }

  void PrintProduct(std::span<const DimId> parts) {
    const bool is_negated = table_.AsConst(parts[0]) == -1;
    if (is_negated) out_ += '-';
    for (size_t i = is_negated ? 1 : 0; i < parts.size(); ++i) {
      if (i > (is_negated ? 1u : 0u)) out_ += '*';
      // A leading constant is part of the product: -2*s0.
      Print(parts[i], i == 0 ? kPrecedenceAdd : kPrecedenceMul);
    }
  }

  void PrintCall(std::string_view name, std::span<const DimId> parts) {
    if (const InfixOperator* const op = InfixOf(name, parts)) {
      const std::string_view blank = op->precedence >= kPrecedenceMul ? "" : " ";
      PrintList(parts, fmt::format("{0}{1}{0}", blank, op->text), op->precedence + 1);
    } else if (name == "~" && parts.size() == 1) {
      out_ += '~';
      Print(parts[0], kPrecedenceNot);
    } else if (parts.empty()) {
      out_ += name;
    } else {
      PrintFunction(name, parts);
    }
  }

  void PrintFunction(std::string_view name, std::span<const DimId> parts) {
    out_ += name;
    out_ += '(';
    PrintList(parts, ", ", kPrecedenceLowest);
    out_ += ')';
  }

  void PrintList(std::span<const DimId> parts, std::string_view separator, int precedence) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) out_ += separator;
      Print(parts[i], precedence);
    }
  }

  const DimTable& table_;
  std::string& out_;
};

}  // namespace

void DimTable::Print(DimId dim, std::string& out) const {
  if (const StrId spelling = entries_[Index(dim)].spelling; spelling.valid()) {
    out += strings_[spelling];
  } else {
    PrintPlain(dim, out, kPrecedenceLowest);
  }
}

void DimTable::PrintCanonical(DimId dim, std::string& out) const {
  PrintPlain(dim, out, kPrecedenceLowest);
}

std::string DimTable::ToString(DimId dim) const {
  std::string text;
  Print(dim, text);
  return text;
}

void DimTable::PrintPlain(DimId dim, std::string& out, int precedence) const {
  Printer(*this, out).Print(dim, precedence);
}

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
