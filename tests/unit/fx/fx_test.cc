#include "ir/fx/fx.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "tests/unit/fx/fx_text.h"

namespace strata {
namespace {

using testing::Parse;
using testing::Plain;
using testing::Program;
using testing::StrictError;

const std::string kTrainer =
    R"(class <lambda>(torch.nn.Module):
    def forward(
        self,
        arg0_1: "bf16[64, 64][64, 1]cpu",
        arg1_1: "i64[2, 128][128, 1]cpu",
    ):
        # seq_nr: 0 # Annotation: {'module_fqn': 'tok'} File: /w/a b#c.py:189 in <lambda>, code: x = f(a) # File: b.py:1 in g
        embedding: "bf16[2, 128, 64][8192, 64, 1]cpu" = torch.ops.aten.embedding.default(arg0_1, arg1_1);  arg0_1 = None
        t: "bf16[64, 2][1, 64]cpu" = torch.ops.aten.t.default(embedding);  t = None

        # autograd_backward: True, seq_nr: 0 # Annotation: {'module_fqn': 'tok', 'EP': 'dispatch'} Backward of forward node: File: /w/a.py:189 in forward, code: return F.embedding(
        sort = torch.ops.aten.sort.stable(embedding, stable = True, descending = True);  embedding = None
        getitem: "bf16[2, 128, 64][8192, 64, 1]cpu" = sort[0]
        getitem_1: "i64[2, 128, 64][8192, 64, 1]cpu" = sort[1];  sort = getitem_1 = None

        # No stacktrace found for following nodes
        copy_: "i64[2, 128][128, 1]cpu" = torch.ops.aten.copy_.default(arg1_1, arg1_1);  arg1_1 = copy_ = None
        return [getitem, None]
)";

TEST_CASE("fx: a graph_trainer graph reads back byte for byte") {
  const FxDocument document = Parse(kTrainer);
  CHECK_EQ(PrintFx(document.graph()), kTrainer);
  CHECK(document.graph().is_foreign());
}

TEST_CASE("fx: a text is compared with what its graph prints, up to the first difference") {
  const FxDocument document = Parse(kTrainer);
  const std::string_view lines = std::string_view(kTrainer).substr(0, kTrainer.size() - 1);
  CHECK(PrintsAs(document.graph(), lines));
  CHECK_FALSE(PrintsAs(document.graph(), kTrainer));  // a line end too many
  for (size_t i = 0; i < lines.size(); ++i) {
    CHECK_FALSE(PrintsAs(document.graph(), lines.substr(0, i)));
    std::string other(lines);
    other[i] ^= 1;
    CHECK_FALSE(PrintsAs(document.graph(), other));
  }
}

TEST_CASE("fx: comments set phase, module, sequence number, location and attributes") {
  const FxDocument document = Parse(kTrainer);
  const Graph& graph = document.graph();
  const Module& module = *document.module;
  NodeId embedding, sort, copy;
  for (NodeId id : graph.nodes()) {
    if (graph.name(id) == "embedding") embedding = id;
    if (graph.name(id) == "sort") sort = id;
    if (graph.name(id) == "copy_") copy = id;
  }
  const Node& forward = graph.node(embedding);
  CHECK_EQ(forward.phase, Phase::kForward);
  CHECK_EQ(module.str(forward.module), "tok");
  CHECK_EQ(forward.seq_nr, 0);
  CHECK_EQ(forward.text_line, 7);
  const SourceLoc& loc = module.loc(forward.loc);
  CHECK_EQ(module.str(loc.file), "/w/a b#c.py");
  CHECK_EQ(loc.line, 189);
  CHECK_EQ(module.str(loc.function), "<lambda>");
  CHECK_EQ(module.str(loc.code), "x = f(a) # File: b.py:1 in g");

  CHECK_EQ(graph.node(sort).phase, Phase::kBackward);
  CHECK_EQ(graph.attribute(sort, "custom.EP"), "'dispatch'");
  CHECK_FALSE(graph.node(copy).loc.valid());
  CHECK_EQ(graph.node(copy).seq_nr, -1);
}

TEST_CASE("fx: where no comment says so, what depends on gradients of outputs is backward") {
  constexpr std::string_view kJoint = R"(class inner_f(torch.nn.Module):
    def forward(self, primals_1: "f32[2][1]cpu", tangents_1: "f32[2][1]cpu"):
        # File: /w/m.py:5 in f, code: return x.sin()
        sin: "f32[2][1]cpu" = torch.ops.aten.sin.default(primals_1)
        cos: "f32[2][1]cpu" = torch.ops.aten.cos.default(primals_1);  primals_1 = None
        mul: "f32[2][1]cpu" = torch.ops.aten.mul.Tensor(tangents_1, cos);  tangents_1 = cos = None
        neg: "f32[2][1]cpu" = torch.ops.aten.neg.default(mul);  mul = None
        return (sin, neg)
)";
  const FxDocument document = Parse(kJoint);
  const Graph& graph = document.graph();
  CHECK_EQ(PrintFx(graph), kJoint);
  std::string backward;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).phase == Phase::kBackward) backward += fmt::format("{} ", graph.name(id));
  }
  CHECK_EQ(backward, "mul neg ");
}

