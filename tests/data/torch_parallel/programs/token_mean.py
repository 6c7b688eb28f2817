"""A loss that is the mean over all tokens with a label, in DistributedDataParallel, which averages gradients: each rank
divides by the number of them on all ranks, times the ranks. With BUG=local_count it divides by its own number."""

import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn

torch._dynamo.config.optimize_ddp = False


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(8, 12), nn.Linear(12, 6)

    def forward(self, x, y):
        logits = self.w2(nn.functional.relu(self.w1(x)))
        loss = nn.functional.cross_entropy(logits, y, ignore_index=-100, reduction="sum")
        count = (y != -100).sum().float()
        if dist.is_initialized() and os.environ.get("BUG") != "local_count":
            count = funcol.all_reduce(count, "avg", dist.group.WORLD)
        return loss / count


torch.manual_seed(0)
model, batch = Model(), 16
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model), batch // 2
labels = torch.randint(0, 6, (batch,))
labels[: batch // 4] = -100
torch.compile(model, backend="aot_eager")(torch.randn(batch, 8), labels).backward()
if dist.is_initialized():
    dist.destroy_process_group()
