"""A transformer layer in DistributedDataParallel. Each rank takes the mean over its own labels, some of which are ignored,
so its loss is another function than that of one device."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, elu, hardswish, leaky_relu


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu")
        self.group = nn.GroupNorm(2, 8)
        self.out = nn.Linear(8, 12)

    def forward(self, x, y):
        h = self.encoder(self.embedding(x))
        h = self.group(h.transpose(1, 2)).transpose(1, 2)
        logits = self.out(elu(h) + leaky_relu(h) + hardswish(h))
        loss = cross_entropy(logits.flatten(0, 1), y.flatten(), label_smoothing=0.1)
        return loss + logits.logsumexp(-1).square().mean()


model, batch = Model(), 8
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
    model, batch = nn.parallel.DistributedDataParallel(model), batch // 2
torch.compile(model)(torch.randint(12, (batch, 5)), torch.randint(12, (batch, 5))).backward()
if dist.is_initialized():
    dist.destroy_process_group()
