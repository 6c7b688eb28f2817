#!/usr/bin/env python3
"""Writes reference.safetensors beside this file: flex attention and its gradients, computed by PyTorch in eager mode.

    make_reference.py        needs a Python in which `import torch` (2.11) works

Tensors, all fp32 (of bf16 results: their values):

    SIZES/q, k, v, grad      inputs `[batch, seq, heads, width]`; `grad` is the gradient of the result
    CASE/TYPE/out            result `[batch, heads, seq, width]`
    CASE/TYPE/q, k, v        gradients, as the inputs

SIZES is `main` or `one head`; only the case `one head` has the latter. TYPE is float or bfloat16. The cases are those of
tests/unit/runtime/flex_attention_test.cc, by name.
"""

import os
import sys

import torch
from torch.nn.attention import flex_attention as flex

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "numerics"))

from make_reference import write_safetensors  # noqa: E402

# Gradients on a CPU are refused because compiled kernels lack them; eager mode has them.
flex._validate_device = lambda *tensors: None

SCALE = 0.3
BLOCK = 16


def causal(b, h, q, k):
    return q >= k


def document(b, q):
    return (q + 5 * b) // 11


# name: (mask_mod, score_mod)
CASES = {
    "causal": (causal, None),
    "one head": (causal, None),
    "window": (lambda b, h, q, k: (q >= k) & (q - k < 5), None),
    "prefix": (lambda b, h, q, k: (q >= k) | (k < 20), None),
    "documents": (lambda b, h, q, k: (q >= k) & (document(b, q) == document(b, k)), None),
    "soft cap": (causal, lambda s, b, h, q, k: torch.tanh(s / 2.0) * 2.0),
    "alibi": (causal, lambda s, b, h, q, k: s + (k - q) * torch.exp2((h + 1) * -2.0)),
    "of a user": (causal, lambda s, b, h, q, k: torch.where(k % 2 == 0, s, torch.maximum(s, torch.sigmoid(s * s)))),
    "rows that see nothing": (lambda b, h, q, k: (q // 7 != 2) & (q > k), None),
}
ALSO_IN_BFLOAT16 = ("causal", "documents", "alibi")


def make_inputs(batch, heads, kv_heads, seq, width, value_width):
    shapes = {"q": (heads, width), "k": (kv_heads, width), "v": (kv_heads, value_width), "grad": (heads, value_width)}
    return {name: torch.randn(batch, seq, *shape) for name, shape in shapes.items()}


def attend(inputs, mask_mod, score_mod, dtype):
    q, k, v = (inputs[name].to(dtype).transpose(1, 2).requires_grad_(True) for name in "qkv")
    mask = flex.create_block_mask(mask_mod, q.shape[0], q.shape[1], q.shape[2], k.shape[2], device="cpu", BLOCK_SIZE=BLOCK)
    out = flex.flex_attention(q, k, v, score_mod=score_mod, block_mask=mask, scale=SCALE, enable_gqa=True)
    grads = torch.autograd.grad(out, (q, k, v), inputs["grad"].to(dtype).transpose(1, 2))
    results = {"out": out, **{name: grad.transpose(1, 2) for name, grad in zip("qkv", grads)}}
    return {name: tensor.detach().float() for name, tensor in results.items()}


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    sizes = {"main": make_inputs(2, 4, 2, 37, 3, 3), "one head": make_inputs(2, 1, 1, 9, 3, 5)}
    # Values of bf16, so that both types have the same inputs.
    sizes = {name: {part: x.bfloat16().float() for part, x in inputs.items()} for name, inputs in sizes.items()}
    tensors = {f"{name}/{part}": x for name, inputs in sizes.items() for part, x in inputs.items()}
    for name, (mask_mod, score_mod) in CASES.items():
        inputs = sizes.get(name, sizes["main"])
        for dtype in (torch.float32, torch.bfloat16)[: 2 if name in ALSO_IN_BFLOAT16 else 1]:
            kind = {torch.float32: "float", torch.bfloat16: "bfloat16"}[dtype]
            for part, x in attend(inputs, mask_mod, score_mod, dtype).items():
                tensors[f"{name}/{kind}/{part}"] = x
    write_safetensors(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.safetensors"), tensors)


if __name__ == "__main__":
    main()
