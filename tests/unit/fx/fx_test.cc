#include "ir/fx/fx.h"

#include <string>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/native_text.h"
#include "ir/verify.h"

namespace strata {
namespace {

FxDocument Parse(std::string_view text) {
  Result<FxDocument> document = ParseFx(text, {.file = "t.txt", .graph_name = {}, .strict = true});
  REQUIRE_MESSAGE(document.has_value(), (document ? "" : document.error().message()));
  const Status verified = Verify(*document->module);
  REQUIRE_MESSAGE(verified.has_value(), (verified ? "" : verified.error().message()));
  return std::move(*document);
}

/// Wraps body lines (indented by 8) into a class.
std::string Program(std::string_view parameters, std::string_view body) {
  return "class GraphModule(torch.nn.Module):\n    def forward(self, " + std::string(parameters) +
         "):\n" + std::string(body);
}

/// The graph of a text in Strata's own spelling, without types and metadata.
std::string Plain(const FxDocument& document) {
  return PrintText(*document.module, {.types = false, .metadata = false});
}

std::string StrictError(std::string_view text) {
  const Result<FxDocument> document =
      ParseFx(text, {.file = "t.txt", .graph_name = {}, .strict = true});
  return document ? "no error" : document.error().message();
}

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

TEST_CASE("fx: a graph_trainer graph comes back byte for byte") {
  const FxDocument document = Parse(kTrainer);
  CHECK_EQ(PrintFx(document.graph()), kTrainer);
  CHECK(document.graph().is_foreign());
}

TEST_CASE("fx: comments give phase, module, sequence number, location and attributes") {
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

TEST_CASE("fx: getitem lines after their producer are its elements, and count as nodes") {
  const FxDocument document = Parse(kTrainer);
  CHECK_EQ(document.graph().num_nodes(), 7);
  CHECK_EQ(document.graph().num_printed_nodes(), 9);
}

TEST_CASE("fx: other getitem lines are nodes of their own") {
  // Descending; another use of the tuple; a line between; an index that is no number.
  for (const char* body : {
           "        a = f(x)\n        b = a[1]\n        c = a[0]\n        return (b, c)\n",
           "        a = f(x)\n        b = a[0]\n        c = g(a)\n        return (b, c)\n",
           "        a = f(x)\n        c = g(x)\n        b = a[0]\n        return (b, c)\n",
           "        a = f(x)\n        b = a['k']\n        return (b,)\n",
           "        a = f(x)\n        b = a[-1]\n        return (b,)\n",
           "        a: \"f32[2]\" = f(x)\n        b = a[0]\n        return (b,)\n",
       }) {
    const FxDocument document = Parse(Program("x", body));
    CHECK_EQ(document.graph().num_nodes(), document.graph().num_printed_nodes());
    CHECK_NE(Plain(document).find("_operator.getitem(a, "), std::string::npos);
  }
}

TEST_CASE("fx: a strict error shows the place") {
  CHECK_EQ(StrictError(Program("x", "        y = f(x,)\n        z = f(x, q)\n        return z\n")),
           "t.txt:4:18: unknown name\n"
           "          z = f(x, q)\n"
           "                   ^");
  CHECK_EQ(StrictError("hello"),
           "no graph: t.txt: expected a 'class …(torch.nn.Module):' or a 'def forward(…):'");
}

TEST_CASE("fx: by default a statement that cannot be read is passed over and told") {
  const Result<FxDocument> document =
      ParseFx(Program("x", "        y = f(x, q)\n        z = g(y, x)\n        return (z, y)\n"));
  REQUIRE(document.has_value());
  REQUIRE_EQ(document->num_diagnostics, 1);
  CHECK_EQ(document->diagnostics[0].line, 3);
  CHECK_EQ(document->diagnostics[0].column, 18);
  CHECK_EQ(document->diagnostics[0].what, "unknown name");
  CHECK_EQ(document->diagnostics[0].skipped, "y = f(x, q)");
  CHECK_EQ(document->graph().num_nodes(), 3);
}

}  // namespace
}  // namespace strata
