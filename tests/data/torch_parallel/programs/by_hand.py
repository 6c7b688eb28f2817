"""A layer with positions and a norm, its sequence and weights cut by hand. BUG: an error in it."""

import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn

WORLD, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
BUG = os.environ.get("BUG", "")
if WORLD > 1:
    dist.init_process_group("gloo")
GROUP = dist.group.WORLD


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return functional.all_gather_tensor(x, 0, GROUP)

    @staticmethod
    def backward(ctx, gradient):
        return functional.reduce_scatter_tensor(gradient, "sum", 0, GROUP)


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if BUG == "no_sum":
            return x.chunk(WORLD)[RANK].clone()
        return functional.reduce_scatter_tensor(x, "sum", 0, GROUP)

    @staticmethod
    def backward(ctx, gradient):
        return functional.all_gather_tensor(gradient, 0, GROUP)


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return functional.all_reduce(x, "sum", GROUP)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clone()


class SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight):
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, gradient):
        return functional.all_reduce(gradient, "sum", GROUP)


def on_ranks(function, x):
    return function.apply(x) if WORLD > 1 else x


class Model(nn.Module):
    def __init__(self, length=8, dim=8, hidden=12):
        super().__init__()
        self.positions, self.norm = nn.Parameter(torch.randn(length, dim)), nn.Parameter(torch.randn(dim))
        self.w1 = nn.Parameter(torch.randn(dim, hidden // WORLD))
        self.w2 = nn.Parameter(torch.randn(hidden // WORLD, dim))

    def forward(self, x, target):
        at = torch.arange(x.shape[0])
        if WORLD > 1 and BUG != "no_offset":
            at = at + RANK * x.shape[0]
        h = x + on_ranks(SumOfGradients, self.positions)[at]
        scale = self.norm if BUG == "norm_gradient" else on_ranks(SumOfGradients, self.norm)
        normed = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5) * scale
        hidden = nn.functional.gelu(on_ranks(Gather, normed) @ self.w1)
        y = h + on_ranks(Scatter, hidden @ self.w2)
        loss = (y - target).pow(2).sum() / (x.numel() * WORLD)
        return on_ranks(Sum, loss / WORLD if BUG == "loss_twice" else loss)


x = torch.randn(8 // WORLD, 8)
torch.compile(Model(), backend="aot_eager", fullgraph=True)(x, torch.randn_like(x)).backward()
if WORLD > 1:
    dist.destroy_process_group()
