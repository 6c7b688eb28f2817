// The measure of the differ itself: which answers are as good as the lineage of a mutation.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "bench/diff_eval/truth/choices.h"
#include "diff/graph/listing.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

/// The pairs of `claim` that are as good as the lineage, in which equal names are one node. All
/// others are claimed as the lineage has them.
Names ChoicesAsGood(std::string_view before_text, std::string_view after_text, const Names& claim) {
  const auto before_module = testing::ParseBody(before_text);
  const auto after_module = testing::ParseBody(after_text);
  const Listing before(before_module->graph({0})), after(after_module->graph({0}));
  IdVector<EntityId, EntityId> lineage, claimed;
  for (EntityId id : before.ids())
    lineage.Add(after.FindName(before.name(id)));
  claimed = lineage;
  for (const auto& [a, b] : claim)
    claimed[before.FindName(a)] = after.FindName(b);
  const TypeFields fields = KnownTypeFields(before).And(KnownTypeFields(after));
  Names names;
  for (const auto& [i, j] :
       bench::ChoicesAsGood(Labels(before, fields), Labels(after, fields), claimed, lineage)) {
    names.emplace_back(before.name(i), after.name(j));
  }
  return names;
}

const std::string kSines = R"(
  x = placeholder
  y = placeholder
  a = aten.sin.default(x)
  b = aten.sin.default(y)
)";

TEST_CASE("truth: two nodes that read each other's operands may have changed places") {
  const std::string before = kSines + R"(
  c = aten.neg.default(a)
  d = aten.neg.default(b)
  output([c, d])
)";
  const std::string after = kSines + R"(
  c = aten.neg.default(b)
  d = aten.neg.default(a)
  output([c, d])
)";
  const Names places{{"c", "d"}, {"d", "c"}};
  CHECK(ChoicesAsGood(before, after, places) == places);
  // As many users support it, but no operands.
  CHECK(ChoicesAsGood(before, after, {{"a", "b"}, {"b", "a"}}).empty());
  CHECK(ChoicesAsGood(before, before, places).empty());
}

TEST_CASE("truth: what leans on a wrong pair is wrong") {
  const std::string chains = kSines + R"(
  c = aten.neg.default(a)
  d = aten.neg.default(b)
  e = aten.cos.default(c)
  f = aten.cos.default(d)
  output([e, f])
)";
  CHECK(ChoicesAsGood(chains, chains,
                      {{"a", "b"}, {"b", "a"}, {"c", "d"}, {"d", "c"}, {"e", "f"}, {"f", "e"}})
            .empty());
}

TEST_CASE("truth: of stacked equals of which one was removed the last may be the one") {
  const std::string head = "  x = placeholder\n  a = aten.neg.default(x)\n";
  const std::string tail = "  output([c])\n";
  // `a` was removed; or `b`, and `a` lives on under its name.
  CHECK(ChoicesAsGood(head + "  b = aten.neg.default(a)\n  c = aten.sin.default(b)\n" + tail,
                      R"(
  x = placeholder
  b = aten.neg.default(x)
  c = aten.sin.default(b)
)" + tail,
                      {{"a", "b"}, {"b", ""}}) == Names{{"a", "b"}});
}

TEST_CASE("truth: inputs of one type go by their place") {
  const std::string before = R"(
  x = placeholder
  y = placeholder
  a = aten.sin.default(x)
  b = aten.cos.default(y)
  output([a, b])
)";
  const std::string after = R"(
  y = placeholder
  x = placeholder
  a = aten.sin.default(x)
  b = aten.cos.default(y)
  output([a, b])
)";
  const Names places{{"x", "y"}, {"y", "x"}};
  CHECK(ChoicesAsGood(before, after, places) == places);
  CHECK(ChoicesAsGood(before, before, places).empty());
}

}  // namespace
}  // namespace strata
