#include "diff/pattern/layers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/pattern/repetitions.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

/// Labels from letters.
std::vector<uint64_t> LabelsOf(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string Show(const Repetitions& found) {
  std::string text;
  for (const Repetition& repetition : found.stretches) {
    for (int32_t begin : repetition.begins)
      text += fmt::format("{} ", begin);
    text += fmt::format("to {};", repetition.end);
  }
  return text;
}

TEST_CASE("layers: repeated sequences are found between other nodes") {
  CHECK_EQ(Show(FindRepetitions(LabelsOf("XYabcdabcdabcdabcdZ"))), "2 6 10 14 to 18;");
}

TEST_CASE("layers: a repetition with additional or missing nodes stays a layer") {
  CHECK_EQ(Show(FindRepetitions(LabelsOf("XabcdabcdabQcdabcZd"))), "1 5 9 14 to 19;");
}

TEST_CASE("layers: forward and backward repeat separately") {
  CHECK_EQ(Show(FindRepetitions(LabelsOf("abcdabcdabcdLefghefghefgh"))),
           "0 4 8 to 12;13 17 21 to 25;");
}

TEST_CASE("layers: graphs without repetition have no layers") {
  CHECK_EQ(Show(FindRepetitions(LabelsOf("abcdefghijklmnop"))), "");
  CHECK_EQ(Show(FindRepetitions(LabelsOf("abcdefghijkabmnop"))), "");
  CHECK_EQ(Show(FindRepetitions({})), "");
}

/// `count` layers, forward and backward, without module paths.
std::string FlatText(int count) {
  std::string text = "  x = placeholder : f32[8]\n";
  std::string last = "x";
  for (int i = 0; i < count; ++i)
    text += fmt::format("  w{} = placeholder : f32[8]\n", i);
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        R"(
  n{0} = aten.rsqrt.default({1})
  m{0} = aten.mul.Tensor(n{0}, w{0})
  s{0} = aten.silu.default(m{0})
  a{0} = aten.add.Tensor({1}, s{0})
)",
        i, last);
    last = fmt::format("a{}", i);
  }
  for (int i = count - 1; i >= 0; --i) {
    text += fmt::format(
        R"(
  d{0} = aten.silu_backward.default({1}, m{0})
  e{0} = aten.mm.default(d{0}, n{0})
  g{0} = aten.sub.Tensor(e{0}, {1})
)",
        i, last);
    last = fmt::format("g{}", i);
  }
  return text + fmt::format("  output({})\n", last);
}

TEST_CASE("layers: without module paths they follow from structure, backward in reverse") {
  const auto module = testing::ParseBody(FlatText(5));
  const Listing listing(module->graph({0}));
  const Labels labels(listing, KnownTypeFields(listing));
  const Layers layers(listing, labels);
  CHECK(layers.by_structure());
  const auto layer = [&](std::string_view name) {
    return std::string(layers.layer(listing.FindName(name)));
  };
  for (const char* letter : {"w", "n", "m", "s", "a", "d", "e", "g"}) {
    for (int i = 0; i < 5; ++i)
      CHECK_EQ(layer(fmt::format("{}{}", letter, i)), fmt::format("place.{}", i));
  }
  CHECK_EQ(layer("output"), "");
  const auto role = [&](std::string_view name) { return layers.role(listing.FindName(name)); };
  CHECK_EQ(role("m0"), role("m3"));
  CHECK_EQ(role("w1"), role("w4"));
  CHECK_NE(role("m0"), role("s0"));
}

TEST_CASE("layers: inputs that state their parameter name the layers that read them") {
  std::string text = FlatText(3);
  for (int i = 0; i < 3; ++i) {
    const std::string input = fmt::format("  w{} = placeholder : f32[8]\n", i);
    text.replace(text.find(input), input.size(),
                 fmt::format("  w{0} = placeholder : f32[8] {{+fqn='model.r.{0}.scale'}}\n", i));
  }
  const auto module = testing::ParseBody(text);
  const Listing listing(module->graph({0}));
  const Layers layers(listing, Labels(listing, KnownTypeFields(listing)));
  CHECK(layers.by_structure());
  for (const char* letter : {"w", "n", "m", "s", "a", "d", "e", "g"}) {
    for (int i = 0; i < 3; ++i) {
      const EntityId id = listing.FindName(fmt::format("{}{}", letter, i));
      CHECK_EQ(layers.layer(id), fmt::format("model.r.{}", i));
    }
  }
}

TEST_CASE("layers: where nothing repeats, nodes are in the module whose parameters they read") {
  const auto module = testing::ParseBody(R"(
  x = placeholder
  w = placeholder {+fqn='fc1.weight'}
  b = placeholder {+fqn='fc1.bias'}
  v = placeholder {+fqn='fc2.weight'}
  wt = aten.t.default(w)
  y = aten.addmm.default(b, x, wt)
  z = aten.relu.default(y)
  both = aten.cat.default([w, v])
  output([z, both])
)");
  const Listing listing(module->graph({0}));
  const Layers layers(listing, Labels(listing, KnownTypeFields(listing)));
  const auto path = [&](std::string_view name) {
    return std::string(layers.path(listing.FindName(name)));
  };
  CHECK_EQ(path("wt"), "fc1");
  CHECK_EQ(path("y"), "fc1");
  CHECK_EQ(path("z"), "");
  CHECK_EQ(path("both"), "");
}

TEST_CASE("layers: module paths take precedence over structure") {
  const auto module = testing::ParseBody(R"(
  x = placeholder
  a = f(x) {module=model.layers.3.mlp}
  b = g(a) {module=norm}
  output(b)
)");
  const Listing listing(module->graph({0}));
  const Layers layers(listing, Labels(listing, KnownTypeFields(listing)));
  CHECK(!layers.by_structure());
  CHECK_EQ(layers.path(EntityId{1}), "model.layers.3.mlp");
  CHECK_EQ(layers.layer(EntityId{1}), "model.layers.3");
  CHECK_EQ(layers.path(EntityId{2}), "norm");
  CHECK_EQ(layers.layer(EntityId{2}), "");
}

}  // namespace
}  // namespace strata
