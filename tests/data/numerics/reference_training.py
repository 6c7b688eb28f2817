"""Short trainings of reference models, what differs between two of them, and how much of that is rounding."""

import contextlib
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from reference_model import Model, bias_names, derived

FLOORS = {"loss_step1_abs": 2e-6, "loss_max_abs": 4e-6, "gradnorm_max_rel": 1e-6, "grad1_max_abs": 6e-8,
          "grad1_max_tensor_rel": 3e-6, "param_max_abs": 3e-5, "param_max_tensor_rel_to_update": 1e-4}


class Sharded(torch.nn.Module):
    """A model whose parameters FSDP2 keeps: in fp32, and while the model computes in bf16."""

    def __init__(self, c, everything, trained):
        super().__init__()
        self.c, self.names, self.buffers_by_name = c, list(trained), everything
        for i, tensor in enumerate(trained.values()):
            self.register_parameter(f"p{i}", torch.nn.Parameter(tensor.detach()))
        self.model = None

    def forward(self, tokens):
        current = {name: getattr(self, f"p{i}") for i, name in enumerate(self.names)}
        buffers = {name: tensor for name, tensor in self.buffers_by_name.items() if name not in current}
        self.model = Model(self.c, {**buffers, **current})
        return self.model.logits(tokens)


def shard(c, everything, trained):
    """The model, and its fp32 parameters by name."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    module = Sharded(c, everything, trained)
    fully_shard(module, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                                  reduce_dtype=torch.float32))
    return module, {name: getattr(module, f"p{i}") for i, name in enumerate(trained)}


def train(config, init, tokens, attention=None, adamw="for-loop"):
    if config.get("training", {}).get("mixed_precision_param") == "bfloat16":
        return train_sharded(config, init, tokens, attention, adamw)
    return train_plainly(config, init, tokens, attention, adamw)


def train_sharded(config, init, tokens, attention, adamw):
    """As train_plainly. Tensors that the optimizer reads are local: there is one rank."""
    c = derived(config)
    everything = {name: tensor.clone() for name, tensor in init.items()}
    trained = {name: tensor for name, tensor in everything.items() if name not in bias_names(c)}
    module, p = shard(c, everything, trained)
    o = c["optimizer"]
    optimizer = torch.optim.AdamW(p.values(), lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"], foreach=False, fused=adamw == "fused")
    steps, grads, margin = [], None, math.inf
    with sdpa_kernel(attention) if attention else contextlib.nullcontext():
        for batch in tokens:
            optimizer.zero_grad(set_to_none=True)
            labels = batch[:, 1:]
            scores = module(batch[:, :-1])
            assert scores.dtype == torch.bfloat16
            total = F.cross_entropy(scores.float().flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=-100)
            loss = total / torch.tensor(float((labels != -100).sum()))
            loss.backward()
            local = {name: tensor.grad.to_local() for name, tensor in p.items()}
            assert all(tensor.dtype == torch.float32 for tensor in local.values())
            grads = grads or {name: tensor.clone() for name, tensor in local.items()}
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(t) for t in local.values()]))
            coefficient = 1.0
            if o["max_grad_norm"] is not None:
                coefficient = torch.clamp(o["max_grad_norm"] / (norm + 1e-6), max=1.0)
                for tensor in local.values():
                    tensor *= coefficient
            module.model.balance()
            margin = min(margin, module.model.margin)
            optimizer.step()
            steps.append({"step": len(steps) + 1, "loss": loss.item(), "grad_norm": norm.item(),
                          "clip_coef": float(coefficient)})
    final = {name: p[name].detach().to_local() if name in p else tensor for name, tensor in everything.items()}
    return steps, grads, final, margin


def train_plainly(config, init, tokens, attention, adamw):
    """Returns steps (loss, grad_norm), the gradients of step 1, the final tensors and the routing margin."""
    c = derived(config)
    everything = {name: tensor.clone() for name, tensor in init.items()}
    p = {name: tensor.requires_grad_() for name, tensor in everything.items() if name not in bias_names(c)}
    model = Model(c, everything)
    o = c["optimizer"]
    optimizer = torch.optim.AdamW(p.values(), lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"], foreach=False, fused=adamw == "fused")
    steps, grads = [], None
    with sdpa_kernel(attention) if attention else contextlib.nullcontext():
        for batch in tokens:
            optimizer.zero_grad(set_to_none=True)
            inputs, labels = batch[:, :-1], batch[:, 1:]
            scores = model.logits(inputs).float().flatten(0, 1)
            total = F.cross_entropy(scores, labels.flatten(), reduction="sum", ignore_index=-100)
            loss = total / torch.tensor(float((labels != -100).sum()))
            loss.backward()
            grads = grads or {name: tensor.grad.clone() for name, tensor in p.items()}
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(t.grad) for t in p.values()]))
            coefficient = 1.0
            if o["max_grad_norm"] is not None:
                coefficient = torch.clamp(o["max_grad_norm"] / (norm + 1e-6), max=1.0)
                for tensor in p.values():
                    tensor.grad *= coefficient
            model.balance()
            optimizer.step()
            steps.append({"step": len(steps) + 1, "loss": loss.item(), "grad_norm": norm.item(),
                          "clip_coef": float(coefficient)})
    return steps, grads, {name: tensor.detach() for name, tensor in everything.items()}, model.margin


# Differences, as the table of tolerances names them.

def differences(run, reference, init):
    steps, grads, final = run[:3]
    ref_steps, ref_grads, ref_final = reference[:3]
    losses = [abs(a["loss"] - b["loss"]) for a, b in zip(steps, ref_steps)]

    def worst(values):
        return max(float(v) for v in values)

    def relative(difference, scale):
        return 0.0 if difference == 0 else difference / scale

    return {
        "loss_step1_abs": losses[0],
        "loss_max_abs": max(losses),
        "gradnorm_max_rel": max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"]
                                for a, b in zip(steps, ref_steps)),
        "grad1_max_abs": worst((grads[n] - g).abs().max() for n, g in ref_grads.items()),
        "grad1_max_tensor_rel": worst(relative((grads[n] - g).norm(), g.norm()) for n, g in ref_grads.items()),
        "param_max_abs": worst((final[n] - t).abs().max() for n, t in ref_final.items()),
        "param_max_tensor_rel_to_update": worst(relative((final[n] - t).norm(), (t - init[n]).norm())
                                                for n, t in ref_final.items()),
    }


def noise(config, init, tokens, reference):
    floors = {}
    torch.set_num_threads(2)
    floors["threads_2"] = differences(train(config, init, tokens), reference, init)
    torch.set_num_threads(1)
    floors["sdpa_math"] = differences(train(config, init, tokens, attention=SDPBackend.MATH), reference, init)
    if config["mla"]:
        padded = {**config, "padded_attention": True}
        floors["sdpa_flash"] = differences(train(padded, init, tokens), reference, init)
    floors["fused_adamw"] = differences(train(config, init, tokens, adamw="fused"), reference, init)
    for seed in (1, 2, 3):
        generator = torch.Generator().manual_seed(seed)
        moved = {n: t * (1 + 2.0**-24 * torch.sign(torch.randn(t.shape, generator=generator))) for n, t in init.items()}
        floors[f"half_ulp_{seed}"] = differences(train(config, moved, tokens), reference, init)
    return floors


def tolerances(floors):
    """Of what `noise` measured: four times the worst, at least FLOORS. And that worst."""
    worst = {metric: max(floor[metric] for floor in floors.values()) for metric in FLOORS}
    return {metric: max(4 * worst[metric], floor) for metric, floor in FLOORS.items()}, worst
