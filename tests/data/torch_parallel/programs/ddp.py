"""A model with its loss in DistributedDataParallel, which reduces gradients in buckets."""

import os

import torch
import torch.distributed as dist
from torch import nn

torch._dynamo.config.optimize_ddp = False


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x, y):
        x = nn.functional.relu(self.w1(x))
        return nn.functional.mse_loss(self.w3(nn.functional.relu(self.w2(x))), y)


model, batch = Model(), 8
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0007), batch // 2
torch.compile(model, backend="aot_eager")(torch.randn(batch, 8), torch.randn(batch, 4)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
