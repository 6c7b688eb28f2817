"""A feed-forward layer whose weights are cut by columns and rows of other sizes: 10 on 4 ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 10), nn.Linear(10, 8)

    def forward(self, x):
        return self.w2(nn.functional.gelu(self.w1(x)))


model = FeedForward()
if "WORLD_SIZE" in os.environ:
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
    parallelize_module(model, mesh, {"w1": ColwiseParallel(use_local_output=False), "w2": RowwiseParallel()})
torch.compile(model, backend="aot_eager")(torch.randn(4, 8)).square().mean().backward()
if dist.is_initialized():
    dist.destroy_process_group()
