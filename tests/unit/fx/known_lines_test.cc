#include "ir/fx/known_lines.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ir/fx/fx.h"
#include "tests/support/fx_everything.h"
#include "tests/unit/fx/fx_text.h"

namespace strata {
namespace {

using testing::Everything;
using testing::Program;

/// Reads texts one after the other with the same lines: each must give what it gives alone.
void CheckRead(const std::vector<std::string>& texts) {
  fx::KnownLines known_lines;
  for (const std::string& text : texts) {
    CAPTURE(text);
    const Result<FxDocument> alone = ParseFx(text);
    const Result<FxDocument> known = ParseFx(text, {.known_lines = &known_lines});
    REQUIRE_EQ(alone.has_value(), known.has_value());
    if (!alone) continue;
    CHECK_EQ(Everything(*known), Everything(*alone));
    const std::string_view lines = std::string_view(text).substr(0, text.rfind('\n'));
    const bool prints = PrintsAs(alone->graph(), lines);
    for (int i = 0; i < 2; ++i)
      CHECK_EQ(PrintsAs(known->graph(), lines, &known_lines), prints);
  }
}

/// Two texts with the same last lines, in both orders.
void CheckBoth(const std::string& a, const std::string& b) {
  CheckRead({a, b, a, b});
  CheckRead({b, a, b, a});
}

TEST_CASE("fx: a line that was read before gives the same node again") {
  CheckRead(std::vector<std::string>(3, Program("a, b: \"f32[2][1]cpu\"", R"(
        # seq_nr: 3 # Annotation: {'module_fqn': 'wq'} No stacktrace found for following nodes
        add: "f32[2][1]cpu" = torch.ops.aten.add.Tensor(a, b, alpha = 2.5);  a = None

        # seq_nr: 4 # Annotation: {'module_fqn': 'wq'} No stacktrace found for following nodes
        cat: "f32[4][1]cpu" = torch.ops.aten.cat.default([add, b, [1, 'x']], dim = 0);  add = None
        to: "f32[4][1]cpu" = torch.ops.aten.to.device(cat, device(type='cuda', index=0), torch.float32);  cat = None
        slice_1 = to[slice(None, b, 2)];  to = b = None
        neg = -slice_1
        slice_1 += neg;  iadd = slice_1;  slice_1 = neg = None
        weight = self.layer.weight
        view = iadd.view(-1, (2, 3));  iadd = None
        return (view, weight)
)")));
}

TEST_CASE("fx: a line whose names mean something else is read anew") {
  const std::string line = "        c = torch.relu(b);  b = None\n        return (c,)\n";
  const std::string value = Program("a", "        b = torch.neg(a);  a = None\n" + line);
  CheckBoth(value, Program("b", line));
  CheckBoth(value, Program("a", line));                         // not known
  CheckBoth(value, Program("a", "        b = <>)\n" + line));   // not read
  CheckBoth(value, Program("a, B", "        b = B\n" + line));  // an input's new name
  CheckBoth(value, Program("a, b", "        d = b\n" + line));  // its old name
  CheckBoth(value, Program("a, b", "        x = a + 1\n        d = b\n" + line));
  CheckBoth(value, Program("a", "        b = [a, a]\n" + line));           // a list
  CheckBoth(value, Program("a, c", "        b = torch.neg(a)\n" + line));  // defined twice
  CheckBoth(value, Program("a, torch", "        b = a + 1\n" + line));     // a method
  CheckBoth(value, Program("a, self", "        b = self.x\n" + line));
}

TEST_CASE("fx: a comment that was read before says the same again") {
  const std::string one = R"(
        # autograd_backward: True, seq_nr: 7 # Annotation: {'module_fqn': 'wq', 'EP': 'in'} File: /w/a.py:189 in f, code: x = g(y)
        b = torch.neg(a)

        # seq_nr: 8 # Annotation: {'module_fqn': 'wq', 'EP': 'in'} File: /w/a.py:189 in f, code: x = g(y)
        c = torch.neg(b)

        # my_key: 3, seq_nr: 8 # ac_graph_id: 3 - MUST_SAVE No stacktrace found for following nodes
        d = torch.neg(c)
        return d
)";
  std::string other = one;
  other.replace(other.find("seq_nr: 7"), 9, "seq_nr: 5");
  CheckBoth(Program("a", one), Program("z, a", other));
}

TEST_CASE("fx: a name that is changed later does not print as it was read") {
  const std::string use = "        c = torch.relu(b)\n";
  const std::string end = "        return (c,)\n";
  CheckBoth(Program("b", use + end), Program("b", use + "        d = b\n" + end));
}

TEST_CASE("fx: sizes and inputs are not taken from other texts") {
  const std::string size =
      "        v = torch.ops.aten.view.default(x, [2*s0, -1])\n        return v\n";
  CheckBoth(Program("x: \"f32[s0, s1]\"", size), Program("x: \"f32[s1, s0]\", s0", size));
  const std::string next = "        x = next(it)\n        y = x + 1\n        return y\n";
  CheckBoth(Program("args", "        it = iter(args)\n" + next),
            Program("it", "        z = it + 1\n" + next));
  const std::string list = "        y = torch.cat(l)\n        return y\n";
  CheckBoth(Program("l", list), Program("a", "        l = [a, a]\n" + list));
}

}  // namespace
}  // namespace strata
