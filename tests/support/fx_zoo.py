"""Eight small models, each with the graph of a training step: forward, loss and backward in one, as graph trainers trace it.

    gm, inputs = fx_zoo.step_graph("llama")

The graph is of aten operators with fake values in `meta["val"]`. It takes parameters, then inputs, and returns the loss and
the gradients. Its nodes are marked as graph trainers mark them: `autograd_backward`, and the module path in `custom`.
"""

import contextlib
import math

import torch
from torch import nn
from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

aten = torch.ops.aten


class Mlp(nn.Module):

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x * 0.5
        return x


class GptBlock(nn.Module):

    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(dim), -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, dim))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.layers = nn.ModuleList(GptBlock() for _ in range(2))
        self.head = nn.Linear(16, 32)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Conv(nn.Module):

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)])
        self.norms = nn.ModuleList(nn.BatchNorm2d(8, track_running_stats=False) for _ in range(2))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = torch.relu(norm(conv(x)))
        return self.head(x.mean((2, 3)))


class RmsNorm(nn.Module):

    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x, angles):
        batch, length, dim = x.shape

        def split(y):
            return y.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)

        def rotate(y):
            a, b = y.chunk(2, -1)
            return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

        q, k, v = rotate(split(self.wq(x))), rotate(split(self.wk(x))), split(self.wv(x))
        scores = (q @ k.transpose(-1, -2)).softmax(-1)
        return self.wo((scores @ v).transpose(1, 2).reshape(batch, length, dim))


class FeedForward(nn.Module):

    def __init__(self, dim):
        super().__init__()
        self.w1, self.w2, self.w3 = (nn.Linear(dim, dim, bias=False) for _ in range(3))

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LlamaBlock(nn.Module):

    def __init__(self, dim, heads):
        super().__init__()
        self.attention, self.feed_forward = Attention(dim, heads), FeedForward(dim)
        self.attention_norm, self.ffn_norm = RmsNorm(dim), RmsNorm(dim)

    def forward(self, x, angles):
        x = x + self.attention(self.attention_norm(x), angles)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):

    def __init__(self, layers=2, dim=16, heads=2, vocabulary=32):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList(LlamaBlock(dim, heads) for _ in range(layers))
        self.norm = RmsNorm(dim)
        self.lm_head = nn.Linear(dim, vocabulary, bias=False)
        self.register_buffer("angles", torch.arange(8.0)[:, None] * torch.linspace(1, .1, dim // heads // 2))

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.angles)
        return self.lm_head(self.norm(x))


class Experts(nn.Module):

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        weights, chosen = torch.softmax(self.router(x), -1).topk(2, -1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            out = out + share * torch.tanh(expert(x))
        return out


class Recurrent(nn.Module):

    def __init__(self):
        super().__init__()
        self.input, self.state = nn.Linear(8, 48), nn.Linear(16, 48)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 16)
        for step in range(4):
            i, s = self.input(x[:, step]).chunk(3, -1), self.state(h).chunk(3, -1)
            reset, update = torch.sigmoid(i[0] + s[0]), torch.sigmoid(i[1] + s[1])
            h = (1 - update) * torch.tanh(i[2] + reset * s[2]) + update * h
        return self.head(h)


class Unet(nn.Module):

    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(8, 8, 2, stride=2), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        first = torch.relu(self.down(x))
        second = torch.relu(self.middle(F.avg_pool2d(first, 2)))
        return self.last(torch.cat([first, self.up(second)], 1))


class Mixer(nn.Module):

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.norm, self.tokens, self.channels = nn.LayerNorm(16), nn.Linear(4, 4), nn.Linear(16, 16)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + F.gelu(self.tokens(self.norm(x).transpose(1, 2))).transpose(1, 2)
        return x + F.gelu(self.channels(self.norm(x)))


def _tokens():
    return torch.randint(0, 32, (2, 8), generator=torch.Generator().manual_seed(3))


def _normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


MODELS = {
    "mlp": (Mlp, lambda: _normal(4, 16)),
    "gpt": (Gpt, _tokens),
    "conv": (Conv, lambda: _normal(2, 3, 8, 8)),
    "llama": (Llama, _tokens),
    "experts": (Experts, lambda: _normal(6, 16)),
    "recurrent": (Recurrent, lambda: _normal(2, 4, 8)),
    "unet": (Unet, lambda: _normal(2, 3, 8, 8)),
    "mixer": (Mixer, lambda: _normal(2, 3, 8, 8)),
}


@contextlib.contextmanager
def _path(path):
    """What is traced inside belongs to the module `path`."""
    meta = torch.fx.traceback.current_meta
    outer = meta.get("custom")
    meta["custom"] = {"module_fqn": path}
    try:
        yield
    finally:
        if outer is None:
            del meta["custom"]
        else:
            meta["custom"] = outer


def _named(module):
    """Marks what runs in each submodule with its path."""
    for path, child in module.named_modules():
        if path:
            forward = child.forward

            def marked(*args, _forward=forward, _name=path, **kwargs):
                with _path(_name):
                    return _forward(*args, **kwargs)

            child.forward = marked


def step_graph(name, read=None, **options):
    """(graph of the training step, its inputs). `read(parameter)` stands for what a model reads of each parameter."""
    torch.manual_seed(7)
    make, make_input = MODELS[name]
    model, data = make(**options), make_input()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    parameters = [key for key, _ in model.named_parameters()]
    _named(model)

    def step(*values):
        values = [value.detach().requires_grad_(value.is_floating_point() and key in parameters)
                  for key, value in zip(state, values[:-1])] + [values[-1]]
        given = dict(zip(state, values))
        used = dict(given)
        for key in parameters if read is not None else ():
            with _path(key.rpartition(".")[0]):
                used[key] = read(given[key])
        out = torch.func.functional_call(model, used, (values[-1],))
        with _path("loss"):
            loss = (out.float() ** 2).mean()
        setup_stacktrace_preservation_hooks([loss.grad_fn])
        return [loss, *torch.autograd.grad(loss, [given[key] for key in parameters])]

    inputs = [value.detach().clone() for value in state.values()] + [data]
    with torch.fx.traceback.preserve_node_meta():
        gm = make_fx(step, tracing_mode="fake")(*inputs)
    _mark(gm)
    return gm, inputs


def _mark(gm):
    """Direction and module path of every node: those of the backward pass have the path of the node that they differentiate."""
    nodes = list(gm.graph.nodes)
    loss = nodes.index(nodes[-1].args[0][0])
    first = {}
    for at, node in enumerate(nodes):
        if node.op != "call_function":
            continue
        number = node.meta.get("seq_nr")
        if at > loss:
            node.meta["autograd_backward"] = True
            # Sums of gradients, and what an autograd function of Python makes, have the number of what was traced last.
            is_followed = node.target is aten.add.Tensor or str(node.target).startswith("_c10d_functional")
            source = node.args[0] if is_followed else first.get(number)
            if source is not None and source.meta.get("custom"):
                node.meta["custom"] = dict(source.meta["custom"])
        elif number is not None:
            first.setdefault(number, node)
    gm.recompile()
