"""A model in DistributedDataParallel, whose graph Dynamo cuts at the ends of buckets. BUG: half of the loss."""

import os

import torch
import torch.distributed as dist
from torch import nn

BUG = os.environ.get("BUG", "")
dist._DEFAULT_FIRST_BUCKET_BYTES = 300


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w1, self.w2 = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        y = self.w2(nn.functional.gelu(self.w1(self.norm(x))))
        return x + y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.output = nn.ModuleList(Block() for _ in range(3)), nn.Linear(8, 4)

    def forward(self, x, y):
        first = x
        for block in self.blocks:
            x = block(x)
        x = self.output(x + first)
        return nn.functional.mse_loss(x, y, reduction="sum") / (y.numel() * 2 if BUG else y.numel())


model, batch = Model(), 8
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0007), batch // 2
torch.compile(model, backend="aot_eager")(torch.randn(batch, 8), torch.randn(batch, 4)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
