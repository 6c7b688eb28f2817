#!/usr/bin/env python3
"""Writes the FX texts of this folder: `PYTHON make_texts.py`, with a Python in which `import torch` works.

Each text is what print_readable of PyTorch says of a graph that shows rare forms: every operator, odd literals, code
generators other than the plain one. See ../logs/make_logs.py for the Python that is needed.
"""

import collections
import enum
import math
import operator
import os
import pathlib

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.graph import _BoxedCodeGen
from torch.fx.passes.split_module import split_module

HERE = pathlib.Path(__file__).parent
FULL = {"include_stride": True, "include_device": True}
EXPANDED = FULL | {"expanded_def": True}


def write(name, text):
    (HERE / f"{name}.txt").write_text(text, encoding="utf-8")


def write_graph(name, graph_module, **options):
    write(name, graph_module.print_readable(print_output=False, **(options or EXPANDED)))


class Colour(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")


@fx.wrap
def helper(*args, **_):
    return args


def operators():
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y", default_value=2)
    g.placeholder("*rest"), g.placeholder("**options")
    call = g.call_function
    for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
               operator.matmul, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.eq,
               operator.ne, operator.lt, operator.le, operator.gt, operator.ge):  # fmt: skip
        call(op, (x, y)), call(op, (1, x)), call(op, (x, -1.5)), call(op, ("a = b", (x,)))
    for op in (operator.neg, operator.pos, operator.invert):
        call(op, (x,)), call(op, (3,))
    for op in (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod,
               operator.ipow, operator.imatmul, operator.ilshift, operator.irshift, operator.iand, operator.ior,
               operator.ixor):  # fmt: skip
        call(op, (x, y))
    call(operator.setitem, (x, 0, y)), call(operator.setitem, (x, (slice(None), x), 1.0))
    for index in (0, "k", (slice(None), None, Ellipsis), slice(None, x, 2), (0, y), [x]):
        call(operator.getitem, (x, index))
    call(operator.getitem, ((x, y), 0)), call(operator.not_, (x,)), call(operator.contains, (x, 1))
    call(getattr, (x, "T")), call(getattr, (x, "odd name")), call(getattr, (x, "T", None))
    g.call_method("add_", (x, 1), {"alpha": 2}), g.call_method("view", (x, -1))
    call(helper, (x,), {"k": y, "class_": 1}), call(math.sqrt, (2.0,)), call(len, (x,)), call(iter, (x,)), call(next, (x,))
    call(torch.ops.aten.add.Tensor, (x, y)), call(torch.ops.aten.add, (x, y)), call(torch._C._nn.gelu, (x,))
    first = call(torch.ops.aten.max.dim, (x, 0))
    a, b = call(operator.getitem, (first, 0)), call(operator.getitem, (first, 1))
    second = call(torch.ops.aten.max.dim, (x, 0))
    c = call(operator.getitem, (second, 1))
    third = call(torch.ops.aten.max.dim, (x, 0))
    d, e = call(operator.getitem, (third, 1)), call(operator.getitem, (third, 0))
    g.output((a, [b], {"k": c}, slice(0, d), e))
    return fx.GraphModule(torch.nn.Module(), g)


def literals():
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    for value in (1, -1, 1.5, -2.0, math.inf, -math.inf, math.nan, 1e-5, 1e16, 1e300, 10**30, True, None,
                  "str;  a = None # \"quote\"", "it's", "both ' and \"", "nl\n tab\t uni\u00e9 \u200b nul\0 \x7f", "",
                  b"by\x00te'", 2 + 3j, 1j, complex(0, 1), complex(-0.0, math.inf), ..., slice(None, x, 2), slice(1, 2), [], (), (x,),
                  [x, (y, [1, {"k": x, "l": [y]}])], {}, {"a b": 1}, torch.float32, torch.bits8, torch.device("cuda", 0),
                  torch.device("cpu"), torch.device("cuda"), torch.strided, torch.channels_last, Pair(1, x), Pair(1, 2),
                  range(3), torch.Size([1, 2]), torch.ops.aten.add.Tensor, torch.ops.higher_order.cond):  # fmt: skip
        g.call_function(torch.add, (x, value), {"alpha": value})
    g.output([y])
    return fx.GraphModule(torch.nn.Module(), g)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.weight = torch.nn.Parameter(torch.ones(4, 4))
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])

    def forward(self, x, flag=3, *args, z={"a": 1}, **kwargs):
        y = self.layers[1](self.seq(x)) @ self.weight
        return {"out": [y, -y.T], "shape": (x.shape, y[0], x[:, None, ..., 1:2]), "none": None, "text": "a\"b'c\n\\"}


class Exported(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x, k):
        self.count.add_(1)
        return {"o": self.lin(x) + self.count, "t": (x * k["z"],)}


def symbolic(x):
    y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
    z = y.view(-1).reshape(x.shape[0] * 2, -1) + x.shape[0]
    return z, x.nonzero().sum(), torch.randn(x.shape[0] + 1), x.chunk(2)


def main():
    torch.manual_seed(0)
    write_graph("operators", operators())
    write_graph("literals", literals(), **FULL)
    write_graph("modules", fx.symbolic_trace(Net()), **FULL)
    boxed = fx.symbolic_trace(lambda a, b: (a + b, a.sin()))
    boxed.graph.set_codegen(_BoxedCodeGen())
    boxed.recompile()
    write_graph("boxed", boxed)
    tree = fx.symbolic_trace(lambda x: x["a"] + x["b"][0], concrete_args={"x": {"a": fx.PH, "b": [fx.PH]}})
    write_graph("pytree", tree)
    rows = torch.export.Dim("rows")
    exported = torch.export.export(Exported(), (torch.ones(3, 4), {"z": torch.ones(3, 4)}),
                                   dynamic_shapes=({0: rows}, {"z": {0: rows}}))  # fmt: skip
    write("exported_program", str(exported))
    write_graph("exported_module", exported.module())
    write_graph("exported_module_compact", exported.module(), **FULL)
    chain = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4)))
    order = {node: i // 2 for i, node in enumerate(chain.graph.nodes)}
    write_graph("split", split_module(chain, None, order.get))
    traced = make_fx(symbolic, tracing_mode="symbolic")(torch.ones(4, 6))
    write_graph("symbolic", traced)
    write_graph("coloured", traced, colored=True, **FULL)
    os.environ["FX_GRAPH_SHOW_META"] = "1"
    write_graph("with_metadata", traced)
    del os.environ["FX_GRAPH_SHOW_META"]
    write_graph("empty", fx.GraphModule(torch.nn.Module(), fx.Graph()))
    nothing = fx.Graph()
    nothing.output(None)
    write_graph("returns_none", fx.GraphModule(torch.nn.Module(), nothing))


if __name__ == "__main__":
    main()
