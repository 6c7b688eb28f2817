"""Two weights whose gradients are averaged in one bucket. BUG: an error in it."""

import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn

WORLD, BUG = int(os.environ.get("WORLD_SIZE", "1")), os.environ.get("BUG", "")
if WORLD > 1:
    dist.init_process_group("gloo")


class Bucket(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a.view_as(a), b.view_as(b)

    @staticmethod
    def backward(ctx, a, b):
        packed = torch.cat([a.flatten(), b.flatten()])
        mean = functional.all_reduce(packed, "sum", dist.group.WORLD) / WORLD
        first, second = mean.split([a.numel(), b.numel()])
        if BUG == "exchanged":
            first, second = second, first
        return first.view_as(a), second.view_as(b)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wk, self.wv = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8, 8))

    def forward(self, x, target):
        wk, wv = Bucket.apply(self.wk, self.wv) if WORLD > 1 else (self.wk, self.wv)
        return nn.functional.mse_loss(nn.functional.silu(x @ wk) * (x @ wv), target)


x = torch.randn(8 // WORLD, 8)
torch.compile(Model(), backend="aot_eager", fullgraph=True)(x, torch.randn_like(x)).backward()
if WORLD > 1:
    dist.destroy_process_group()
