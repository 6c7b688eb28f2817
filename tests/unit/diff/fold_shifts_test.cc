#include "diff/output/fold_shifts.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;

constexpr std::string_view kBody = R"(
  x = placeholder : f32[4]
  a = aten.sin.default(x) : f32[4]
  b = aten.cos.default(x) : f32[4]
  c = aten.exp.default(x) : f32[4]
  d = aten.abs.default(x) : f32[4]
  e = aten.neg.default(x) : f32[4]
  f = aten.tanh.default(x) : f32[4]
)";

/// The readable fields of the pair of outputs.
std::string FoldedOutputs(std::string_view before, std::string_view after) {
  const DiffCase both(fmt::format("{}  output({})\n", kBody, before),
                      fmt::format("{}  output({})\n", kBody, after));
  const PairId pair = both.diff.pair_of_before[both.diff.before.FindName("output")];
  const ReadableFields readable = FoldShifts(both.diff, both.diff.pairs[pair]);
  std::string text;
  for (const FieldDiff& field : readable.fields) {
    text += fmt::format("{}: {} -> {}\n", field.path, field.before.value_or("null"),
                        field.after.value_or("null"));
  }
  return text + fmt::format("shifted {}", readable.shifted);
}

TEST_CASE("operand shift: one result less is one line, whatever stands behind it") {
  CHECK_EQ(FoldedOutputs("a, b, c, d, e, f", "a, c, d, e, f"), "operands[1]: b -> null\nshifted 4");
}

TEST_CASE("operand shift: one result more") {
  CHECK_EQ(FoldedOutputs("b, c, d, e, f", "a, b, c, d, e, f"), "operands[0]: null -> a\nshifted 5");
}

TEST_CASE("operand shift: one for another at another place") {
  CHECK_EQ(FoldedOutputs("a, b, c, d, x, f", "b, c, d, e, f"),
           "operands[0]: a -> null\noperands[4→3]: x -> e\nshifted 4");
}

TEST_CASE("operand shift: a list that gained and lost as much as it kept is told place by place") {
  CHECK_EQ(FoldedOutputs("a, b, c", "c, d, e"),
           "operands[0]: a -> c\noperands[1]: b -> d\noperands[2]: c -> e\nshifted 0");
}

TEST_CASE("operand shift: what differs at its own place alone is told as it is") {
  CHECK_EQ(FoldedOutputs("a, b, c, d", "a, e, c, f"),
           "operands[1]: b -> e\noperands[3]: d -> f\nshifted 0");
}

}  // namespace
}  // namespace strata
