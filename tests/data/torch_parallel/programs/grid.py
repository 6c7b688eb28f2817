"""A feed-forward layer cut by hand over a mesh of two axes of one size. BUG: an error in it."""

import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

WORLD, BUG = int(os.environ.get("WORLD_SIZE", "1")), os.environ.get("BUG", "")
DP, TP = (2, 2) if WORLD > 1 else (1, 1)
if WORLD > 1:
    MESH = init_device_mesh("cpu", (DP, TP), mesh_dim_names=("dp", "tp"))


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return functional.all_reduce(gradient, "sum", MESH["tp"])


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return functional.all_reduce(x, "sum", MESH["dp" if BUG == "wrong_group" else "tp"])

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clone()


class MeanOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight):
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, gradient):
        return functional.all_reduce(gradient, "sum", MESH["dp"]) / DP


def on_ranks(function, x):
    return function.apply(x) if WORLD > 1 else x


class Model(nn.Module):
    def __init__(self, dim=8, hidden=12):
        super().__init__()
        self.w1, self.w2 = nn.Parameter(torch.randn(dim, hidden // TP)), nn.Parameter(torch.randn(hidden // TP, dim))

    def forward(self, x, target):
        hidden = nn.functional.silu(on_ranks(Enter, x) @ on_ranks(MeanOfGradients, self.w1))
        y = on_ranks(Leave, hidden @ on_ranks(MeanOfGradients, self.w2))
        return nn.functional.mse_loss(y, target)


x = torch.randn(8 // DP, 8, requires_grad=True)
torch.compile(Model(), backend="aot_eager", fullgraph=True)(x, torch.randn(8 // DP, 8)).backward()
if WORLD > 1:
    dist.destroy_process_group()
