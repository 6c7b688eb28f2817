#include <string>
#include <string_view>

#include "base/python_literal.h"
#include "ir/dim.h"
#include "ir/dim_operators.h"

namespace strata {
namespace {

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
        AppendInt(table_.value(dim), out_);
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
  const Entry& entry = entries_[Index(dim)];
  if (entry.spelling.valid()) {
    out += strings_[entry.spelling];
  } else if (entry.kind == DimKind::kConst) {
    AppendInt(entry.value, out);
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

}  // namespace strata
