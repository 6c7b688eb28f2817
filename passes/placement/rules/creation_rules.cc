#include <string_view>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// Filled with one value, in the shape of operand 0, whose own values do not matter.
Status Like(RuleBuilder& b) {
  for (size_t dim = 0; dim < b.result_sizes(0).size(); ++dim)
    b.SetOperand(0, dim, b.result_factor(0, dim));
  if (b.result_sizes(0).empty()) b.rule().ignored = {0};
  return Ok();
}

/// Filled with one value, in the sizes of an argument. A factor that no operand has is sharded only
/// where a reader asks for it.
Status Sizes(RuleBuilder& b) {
  b.rule().size_lists = {0};
  return Ok();
}

Status NewSizes(RuleBuilder& b) {
  b.MakeOperandWhole(0);
  b.rule().ignored = {0};
  b.rule().size_lists = {1};
  return Ok();
}

/// Elements differ by their position: every rank has all of them.
Status Whole(RuleBuilder& b) {
  b.MakeResultWhole(0);
  return Ok();
}

/// Elements stay or become 0 by their position in a matrix: every rank has whole ones.
Status Triangle(RuleBuilder& b) {
  b.rule().linear = {{0}};
  const size_t rank = b.result_sizes(0).size();
  for (size_t dim = 0; dim < rank; ++dim) {
    b.SetResult(0, dim, b.operand_factor(0, dim));
    if (dim + 2 >= rank) b.MakeWhole(b.operand_factor(0, dim));
  }
  return Ok();
}

/// Each rank draws all numbers, as one rank does, from a generator of its own that begins alike.
Status Random(RuleBuilder& b) {
  b.MakeAllWhole();
  return Ok();
}

constexpr RuleEntry kCreationRules[] = {
    {"_sample_dirichlet", Random},
    {"_standard_gamma", Random},
    {"arange", Whole},
    {"bernoulli", Random},
    {"bernoulli_", Random},
    {"binomial", Random},
    {"cauchy", Random},
    {"cauchy_", Random},
    {"empty", Sizes},
    {"empty_like", Like},
    {"exponential", Random},
    {"exponential_", Random},
    {"eye", Whole},
    {"full", Sizes},
    {"full_like", Like},
    {"geometric", Random},
    {"geometric_", Random},
    {"iota", Whole},
    {"linspace", Whole},
    {"log_normal", Random},
    {"log_normal_", Random},
    {"logspace", Whole},
    {"multinomial", Random},
    {"native_dropout", Random},
    {"new_empty", NewSizes},
    {"new_full", NewSizes},
    {"new_ones", NewSizes},
    {"new_zeros", NewSizes},
    {"normal", Random},
    {"normal_", Random},
    {"normal_functional", Random},
    {"ones", Sizes},
    {"ones_like", Like},
    {"poisson", Random},
    {"rand", Random},
    {"rand_like", Random},
    {"randint", Random},
    {"randint_like", Random},
    {"randn", Random},
    {"randn_like", Random},
    {"random", Random},
    {"random_", Random},
    {"randperm", Random},
    {"scalar_tensor", Whole},
    {"tril", Triangle},
    {"tril_indices", Whole},
    {"triu", Triangle},
    {"triu_indices", Whole},
    {"uniform", Random},
    {"uniform_", Random},
    {"zeros", Sizes},
    {"zeros_like", Like},
};

}  // namespace

std::span<const RuleEntry> CreationRules() {
  return kCreationRules;
}

}  // namespace strata
