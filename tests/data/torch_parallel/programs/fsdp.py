"""Blocks that are compiled one by one, with FSDP2."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w1, self.w2 = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        return x + self.w2(nn.functional.relu(self.w1(self.norm(x))))


model, batch = nn.Sequential(Block(), Block()), 8
for block in model:
    block.compile(backend="aot_eager")
if "WORLD_SIZE" in os.environ:
    mesh, batch = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",)), batch // 2
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
nn.functional.mse_loss(model(torch.randn(batch, 8)), torch.randn(batch, 8)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
