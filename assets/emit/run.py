"""Runs the graph of graph.py in PyTorch.

    python run.py INPUTS.safetensors [OUTPUTS.safetensors] [--profile TRACE.json]

INPUTS has the names of `graph.INPUTS`: what `strata train --dump-inputs` writes. OUTPUTS gets the results by the names
of `graph.OUTPUTS`. TRACE gets what torch.profiler measures, with a range for each node: `mm_3: aten.mm.default
(model.py:12)`. Needs PyTorch and nothing else.
"""

import argparse
import ast
import ctypes
import json
import re
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


class Ranges(ast.NodeTransformer):
    """Puts each statement of a `forward` into a range of the profiler with node, operator and place."""

    def __init__(self, source):
        self.lines = source.splitlines()

    def visit_FunctionDef(self, function):
        if function.name == "forward":
            function.body = [self.in_range(statement) for statement in function.body]
        return function

    def in_range(self, statement):
        target = getattr(statement, "target", None) or getattr(statement, "targets", [None])[0]
        if not isinstance(target, ast.Name):
            return statement
        operator = re.search(r"torch\.ops\.([\w.]+)", ast.unparse(statement))
        label = f"{target.id}: {operator.group(1)}" if operator else target.id
        place = re.search(r" File: (\S+:\d+)", self.lines[statement.lineno - 2])  # in the comment above
        label += f" ({place.group(1)})" if place else ""
        enter = ast.parse(f"torch.profiler.record_function({label!r})", mode="eval").body
        return ast.copy_location(ast.With(items=[ast.withitem(context_expr=enter)], body=[statement]), statement)


def with_ranges():
    """The class of the graph, whose nodes are ranges for the profiler."""
    with open(graph.__file__, encoding="utf-8") as file:
        source = file.read()
    tree = ast.fix_missing_locations(Ranges(source).visit(ast.parse(source)))
    names = {}
    exec(compile(tree, graph.__file__, "exec"), names)
    return names["GraphModule"]


def run_profiled(inputs, path):
    module = with_ranges()()
    with torch.profiler.profile() as profile:
        results = module(*inputs)
    profile.export_chrome_trace(path)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", metavar="INPUTS.safetensors")
    parser.add_argument("outputs", metavar="OUTPUTS.safetensors", nargs="?")
    parser.add_argument("--profile", metavar="TRACE.json")
    options = parser.parse_args()
    tensors = load(options.inputs)
    missing = [name for name in graph.INPUTS if name not in tensors]
    if missing:
        sys.exit(f"{options.inputs} lacks inputs of the graph: {', '.join(missing)}")
    inputs = [tensors[name] for name in graph.INPUTS]
    with torch.no_grad():
        results = run_profiled(inputs, options.profile) if options.profile else graph.GraphModule()(*inputs)
    if not isinstance(results, (list, tuple)):
        results = [results]
    outputs = {name: result for name, result in zip(graph.OUTPUTS, results) if isinstance(result, torch.Tensor)}
    if options.outputs:
        save(options.outputs, outputs)
    for name, result in outputs.items():
        if result.numel() == 1:
            print(f"{name} = {result.item()}")


if __name__ == "__main__":
    main()
