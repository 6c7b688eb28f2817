"""A gated feed-forward layer behind an RMSNorm, with tensor and sequence parallelism by hand.

BUG: `bias_early`: every rank adds the bias before the sum; `norm`: the gradient of the norm's weight is not summed;
`gate`: the gate is that of the next position.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import all_gather_tensor, all_reduce, reduce_scatter_tensor

BUG = os.environ.get("BUG", "")
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
DIM, HIDDEN, BATCH, LENGTH = 8, 12, 2, 6


class Gather(torch.autograd.Function):
    """Parts of the sequence become the whole; gradients are summands."""

    @staticmethod
    def forward(ctx, x):
        return all_gather_tensor(x.transpose(0, 1).contiguous(), 0, dist.group.WORLD).transpose(0, 1)

    @staticmethod
    def backward(ctx, g):
        return reduce_scatter_tensor(g.transpose(0, 1).contiguous(), "sum", 0, dist.group.WORLD).transpose(0, 1)


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return reduce_scatter_tensor(x.transpose(0, 1).contiguous(), "sum", 0, dist.group.WORLD).transpose(0, 1)

    @staticmethod
    def backward(ctx, g):
        return all_gather_tensor(g.transpose(0, 1).contiguous(), 0, dist.group.WORLD).transpose(0, 1)


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return all_reduce(x, "sum", dist.group.WORLD)

    @staticmethod
    def backward(ctx, g):
        return g


class Copy(torch.autograd.Function):
    """A parameter that each rank applies to its part of the sequence."""

    @staticmethod
    def forward(ctx, w):
        return w.view_as(w)

    @staticmethod
    def backward(ctx, g):
        return all_reduce(g, "sum", dist.group.WORLD)


def forward(x, scale, gate, up, down, bias, target):
    whole = RANKS == 1
    copied = scale if whole or BUG == "norm" else Copy.apply(scale)
    h = nn.functional.rms_norm(x, (DIM,), copied, eps=1e-5)
    h = h if whole else Gather.apply(h)
    g = nn.functional.linear(h, gate)
    if BUG == "gate":
        g = g.roll(1, -1)
    h = nn.functional.linear(nn.functional.silu(g) * nn.functional.linear(h, up), down)
    if BUG == "bias_early":
        h = h + bias
    h = h if whole else Scatter.apply(h)
    if BUG != "bias_early":
        h = h + (bias if whole else Copy.apply(bias))
    loss = (x + h - target).square().sum() / (BATCH * LENGTH * DIM)
    return loss if whole else Sum.apply(loss)


def part(*sizes):
    return torch.randn(*sizes, requires_grad=True)


if RANKS > 1:
    dist.init_process_group("gloo")
length, hidden = LENGTH // RANKS, HIDDEN // RANKS
compiled = torch.compile(forward, backend="aot_eager", fullgraph=True)
compiled(part(BATCH, length, DIM), part(DIM), part(hidden, DIM), part(hidden, DIM), part(DIM, hidden), part(DIM),
         torch.randn(BATCH, length, DIM)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
