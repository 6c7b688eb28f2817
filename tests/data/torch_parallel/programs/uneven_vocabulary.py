"""An embedding and an output layer whose vocabulary the ranks do not divide; logits are gathered."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)

    def forward(self, tokens):
        return self.output(torch.tanh(self.embedding(tokens)))


model = Model()
if "WORLD_SIZE" in os.environ:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "output": ColwiseParallel(output_layouts=Replicate()),
    }
    parallelize_module(model, mesh, plan)


@torch.compile(backend="aot_eager", fullgraph=True)
def loss_of(tokens, labels):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


tokens = torch.randint(11, (2, 4))
loss_of(tokens, tokens.roll(-1, 1)).backward()
if dist.is_initialized():
    dist.destroy_process_group()
