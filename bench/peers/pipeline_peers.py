"""Trains the model of a configuration in a pipeline with torch.distributed.pipelining over Gloo, one process for each
rank, on request.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=… MASTER_PORT=… pipeline_peers.py REQUEST.json

The request and the orders are those of train_peers.py; `pipeline` of the request has the schedule, the number of
microbatches, and for each stage its rank and its modules. `peak_bytes` is resident memory in a step, less that before
the model was made. Losses are those of the whole batch.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from peer_models import Decoder
from rank_peers import serve_rank
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class
from train_peers import read_safetensors


class Part(nn.Module):
    """The modules of a stage."""

    def __init__(self, model, modules):
        super().__init__()
        self.tok_embeddings = model.tok_embeddings if "tok_embeddings" in modules else None
        self.layers = nn.ModuleDict({name: layer for name, layer in model.layers.items() if f"layers.{name}" in modules})
        self.norm = model.norm if "norm" in modules else None
        self.lm_head = model.lm_head if "lm_head" in modules else None
        self.register_buffer("table", model.table, persistent=False)

    def forward(self, x):
        if self.tok_embeddings is not None:
            x = self.tok_embeddings(x)
        for layer in self.layers.values():
            x = layer(x, self.table)
        return x if self.lm_head is None else self.lm_head(self.norm(x))


def mean_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


class PipelinePeer:

    def __init__(self, pipeline, c, tensors):
        self.tokens = tensors["tokens"].unflatten(0, (-1, pipeline["microbatches"])).flatten(1, 2)
        model = Decoder(c)
        model.load_state_dict({k: v for k, v in tensors.items() if k != "tokens"})
        rank, stages = dist.get_rank(), pipeline["stages"]
        # With examples of what stages send, ranks need not find out shapes in messages, which NumPy would encode.
        size = (self.tokens.shape[1] // pipeline["microbatches"], self.tokens.shape[2] - 1)
        tokens, hidden = torch.zeros(size, dtype=torch.int64), torch.zeros(*size, c["dim"], requires_grad=True)
        logits = torch.zeros(*size, c["vocab_size"], requires_grad=True)
        own = [
            PipelineStage(Part(model, stage["modules"]), number, len(stages), torch.device("cpu"),
                          input_args=tokens if number == 0 else hidden,
                          output_args=logits if number == len(stages) - 1 else hidden)
            for number, stage in enumerate(stages) if stage["rank"] == rank
        ]
        kind = get_schedule_class(pipeline["schedule"])
        is_single = issubclass(kind, PipelineScheduleSingle)
        self.schedule = kind(own[0] if is_single else own, pipeline["microbatches"], loss_fn=mean_loss)
        self.is_first = stages[0]["rank"] == rank
        self.last_rank = stages[-1]["rank"]
        self.parameters = [p for stage in own for p in stage.submod.parameters()]
        o = c["optimizer"]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                           weight_decay=o["weight_decay"], fused=True)
        self.max_norm = o["max_grad_norm"]

    def clip(self):
        """By the norm of the gradients of all ranks."""
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters])**2
        dist.all_reduce(norm)
        torch.nn.utils.clip_grads_with_norm_(self.parameters, self.max_norm, norm.sqrt())

    def step(self, index):
        batch = self.tokens[index % len(self.tokens)]
        is_last = self.last_rank == dist.get_rank()
        args = (batch[:, :-1].contiguous(),) if self.is_first else ()
        target = batch[:, 1:].contiguous() if is_last else None
        losses = [] if is_last else None
        self.schedule.step(*args, target=target, losses=losses, return_outputs=False)
        self.clip()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        mean = torch.stack([loss.detach() for loss in losses]).mean() if is_last else torch.zeros(())
        dist.all_reduce(mean)
        return mean.item()


if __name__ == "__main__":
    serve_rank(lambda request: PipelinePeer(request["pipeline"], request["config"], read_safetensors(request["init"])))
