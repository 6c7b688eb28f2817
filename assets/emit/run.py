"""Runs the graph of graph.py in PyTorch.

    python run.py INPUTS.safetensors [OUTPUTS.safetensors] [--profile TRACE.json]
    torchrun --nproc-per-node N run.py …     a graph of N ranks

INPUTS has the names of `graph.INPUTS`, as `strata train --dump-inputs` writes them, or the names of nodes. OUTPUTS gets
the results by the names of `graph.OUTPUTS`, then the inputs that the graph wrote to. TRACE gets what torch.profiler
measures, with a range for each node: `mm_3: aten.mm.default (model.py:12)`. Needs PyTorch and nothing else. Files of a
graph of several ranks have whole tensors: each rank takes its part of the inputs, and rank 0 writes what the parts of
the results make.
"""

import argparse
import ast
import ctypes
import inspect
import json
import re
import struct
import sys
import types

import torch

import graph

NUM_RANKS = getattr(graph, "NUM_RANKS", 1)
if NUM_RANKS > 1:
    import ranks

with open(graph.__file__, encoding="utf-8") as file:
    SOURCE = file.read()
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
          "BOOL": torch.bool}
COMPLEX = "#complex"  # ends the name of a complex tensor, which is stored as its real and imaginary parts
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# As FX text writes types.
SHORT = {dtype: name.lower() for name, dtype in DTYPES.items()} | {
    torch.bool: "b8", torch.complex64: "c64", torch.complex128: "c128"}


def load(path):
    """The tensors of a safetensors file, by name."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        sys.exit(f"{path}: cannot be read: {error.strerror}")
    try:
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        header.pop("__metadata__", None)
        entries = header.items()
    except (AttributeError, RecursionError, TypeError, ValueError, struct.error):
        sys.exit(f"{path}: not a safetensors file, or a damaged one: its header cannot be read")
    data, tensors = bytearray(content[8 + length:]), {}
    for name, entry in entries:
        try:
            tensor = read_tensor(data, entry)
            if name.endswith(COMPLEX):
                name, tensor = name[:-len(COMPLEX)], torch.view_as_complex(tensor)
        except (KeyError, RuntimeError, TypeError, ValueError):
            sys.exit(f"{path}: damaged: {name} has not the type, the sizes or the bytes that the header says")
        tensors[name] = tensor
    return tensors


def read_tensor(data, entry):
    begin, end = entry["data_offsets"]
    dtype = DTYPES[entry["dtype"]]
    if not 0 <= begin <= end <= len(data):
        raise ValueError("offsets")
    flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
    return flat.reshape(entry["shape"]).clone()


def inputs_of(path):
    """The inputs of the graph, in its order, and its constants by their paths."""
    tensors = load(path)
    arguments = list(inspect.signature(graph.GraphModule.forward).parameters.values())[1:]
    for name, argument in zip(graph.INPUTS, arguments):
        if name not in tensors and argument.name in tensors:
            tensors[name] = tensors[argument.name]
    tensors |= numbers_of(arguments, tensors)
    missing = [name for name in [*graph.INPUTS, *graph.CONSTANTS] if name not in tensors]
    if missing:
        sys.exit(f"{path} lacks inputs of the graph: {', '.join(missing)}")
    if NUM_RANKS > 1:
        tensors |= parts_of(path, tensors)
    for name, argument in zip(graph.INPUTS, arguments):
        # "f32[2, s0][s0, 1]cpu": a symbol may be any size.
        wanted = re.match(r"(\w+)\[(.*?)\](?:\[(.*?)\])?", str(argument.annotation))
        tensor = tensors[name]
        if wanted is None:
            continue  # a number
        sizes = [size for size in wanted.group(2).split(", ") if size]
        fits = len(sizes) == tensor.dim() and all(
            str(size) == want or not want.isdigit() for size, want in zip(tensor.shape, sizes))
        if not fits or SHORT[tensor.dtype] != wanted.group(1):
            given = f"{SHORT[tensor.dtype]}[{', '.join(map(str, tensor.shape))}]"
            sys.exit(f"{path} is of another graph: {name} is {given}, not {wanted.group(1)}[{wanted.group(2)}]")
        tensors[name] = laid(tensor, wanted.group(3))
    return [tensors[name] for name in graph.INPUTS], {path: tensors[path] for path in graph.CONSTANTS}


def numbers_of(arguments, tensors):
    """The inputs that are numbers, "Sym(2*s0)", as the sizes of the tensors say."""
    symbols = {}
    for name, argument in zip(graph.INPUTS, arguments):
        sizes = re.match(r"\w+\[(.*?)\]", str(argument.annotation))
        for size, want in zip(tensors[name].shape, sizes.group(1).split(", ")) if sizes and name in tensors else ():
            symbol = re.fullmatch(r"(?:(\d+)\*)?([a-z]+\d+)", want)
            if symbol is not None:
                symbols[symbol.group(2)] = size // int(symbol.group(1) or 1)
    numbers = {}
    for name, argument in zip(graph.INPUTS, arguments):
        number = re.fullmatch(r"Sym\((.*)\)", str(argument.annotation))
        if number is not None and set(re.findall(r"[a-z]+\d+", number.group(1))) <= set(symbols):
            numbers[name] = eval(number.group(1), vars(graph) | symbols)
    return numbers


def laid(tensor, strides):
    """The tensor in memory as the graph says: "1, 16". A dimension of stride 0 has its first element."""
    if not strides or not re.fullmatch(r"[\d, ]+", strides):
        return tensor
    wanted = [int(stride) for stride in strides.split(", ")]
    if list(tensor.stride()) == wanted:
        return tensor
    part = tensor
    for dim, stride in enumerate(wanted):
        part = part.narrow(dim, 0, 1) if stride == 0 and part.shape[dim] > 1 else part
    return torch.empty_strided(part.shape, wanted, dtype=part.dtype).copy_(part).expand(tensor.shape)


def parts_of(path, tensors):
    """What this rank holds of the inputs."""
    for name, sizes in zip(graph.INPUTS, graph.INPUT_SIZES):
        if list(tensors[name].shape) != sizes:
            sys.exit(f"{path} is of another graph: {name} is {list(tensors[name].shape)}, not {sizes}")
    return {name: ranks.shard(tensors[name], cuts) for name, cuts in zip(graph.INPUTS, graph.INPUT_CUTS)}


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


def check_operators():
    """Exits with a line if this PyTorch lacks an operator of the graph."""
    paths = sorted(set(re.findall(r"torch\.ops\.(\w+(?:\.\w+)+)\(", SOURCE)))
    for path in paths:
        found = torch.ops
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is None:
            sys.exit(f"PyTorch {torch.__version__} has no operator {path}: import the library that has it in graph.py")


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
    tree = ast.fix_missing_locations(Ranges(SOURCE).visit(ast.parse(SOURCE)))
    names = {}
    exec(compile(tree, graph.__file__, "exec"), names)
    return names["GraphModule"]


def bind(module):
    """Makes the graphs inside of a graph, which are classes in its class, modules that it calls."""
    for name, inside in list(vars(type(module)).items()):
        if isinstance(inside, type) and issubclass(inside, torch.nn.Module):
            module.__dict__[name] = bind(inside())
    return module


def module_of(kind, constants):
    """A module of the class that has the tensors of the graph's attributes."""
    module = bind(kind())
    for path, tensor in constants.items():
        *outer, name = path.split(".")
        holder = module
        for part in outer:
            holder = holder.__dict__.setdefault(part, types.SimpleNamespace())
        holder.__dict__[name] = tensor
    return module


