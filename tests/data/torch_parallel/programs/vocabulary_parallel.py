"""An embedding and a loss whose vocabulary is cut."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module

VOCABULARY = 12


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(VOCABULARY, 8), nn.Linear(8, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.output(self.embedding(tokens))


model, context = Model(), contextlib.nullcontext
if "WORLD_SIZE" in os.environ:
    mesh, context = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",)), loss_parallel
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "output": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
    }
    parallelize_module(model, mesh, plan)


@torch.compile(backend="aot_eager")
def loss_of(tokens, labels):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


tokens = torch.randint(VOCABULARY, (2, 4))
with context():
    loss_of(tokens, tokens.roll(-1, 1)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
