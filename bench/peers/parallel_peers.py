"""Trains the model of a configuration on several ranks with FSDP2 and DTensor over Gloo, one process for each rank, on
request.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=… MASTER_PORT=… parallel_peers.py REQUEST.json

The request and the orders are those of train_peers.py; `mesh` of the request has the sizes of dp_replicate, fsdp and
tp. `peak_bytes` is resident memory in a step, less that before the model was made. Losses are those of the whole batch.

Parameters are sharded as torchtitan does it: the embedding, each block, and the last norm with the head are a group each.
Tensor parallelism has sequence parallelism with it.
"""

import torch
import torch.distributed as dist
from peer_models import Decoder
from rank_peers import serve_rank
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from train_peers import read_safetensors


def cut_tensors(model, mesh):
    """Tensor parallelism: heads, hidden columns and the vocabulary; the sequence between them."""
    whole = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
    parallelize_module(
        model, mesh, {
            "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        })
    for layer in model.layers.values():
        parallelize_module(
            layer, mesh, {
                "attention_norm": SequenceParallel(),
                "attention": PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)),
                "attention.qkv_linear.wq": ColwiseParallel(),
                "attention.qkv_linear.wk": ColwiseParallel(),
                "attention.qkv_linear.wv": ColwiseParallel(),
                "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
                "ffn_norm": SequenceParallel(),
                "feed_forward": whole,
                "feed_forward.w1": ColwiseParallel(),
                "feed_forward.w3": ColwiseParallel(),
                "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
            })


def shard_parameters(model, mesh):
    if model.tok_embeddings is not None:
        fully_shard(model.tok_embeddings, mesh=mesh)
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard([model.norm, model.lm_head], mesh=mesh, reshard_after_forward=False)
    fully_shard(model, mesh=mesh)


class ShardedPeer:

    def __init__(self, sizes, c, tensors):
        self.mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
        self.data_ranks = sizes["dp_replicate"] * sizes["fsdp"]
        self.data_index = self.mesh.get_local_rank("dp_replicate") * sizes["fsdp"] + self.mesh.get_local_rank("fsdp")
        self.tokens = tensors["tokens"]
        model = Decoder(c)
        model.load_state_dict({k: v for k, v in tensors.items() if k != "tokens"})
        is_cut = sizes["tp"] > 1
        if is_cut:
            cut_tensors(model, self.mesh["tp"])
        if self.data_ranks > 1:
            axes = ("dp_replicate", "fsdp") if sizes["dp_replicate"] > 1 else "fsdp"
            shard_parameters(model, self.mesh[axes])
        self.model = model
        self.parameters = list(model.parameters())
        o = c["optimizer"]
        # Parameters of different meshes cannot be in one fused update.
        self.optimizer = torch.optim.AdamW(self.parameters, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                           weight_decay=o["weight_decay"], fused=not is_cut, foreach=False if is_cut else None)
        self.max_norm = o["max_grad_norm"]

    def clip(self):
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters])
        if isinstance(norm, DTensor):
            norm = norm.full_tensor()
        torch.nn.utils.clip_grads_with_norm_(self.parameters, self.max_norm, norm)
        return norm.item()

    def step(self, index):
        batch = self.tokens[index % len(self.tokens)].chunk(self.data_ranks)[self.data_index]
        loss = self.model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
        loss.backward()
        self.norm = self.clip()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return mean.item() / dist.get_world_size()


if __name__ == "__main__":
    serve_rank(lambda request: ShardedPeer(request["mesh"], request["config"], read_safetensors(request["init"])))
