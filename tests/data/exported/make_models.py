#!/usr/bin/env python3
"""Writes pairs of models of torch.export that differ in a layer, as FX texts: <name>_before.txt, <name>_after.txt."""

import os

import torch
from torch import nn
from torch.nn import functional as F

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Block(nn.Module):
    """A transformer block that makes its causal mask itself."""

    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = q @ k.transpose(-1, -2) / (d // 4) ** 0.5
        y = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, d=32):
        super().__init__()
        self.e, self.b = nn.Embedding(100, d), nn.ModuleList(Block(d) for _ in range(layers))
        self.n, self.h = nn.LayerNorm(d), nn.Linear(d, 100)

    def forward(self, tokens):
        x = self.e(tokens)
        for block in self.b:
            x = block(x)
        return self.h(self.n(x))


class Mlp(nn.Module):
    """`names`: of the layers."""

    def __init__(self, names, norm=nn.LayerNorm):
        super().__init__()
        self.inp, self.head = nn.Linear(8, 16), nn.Linear(16, 4)
        self.layers = nn.ModuleDict(
            {n: nn.ModuleDict({"norm": norm(16), "up": nn.Linear(16, 32), "down": nn.Linear(32, 16)}) for n in names}
        )

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers.values():
            x = x + layer["down"](torch.relu(layer["up"](layer["norm"](x))))
        return self.head(x)


class Conv(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 10)
        self.r = nn.ModuleList(
            nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(layers)
        )

    def forward(self, x):
        x = self.stem(x)
        for block in self.r:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


class Residual(nn.Module):
    """Layers under names of their own; the operators at their ends read no parameters."""

    def __init__(self, names, regrouped=""):
        super().__init__()
        self.names = names
        for name in names:
            norm = nn.GroupNorm(2, 8) if name in regrouped else nn.BatchNorm2d(8)
            layer = nn.Sequential(nn.Conv2d(8, 8, 3, bias=False), norm, nn.ReLU(), nn.Conv2d(8, 8, 1))
            setattr(self, name, layer)

    def forward(self, x):
        for name in self.names:
            y = getattr(self, name)(F.pad(x, (1, 1, 1, 1)))
            x = torch.relu(x + y)
        return x


class Encoder(nn.Module):
    def __init__(self, layers, norm_first=True):
        super().__init__()
        self.l = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(16, 16) for name in "qkvo"} | {"n": nn.LayerNorm(16)}) for _ in range(layers)
        )
        self.f, self.norm_first = nn.Linear(16, 2), norm_first

    def forward(self, x, mask):
        for layer in self.l:
            h = layer["n"](x) if self.norm_first else x
            y = F.scaled_dot_product_attention(layer["q"](h), layer["k"](h), layer["v"](h), attn_mask=mask)
            x = x + layer["o"](y)
            if not self.norm_first:
                x = layer["n"](x)
        return self.f(x)