TEST_CASE(
    "fx: getitem lines directly after their producer become its elements and count as nodes") {
  const FxDocument document = Parse(kTrainer);
  CHECK_EQ(document.graph().num_nodes(), 7);
  CHECK_EQ(document.graph().num_printed_nodes(), 9);
}

TEST_CASE("fx: other getitem lines are separate nodes") {
  // Descending; another use of the tuple; a line in between; an index that is not a number.
  for (const char* body : {
           R"(
        a = f(x)
        b = a[1]
        c = a[0]
        return (b, c)
)",
           R"(
        a = f(x)
        b = a[0]
        c = g(a)
        return (b, c)
)",
           R"(
        a = f(x)
        c = g(x)
        b = a[0]
        return (b, c)
)",
           R"(
        a = f(x)
        b = a['k']
        return (b,)
)",
           R"(
        a = f(x)
        b = a[-1]
        return (b,)
)",
           R"(
        a: "f32[2]" = f(x)
        b = a[0]
        return (b,)
)",
       }) {
    const FxDocument document = Parse(Program("x", body));
    CHECK_EQ(document.graph().num_nodes(), document.graph().num_printed_nodes());
    CHECK_NE(Plain(document).find("_operator.getitem(a, "), std::string::npos);
  }
}

TEST_CASE("fx: a strict error shows the position") {
  CHECK_EQ(StrictError(Program("x", R"(
        y = f(x,)
        z = f(x, q)
        return z
)")),
           "t.txt:4:18: unknown name\n"
           "          z = f(x, q)\n"
           "                   ^");
  CHECK_EQ(StrictError("hello"),
           "no graph: t.txt: expected a 'class …(torch.nn.Module):' or a 'def forward(…):'");
}

TEST_CASE("fx: by default an unreadable statement is skipped and reported") {
  const Result<FxDocument> document = ParseFx(Program("x", R"(
        y = f(x, q)
        z = g(y, x)
        return (z, y)
)"));
  REQUIRE(document.has_value());
  REQUIRE_EQ(document->num_diagnostics, 1);
  CHECK_EQ(document->diagnostics[0].line, 3);
  CHECK_EQ(document->diagnostics[0].column, 18);
  CHECK_EQ(document->diagnostics[0].what, "unknown name");
  CHECK_EQ(document->diagnostics[0].skipped, "y = f(x, q)");
  CHECK_EQ(document->graph().num_nodes(), 3);
}

TEST_CASE("fx: only the text that exports and graph ids add around a graph is accepted") {
  const std::string graph = Program("x", "        return x\n");
  CHECK_EQ(
      Parse("ExportedProgram:\n" + graph + "\nGraph signature: ExportGraphSignature(…)\nmore\n")
          .num_diagnostics,
      0);
  CHECK_EQ(Parse(graph + "\n\n # graph id: 1407").num_diagnostics, 0);
  CHECK_EQ(StrictError("hello\n" + graph), "t.txt:1:1: text before the graph\n  hello\n  ^");
  CHECK_EQ(StrictError(graph + "bye\n"), "t.txt:4:1: text after the graph\n  bye\n  ^");
}

TEST_CASE("fx: graphs are recognized by content") {
  CHECK(LooksLikeFxGraph(kTrainer));
  CHECK(LooksLikeFxGraph("\n\ndef forward(self, x):\n    return x\n"));
  CHECK(LooksLikeFxGraph(
      "from __future__ import annotations\n\n\n\ndef forward(self, x):\n    return x\n"));
  // A graph saved as a Python file, and a program that contains one.
  const std::string imports =
      "from __future__ import annotations\nimport torch\n\n# Graph\nfrom torch import device\n";
  CHECK(LooksLikeFxGraph(imports + kTrainer));
  CHECK(LooksLikeFxGraph(imports + kTrainer + " # graph id: 7"));
  const Result<FxDocument> saved = ParseFx(imports + kTrainer, {.strict = true});
  REQUIRE(saved.has_value());
  CHECK_EQ(PrintFx(saved->graph()), kTrainer);
  CHECK_FALSE(LooksLikeFxGraph(imports + kTrainer + "mod = Repro()\n"));
  CHECK_FALSE(LooksLikeFxGraph("import torch\ntorch.manual_seed(0)\n" + kTrainer));
  CHECK_FALSE(LooksLikeFxGraph(kTrainer + "import torch\n"));
  CHECK_FALSE(LooksLikeFxGraph("{\"code\": \"class A(torch.nn.Module):\\n def forward(\"}"));
  CHECK_FALSE(LooksLikeFxGraph("class A(torch.nn.Module):\n"));
  CHECK_FALSE(LooksLikeFxGraph(""));
}

TEST_CASE("fx: hostile text is parsed in bounded time and memory") {
  const auto diagnostics = [](const std::string& text) {
    const Result<FxDocument> document = ParseFx(text);
    REQUIRE(document.has_value());
    CHECK(Verify(*document->module).has_value());
    return document->num_diagnostics;
  };
  constexpr size_t kMany = 100000;
  CHECK_GE(diagnostics(Program("x", "        a = f(" + std::string(kMany, '(') + "\n")), 1);
  CHECK_GE(diagnostics(Program("x", "        a = " + std::string(kMany, '[') + "\n")), 1);
  std::string getattrs;
  for (size_t i = 0; i < kMany / 10; ++i)
    getattrs += "getattr(";
  CHECK_GE(diagnostics(Program("x", "        a = " + getattrs + "self\n")), 1);
  std::string classes;
  for (size_t i = 0; i < 200; ++i)
    classes += std::string(4 * i, ' ') + "class a(torch.nn.Module):\n" +
               std::string(4 * i + 4, ' ') + "def forward(self):\n" + std::string(4 * i + 8, ' ') +
               "return None\n";
  CHECK_GE(diagnostics(classes), 1);
  // Nested lists would expand to 2^40 operands.
  std::string lists = "        l0 = [x, x]\n";
  for (int i = 1; i < 40; ++i)
    lists += fmt::format("        l{0} = [l{1}, l{1}]\n", i, i - 1);
  CHECK_GE(diagnostics(Program("x", lists + "        a = f(l39)\n        return a\n")), 1);
  // Names that are not freed are found in one pass over the lines; this would take minutes.
  std::string unfreed;
  for (size_t i = 0; i < kMany; ++i)
    unfreed += fmt::format("        a{} = f(x)\n        b{} = f(a{})\n", i, i, i);
  const Result<FxDocument> findings =
      ParseFx(Program("x", unfreed + "        c = f(x);  x = None\n        return c\n"));
  REQUIRE(findings.has_value());
  CHECK_GE(findings->num_findings, kMany);
  // A large index does not allocate all elements before it.
  const Result<FxDocument> far = ParseFx(Program("x", R"(
        a = f(x)
        b = a[999999999]
        return b
)"));
  REQUIRE(far.has_value());
  CHECK_LT(far->graph().value_bound(), 10);
}

}  // namespace
}  // namespace strata
