"""Runs the graph of graph.py in PyTorch.

    python run.py INPUTS.safetensors [OUTPUTS.safetensors]

INPUTS has the names of `graph.INPUTS`: what `strata train --dump-inputs` writes. OUTPUTS gets the results by the names
of `graph.OUTPUTS`. Needs PyTorch and nothing else.
"""

import ctypes
import json
import struct
import sys

import torch

import graph

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
          "BOOL": torch.bool}
COMPLEX = "#complex"  # ends the name of a complex tensor, which is stored as its real and imaginary parts
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def load(path):
    """The tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensor = flat.reshape(entry["shape"]).clone()
        if name.endswith(COMPLEX):
            name, tensor = name[:-len(COMPLEX)], torch.view_as_complex(tensor)
        tensors[name] = tensor
    return tensors


def save(path, tensors):
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        if tensor.is_complex():
            name, tensor = name + COMPLEX, torch.view_as_real(tensor)
        tensor = tensor.detach().cpu().contiguous()
        chunk = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(chunk)]}
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    tensors = load(arguments[0])
    missing = [name for name in graph.INPUTS if name not in tensors]
    if missing:
        sys.exit(f"{arguments[0]} lacks inputs of the graph: {', '.join(missing)}")
    with torch.no_grad():
        results = graph.GraphModule()(*(tensors[name] for name in graph.INPUTS))
    if not isinstance(results, (list, tuple)):
        results = [results]
    outputs = {name: result for name, result in zip(graph.OUTPUTS, results) if isinstance(result, torch.Tensor)}
    if len(arguments) == 2:
        save(arguments[1], outputs)
    for name, result in outputs.items():
        if result.numel() == 1:
            print(f"{name} = {result.item()}")


if __name__ == "__main__":
    main(sys.argv[1:])
