#include "ir/fx/program.h"

#include <string>

#include <doctest/doctest.h>

#include "ir/verify.h"

namespace strata {
namespace {

/// A program with this body of `forward(self, a, b)`, and these lines of `load_args`.
std::string ProgramText(const std::string& body, const std::string& inputs) {
  return "import os\nimport torch\nos.environ['A'] = '1'\n\n"
         "class Repro(torch.nn.Module):\n"
         "    def __init__(self) -> None:\n"
         "        super().__init__()\n"
         "        self.f = lambda a, b: a\n"
         "\n"
         "    def forward(self, a, b):\n" +
         body + "\ndef load_args(reader):\n" + inputs + "load_args._version = 0\n\n" +
         "def get_pg_config():\n    return {'0': {'size': 4, 'rank': 0}}\n"
         "if __name__ == '__main__':\n    run_repro(mod, load_args)\n";
}

constexpr const char* kInputs =
    "    buf0 = reader.storage(None, 192, device=device(type='cuda', index=0), "
    "dtype_hint=torch.bfloat16)\n"
    "    reader.tensor(buf0, (8, 6), (1, 8), dtype=torch.bfloat16, is_leaf=True)  # a\n"
    "    buf1 = reader.storage('3f2a', 96, device=device(type='cuda', index=0))\n"
    "    reader.tensor(buf1, (2, 3, 4), is_leaf=True)  # b\n";

/// The types of the nodes of a program, a line each.
std::string TypesOf(const std::string& body, const std::string& inputs = kInputs) {
  const std::string text = ProgramText(body, inputs);
  CHECK(LooksLikeFxProgram(text));
  const auto program = ParseFxProgram(text, {.file = "p.py", .strict = true});
  if (!program) return program.error().message();
  const Graph& graph = program->document.graph();
  const Status verified = Verify(*program->document.module);
  CHECK_MESSAGE(verified.has_value(), (verified ? "" : verified.error().message()));
  std::string types;
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId value = graph.result(node, i);
      types += graph.value_name(value);
      types += ' ';
      types += graph.value(value).type.valid()
                   ? program->document.module->types().ToString(graph.value(value).type)
                   : "?";
      types += '\n';
    }
  }
  for (const NodeId node : program->unknown) {
    types += "unknown ";
    types += graph.op(node);
    types += '\n';
  }
  return types;
}

TEST_CASE("fx program: inputs have the types of load_args, and others what operators make") {
  CHECK_EQ(TypesOf(R"(        c = torch.ops.prims.convert_element_type.default(b, torch.bfloat16)
        v = torch.ops.aten.view.default(c, [-1, 4]);  c = None
        g = torch.ops._c10d_functional.all_gather_into_tensor.default(v, 4, '0');  v = None
        w = torch.ops._c10d_functional.wait_tensor.default(g);  g = None
        p = torch.ops.aten.permute.default(a, [1, 0])
        s = torch.ops.aten.slice.Tensor(p, 0, 0, 4);  p = None
        m = torch.ops.aten.mm.default(w, s);  w = s = None
        r = torch.ops._c10d_functional.reduce_scatter_tensor.default(m, 'sum', 4, '0');  m = None
        x = torch.ops._c10d_functional.wait_tensor.default(r);  r = None
        t = torch.ops.aten.split.Tensor(x, 5, 1);  x = None
        t0 = t[0]
        t1 = t[1];  t = None
        k = torch.ops.aten.sum.dim_IntList(t0, [1], True);  t0 = None
        e = torch.ops.aten.gt.Scalar(k, 0);  k = None
        return (e, t1)
)"),
           "a bf16[8, 6][1, 8]cuda:0\n"
           "b f32[2, 3, 4][12, 4, 1]cuda:0\n"
           "c bf16[2, 3, 4][12, 4, 1]cuda:0\n"
           "v bf16[6, 4][4, 1]cuda:0\n"
           "g bf16[24, 4][4, 1]cuda:0\n"
           "w bf16[24, 4][4, 1]cuda:0\n"
           "p bf16[6, 8][8, 1]cuda:0\n"
           "s bf16[4, 8][8, 1]cuda:0\n"
           "m bf16[24, 8][8, 1]cuda:0\n"
           "r bf16[6, 8][8, 1]cuda:0\n"
           "x bf16[6, 8][8, 1]cuda:0\n"
           "t0 bf16[6, 5][5, 1]cuda:0\n"
           "t1 bf16[6, 3][3, 1]cuda:0\n"
           "k bf16[6, 1][1, 1]cuda:0\n"
           "e b8[6, 1][1, 1]cuda:0\n");
}

