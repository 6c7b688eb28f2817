// Operators that one side alone has.
#include "diff/match/synonyms.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/graph/listing.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

/// Calls of one value, each with an operator of its own and a result of its own.
std::unique_ptr<Module> OwnOperators(int count, std::string_view name) {
  std::string text = "  x = placeholder : f32[4]\n", results;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("  n{0} = my.{1}{0}.default(x) : f32[4]\n", i, name);
    results += fmt::format("{}n{}", i == 0 ? "" : ", ", i);
  }
  return testing::ParseBody(text + "  output([" + results + "])\n");
}

/// Two graphs as the matcher sees them.
struct LabelCase {
  LabelCase(std::unique_ptr<Module> before_module, std::unique_ptr<Module> after_module)
      : modules{std::move(before_module), std::move(after_module)},
        before_listing(modules[0]->graph({0})),
        after_listing(modules[1]->graph({0})),
        before(before_listing, KnownTypeFields(before_listing)),
        after(after_listing, KnownTypeFields(after_listing)) {}
  std::unique_ptr<Module> modules[2];
  Listing before_listing, after_listing;
  Labels before, after;
};

TEST_CASE(
    "synonyms: an operator stands for the one in whose place it is, among many of their like") {
  LabelCase both(OwnOperators(200, "old"), OwnOperators(200, "fresh"));
  const auto ops = [](const Labels& labels) {
    std::vector<uint64_t> hashes;
    for (const EntityId i : labels.ids())
      hashes.push_back(labels.op[i]);
    return hashes;
  };
  const std::vector<uint64_t> as_printed = ops(both.after);
  {
    const SynonymScope scope(both.before, both.after);
    CHECK(ops(both.after) == ops(both.before));
  }
  CHECK(ops(both.after) == as_printed);
}

TEST_CASE("synonyms: an operator of another library, or in place, stands for its namesake") {
  const std::string head = "  x = placeholder : f32[4]\n  y = placeholder : f32[4]\n";
  LabelCase both(testing::ParseBody(head + R"(
  a = torch.nn.functional.silu(x)
  b = aten.add.Tensor(a, y)
  output([b])
)"),
                 testing::ParseBody(head + R"(
  b = aten.add_.Scalar(x, 1)
  a = aten.silu.default(b)
  output([a])
)"));
  const SynonymScope scope(both.before, both.after);
  const auto op = [](const Labels& labels, const Listing& listing, const char* name) {
    return labels.op[listing.FindName(name)];
  };
  for (const char* name : {"a", "b"})
    CHECK_EQ(op(both.after, both.after_listing, name), op(both.before, both.before_listing, name));
}

TEST_CASE("synonyms: twice as many operators are compared twice as often") {
  size_t last = 0;
  for (const int count : {500, 1000, 2000}) {
    LabelCase both(OwnOperators(count, "old"), OwnOperators(count, "fresh"));
    const SynonymScope scope(both.before, both.after);
    CHECK_GE(scope.comparisons(), static_cast<size_t>(count));
    if (last > 0) CHECK_LE(scope.comparisons(), 3 * last);
    last = scope.comparisons();
  }
}

}  // namespace
}  // namespace strata
