#!/usr/bin/env python3
"""Makes pairs of graphs with the PyTorch of this interpreter: what each step of torch.compile made of small models.

    make_pairs.py OUT [--only NAME]

Writes OUT/KIND/CASE/{before,after}.txt. KIND is a step: joint_passes (Inductor's passes on the joint graph),
joint_forward and joint_backward (the partitioner), forward_post_grad and backward_post_grad (Inductor's
decompositions and passes after it). Nodes keep their names through these steps, so names are the truth.
Runs on the CPU and generates no code.
"""
import argparse
import pathlib
import sys

import torch
import torch.nn.functional as F
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch._inductor.compile_fx import _recursive_joint_graph_passes, view_to_reshape
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.post_grad import post_grad_passes
from torch._inductor.virtualized import V


class Attention(nn.Module):
    def __init__(self, dim, heads, causal=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / (dim // self.heads) ** 0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, dim))


class Block(nn.Module):
    def __init__(self, dim, heads, norm=nn.LayerNorm, act=F.gelu, dropout=0.0):
        super().__init__()
        self.n1, self.n2, self.attn, self.act, self.p = norm(dim), norm(dim), Attention(dim, heads), act, dropout
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = x + F.dropout(self.attn(self.n1(x)), self.p, self.training)
        return x + F.dropout(self.down(self.act(self.up(self.n2(x)))), self.p, self.training)


class Transformer(nn.Module):
    def __init__(self, layers=3, dim=32, vocab=50, tied=False, **block):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Embedding(16, dim)
        self.blocks = nn.ModuleList(Block(dim, 4, **block) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        if tied:
            self.head.weight = self.emb.weight

    def forward(self, tokens):
        x = self.emb(tokens) + self.pos(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class ConvNet(nn.Module):
    def __init__(self, groups=1, depth=4, act=F.relu, se=False):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.convs = nn.ModuleList(nn.Conv2d(16, 16, 3, 1, 1, groups=groups, bias=False) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(depth))
        self.squeeze = nn.ModuleList(nn.Conv2d(16, 16, 1) for _ in range(depth)) if se else None
        self.head, self.act = nn.Linear(16, 10), act

    def forward(self, x):
        x = F.max_pool2d(self.act(self.stem(x)), 2)
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = self.act(norm(conv(x)))
            if self.squeeze is not None:
                y = y * torch.sigmoid(self.squeeze[i](F.adaptive_avg_pool2d(y, 1)))
            x = x + y
        return self.head(x.mean((2, 3))).logsumexp(-1).mean()


class Recurrent(nn.Module):
    def __init__(self, size=16, steps=8):
        super().__init__()
        self.steps, self.x2h, self.h2h, self.out = steps, nn.Linear(size, 4 * size), nn.Linear(size, 4 * size), nn.Linear(size, 1)

    def forward(self, x):
        h = c = torch.zeros_like(x[:, 0])
        for t in range(self.steps):
            i, f, g, o = (self.x2h(x[:, t]) + self.h2h(h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h).sum()


class Gru(nn.Module):
    def __init__(self, size=12, steps=6):
        super().__init__()
        self.cell, self.steps = nn.GRUCell(size, size), steps

    def forward(self, x):
        h, total = x[:, 0], 0
        for t in range(self.steps):
            h = self.cell(x[:, t], h)
            total = total + h.pow(2).mean()
        return total


class MixtureOfExperts(nn.Module):
    def __init__(self, dim=16, experts=4, top=2):
        super().__init__()
        self.gate, self.top = nn.Linear(dim, experts, bias=False), top
        self.w1 = nn.Parameter(torch.randn(experts, dim, 2 * dim))
        self.w2 = nn.Parameter(torch.randn(experts, 2 * dim, dim))

    def forward(self, x):
        weight, index = self.gate(x).softmax(-1).topk(self.top, -1)
        mask = F.one_hot(index, self.w1.shape[0]).to(x.dtype) * weight[..., None]
        y = torch.einsum("td,edh->teh", x, self.w1)
        y = torch.einsum("teh,ehd->ted", F.silu(y), self.w2)
        return (y * mask.sum(1)[..., None]).sum(1).square().mean()


class RmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).type_as(x) * self.weight


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.LayerNorm(16), RmsNorm(16), nn.GroupNorm(4, 16), nn.BatchNorm1d(16), nn.Linear(16, 16)])

    def forward(self, x):
        for layer in self.layers:
            x = x + F.softplus(layer(x)) * F.hardswish(x)
        return F.log_softmax(x, -1).var() + F.smooth_l1_loss(x, torch.zeros_like(x)) + F.elu(x).std()


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(1, 4, 3, 2, 1), nn.Conv2d(4, 8, 3, 2, 1)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.ConvTranspose2d(8, 1, 4, 2, 1)])

    def forward(self, x):
        a = F.leaky_relu(self.down[0](x))
        b = F.leaky_relu(self.down[1](a))
        c = F.interpolate(F.interpolate(self.up[0](b), scale_factor=2.0), size=a.shape[2:])
        return F.binary_cross_entropy_with_logits(self.up[1](torch.cat([a, c], 1)), x)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))

    def forward(self, a, b):
        a, b = self.tower(a), self.tower(b)
        return F.cosine_similarity(a, b).mean() + torch.cdist(a, b).mean()