TEST_CASE("fx program: operators promote and broadcast as PyTorch does") {
  const std::string types = TypesOf(R"(        u = torch.ops.aten.unsqueeze.default(a, 0)
        f = torch.ops.aten.full.default([], 0, dtype = torch.int64, device = device(type='cuda', index=0))
        n = torch.ops.aten.add.Tensor(f, 0.5)
        q = torch.ops.aten.mul.Tensor(a, f)
        h = torch.ops.aten.select.int(b, 0, 1)
        i = torch.ops.aten.unsqueeze.default(h, 1)
        j = torch.ops.aten.mul.Tensor(h, i)
        d = torch.ops.aten.div.Tensor(f, f)
        z = torch.ops.aten.view_as_complex.default(torch.ops.aten.view.default(b, [2, 3, 2, 2]))
        y = torch.ops.aten.constant_pad_nd.default(b, [0, 1, 2, -1], 0.0)
        return (u, n, q, j, d, y)
)");
  CHECK(types.find("n f32[][]cuda:0\n") != std::string::npos);
  CHECK(types.find("q bf16[8, 6][6, 1]cuda:0\n") != std::string::npos);
  CHECK(types.find("j f32[3, 3, 4][12, 4, 1]cuda:0\n") != std::string::npos);
  CHECK(types.find("d f32[][]cuda:0\n") != std::string::npos);
  CHECK(types.find("y f32[2, 4, 5][20, 5, 1]cuda:0\n") != std::string::npos);
}

TEST_CASE(
    "fx program: sizes that depend on data are symbols, which numbers among the inputs give") {
  const std::string inputs =
      "    reader.symint(5)  # _local_scalar_dense_3\n"
      "    reader.tensor(buf0, (8*((u3 + 3)//8), 2), is_leaf=True)  # b\n";
  CHECK_EQ(TypesOf(R"(        d = a + 4
        c = d - 1
        v = torch.ops.aten.view.default(b, [-1])
        s = torch.ops.aten.sym_size.int(v, 0)
        k = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, kwargs = {'x': v, 'out': b}, tensors_to_clone = ['out'])
        o = k['out']
        return (c, o, s)
)",
                   inputs),
           "a Sym(5)\n"
           "b f32[8*((u3 + 3)//8), 2][2, 1]\n"
           "d Sym(9)\n"
           "c Sym(8)\n"
           "v f32[16*(((u3 + 3)//8))][1]\n"
           "s Sym(16*(((u3 + 3)//8)))\n"
           "k ?\n"
           "o f32[8*((u3 + 3)//8), 2][2, 1]\n");
}

TEST_CASE("fx program: what has no rule, and what reads it, is listed") {
  const std::string types = TypesOf(R"(        c = torch.ops.mine.magic.default(a)
        n = torch.ops.aten.neg.default(c)
        m = torch.ops.aten.neg.default(b)
        return (n, m)
)");
  CHECK(types.find("m f32[2, 3, 4][12, 4, 1]cuda:0\n") != std::string::npos);
  CHECK(types.ends_with("unknown mine.magic.default\nunknown aten.neg.default\n"));
}

TEST_CASE("fx program: errors name the place in the program") {
  const std::string body = "        return (a, b)\n";
  CHECK_EQ(TypesOf(body, "    reader.tensor(buf0, (8, -2), is_leaf=True)  # a\n"),
           "p.py:14:29: expected a size\n"
           "      reader.tensor(buf0, (8, -2), is_leaf=True)  # a\n"
           "                              ^");
  CHECK_EQ(TypesOf(body, "    reader.tensor(buf0, (8, 6), dtype=torch.bf17)\n"),
           "p.py:14:45: expected a dtype of PyTorch\n"
           "      reader.tensor(buf0, (8, 6), dtype=torch.bf17)\n"
           "                                              ^");
  CHECK_EQ(TypesOf(body, "    reader.tensor(buf0, (8, 6))\n"),
           "p.py:14:5: load_args ends after 1 of the 2 inputs of forward: nothing for b\n"
           "      reader.tensor(buf0, (8, 6))\n"
           "      ^");
  CHECK_EQ(TypesOf(body, ""),
           "p.py:13:1: load_args ends after 0 of the 2 inputs of forward: nothing for a\n"
           "  def load_args(reader):\n"
           "  ^");
  CHECK_EQ(TypesOf(body, std::string(kInputs) + "    reader.symint(5)  # c\n"),
           "p.py:18:5: load_args gives 3 inputs, and forward takes 2\n"
           "      reader.symint(5)  # c\n"
           "      ^");
  CHECK(TypesOf("        c = (\n        return (a, b)\n").starts_with("p.py:11:"));
}

TEST_CASE("fx program: a program without inputs for a graph is none") {
  const std::string text = ProgramText("        return (a, b)\n", kInputs);
  CHECK_FALSE(LooksLikeFxProgram(text.substr(0, text.find("def load_args"))));
  CHECK_FALSE(LooksLikeFxProgram(text.substr(text.find("def load_args"))));
  CHECK_FALSE(LooksLikeFxProgram(""));
}

TEST_CASE(
    "fx program: any part of a program, and any damaged byte, gives a sound graph or an error") {
  const std::string text = ProgramText(
      "        c = torch.ops.aten.split_with_sizes.default(b, [1, 1], 0)\n        d = c[0]\n"
      "        e = torch.ops.aten.view.default(d, [3, -1])\n        return (d, e)\n",
      kInputs);
  size_t read = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = at % 2 == 0 ? '9' : '(';
    for (const std::string& each : {text.substr(0, at), damaged}) {
      const auto program = ParseFxProgram(each, {.file = "p.py"});
      if (!program) continue;
      ++read;
      CHECK(Verify(*program->document.module).has_value());
    }
  }
  CHECK_GT(read, 100);
}

}  // namespace
}  // namespace strata
