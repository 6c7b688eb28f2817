#include "prove/evaluation/stated_constants.h"

#include <optional>

#include <fmt/format.h>

#include "ir/complex_literal.h"
#include "ir/module.h"
#include "ir/stated_constants.h"
#include "prove/ops/elementwise.h"
#include "prove/values/field.h"

namespace strata::prove {
namespace {

std::optional<Tensor> NumberOf(const Module& module, const Arg& literal) {
  switch (literal.kind()) {
    case ArgKind::kBool:
      return Tensor(Domain::kInteger, {}, literal.as_bool() ? 1 : 0);
    case ArgKind::kInt:
      return Tensor(Domain::kInteger, {}, static_cast<uint64_t>(literal.as_int()));
    case ArgKind::kFloat:
      return Tensor(Domain::kFloat, {}, FromLiteral(literal.as_float()));
    case ArgKind::kRaw:
      if (const auto number = ParseComplex(module.str(literal.str()))) {
        return OfWords(Domain::kComplex, {},
                       {FromLiteral(number->real()), FromLiteral(number->imag())});
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> AddStatedConstants(const Graph& before, const Graph& after,
                                            ConstantNumbers& constants) {
  std::vector<std::string> inferred;
  for (const auto& [attribute, stated] : StatedConstantsOf(before, after)) {
    const std::optional<Tensor> number = NumberOf(after.module(), stated.literal);
    if (number && constants.emplace(attribute, *number).second)
      inferred.push_back(fmt::format("the constant {} is {}", attribute, stated.text));
  }
  return inferred;
}

}  // namespace strata::prove
