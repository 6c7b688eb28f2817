"""Steps that PyTorch traced, and what PyTorch loses in a training of these models.

    make_losses.py [FOLDER]

Writes for each of the models here NAME.txt, the traced step, NAME.safetensors, its state, tokens.safetensors, and
losses.json: [[loss, gradient norm] of each step] of eager PyTorch. FOLDER: beside this file. Needs a Python with
PyTorch: `./dev setup bench`, then .venv-bench/bin/python tests/data/own_program/make_losses.py.
"""

import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "docs", "examples", "pytorch-step"))
NAMES = ("transformer", "perceptron_bf16", "convolution")
STEPS = 20
CONFIG = {"vocab_size": 32, "batch_size": 2, "seq_len": 8, "steps": STEPS, "optimizer": {
    "lr": 3e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "max_grad_norm": 1.0}}


def models():
    """Name -> model."""
    import torch
    import torch.nn.functional as F
    from trace_step import DIM, SEQ, VOCAB, Mine

    class Perceptron(torch.nn.Module):
        """Layers with norms, in bf16."""

        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(VOCAB, DIM)
            self.norm = torch.nn.LayerNorm(DIM)
            self.up, self.down = torch.nn.Linear(DIM, 4 * DIM), torch.nn.Linear(4 * DIM, DIM)
            self.head = torch.nn.Linear(DIM, VOCAB)
            self.to(torch.bfloat16)

        def forward(self, tokens):
            x = self.embedding(tokens)
            return self.head(x + self.down(F.gelu(self.up(self.norm(x)))))

    class Convolution(torch.nn.Module):
        """Convolutions over the tokens before each, with a constant of the module."""

        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(VOCAB, DIM)
            self.first, self.second = torch.nn.Conv1d(DIM, 2 * DIM, 3), torch.nn.Conv1d(2 * DIM, DIM, 3)
            self.norm = torch.nn.GroupNorm(4, 2 * DIM)
            self.head = torch.nn.Linear(DIM, VOCAB)
            self.decay = torch.linspace(1.0, 0.5, SEQ)

        def forward(self, tokens):
            x = self.embedding(tokens).transpose(1, 2)
            y = F.relu(self.norm(self.first(F.pad(x, (2, 0)))))
            x = x + self.second(F.pad(y, (2, 0))) * self.decay
            return self.head(x.transpose(1, 2))

    found = {}
    for name, kind in zip(NAMES, (Mine, Perceptron, Convolution)):
        torch.manual_seed(0)
        found[name] = kind()
    return found


def batches():
    """Tokens [BATCH, SEQ + 1] of each step: most are a function of the one before."""
    draw = random.Random(7)
    for _ in range(STEPS):
        rows = []
        for _ in range(CONFIG["batch_size"]):
            row = [draw.randrange(CONFIG["vocab_size"])]
            while len(row) <= CONFIG["seq_len"]:
                row.append((5 * row[-1] + 1) % 32 if draw.random() < 0.9 else draw.randrange(CONFIG["vocab_size"]))
            rows.append(row)
        yield rows


def train(model):
    """[[loss, gradient norm] of each step] of eager PyTorch, with parameters in fp32 that the model reads in its own
    type."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(1)
    types = {name: parameter.dtype for name, parameter in model.named_parameters()}
    parameters = {name: parameter.detach().float().requires_grad_() for name, parameter in model.named_parameters()}
    o = CONFIG["optimizer"]
    optimizer = torch.optim.AdamW(parameters.values(), lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"])
    found = []
    for rows in batches():
        ids = torch.tensor(rows)
        narrow = {name: parameter.to(types[name]) for name, parameter in parameters.items()}
        logits = torch.func.functional_call(model, narrow, (ids[:, :-1],))
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), o["max_grad_norm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        found.append([loss.item(), norm.item()])
    return found


def main():
    import torch
    import trace_step

    folder = sys.argv[1] if sys.argv[1:] else HERE
    losses = {}
    for name, model in models().items():
        graph = trace_step.trace(model)
        with open(os.path.join(folder, f"{name}.txt"), "w", encoding="utf-8") as file:
            file.write(trace_step.text_of(graph))
        trace_step.save(os.path.join(folder, f"{name}.safetensors"), trace_step.state_of(model, graph))
        losses[name] = train(model)
    trace_step.save(os.path.join(folder, "tokens.safetensors"), {"tokens": torch.tensor(list(batches()))})
    with open(os.path.join(folder, "losses.json"), "w", encoding="utf-8") as file:
        lines = [f'  {json.dumps(name)}: {json.dumps(steps)}' for name, steps in losses.items()]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
