"""A model in DistributedDataParallel, compiled by Inductor, which decomposes operators."""

import os

import torch
import torch.distributed as dist
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w1, self.w2 = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x, y):
        best = x.max(-1, keepdim=True).values.clamp_max(1.0)
        return nn.functional.mse_loss(self.w2(nn.functional.softplus(self.w1(self.norm(x)))) + best.roll(1, 1), y)


model, batch = Model(), 8
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model), batch // 2
torch.compile(model)(torch.randn(batch, 8), torch.randn(batch, 8)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
