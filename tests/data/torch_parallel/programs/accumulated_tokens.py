"""Microbatches in DistributedDataParallel, whose losses are divided by the number of tokens of all.

BUG: `own_tokens`: by those of the rank; `all_labels`: ignored labels count; `no_ranks`: DDP's mean is not undone.
"""

import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn

torch._dynamo.config.optimize_ddp = False
BUG = os.environ.get("BUG", "")
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
VOCABULARY, DIM, LENGTH, STEPS = 16, 8, 5, 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(VOCABULARY, DIM), nn.LayerNorm(DIM)
        self.w1, self.w2, self.output = nn.Linear(DIM, 12), nn.Linear(12, DIM), nn.Linear(DIM, VOCABULARY, bias=False)

    def forward(self, tokens, labels, all_labels):
        x = self.embedding(tokens)
        x = x + self.w2(nn.functional.gelu(self.w1(self.norm(x))))
        loss = nn.functional.cross_entropy(self.output(x).flatten(0, 1), labels.flatten(), reduction="sum")
        count = all_labels.numel() if BUG == "all_labels" else (all_labels != -100).sum().float()
        if RANKS > 1 and BUG != "own_tokens":
            count = torch.as_tensor(count, dtype=torch.float32)
            count = torch.distributed._functional_collectives.all_reduce(count, "sum", dist.group.WORLD)
        return loss / count * (1 if BUG == "no_ranks" else RANKS)


model, batch = Model(), 4 // RANKS
if RANKS > 1:
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
compiled = torch.compile(model, backend="aot_eager")
all_labels = torch.randint(VOCABULARY, (STEPS, batch, LENGTH))
for step in range(STEPS):
    last = step + 1 == STEPS
    with contextlib.nullcontext() if last or RANKS == 1 else model.no_sync():
        compiled(torch.randint(VOCABULARY, (batch, LENGTH)), all_labels[step], all_labels).backward()
if dist.is_initialized():
    dist.destroy_process_group()
