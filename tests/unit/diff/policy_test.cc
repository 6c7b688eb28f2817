#include "diff/policy/policy.h"

#include <doctest/doctest.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;
using testing::OrDie;

/// A cast before a product, another operator, one that moves; in two layers.
DiffCase Change() {
  return DiffCase(R"(
    x = placeholder : f32[4, 4]
    w = placeholder : f32[4, 4]
    mm = aten.mm.default(x, w) : f32[4, 4] {module=layers.0.wq}
    relu = aten.relu.default(mm) : f32[4, 4] {module=layers.0.act}
    ar = _c10d_functional.all_reduce.default(relu, 'sum', 'dp') : f32[4, 4] {module=layers.1}
    wait = _c10d_functional.wait_tensor.default(ar) : f32[4, 4] {module=layers.1}
    out = aten.mm.default(wait, w) : f32[4, 4] {module=layers.1.wo}
    output([out])
  )",
                  R"(
    x = placeholder : f32[4, 4]
    w = placeholder : f32[4, 4]
    cast = aten._to_copy.default(x, dtype=torch.bfloat16) : bf16[4, 4] {module=layers.0.wq}
    mm = aten.mm.default(cast, w) : bf16[4, 4] {module=layers.0.wq}
    gelu = aten.gelu.default(mm) : bf16[4, 4] {module=layers.0.act}
    ar = _c10d_functional.all_reduce.default(gelu, 'sum', 'dp') : bf16[4, 4] {module=layers.1}
    wait = _c10d_functional.wait_tensor.default(ar) : bf16[4, 4] {module=layers.1}
    out = aten.mm.default(wait, w) : bf16[4, 4] {module=layers.1.wo}
    output([out])
  )");
}

std::string Check(const DiffCase& c, std::string_view policy) {
  std::string text;
  for (const Violation& v : CheckPolicy(OrDie(ParsePolicy(policy, "p")), c.diff).violations)
    text += "\n" + v.what + " | " + v.rule;
  return text;
}

std::string ErrorOf(std::string_view policy) {
  const Result<Policy> result = ParsePolicy(policy, "p");
  return result ? "" : result.error().message();
}

TEST_CASE("a policy without rules allows everything") {
  CHECK_EQ(Check(Change(), ""), "");
}

TEST_CASE("with rules that allow, each change needs one; consequences do not") {
  const DiffCase c = Change();
  CHECK_EQ(Check(c, "[[allow]]\ntargets = 'aten._to_copy.*'\n"), R"(
changed mm (aten.mm.default) in layers.0.wq: operands[0], dtype | no rule of p allows it
changed relu -> gelu (aten.gelu.default) in layers.0.act: target, dtype | no rule of p allows it)");
  CHECK_EQ(Check(c, R"(
    [[allow]]
    targets = "aten._to_copy.*"
    [[allow]]
    fields = ["operands*"]
    [[allow]]
    targets = ["aten.{relu,gelu}.default"]
    modules = "layers.{0..3}.act"
  )"),
           "");
  CHECK_EQ(Check(c, "[[allow]]\nstatuses = ['inserted', 'changed']"), "");
  CHECK_EQ(Check(c, "[[allow]]\nmodules = 're:layers\\.\\d\\.(wq|act)'"), "");
}

TEST_CASE("a rule that forbids needs one side, one atom or one field") {
  const DiffCase c = Change();
  CHECK_EQ(Check(c, "[[forbid]]\ntargets = 'aten.gelu*'\nwhy = 'exact activations'"), R"(
changed relu -> gelu (aten.gelu.default) in layers.0.act: target, dtype | forbidden by p:1: exact activations)");
  // Derived differences of a field that is named count: the node does have another dtype.
  CHECK_EQ(Check(c, "[[forbid]]\nfields = 'dtype'\ntargets = '_c10d*all_reduce*'"), R"(
derived ar (_c10d_functional.all_reduce.default) in layers.1: dtype | forbidden by p:1)");
  CHECK_EQ(Check(c, "[[forbid]]\ntargets = '_c10d*'"), "");
  CHECK_EQ(Check(c, "[[forbid]]\nstatuses = ['derived']\nmodules = '*.wo'"), R"(
derived out (aten.mm.default) in layers.1.wo: dtype | forbidden by p:1)");
  CHECK_EQ(Check(c, "[[forbid]]\nstatuses = ['inserted']\nkinds = ['compute']"), R"(
inserted cast (aten._to_copy.default) in layers.0.wq | forbidden by p:1)");
}

