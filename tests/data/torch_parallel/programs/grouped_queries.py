"""Attention with fewer keys than queries and rotary positions, in FSDP2.

BUG: `repeat`: keys are repeated in another order; `scale`: scores are divided by the root of the model's dimension;
`causal`: there is no mask.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

BUG = os.environ.get("BUG", "")
DIM, HEADS, GROUPS, LENGTH = 16, 4, 2, 6


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(DIM, eps=1e-5)
        self.wq, self.wo = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.wk, self.wv = (nn.Linear(DIM, DIM // HEADS * GROUPS, bias=False) for _ in range(2))

    def forward(self, x):
        b, t, _ = x.shape
        d = DIM // HEADS
        h = self.norm(x)
        angle = torch.arange(t)[:, None] * 0.5 ** torch.arange(d // 2)
        q, k, v = (w(h).view(b, t, -1, d).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotated(q, angle.cos(), angle.sin()), rotated(k, angle.cos(), angle.sin())
        if BUG == "repeat":
            k, v = (y.repeat(1, HEADS // GROUPS, 1, 1) for y in (k, v))
        else:
            k, v = (y.repeat_interleave(HEADS // GROUPS, 1) for y in (k, v))
        scores = q @ k.transpose(-1, -2) / (DIM if BUG == "scale" else d) ** 0.5
        if BUG != "causal":
            scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        y = scores.softmax(-1) @ v
        return x + self.wo(y.transpose(1, 2).reshape(b, t, -1))


model, batch = nn.Sequential(Attention(), Attention()), 4
for block in model:
    block.compile(backend="aot_eager", fullgraph=True)
if "WORLD_SIZE" in os.environ:
    mesh, batch = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",)), batch // 2
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
nn.functional.mse_loss(model(torch.randn(batch, LENGTH, DIM)), torch.randn(batch, LENGTH, DIM)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
