#include "tlparse-export/review/markdown.h"

#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "tests/support/random_graph.h"
#include "tests/unit/diff/mutate.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;
using testing::Mutate;
using testing::Mutation;
using testing::OrDie;
using testing::RandomGraph;

std::string Review(const GraphDiff& diff, ReviewOptions options = {}) {
  options.before_ref = "a.txt";
  options.after_ref = "b.txt";
  return OrDie(ReviewMarkdown(diff, options));
}

TEST_CASE("a review contains the verdict, the counts and the changes") {
  const DiffCase c(R"(
    x = placeholder : f32[4]
    relu = aten.relu.default(x) : f32[4] {module=layers.0.act}
    dead = aten.neg.default(x) : f32[4]
    output(relu)
  )",
                   R"(
    x = placeholder : f32[4]
    gelu = aten.gelu.default(x, approximate='tanh') : f32[4] {module=layers.0.act}
    output(gelu)
  )");
  const Policy policy = OrDie(ParsePolicy("[limit]\ndeleted = 0", "p.toml"));
  const PolicyVerdict verdict = CheckPolicy(policy, c.diff);
  const std::string text = Review(
      c.diff, {.verdict = &verdict, .link = "https://x.org/r.html", .image = "http://i/a b.svg"});
  const auto fingerprint = [](const Module& module) {
    return ToString(FingerprintOf(module.graph({0})));
  };
  CHECK_EQ(text, fmt::format(R"(### Graph diff: 1 changed · 1 deleted · 1 renamed · 2 same

| | graph | nodes | fingerprint |
|---|---|---|---|
| before | `a.txt` | 4 | `{}` |
| after | `b.txt` | 3 | `{}` |

❌ **1 violation** of `p.toml`

- `1 deleted`\
  `at most 0 by p.toml:2`

[Open the whole report](<https://x.org/r.html>)

![The changed part of the graph](<http://i/a%20b.svg>)

#### Changes

```diff
@@ layers.0.act @@
! relu → gelu  aten.gelu.default
-     target: aten.relu.default
+     target: aten.gelu.default
+     kwargs.approximate: 'tanh'
@@ change @@
- dead = aten.neg.default(x)  : f32[4]
```

)",
                             fingerprint(*c.before), fingerprint(*c.after)));
}

TEST_CASE("an allowed change and no change at all") {
  const DiffCase c("x = placeholder\noutput(x)", "x = placeholder\noutput(x)");
  const PolicyVerdict verdict{"p.toml", {}};
  const std::string text = Review(c.diff, {.verdict = &verdict});
  CHECK(text.starts_with("### Graph diff: no differences · 2 same\n"));
  CHECK_NE(text.find("✅ `p.toml` allows this change."), std::string::npos);
  CHECK_EQ(text.find("```"), std::string::npos);
}

/// The text outside of fences and inline code: the markup.
std::string MarkupOf(const std::string& text) {
  std::istringstream lines(text);
  std::string markup;
  bool in_fence = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      in_fence = !in_fence;
      continue;
    }
    if (in_fence) {
      CHECK_NE(std::string("-+!@# ").find(line[0]), std::string::npos);
      continue;
    }
    for (size_t i = 0; i < line.size();) {
      if (line[i] != '`') {
        markup += line[i++];
        continue;
      }
      size_t ticks = 0;
      while (i + ticks < line.size() && line[i + ticks] == '`')
        ++ticks;
      const std::string fence(ticks, '`');
      size_t close = line.find(fence, i + ticks);
      while (close != std::string::npos && line[close + ticks] == '`')
        close = line.find(fence, line.find_first_not_of('`', close));
      REQUIRE_NE(close, std::string::npos);
      i = close + ticks;
    }
    markup += '\n';
  }
  CHECK_FALSE(in_fence);
  return markup;
}

TEST_CASE("hostile names are not markup") {
  const DiffCase c(
      "%'<script>|``a' = placeholder {module=%'@team|`x'}\n"
      "%'**b**' = aten.sin.default(%'<script>|``a')\n"
      "output(%'**b**')",
      "%'<script>|``a' = placeholder {module=%'@team|`x'}\n"
      "%'[l](http://evil)\xE2\x80\xAE```' = %'x'(%'<script>|``a')\n"
      "%'```' = aten.sin.default(%'<script>|``a')\n"
      "output((%'```', '\\n```\\n</details>', %'```'))");
  const PolicyVerdict verdict{"p`|<b>.toml", {{"a `b` | c", "<i>", {}, {}}}};
  const std::string text = Review(c.diff, {.verdict = &verdict});
  const std::string markup = MarkupOf(text);
  for (const std::string_view evil : {"script", "evil", "**b", "@team", "<b>", "<i>"})
    CHECK_EQ(markup.find(evil), std::string::npos);
  CHECK_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
  // No cell has more columns than its table.
  CHECK_NE(text.find("\\u{202e}"), std::string::npos);
}

TEST_CASE("links are web addresses") {
  const DiffCase c("x = placeholder\noutput(x)", "x = placeholder\noutput(x)");
  const auto error = [&](ReviewOptions options) {
    return ReviewMarkdown(c.diff, options).error().message();
  };
  CHECK_EQ(error({.link = "javascript:alert(1)"}),
           "not a URL: --link javascript:alert(1): it begins with https:// or http://");
  CHECK_EQ(error({.image = "data:x"}),
           "not a URL: --image data:x: it begins with https:// or http://");
}

TEST_CASE("a review stays within its limit and lists what it omits") {
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const auto before = RandomGraph(seed, {.num_nodes = 4000});
    const auto after = before->Clone();
    for (int i = 0; i < 10; ++i)
      Mutate(*after, static_cast<Mutation>(i), 0.05, seed);
    const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
    const PolicyVerdict verdict =
        CheckPolicy(OrDie(ParsePolicy("[[allow]]\ntargets = 'none'", "p.toml")), diff);
    for (const size_t size : {4'000u, 10'000u, 60'000u}) {
      const std::string text = Review(diff, {.verdict = &verdict, .max_bytes = size});
      CHECK_LE(text.size(), size);
      CHECK_NE(text.find("*Left out, as it did not fit into "), std::string::npos);
      MarkupOf(text);
    }
  }
}

}  // namespace
}  // namespace strata
