"""Safetensors files as tests read and write them: without PyTorch, bit for bit."""

import json
import struct


def read_tensors(path):
    """Name -> (dtype, shape, bytes) of a safetensors file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def write_tensors(path, tensors):
    """The same back, from name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, chunk) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(chunk)]}
        data += chunk
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
