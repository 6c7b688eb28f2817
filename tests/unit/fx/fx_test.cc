#include "ir/fx/fx.h"

#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/text/native_text.h"
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

/// Wraps body lines (indented by 8) into a class. A line break before the first is dropped.
std::string Program(std::string_view parameters, std::string_view body) {
  if (body.starts_with('\n')) body.remove_prefix(1);
  return "class GraphModule(torch.nn.Module):\n    def forward(self, " + std::string(parameters) +
         "):\n" + std::string(body);
}

/// The graph as native text without types and metadata, after a line break.
std::string Plain(const FxDocument& document) {
  return "\n" + PrintText(*document.module, {.types = false, .metadata = false});
}

NodeId OrderedNode(const Graph& graph, int position) {
  return *std::next(graph.nodes().begin(), position);
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

TEST_CASE("fx: a graph_trainer graph reads back byte for byte") {
  const FxDocument document = Parse(kTrainer);
  CHECK_EQ(PrintFx(document.graph()), kTrainer);
  CHECK(document.graph().is_foreign());
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

// Dialects of FX text.

/// Reads a body strictly; returns its lines as native text.
std::string Body(std::string_view body, std::string_view parameters = "x, y") {
  return Plain(Parse(Program(parameters, std::string(body) + "        return x\n")));
}

TEST_CASE("fx: operators, attributes, methods and modules") {
  CHECK_EQ(Body(R"(
        a = x + 1;  a = None
        b = -x
        c = 1 - x
        d = x.T
        e = getattr(x, 'odd name')
        f = x.view(-1, y, k = None)
        g = self.layers.lin(x)
        h = getattr(getattr(self.layers, "0"), "1").weight
        i = torch._C._nn.gelu(x)
        j = __main___helper(x, k = y)
        k = torch.ops.aten.add.Tensor(x, y)
        l = x == 'a = b'
)"),
           R"(
graph GraphModule foreign
  x = placeholder
  y = placeholder
  a = _operator.add(x, 1)
  b = _operator.neg(x)
  c = _operator.sub(1, x)
  d = getattr(x, 'T')
  e = getattr(x, 'odd name')
  f = method view(x, -1, y, k=None)
  g = submodule layers.lin(x)
  h = attr layers.0.1.weight
  i = torch._C._nn.gelu(x)
  j = __main___helper(x, k=y)
  k = aten.add.Tensor(x, y)
  l = _operator.eq(x, 'a = b')
  output(x)
)");
}

TEST_CASE("fx: two statements on a line are one node, frees are ignored") {
  CHECK_EQ(Body(R"(
        x += 1;  iadd = x;  iadd = None
        x[(slice(None, y, 2), None)] = 1.0;  setitem = x;  x = setitem = None
)"),
           R"(
graph GraphModule foreign
  x = placeholder
  y = placeholder
  iadd = _operator.iadd(x, 1)
  setitem = _operator.setitem(x, (call('slice', None, y, 2), None), 1.0)
  output(x)
)");
}

TEST_CASE("fx: strings may contain any character") {
  const FxDocument document = Parse(Program("x", R"(
        a = f(x, 'it;  b = None # "q"', "it's", 'nl\n\\', '\x00\u200b', b'\x00')
        return a
)"));
  const Graph& graph = document.graph();
  const std::span<const Arg> args = graph.args(OrderedNode(graph, 1));
  CHECK_EQ(document.module->str(args[1].str()), "it;  b = None # \"q\"");
  CHECK_EQ(document.module->str(args[2].str()), "it's");
  CHECK_EQ(document.module->str(args[3].str()), "nl\n\\");
  // Python escapes characters that it cannot print; escapes that Strata prints otherwise are kept
  // as raw text.
  CHECK_EQ(args[4].kind(), ArgKind::kRaw);
  CHECK_EQ(args[5].kind(), ArgKind::kRaw);
}

TEST_CASE("fx: each literal has its kind") {
  const FxDocument document = Parse(Program(
      "x",
      "        a = f(1, -1.5, 1e-05, inf, -inf, True, None, torch.float32, device(type='cuda', "
      "index=0), torch.strided, (2+3j), 123456789012345678901234567890, s0*2, [2*s0 + 1], "
      "<object at 0x1>, Colour.RED, foo(a=1))\n        return a\n"));
  const Graph& graph = document.graph();
  std::vector<ArgKind> kinds;
  for (const Arg& arg : graph.args(OrderedNode(graph, 1)))
    kinds.push_back(arg.kind());
  using K = ArgKind;
  CHECK_EQ(kinds, std::vector<ArgKind>{K::kInt, K::kFloat, K::kFloat, K::kFloat, K::kFloat,
                                       K::kBool, K::kNone, K::kDType, K::kDevice, K::kRaw, K::kRaw,
                                       K::kRaw, K::kDim, K::kList, K::kRaw, K::kRaw, K::kRaw});
}

TEST_CASE("fx: an argument gets the name that the body uses") {
  const FxDocument document = Parse(
      Program("s0: \"Sym(s0)\", L_x_: \"f32[s0]\", L_mesh_ : torch.distributed.DeviceMesh, *args, "
              "y = None, **kw",
              R"(
        l_x_ = L_x_
        l_mesh_ = L_mesh_
        _args = args
        a = f(l_x_, l_mesh_, _args, y, kw)
        return a
)"));
  CHECK_EQ(Plain(document),
           R"(
graph GraphModule foreign
  s0 = placeholder
  l_x_ = placeholder
  l_mesh_ = placeholder
  _args = placeholder
  y = placeholder(None)
  kw = placeholder
  a = f(l_x_, l_mesh_, _args, y, kw)
  output(a)
)");
  const Graph& graph = document.graph();
  CHECK_EQ(graph.attribute(OrderedNode(graph, 1), "argument"), "L_x_");
  CHECK_EQ(graph.attribute(OrderedNode(graph, 2), "python_type"), "torch.distributed.DeviceMesh");
  CHECK_EQ(graph.attribute(OrderedNode(graph, 3), "argument"), "*args");
}

TEST_CASE("fx: a pytree prologue names the inputs, even if an argument has the name of a node") {
  const FxDocument document = Parse(Program("t, k", R"(
        p_1: "f32[2][1]cpu"; k_z: "f32[2][1]cpu";)"
                                                    " \n"  // the line ends with a space
                                                    R"(
        p_1, k_z, = fx_pytree.tree_flatten_spec(([t], {'k':k}), self._in_spec)
        t = torch.ops.aten.t.default(p_1)
        return pytree.tree_unflatten([t, k_z], self._out_spec)
)"));
  CHECK_EQ(Plain(document),
           R"(
graph GraphModule foreign
  p_1 = placeholder
  k_z = placeholder
  t = aten.t.default(p_1)
  output([t, k_z])
)");
}

TEST_CASE("fx: the unpacking and shuffling of exported arguments is read") {
  const FxDocument document = Parse(Program("a, b", R"(
        _0, _1, = pytree.tree_leaves((self, a, b,))
        x, = self._in_shuffle_graph(_0, _1)
        y = torch.sin(x)
        return pytree.tree_unflatten(self._out_shuffle_graph(x, x, y), self._out_spec)
)"));
  CHECK_EQ(Plain(document),
           R"(
graph GraphModule foreign
  x = placeholder
  y = torch.sin(x)
  output([y])
)");
}

TEST_CASE("fx: boxed inputs and boxed arguments do not become nodes") {
  const FxDocument document = Parse(
      R"(class GraphModule(torch.nn.Module):
    def forward(self, args_list):
        args_iter = iter(args_list)
        x = next(args_iter)
        y = next(args_iter)
        args_list.clear()
        n_boxed_arg_0 = [x, y];  x = y = None
        z = torch.ops.higher_order.call(n_boxed_arg_0, k = n_boxed_arg_0);  n_boxed_arg_0 = None
        return z
)");
  CHECK_EQ(Plain(document),
           R"(
graph GraphModule foreign
  x = placeholder
  y = placeholder
  z = higher_order.call([x, y], k=[x, y])
  output(z)
)");
}

TEST_CASE("fx: bodies have paths; one has two names, one is called as a module") {
  const FxDocument document = Parse(
      R"(class GraphModule(torch.nn.Module):
    def forward(self, x):
        sub_0 = self.sub
        sub_1 = self.sub
        a = torch.ops.higher_order.cond(x, sub_0, sub_1, (x,))
        b = self.part_1(a)
        return b

    class sub(torch.nn.Module):
        def forward(self, x):
            inner = self.inner
            a = torch.ops.higher_order.wrap(inner, x)
            return (a,)

        class inner(torch.nn.Module):
            def forward(self, x):
                return (x,)

    class part_1(torch.nn.Module):
        def forward(self, x):
            return x
)");
  const Module& module = *document.module;
  REQUIRE_EQ(module.num_graphs(), 4);
  CHECK_EQ(module.graph(GraphId{1}).name_text(), "sub");
  CHECK_EQ(module.graph(GraphId{2}).name_text(), "sub/inner");
  CHECK_EQ(module.graph(GraphId{3}).name_text(), "part_1");
  const Graph& graph = document.graph();
  for (int i : {1, 2})
    CHECK_EQ(graph.args(OrderedNode(graph, i))[0].graph(), GraphId{1});
  CHECK_EQ(graph.args(OrderedNode(graph, 4))[0].graph(), GraphId{3});
  CHECK_EQ(PrintFx(Parse(PrintFx(graph)).graph()), PrintFx(graph));
}

TEST_CASE("fx: comment formats of all PyTorch versions are read") {
  const auto first = [](std::string_view comment) {
    FxDocument document =
        Parse(Program("x", std::string(comment) + "\n        a = f(x)\n        return a\n"));
    const NodeId node = OrderedNode(document.graph(), 1);
    const Module& module = *document.module;
    const Node& n = document.graph().node(node);
    std::string out = fmt::format("{} {} {}", ToString(n.phase), module.str(n.module), n.seq_nr);
    if (n.loc.valid()) {
      const SourceLoc& loc = module.loc(n.loc);
      out += fmt::format(" {}|{}|{}|{}", module.str(loc.file), loc.line, module.str(loc.function),
                         module.str(loc.code));
    }
    for (const auto& [key, value] : document.graph().attributes(node))
      out += fmt::format(" {}={}", module.str(key), module.str(value));
    return out;
  };
  CHECK_EQ(first("         # File: /a b/c#link-tree/m.py:7 in <lambda>, code: x # File: y:1 in z"),
           "forward  -1 /a b/c#link-tree/m.py|7|<lambda>|x # File: y:1 in z");
  CHECK_EQ(first("        # ac_graph_id: 3 - PREFER_RECOMPUTE File: m.py:1 in f, code: g("),
           "forward  -1 m.py|1|f|g( ac_graph_id=3 recompute=PREFER_RECOMPUTE");
  CHECK_EQ(first("        # recompute: MUST_SAVE No stacktrace found for following nodes"),
           "forward  -1 recompute=MUST_SAVE");
  CHECK_EQ(
      first("        # {'module_fqn': 'a.b', 'EP': {'x': [1, 2]}} # ac_graph_id: 1 - MUST_SAVE "
            "File: m.py:1 in f, code: g"),
      "forward a.b -1 m.py|1|f|g ac_graph_id=1 custom.EP={'x': [1, 2]} recompute=MUST_SAVE");
  CHECK_EQ(first("        # Backward of forward node: File: m.py:1 in f, code: g"),
           "backward  -1 m.py|1|f|g");
  CHECK_EQ(
      first("        # autograd_backward: True, seq_nr: 166, stack: ['a, b: c', '#'] # Annotation: "
            "{'module_fqn': 'loss'} Backward of forward node: File: m.py:1 in f, code: g"),
      "backward loss 166 m.py|1|f|g stack=['a, b: c', '#']");
  CHECK_EQ(first("        # autograd_backward: False # No stacktrace found for following nodes"),
           "forward  -1");
}

TEST_CASE("fx: a repr may span lines; the parser resynchronizes after an unterminated one") {
  CHECK_EQ(Body(R"(
        a = f(<Mesh
            [0, 1]>, x)
)"),
           R"(
graph GraphModule foreign
  x = placeholder
  y = placeholder
  a = f(raw('<Mesh\n            [0, 1]>'), x)
  output(x)
)");
  const Result<FxDocument> document = ParseFx(Program("x", R"(
        a = f(x, (1
            more of it
        b = g(x)
        return (b, a)
)"));
  REQUIRE(document.has_value());
  CHECK_EQ(document->num_diagnostics, 1);
  CHECK_EQ(document->graph().num_nodes(), 3);
}

TEST_CASE("fx: a failed trace has no return; a truncated text is reported") {
  const std::string cut = "def forward(self, x):\n    neg = -x;  x = neg = None\n";
  const Result<FxDocument> failed = ParseFx("\n\n\n" + cut + "    ", {.strict = true});
  REQUIRE(failed.has_value());
  CHECK_EQ(failed->num_diagnostics, 0);
  CHECK_EQ(failed->num_findings, 0);
  CHECK_EQ(failed->graph().num_nodes(), 3);  // an output without operands
  const Result<FxDocument> again = ParseFx(PrintFx(failed->graph()), {.strict = true});
  REQUIRE(again.has_value());
  CHECK(FingerprintOf(again->graph()) == FingerprintOf(failed->graph()));
  const Result<FxDocument> rest = ParseFx(cut);
  REQUIRE(rest.has_value());
  REQUIRE(rest->diagnostics.size() == 1);
  CHECK_EQ(rest->diagnostics[0].what, "the graph has no return");
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
  // A large index does not allocate all elements before it.
  const Result<FxDocument> far = ParseFx(Program("x", R"(
        a = f(x)
        b = a[999999999]
        return b
)"));
  REQUIRE(far.has_value());
  CHECK_LT(far->graph().value_bound(), 10);
}

/// The FX text of a native text, which must read back as the same graph.
std::string FxOf(std::string_view native) {
  const Result<std::unique_ptr<Module>> module = ParseText(native);
  REQUIRE(module.has_value());
  const Graph& graph = (*module)->graph({0});
  std::string text = PrintFx(graph, {.comments = false, .frees = false});
  const Result<FxDocument> again = ParseFx(text, {.strict = true});
  REQUIRE_MESSAGE(again.has_value(), text);
  CHECK_EQ(ToString(FingerprintOf(again->graph())), ToString(FingerprintOf(graph)));
  return text;
}

TEST_CASE("fx: names that Python does not accept are replaced") {
  CHECK_EQ(FxOf(R"(
graph g
  %'x -> y' = placeholder
  class = aten.sin.default(%'x -> y')
  %'a b' = aten.sin.default(class)
  a_b = aten.sin.default(%'a b')
  (_, %'0') = aten.split.default(a_b) as %'q;q' : (f32[4], f32[4])
  output(%'0')
)"),
           R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        x____y,
    ):
        _class = torch.ops.aten.sin.default(x____y)
        a_b_1 = torch.ops.aten.sin.default(_class)
        a_b = torch.ops.aten.sin.default(a_b_1)
        q_q = torch.ops.aten.split.default(a_b)
        _0: "f32[4]" = q_q[1]
        return _0
)");
}

TEST_CASE("fx: a body with two names is printed as two classes") {
  const std::string text = FxOf(R"(
graph g
  x = placeholder
  a = attr a(graph(1))
  b = attr b(graph(1))
  y = higher_order.wrap(a, x)
  z = higher_order.wrap(b, y)
  output(z)
graph body body
  x = placeholder
  s = aten.sin.default(x)
  output(s)
)");
  CHECK_NE(text.find("    class a(torch.nn.Module):"), std::string::npos);
  CHECK_NE(text.find("    class b(torch.nn.Module):"), std::string::npos);
}

TEST_CASE("fx: symbols in arguments are bound where a value has them as a size") {
  const std::string native = R"(
symbol s0 hint=4
symbol s1 hint=6
graph g
  w = placeholder : f32[8, 8][8, 1]cpu
  x = placeholder : f32[s0, s1, 8][8*s1, 8, 1]cpu
  y = aten.view.default(x, [sym(s0*s1), 8]) : f32[s0*s1, 8][8, 1]cpu
  n = aten.nonzero.default(y) : i64[u0, 2][1, u0]cpu
  z = aten.view.default(n, [sym(2*u0)]) : i64[2*u0][1]cpu
  output(z)
)";
  const auto module = ParseText(native);
  REQUIRE(module.has_value());
  const std::string text = PrintFx((*module)->graph(GraphId{0}));
  CHECK_EQ(text, R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        w: "f32[8, 8][8, 1]cpu",
        x: "f32[s0, s1, 8][8*s1, 8, 1]cpu",
    ):
        s0 = x.shape[0]
        s1 = x.shape[1]
        y: "f32[s0*s1, 8][8, 1]cpu" = torch.ops.aten.view.default(x, [s0*s1, 8]);  x = None
        n: "i64[u0, 2][1, u0]cpu" = torch.ops.aten.nonzero.default(y);  y = None
        u0 = n.shape[0]
        z: "i64[2*u0][1]cpu" = torch.ops.aten.view.default(n, [2*u0]);  n = None
        return z
)");
  // The lines that bind are not nodes, and come back.
  const FxDocument document = Parse(text);
  CHECK_EQ(FingerprintOf(document.graph()), FingerprintOf((*module)->graph(GraphId{0})));
  CHECK_EQ(PrintFx(document.graph()), text);
}

TEST_CASE("fx: sizes that only types have are not bound, nor is what a log leaves unbound") {
  CHECK_EQ(FxOf(R"(
graph g
  x = placeholder : f32[s0][1]cpu
  y = aten.sin.default(x) : f32[s0][1]cpu
  output(y)
)")
               .find("shape"),
           std::string::npos);
  const std::string logged = Program("x: \"f32[s0]\"", R"(
        y: "f32[s0]" = torch.ops.aten.view.default(x, [s0 + 1]);  x = None
        return y
)");
  const FxDocument document = Parse(logged);
  CHECK_EQ(PrintFx(document.graph()).find("shape"), std::string::npos);
  CHECK(UnboundSymbols(document.graph()).empty());
}

TEST_CASE("fx: symbols that no value has as a size stay unbound") {
  const auto module = ParseText(R"(
graph g
  x = placeholder : f32[2*s0][1]cpu
  y = aten.view.default(x, [sym(s0), 2, sym(s1)]) : f32[s0, 2][2, 1]cpu
  output(y)
)");
  REQUIRE(module.has_value());
  CHECK_EQ(UnboundSymbols((*module)->graph(GraphId{0})), std::vector<std::string>{"s1"});
}

}  // namespace
}  // namespace strata
