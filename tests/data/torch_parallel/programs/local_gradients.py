"""A norm on the local part of a sequence, by to_local of a replicated DTensor weight. BUG: without the placements of
gradients, so that each rank keeps the sum over its own tokens."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

BUG = os.environ.get("BUG", "")
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
if WORLD > 1:
    MESH = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("tp",))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8, 12))
        if WORLD > 1:
            self.norm = nn.Parameter(distribute_tensor(self.norm.detach(), MESH, [Replicate()]))
            self.w = nn.Parameter(distribute_tensor(self.w.detach(), MESH, [Shard(1)]))

    def forward(self, x, y):
        norm = self.norm
        if WORLD > 1:
            norm = norm.to_local() if BUG else norm.to_local(grad_placements=[Partial()])
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * norm
        if WORLD > 1:
            x = DTensor.from_local(x, MESH, [Shard(0)]).redistribute(MESH, [Replicate()])
            y = DTensor.from_local(y, MESH, [Shard(1)])
        return (torch.nn.functional.silu(x @ self.w) - y).square().mean()


tokens = 6
x, y = torch.randn(tokens // WORLD, 8), torch.randn(tokens, 12 // WORLD)
torch.compile(Model(), backend="aot_eager", fullgraph=True)(x, y).backward()
if dist.is_initialized():
    dist.destroy_process_group()
