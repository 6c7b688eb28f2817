#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "tests/unit/fx/fx_text.h"

namespace strata {
namespace {

using testing::OrderedNode;
using testing::Parse;
using testing::Plain;
using testing::Program;

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

TEST_CASE("fx: comments that differ only in number or direction keep theirs") {
  const FxDocument document = Parse(Program("x", R"(
        # seq_nr: 1 # Annotation: {'module_fqn': 'loss'} No stacktrace found for following nodes
        a = f(x)
        # autograd_backward: True, seq_nr: 2 # Annotation: {'module_fqn': 'loss'} No stacktrace found for following nodes
        b = f(a)
        # seq_nr: 3 # Annotation: {'module_fqn': 'loss'} No stacktrace found for following nodes
        c = f(b)
        return c
)"));
  std::string read;
  for (int i = 1; i <= 3; ++i) {
    const Node& node = document.graph().node(OrderedNode(document.graph(), i));
    read += fmt::format("{} {} {}\n", ToString(node.phase), document.module->str(node.module),
                        node.seq_nr);
  }
  CHECK_EQ(read, "forward loss 1\nbackward loss 2\nforward loss 3\n");
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

}  // namespace
}  // namespace strata