def run_profiled(module, inputs, path):
    with torch.profiler.profile() as profile:
        results = module(*inputs)
    profile.export_chrome_trace(path)
    return results


def in_bytes(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", metavar="INPUTS.safetensors")
    parser.add_argument("outputs", metavar="OUTPUTS.safetensors", nargs="?")
    parser.add_argument("--profile", metavar="TRACE.json")
    options = parser.parse_args()
    check_operators()
    if NUM_RANKS > 1:
        ranks.start(NUM_RANKS, graph.GROUPS)
    inputs, constants = inputs_of(options.inputs)
    module = module_of(with_ranges() if options.profile else graph.GraphModule, constants)
    before = {name: tensor.clone() for name, tensor in zip(graph.INPUTS, inputs) if name in graph.WRITTEN}
    torch.manual_seed(0)  # as strata run does
    with torch.no_grad():
        results = run_profiled(module, inputs, options.profile) if options.profile else module(*inputs)
    if not isinstance(results, (list, tuple)):
        results = [results]
    outputs = {name: result for name, result in zip(graph.OUTPUTS, results) if isinstance(result, torch.Tensor)}
    written = {name: tensor for name, tensor in zip(graph.INPUTS, inputs)
               if name in before and name not in outputs and not torch.equal(in_bytes(tensor), in_bytes(before[name]))}
    if NUM_RANKS > 1:
        cuts = dict(zip(graph.INPUTS + graph.OUTPUTS, graph.INPUT_CUTS + graph.OUTPUT_CUTS))
        outputs, written = ({name: ranks.gather(part, cuts[name]) for name, part in parts.items()}
                            for parts in (outputs, written))
        is_first = ranks.is_first()
        ranks.end()
        if not is_first:
            return
    if options.outputs:
        save(options.outputs, outputs | written)
    for name, result in outputs.items():
        if result.numel() == 1:
            print(f"{name} = {result.item()}")


if __name__ == "__main__":
    main()
