"""A transformer layer with tensor and sequence parallelism, and an embedding that is cut by rows."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

DIM, HEADS, VOCABULARY = 8, 2, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, DIM // HEADS).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(DIM, 12, bias=False), nn.Linear(12, DIM, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(VOCABULARY, DIM), nn.Linear(DIM, VOCABULARY, bias=False)
        self.norm1, self.norm2, self.norm3 = (nn.RMSNorm(DIM, eps=1e-5) for _ in range(3))
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(self.norm1(x))
        x = x + self.feed_forward(self.norm2(x))
        return self.output(self.norm3(x))


def gathered():
    return PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))


model = Model()
if "WORLD_SIZE" in os.environ:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "attention": gathered(),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward": gathered(),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    plan |= {f"norm{i}": SequenceParallel() for i in (1, 2, 3)}
    plan |= {f"attention.{w}": ColwiseParallel() for w in ("wq", "wk", "wv")}
    parallelize_module(model, mesh, plan)


@torch.compile(backend="aot_eager", fullgraph=True)
def loss_of(tokens, labels):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


tokens = torch.randint(VOCABULARY, (2, 4))
loss_of(tokens, tokens.roll(-1, 1)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