TEST_CASE("limits and invariants") {
  const DiffCase c = Change();
  CHECK_EQ(Check(c, "[limit]\ninserted = 1\nchanged = 1\ntouched = 3"), R"(
2 changed | at most 1 by p:3)");
  CHECK_EQ(
      Check(c, "[require]\nsame_inputs = true\nsame_collectives = true\nsame_mutations = true"),
      "");
  CHECK_EQ(Check(c, "[require]\nsame_outputs = true\nno_new_targets = true"), R"(
output 0 has another type | same_outputs by p:2
new operators: aten._to_copy.default aten.gelu.default | no_new_targets by p:3)");
}

TEST_CASE("a collective that is swapped is found") {
  const DiffCase c(R"(
    x = placeholder : f32[4]
    a = _c10d_functional.all_reduce.default(x, 'sum', 'dp') : f32[4]
    b = _c10d_functional.all_gather_into_tensor.default(x, 2, 'dp') : f32[8]
    output([a, b])
  )",
                   R"(
    x = placeholder : f32[4]
    b = _c10d_functional.all_gather_into_tensor.default(x, 2, 'dp') : f32[8]
    a = _c10d_functional.all_reduce.default(x, 'sum', 'dp') : f32[4]
    output([a, b])
  )");
  CHECK_EQ(Check(c, "[require]\nsame_collectives = true"), R"(
collectives differ at 0: b is _c10d_functional.all_gather_into_tensor.default(_, 2, 'dp'), not _c10d_functional.all_reduce.default(_, 'sum', 'dp') as a | same_collectives by p:2)");
}

TEST_CASE("a custom operator that returns nothing is a mutation") {
  const DiffCase c("x = placeholder : f32[4]\nw = mylib.write.default(x)\noutput(x)",
                   "x = placeholder : f32[4]\noutput(x)");
  CHECK_EQ(Check(c, "[require]\nsame_mutations = true"), R"(
0 mutations, not 1 | same_mutations by p:2)");
}

TEST_CASE("a collective of another group is another collective") {
  const DiffCase c(
      "x = placeholder\na = _c10d_functional.all_reduce.default(x, 'sum', 'dp')\noutput(a)",
      "x = placeholder\na = _c10d_functional.all_reduce.default(x, 'sum', 'tp')\noutput(a)");
  CHECK_NE(Check(c, "[require]\nsame_collectives = true"), "");
}

TEST_CASE("renamed nodes are a change for rules that say so only") {
  const DiffCase c("x = placeholder\ny = aten.sin.default(x)\noutput(y)",
                   "x = placeholder\nz = aten.sin.default(x)\noutput(z)");
  CHECK_EQ(Check(c, "[[allow]]\ntargets = 'aten.mm*'\n[[forbid]]\ntargets = 'aten.sin*'"), "");
  CHECK_EQ(Check(c, "[[forbid]]\nstatuses = 'renamed'"),
           "\nrenamed y -> z (aten.sin.default) | forbidden by p:1");
}

TEST_CASE("errors of policies list what exists") {
  CHECK_EQ(ErrorOf("[allow\n").substr(0, 4), "p:1:");
  CHECK_EQ(ErrorOf("mm = mm_1\n"),
           "p:1:6: not valid TOML: Error while parsing value: could not determine value type\n"
           "  mm = mm_1\n       ^");
  CHECK_EQ(ErrorOf("[limits]\ninserted = 1\n"),
           "p:1:2: unknown key 'limits' in a policy, did you mean 'limit'; it has allow, forbid, "
           "limit, require\n  [limits]\n   ^");
  CHECK_EQ(
      ErrorOf("[[allow]]\nstatuses = ['inserted', 'delted']\n"),
      "p:2:25: unknown word 'delted' in 'statuses', did you mean 'deleted'; it may be renamed, "
      "moved, changed, derived, inserted, deleted, replaced, cloned, merged, became_input, "
      "became_compute\n  statuses = ['inserted', 'delted']\n                          ^");
  CHECK_EQ(ErrorOf("[limit]\ninserted = 'many'\n"),
           "p:2:12: 'inserted' is a number from 0\n  inserted = 'many'\n             ^");
  CHECK_EQ(ErrorOf("[[forbid]]\nmodules = 'layers.{0..x}'\n"),
           "p:2:11: '{0..x}' is no range of numbers like {0..31}\n"
           "  modules = 'layers.{0..x}'\n            ^");
  CHECK_EQ(ErrorOf("[[allow]]\ntargets = []\n"),
           "p: 'targets' is empty: leave it out, or say what");
  CHECK_EQ(ErrorOf("allow = 3\n"), "p:1:9: [[allow]] is a table\n  allow = 3\n          ^");
}

}  // namespace
}  // namespace strata
