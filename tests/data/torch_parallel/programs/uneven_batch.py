"""Seven samples on two ranks, in DistributedDataParallel; the loss is the mean over all of them. BUG: the mean over a
rank's own samples."""

import os

import torch
import torch.distributed as dist
from torch import nn

torch._dynamo.config.optimize_ddp = False
BUG = os.environ.get("BUG", "")
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 12), nn.Linear(12, 4)

    def forward(self, x, y):
        difference = self.w2(nn.functional.relu(self.w1(x))) - y
        count = x.shape[0] * 4 if BUG else 7 * 4 / WORLD
        return difference.square().sum() / count


model, batch = Model(), 7
if WORLD > 1:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model), 4 if RANK == 0 else 3
torch.compile(model, backend="aot_eager")(torch.randn(batch, 8), torch.randn(batch, 4)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
