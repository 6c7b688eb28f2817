"""Two microbatches in DistributedDataParallel, which reduces after the last. BUG: their sum, not the mean."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn

torch._dynamo.config.optimize_ddp = False
BUG = os.environ.get("BUG", "")
STEPS = 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 12), nn.Linear(12, 4)

    def forward(self, x, y):
        loss = nn.functional.mse_loss(self.w2(nn.functional.relu(self.w1(x))), y)
        return loss if BUG else loss / STEPS


model, batch = Model(), 8
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model), batch // 2
compiled = torch.compile(model, backend="aot_eager")
for step in range(STEPS):
    last = step + 1 == STEPS
    with contextlib.nullcontext() if last or not dist.is_initialized() else model.no_sync():
        compiled(torch.randn(batch, 8), torch.randn(batch, 4)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
