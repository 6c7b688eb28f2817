"""Traces the training step of a PyTorch model for `strata train --program`.

    python trace_step.py step.txt parameters.safetensors

Writes forward, loss and backward as one graph, and the state of the model under the names of its state_dict. Needs
PyTorch 2.9 or newer.
"""

import ctypes
import json
import struct
import sys

import torch
import torch.nn.functional as F
from torch._functorch._aot_autograd.descriptors import BufferAOTInput, ParamAOTInput
from torch.fx.experimental.proxy_tensor import make_fx

VOCAB, BATCH, SEQ, DIM = 32, 2, 8, 16  # vocab_size, batch_size and seq_len of the configuration


class Mine(torch.nn.Module):
    """A model of yours: tokens [BATCH, SEQ] -> logits [BATCH, SEQ, VOCAB]."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCAB, DIM)
        self.position = torch.nn.Embedding(SEQ, DIM)
        self.block = torch.nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, dropout=0.0, norm_first=True, batch_first=True)
        self.head = torch.nn.Linear(DIM, VOCAB)
        self.register_buffer("positions", torch.arange(SEQ))
        self.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(SEQ))

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position(self.positions)
        return self.head(self.block(x, src_mask=self.mask))


def trace(model):
    """The graph of (parameters…, buffers…, tokens, labels) -> [loss, gradient of each parameter…]."""
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    names = list(parameters) + list(buffers)

    def step(*inputs):
        *state, tokens, labels = inputs
        logits = torch.func.functional_call(model, dict(zip(names, state)), (tokens,))
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        return [loss, *torch.autograd.grad(loss, state[:len(parameters)])]

    batch = torch.zeros(2, BATCH, SEQ, dtype=torch.int64)
    graph = make_fx(step)(*parameters.values(), *buffers.values(), *batch)
    for name, node in zip(names, graph.graph.find_nodes(op="placeholder")):
        node.meta["desc"] = (ParamAOTInput if name in parameters else BufferAOTInput)(name)
    return graph


def text_of(graph):
    """The graph as FX text, with the types and, of parameters and buffers, the names of what it takes."""
    return graph.print_readable(print_output=False, include_stride=True, include_device=True, expanded_def=True)


def state_of(model, graph):
    """What the graph reads besides tokens and labels: parameters (those that are shared have one name), buffers, and
    other tensors of the model."""
    constants = {node.target: getattr(graph, node.target) for node in graph.graph.find_nodes(op="get_attr")}
    return {**dict(model.named_parameters()), **dict(model.named_buffers()), **constants}


def save(path, tensors):
    """A safetensors file; safetensors.torch.save_file writes it too."""
    names = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.float64: "F64",
             torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + size]}
        data += ctypes.string_at(tensor.data_ptr(), size)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Mine()
    graph = trace(model)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text_of(graph))
    save(sys.argv[2], state_of(model, graph))
