#!/usr/bin/env python3
"""Writes aten_ops.txt: every ATen operator of PyTorch with its traits, one per line.

    tests/data/make_aten_ops.py .venv/lib/python3.*/site-packages > tests/data/aten_ops.txt

Reads native_functions.yaml of the torch wheel (schemas and tags), so that the table in ir/ops.cc is
checked against PyTorch's own description of its operators.
"""
import itertools
import re
import sys
from pathlib import Path

import yaml


def traits(function):
    match = re.fullmatch(r"([\w.]+)\((.*)\) -> (.*)", function["func"])
    name, arguments, returns = match.groups()
    tags = function.get("tags", [])
    writes = re.search(r"\([a-z|* >-]*!\)", arguments) is not None
    aliases = re.search(r"\([a-z|* >-]+\)", returns) is not None
    words = []
    if writes:
        words.append("mutates")
    elif aliases:
        words.append("view")
    if "nondeterministic_seeded" in ([tags] if isinstance(tags, str) else tags):
        words.append("random")
    base, _, overload = name.partition(".")
    return " ".join([f"aten.{base}.{overload or 'default'}", *words])


def functional(function):
    """The lines of operators that PyTorch makes of one that writes: `exponential` of `exponential_`."""
    tags = function.get("tags", [])
    is_random = "nondeterministic_seeded" in ([tags] if isinstance(tags, str) else tags)
    for name in function.get("autogen", "").split(", "):
        base, _, overload = name.partition(".")
        if base and "out" not in overload.split("_"):
            yield f"aten.{base}.{overload or 'default'}" + (" random" if is_random else "")


def main():
    yaml_path = Path(sys.argv[1]) / "torchgen/packaged/ATen/native/native_functions.yaml"
    functions = yaml.safe_load(yaml_path.read_text())
    print("# torch 2.11.0, native_functions.yaml; made by make_aten_ops.py")
    made = itertools.chain.from_iterable(map(functional, functions))
    print("\n".join(sorted([*map(traits, functions), *made])))


if __name__ == "__main__":
    main()