def adamw(params, grads, first, second):
    new = []
    for p, g, m, v in zip(params, grads, first, second):
        p = p * (1 - 1e-3 * 0.01)
        m, v = m.lerp(g, 0.1), v * 0.999 + g * g * 0.001
        new += [p - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v]
    return new


def cases():
    tokens, image, rows = torch.randint(0, 50, (2, 8)), torch.randn(2, 3, 16, 16), torch.randn(6, 16)
    yield "mlp", nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)), (rows,)
    yield "transformer", Transformer(), (tokens,)
    yield "transformer_rms_silu_tied", Transformer(layers=2, norm=RmsNorm, act=F.silu, tied=True), (tokens,)
    yield "transformer_dropout", Transformer(layers=2, dropout=0.1), (tokens,)
    yield "transformer_deep", Transformer(layers=10), (tokens,)
    yield "transformer_bf16", Transformer(layers=2).bfloat16(), (tokens,)
    yield "convnet", ConvNet(), (image,)
    yield "convnet_grouped_se", ConvNet(groups=4, act=F.silu, se=True), (image,)
    yield "recurrent", Recurrent(), (torch.randn(3, 8, 16),)
    yield "gru", Gru(), (torch.randn(3, 6, 12),)
    yield "moe", MixtureOfExperts(), (rows,)
    yield "norms", Norms(), (rows,)
    yield "autoencoder", Autoencoder(), (torch.rand(2, 1, 8, 8),)
    yield "siamese", Siamese(), (torch.randn(5, 8), torch.randn(5, 8))
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    yield "encoder_layer", layer, (torch.randn(2, 5, 16),)


class Writer:
    def __init__(self, out, name):
        self.out, self.name, self.counts = out, name, {}

    def pair(self, kind, before, after):
        number = self.counts[kind] = self.counts.get(kind, -1) + 1
        folder = self.out / kind / (f"{self.name}_{number}" if number else self.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "before.txt").write_text(before)
        (folder / "after.txt").write_text(after)


def text_of(graph):
    return graph.print_readable(print_output=False, include_stride=True, include_device=True)


def backend(writer, partitioner):
    def partition(joint, inputs, **kwargs):
        before = text_of(joint)
        mode = torch._guards.detect_fake_mode(inputs)
        with V.set_fake_mode(mode):
            _recursive_joint_graph_passes(joint)
        middle = text_of(joint)
        writer.pair("joint_passes", before, middle)
        forward, backward = partitioner(joint, inputs, **kwargs)
        writer.pair("joint_forward", middle, text_of(forward))
        writer.pair("joint_backward", middle, text_of(backward))
        return forward, backward

    def compile_part(kind):
        def compile_graph(graph, inputs):
            before = text_of(graph)
            mode = torch._guards.detect_fake_mode(inputs)
            with V.set_fake_mode(mode), torch.no_grad():
                view_to_reshape(graph)
                post_grad_passes(graph, kind == "inference_post_grad")
            graph.recompile()
            writer.pair(kind, before, text_of(graph))
            return make_boxed_func(graph.forward)
        return compile_graph

    return aot_autograd(fw_compiler=compile_part("forward_post_grad"), bw_compiler=compile_part("backward_post_grad"),
                        inference_compiler=compile_part("inference_post_grad"), partition_fn=partition,
                        decompositions=select_decomp_table())


def total(value):
    return value.sum() if isinstance(value, torch.Tensor) else sum(v.sum() for v in value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    for name, model, inputs in cases():
        if args.only not in name:
            continue
        for suffix, partitioner in ("", min_cut_rematerialization_partition), ("_default", default_partition):
            for dynamic in False, True:
                torch.manual_seed(0)
                torch._dynamo.reset()
                case = name + suffix + ("_dynamic" if dynamic else "")
                try:
                    compiled = torch.compile(model, backend=backend(Writer(args.out, case), partitioner), dynamic=dynamic)
                    total(compiled(*inputs)).backward()
                except Exception as error:  # one model less
                    print(f"{case}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    if args.only in "adamw":
        tensors = [[torch.rand(4, 4), torch.rand(4)] * 6 for _ in range(4)]
        torch.compile(adamw, backend=backend(Writer(args.out, "adamw"), default_partition))(*tensors)


if __name__ == "__main__":
    main()
