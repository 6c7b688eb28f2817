"""Losses and gradient norms of a training in PyTorch on packed documents, which do not attend to each other.

    make_losses.py [OUT.json]

Trains the model of tests/data/numerics/llama3_tiny for 20 steps, with flex attention and a document mask, and with
scaled_dot_product_attention and the same mask as a matrix, and writes losses.json beside this file or OUT. Needs a
Python with PyTorch: `./dev setup bench`, then .venv-bench/bin/python tests/data/packed/make_losses.py.
"""

import json
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
FIXTURE = os.path.join(ROOT, "tests", "data", "numerics", "llama3_tiny")
STEPS, BATCH, SEQ, END = 20, 4, 32, 0


def documents():
    """Token lists of 2 to 48 tokens, which `END` ends. Neighbours repeat each other, so that attention across the
    border of two documents would be of use."""
    draw = random.Random(5)
    total, found = 0, []
    while total < (STEPS + 1) * BATCH * SEQ:
        start = draw.randrange(1, 200)
        ids = [start + (i * i) % 31 for i in range(draw.randrange(1, 48))] + [END]
        total += len(ids)
        found.append(ids)
    return found


def write_tokens(path):
    """The documents as a file of 16-bit numbers."""
    with open(path, "wb") as file:
        for ids in documents():
            file.write(struct.pack(f"<{len(ids)}H", *ids))


def rows():
    """(inputs, labels, positions) of each row: what a row has no room for goes to the next."""
    row = ([], [], [])
    for ids in documents():
        while len(ids) > 1:
            room = SEQ - len(row[0])
            part, ids = ids[:room + 1], ids[room:]
            row[0].extend(part[:-1])
            row[1].extend(part[1:])
            row[2].extend(range(len(part) - 1))
            if len(row[0]) == SEQ:
                yield row
                row = ([], [], [])


def train(attend):
    """[[loss, gradient norm] of each step]; `attend(q, k, v, documents)` of `[batch, heads, seq, width]`."""
    sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
    import peer_models
    import torch
    from train_peers import read_safetensors

    torch.set_num_threads(1)
    with open(os.path.join(FIXTURE, "config.json"), encoding="utf-8") as file:
        c = {**json.load(file), "n_dense_layers": 0, "device": "cpu", "precision": "float32"}
    now = {}

    class PackedAttention(peer_models.Attention):
        def forward(self, x, table):
            q, k, v = (self.qkv_linear[name](x).unflatten(-1, (-1, self.head_dim)) for name in ("wq", "wk", "wv"))
            q, k = (turn(t, table[now["positions"]]) for t in (q, k))
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            return self.wo(attend(q, k, v, now["documents"]).transpose(1, 2).flatten(2))

    def turn(x, turns):
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * turns[:, :, None]).flatten(3)

    peer_models.Attention = PackedAttention
    model = peer_models.Decoder(c)
    model.load_state_dict(read_safetensors(os.path.join(FIXTURE, "init.safetensors")))
    o = c["optimizer"]
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                                  weight_decay=o["weight_decay"])
    found, source = [], rows()
    for _ in range(STEPS):
        tokens, labels, now["positions"] = (torch.tensor(part) for part in zip(*[next(source) for _ in range(BATCH)]))
        now["documents"] = (now["positions"] == 0).cumsum(1)
        loss = model(tokens, labels)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, o["max_grad_norm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        found.append([loss.item(), norm.item()])
    return found


def attend_flex(q, k, v, documents_of):
    from torch.nn.attention import flex_attention as flex

    flex._validate_device = lambda *_: None  # its eager backward works on CPUs, too

    def mask(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (documents_of[b, q_idx] == documents_of[b, kv_idx])

    blocks = flex.create_block_mask(mask, B=q.shape[0], H=None, Q_LEN=q.shape[2], KV_LEN=q.shape[2], device="cpu")
    return flex.flex_attention(q, k, v, block_mask=blocks, enable_gqa=True)


def attend_matrix(q, k, v, documents_of):
    import torch

    same = documents_of[:, :, None] == documents_of[:, None, :]
    mask = torch.tril(same)[:, None]
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def main():
    losses = {"flex": train(attend_flex), "matrix": train(attend_matrix)}
    with open(sys.argv[1] if sys.argv[1:] else os.path.join(HERE, "losses.json"), "w", encoding="utf-8") as file:
        lines = [f'  {json.dumps(name)}: {json.dumps(steps)}' for name, steps in losses.items()]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
