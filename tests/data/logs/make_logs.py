#!/usr/bin/env python3
"""Writes the logs of this folder with PyTorch itself: `make_logs.py [PYTHON]`.

PYTHON is an interpreter in which `import torch` works: an ordinary installation of the pinned version with its CUDA
libraries. The environment that ./dev sets up is not one, it holds LibTorch only. Everything runs on the CPU.

Each program below runs in a process of its own with TORCH_TRACE set; its log is compressed here under the program's name.
The logs are checked in: they differ between runs in times, process ids and addresses.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

# A training step of a small transformer block, traced and cleaned as torchtitan's graph_trainer does it.
TRAINER = '''
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import annotate, preserve_node_meta
from torch._logging import trace_structured

class Attention(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (torch.nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        split = lambda y: y.view(b, t, self.heads, d // self.heads).transpose(1, 2)
        q, k, v = split(self.wq(x)), split(self.wk(x)), split(self.wv(x))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))

class Block(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention, self.norm = Attention(dim, heads), torch.nn.RMSNorm(dim)
        self.w1, self.w2 = torch.nn.Linear(dim, 2 * dim), torch.nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.w2(torch.nn.functional.silu(self.w1(x)))

class Model(torch.nn.Module):
    def __init__(self, vocabulary=32, dim=16, heads=2, layers=1):
        super().__init__()
        self.tok_embeddings = torch.nn.Embedding(vocabulary, dim)
        self.layers = torch.nn.ModuleDict({str(i): Block(dim, heads) for i in range(layers)})
        self.output = torch.nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers.values():
            x = layer(x)
        return self.output(x)

def annotated(module, path):
    forward = module.forward
    def call(*args):
        with annotate({"module_fqn": path}):
            return forward(*args)
    module.forward = call

torch.manual_seed(0)
model = Model()
for path, module in list(model.named_modules()):
    if path:
        annotated(module, path)
names, parameters = zip(*model.named_parameters())
tokens = torch.randint(32, (2, 8))

def step(*arguments):
    *values, inputs, labels = arguments
    logits = torch.func.functional_call(model, dict(zip(names, values)), (inputs,))
    with annotate({"module_fqn": "loss"}):
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return [loss, *torch.autograd.grad(loss, values)]

def log(name, graph_module):
    text = graph_module.print_readable(
        print_output=False, include_stride=True, include_device=True, expanded_def=True,
        additional_meta=["autograd_backward", "seq_nr"])
    trace_structured("artifact", metadata_fn=lambda: {"name": name, "encoding": "string"},
                     payload_fn=lambda: text, expect_trace_id=False)

def eliminate_dead_code_pass(gm):
    gm.graph.eliminate_dead_code()

def remove_detach_pass(gm):
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
        node.replace_all_uses_with(node.args[0])
        gm.graph.erase_node(node)

def fold_transposes_pass(gm):
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.t.default):
        source = node.args[0]
        if source.target is torch.ops.aten.t.default:
            node.replace_all_uses_with(source.args[0])
            gm.graph.erase_node(node)
    gm.graph.eliminate_dead_code()

def normalize_view_ops_as_reshape(gm):
    for node in gm.graph.nodes:
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default

values = [p.detach().clone().requires_grad_() for p in parameters]
with preserve_node_meta():
    gm = make_fx(step, record_stack_traces=True)(*values, tokens, tokens.roll(-1, 1))
log("make_fx_graph_traced", gm)
for run in (eliminate_dead_code_pass, remove_detach_pass, fold_transposes_pass, normalize_view_ops_as_reshape):
    log("before_" + run.__name__, gm)
    run(gm)
    gm.recompile()
    log("after_" + run.__name__, gm)
'''

# Graphs of torch.compile: symbolic sizes, a graph break, bodies, views and mutation, a joint graph and its halves.
COMPILE = '''
import torch
from torch.utils.checkpoint import checkpoint

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.b(torch.sigmoid(self.a(x)))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])
    def forward(self, x):
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        return x.sum() * x.shape[0], x

net = torch.compile(Net(), backend="aot_eager", dynamic=True)
loss, _ = net(torch.randn(4, 8))
loss.backward()

@torch.compile(backend="aot_eager", dynamic=True)
def views(x):
    y = x[::2, None].T
    torch._dynamo.graph_break()
    x.add_(1)
    v, i = torch.sort(x, descending=True, stable=True)
    return v.index_put_((i[0],), torch.tensor(1.0)), torch.nn.functional.pad(x, (1, 2)), x.to(torch.float16), y + 1
views(torch.randn(6, 6))

@torch.compile(backend="aot_eager")
def bodies(x):
    y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
    i, z = torch._higher_order_ops.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), y))
    return z
bodies(torch.randn(3))
'''

# The same step with 49 layers, 7,033 nodes after its passes. A norm before each feed-forward layer keeps values finite.
DEEP = (TRAINER
        .replace("layers=1)", "layers=49)")
        .replace("torch.nn.RMSNorm(dim)\n", "torch.nn.RMSNorm(dim)\n        self.ffn_norm = torch.nn.RMSNorm(dim)\n")
        .replace("self.w1(x)", "self.w1(self.ffn_norm(x))"))

PROGRAMS = {"trainer": TRAINER, "compile": COMPILE, "trainer_49layers": DEEP}


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / f"{name}.py"
            script.write_text(program.lstrip(), encoding="utf-8")
            logs = pathlib.Path(folder) / "logs"
            environment = dict(os.environ, TORCH_TRACE=str(logs), TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
            # Run from its folder: the log names the file as it was given.
            subprocess.run([python, "-W", "ignore", script.name], cwd=folder, env=environment, check=True)
            (log,) = logs.iterdir()
            subprocess.run(["zstd", "-19", "-q", "-f", log, "-o", HERE / f"{name}_torch2.11.log.zst"], check=True)


if __name__ == "__main__":
    main()
