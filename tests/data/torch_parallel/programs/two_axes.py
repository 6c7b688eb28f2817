"""Blocks with tensor parallelism inside FSDP2, on four ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        return x + self.w2(nn.functional.silu(self.w1(x)))


model, batch = nn.Sequential(Block(), Block()), 8
for block in model:
    block.compile(backend="aot_eager")
if "WORLD_SIZE" in os.environ:
    mesh, batch = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp")), batch // 2
    for block in model:
        parallelize_module(block, mesh["tp"], {"w1": ColwiseParallel(), "w2": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
nn.functional.mse_loss(model(torch.randn(batch, 8)), torch.randn(batch, 8)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