class UNet(nn.Module):
    """`names`: of the levels, from above."""

    def __init__(self, names, grouped=False):
        super().__init__()
        self.names, self.grouped = names, grouped
        self.stem, self.mid, self.head = nn.Conv2d(3, 8, 1), self.level(8), nn.Conv2d(8, 2, 1)
        self.down = nn.ModuleDict({n: self.level(8) for n in names})
        self.up = nn.ModuleDict({n: self.level(16) for n in names})

    def level(self, channels):
        norm = nn.GroupNorm(2, 8) if self.grouped else nn.BatchNorm2d(8)
        return nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1), norm, nn.ReLU())

    def forward(self, x):
        x, skips = self.stem(x), []
        for name in self.names:
            skips.append(self.down[name](x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.mid(x)
        for name in reversed(self.names):
            x = self.up[name](torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1))
        return self.head(x)


class Vit(nn.Module):
    def __init__(self, names, d=16):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, d, 4, 4), nn.Parameter(torch.zeros(1, 1, d))
        parts = {"qkv": (d, 3 * d), "o": (d, d), "up": (d, 2 * d), "down": (2 * d, d)}
        self.blocks = nn.ModuleDict(
            {
                n: nn.ModuleDict(
                    {"n1": nn.LayerNorm(d), "n2": nn.LayerNorm(d)} | {p: nn.Linear(*s) for p, s in parts.items()}
                )
                for n in names
            }
        )
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1)
        b, t, d = x.shape
        for block in self.blocks.values():
            q, k, v = block["qkv"](block["n1"](x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
            x = x + block["o"](y)
            x = x + block["down"](F.gelu(block["up"](block["n2"](x))))
        return self.head(self.norm(x)[:, 0])


class Translator(nn.Module):
    """Encoder and decoder."""

    def __init__(self, encoder, decoder, norm=nn.LayerNorm, d=16):
        super().__init__()
        self.e, self.head = nn.Embedding(50, d), nn.Linear(d, 50)
        parts = {"n": lambda: norm(d)} | dict.fromkeys("qkvo", lambda: nn.Linear(d, d))
        self.encoder, self.decoder = (
            nn.ModuleDict({n: nn.ModuleDict({part: make() for part, make in parts.items()}) for n in names})
            for names in (encoder, decoder)
        )

    def attend(self, layer, x, memory):
        return x + layer["o"](
            F.scaled_dot_product_attention(layer["q"](layer["n"](x)), layer["k"](memory), layer["v"](memory))
        )

    def forward(self, source, target):
        x, y = self.e(source), self.e(target)
        for layer in self.encoder.values():
            x = self.attend(layer, x, x)
        for layer in self.decoder.values():
            y = self.attend(layer, y, x)
        return self.head(y)


class Experts(nn.Module):
    """Each token goes to two of three experts."""

    def __init__(self, names, d=16):
        super().__init__()
        self.l = nn.ModuleDict(
            {
                n: nn.ModuleDict(
                    {
                        "n": nn.LayerNorm(d),
                        "gate": nn.Linear(d, 3, bias=False),
                        "experts": nn.ModuleList(nn.Sequential(nn.Linear(d, d), nn.SiLU()) for _ in range(3)),
                    }
                )
                for n in names
            }
        )

    def forward(self, x):
        for layer in self.l.values():
            h = layer["n"](x)
            weights, chosen = layer["gate"](h).softmax(-1).topk(2, -1)
            weights = torch.zeros_like(h[..., :3]).scatter(-1, chosen, weights)
            for i, expert in enumerate(layer["experts"]):
                x = x + expert(h) * weights[..., i : i + 1]
        return x


class Gnn(nn.Module):
    """Each layer computes the degrees of the nodes again."""

    def __init__(self, names, d=16):
        super().__init__()
        self.inp, self.out = nn.Linear(5, d), nn.Linear(d, 3)
        self.l = nn.ModuleDict({n: nn.ModuleDict({"own": nn.Linear(d, d), "near": nn.Linear(d, d)}) for n in names})

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        x = self.inp(x)
        for layer in self.l.values():
            near = torch.zeros_like(x).index_add(0, target, layer["near"](x)[source])
            degree = torch.zeros(x.shape[0]).index_add(0, target, torch.ones(target.shape[0])).clamp(min=1)
            x = x + torch.relu(layer["own"](x) + near / degree[:, None])
        return self.out(x.mean(0))


def save(name, before, after, *inputs):
    for side, model in (("before", before), ("after", after)):
        with torch.no_grad():
            program = torch.export.export(model.eval(), inputs)
        text = program.graph_module.print_readable(print_output=False)
        # Places in PyTorch's sources differ from machine to machine.
        lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith("# ")]
        with open(os.path.join(FOLDER, f"{name}_{side}.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    tokens, rows, image = torch.randint(0, 100, (2, 16)), torch.randn(4, 8), torch.randn(1, 3, 8, 8)
    sequence, allowed = torch.randn(2, 6, 16), torch.ones(6, 6, dtype=torch.bool)
    save("gpt", Gpt(2), Gpt(3), tokens)  # a layer more
    save("conv", Conv(3), Conv(4), image)
    save("enc", Encoder(3), Encoder(4), sequence, allowed)
    save("mlp", Mlp("0123"), Mlp("012"), rows)  # a layer less
    save("norm", Mlp("012"), Mlp("012", nn.RMSNorm), rows)  # another norm
    save("residual", Residual("abcd"), Residual("acd"), torch.randn(2, 8, 6, 6))  # one inside dropped
    save("regrouped", Residual("abcde"), Residual("acde", "d"), torch.randn(2, 8, 6, 6))  # and another norm
    save("moved", Encoder(3), Encoder(3, norm_first=False), sequence, allowed)  # the norm behind
    save("inserted", Mlp("abc"), Mlp("axbc"), rows)  # one inside more
    words = torch.randint(0, 50, (2, 6))
    save("unet", UNet("ab"), UNet("ab", grouped=True), torch.randn(1, 3, 8, 8))  # another norm
    save("level", UNet("ab"), UNet("axb"), torch.randn(1, 3, 16, 16))  # a level inside more
    save("vit", Vit("abc"), Vit("ac"), torch.randn(1, 3, 8, 8))  # a layer less
    save("translator", Translator("ab", "ab"), Translator("ab", "ab", nn.RMSNorm), words, words)  # another norm
    save("graph", Gnn("ab"), Gnn("abx"), torch.randn(9, 5), torch.randint(0, 9, (2, 20)))  # one more behind
    save("experts", Experts("abc"), Experts("axbc"), sequence)  # one inside more
