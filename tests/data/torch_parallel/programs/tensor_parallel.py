"""A feed-forward layer, its weights cut by columns and rows."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        return self.w2(nn.functional.gelu(self.w1(x)))


model = FeedForward()
if "WORLD_SIZE" in os.environ:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    parallelize_module(model, mesh, {"w1": ColwiseParallel(), "w2": RowwiseParallel()})
torch.compile(model, backend="aot_eager")(torch.randn(4, 8)).square().mean().backward()
if dist.is_initialized():
    dist.destroy_process_group()
