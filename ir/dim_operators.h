#pragma once
#include <array>
#include <string_view>

namespace strata {

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

}  // namespace strata
