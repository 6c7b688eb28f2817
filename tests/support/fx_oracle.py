#!/usr/bin/env python3
"""Reads FX graphs a second time, with Python's own parser, and compares node by node with what fx_tool read.

usage: fx_oracle.py FX_TOOL FILE_OR_FOLDER…

Compares names, kinds, targets and operands of each graph and body, in order; the numbers of arguments and of types; and
the numbers of nodes whose comment has a location or a sequence number. Shares no code with the C++ parser: the text is
valid Python once the class has a name, so `ast` reads it. Skips missing folders and folders of malformed logs.
"""

import ast
import functools
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys

from strata_case import read_log

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
INPLACE = {kind: "i" + name.rstrip("_") for kind, name in BINARY.items()}


def payloads(text):
    """The distinct payloads of a TORCH_TRACE log whose md5 is right, in order."""
    seen = {}
    lines, expected = [], None

    def finish():
        if expected is None:
            return
        payload = "\n".join(lines)
        if hashlib.md5(payload.encode("utf-8", "surrogateescape")).hexdigest() == expected:
            seen.setdefault(payload)

    for line in text.split("\n"):
        if line.startswith("\t"):
            lines.append(line[1:])
            continue
        header = re.match(r"[VIWEC]\d{4} \S+ \d+ [^:]+:\d+\] (\{.*)", line)
        if header:
            finish()
            try:
                envelope = json.loads(header.group(1))
                # A dump_file is source code to which stacks refer.
                lines, expected = [], None if "dump_file" in envelope else envelope.get("has_payload")
            except ValueError:
                lines, expected = [], None  # a record that was cut
    finish()
    return list(seen)


def without_imports(text):
    """The class or function of a Python file that contains nothing else; any other text unchanged."""
    rest = re.sub(r"\A(?:(?:import|from) .*\n|[ \r]*\n|#.*\n)+", "", text)
    return text if re.search(r"\n[^\s#]", rest) else rest


def is_graph(text):
    text = without_imports(text)
    has_class = re.search(r"^ *class .*\(torch\.nn\.Module\):$", text, re.M)
    has_graph = has_class and "def forward(" in text or text.lstrip().startswith("def forward(")
    return has_graph and not re.search(r"^(import|from) ", text, re.M)


def classes(text):
    """The text as Python: the class with its bodies, and the original names."""
    text = without_imports(text)
    if text.lstrip().startswith("def forward("):
        text = "class GraphModule(torch.nn.Module):\n" + re.sub("^(?=.)", "    ", text, flags=re.M)
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if re.match(r" *class .*\(torch\.nn\.Module\):$", line))
    indent = len(lines[first]) - len(lines[first].lstrip())
    kept, names = [], []
    for line in lines[first:]:
        if line.strip() and len(line) - len(line.lstrip()) < indent or re.match(r" *# graph id", line):
            break
        match = re.match(r"( *)class (.*)\(torch\.nn\.Module\):$", line)
        if match:
            line = f"{match.group(1)}class C{len(names)}:"
            names.append(match.group(2))
        kept.append(line[indent:])
    return ast.parse("\n".join(kept)).body[0], names, kept


def dotted(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return None


class Body:
    """The nodes of one `def forward`."""

    def __init__(self, function, lines):
        self.nodes = []
        self.comments = {}  # line -> the comment above it
        comment = ""
        for number in range(function.lineno, function.end_lineno):
            if lines[number].lstrip().startswith("#"):
                comment = lines[number]
            self.comments[number + 1] = comment
        self.counts = [0, 0, 0, 0]  # arguments, types, places, sequence numbers
        self.bound = set()  # names of nodes
        self.lists = {}  # names that stand for lists
        self.parameters = {}
        arguments = function.args
        stars = [a for a in (arguments.vararg, arguments.kwarg) if a]
        for argument in arguments.args + stars:
            if argument.arg != "self":
                self.parameters[argument.arg] = argument.arg
                self.add(argument.arg, "placeholder", "", [])
        statements = list(function.body)
        while statements:
            self.statement(statements)
        if not self.nodes or self.nodes[-1][1] != "output":
            self.output([])

    def add(self, name, kind, target, operands):
        self.nodes.append([name, kind, target, operands])
        self.bound.add(name)

    def output(self, operands):
        names = itertools.chain(["output"], (f"output_{i}" for i in itertools.count(1)))
        name = next(n for n in names if n not in self.bound)
        self.add(name, "output", "", operands)

    def count(self, s):
        """Metadata of the node that statement `s` makes: its type, and the content of the comment above it."""
        if isinstance(s, ast.AnnAssign) and isinstance(s.annotation, ast.Constant):
            self.counts[1] += 1
        comment = self.comments.get(s.lineno, "")
        self.counts[2] += bool(re.search(r"File: .+:\d+ in ", comment))
        self.counts[3] += bool(re.match(r" *# (\w+: [^#]*, )?seq_nr: \d", comment))

    def statement(self, rest):
        # `a += 1;  iadd = a` is one node; its second part has the type.
        first = rest[1] if isinstance(rest[0], ast.AugAssign) else rest[0]
        known = len(self.nodes)
        self.read_statement(rest)
        if len(self.nodes) == known + 1 and self.nodes[-1][1] not in ("placeholder", "output"):
            self.count(first)

    def read_statement(self, rest):
        s = rest.pop(0)
        if isinstance(s, (ast.Expr, ast.Pass)):
            return
        if isinstance(s, ast.Return):
            self.output(self.operands(self.outputs(s.value)))
        elif isinstance(s, ast.AugAssign):
            base = s.target.id
            name = rest.pop(0)
            self.add(self.target_name(name), "call_function", "_operator." + INPLACE[type(s.op)], [base] + self.operands(s.value))
        elif isinstance(s, ast.AnnAssign):
            if s.value is not None:
                self.assign(s.target.id, s.value)
        elif isinstance(s.targets[0], ast.Subscript):
            target = s.targets[0]
            name = rest.pop(0)
            operands = self.operands(target.value) + self.operands(target.slice) + self.operands(s.value)
            self.add(self.target_name(name), "call_function", "_operator.setitem", operands)
        elif isinstance(s.targets[0], ast.Tuple):
            source = dotted(s.value.func)
            if source in ("fx_pytree.tree_flatten_spec", "self._in_shuffle_graph"):
                self.inputs([t.id for t in s.targets[0].elts])
        elif not (isinstance(s.value, ast.Constant) and s.value.value is None):
            self.assign(s.targets[0].id, s.value)

    @staticmethod
    def target_name(s):
        return s.target.id if isinstance(s, ast.AnnAssign) else s.targets[0].id

    def outputs(self, value):
        if isinstance(value, ast.Call) and dotted(value.func) == "pytree.tree_unflatten":
            return value.args[0]
        return value

    def inputs(self, names):
        self.nodes.clear()
        self.bound.clear()
        for name in names:
            self.add(name, "placeholder", "", [])

    def assign(self, name, value):
        if isinstance(value, ast.Name) and value.id in self.parameters:
            self.bound.add(name)
            for node in self.nodes:
                if node[0] == value.id:
                    node[0] = name
            return
        if isinstance(value, (ast.List, ast.Tuple)):
            self.lists[name] = value
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("iter", "next"):
            if all(node[1] == "placeholder" for node in self.nodes):
                if value.func.id == "iter":
                    self.inputs([])
                else:
                    self.add(name, "placeholder", "", [])
                return
        kind, target, operands = self.operation(value)
        self.add(name, kind, target, operands)

    def module_path(self, node):
        """`self.a` and `getattr(self.a, "0")` as a path; None for anything else."""
        if isinstance(node, ast.Name):
            return "" if node.id == "self" and "self" not in self.bound else None
        if isinstance(node, ast.Attribute):
            base, last = self.module_path(node.value), node.attr
        elif isinstance(node, ast.Call) and dotted(node.func) == "getattr" and len(node.args) == 2:
            if not isinstance(node.args[1], ast.Constant):
                return None
            base, last = self.module_path(node.args[0]), node.args[1].value
        else:
            return None
        return None if base is None else f"{base}.{last}".lstrip(".")

    def operation(self, value):
        path = self.module_path(value)
        if path:
            return "get_attr", path, []
        if isinstance(value, ast.Call):
            path = self.module_path(value.func)
            operands = self.operands(value.args) + self.operands([k.value for k in value.keywords])
            if path:
                return "call_module", path, operands
            name = dotted(value.func)
            first = name.split(".")[0]
            if first in self.bound:
                return "call_method", name[len(first) + 1 :], [first] + operands
            op = name.removeprefix("torch.ops.")
            if name != "getattr":
                self.counts[0] += len(value.args) + len(value.keywords)
            return "call_function", op if "." in op else name, operands
        if isinstance(value, ast.Subscript):
            operands = self.operands(value.value) + self.operands(value.slice)
            return "call_function", "_operator.getitem", operands
        if isinstance(value, ast.BinOp):
            operands = self.operands(value.left) + self.operands(value.right)
            return "call_function", "_operator." + BINARY[type(value.op)], operands
        if isinstance(value, ast.Compare):
            operands = self.operands(value.left) + self.operands(value.comparators)
            return "call_function", "_operator." + COMPARE[type(value.ops[0])], operands
        if isinstance(value, ast.UnaryOp):
            return "call_function", "_operator." + UNARY[type(value.op)], self.operands(value.operand)
        if isinstance(value, ast.Attribute):
            return "call_function", "getattr", self.operands(value.value)
        raise ValueError(f"unknown statement: {ast.dump(value)}")

    def operands(self, node):
        """Names of nodes in an argument, in order of the text."""
        if isinstance(node, list):
            return [name for part in node for name in self.operands(part)]
        if isinstance(node, ast.Name):
            if node.id in self.lists:
                return self.operands(self.lists[node.id])
            return [node.id] if node.id in self.bound else []
        if isinstance(node, ast.Dict):
            return [n for k, v in zip(node.keys, node.values) for n in self.operands(k) + self.operands(v)]
        if isinstance(node, ast.Call):
            return self.operands(node.args) + self.operands([k.value for k in node.keywords])
        if isinstance(node, ast.Attribute):
            return []
        if isinstance(node, ast.BinOp):
            return []  # a size: its symbols are not nodes
        return [name for child in ast.iter_child_nodes(node) for name in self.operands(child)]


def graphs_of(tree, names, lines, path=""):
    function = next(part for part in tree.body if isinstance(part, ast.FunctionDef))
    body = Body(function, lines)
    yield {"path": path, "nodes": body.nodes, "counts": body.counts}
    for child in tree.body:
        if isinstance(child, ast.ClassDef):
            name = names[int(child.name[1:])]
            yield from graphs_of(child, names, lines, f"{path}/{name}".lstrip("/"))


def files_below(words):
    for word in words:
        if os.path.isfile(word):
            yield word
        for folder, _, files in sorted(os.walk(word)):
            if os.path.basename(folder) == "malformed":
                continue
            for file in sorted(files):
                if file.endswith((".log", ".log.zst", ".txt")):
                    yield os.path.join(folder, file)


def main():
    tool, words = sys.argv[1], sys.argv[2:]
    compared = differing = 0
    for file in files_below(words):
        text = read_log(file).decode("utf-8", "surrogateescape")
        plain = functools.partial(re.sub, "\x1b\\[[0-9;]*m", "")  # without colours
        texts = [t for t in map(plain, [text] if is_graph(plain(text)) else payloads(text)) if is_graph(t)]
        if not texts:
            continue
        run = subprocess.run([tool, "nodes", file], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            print(f"{file}: {run.stderr.strip()}")
            differing += 1
            continue
        read = [json.loads(line) for line in run.stdout.splitlines()]
        if len(read) != len(texts):
            print(f"{file}: {len(texts)} graphs, fx_tool read {len(read)}")
            differing += 1
        for number, (source, ours) in enumerate(zip(texts, read)):
            expected = list(graphs_of(*classes(source)))
            compared += 1
            if expected == ours["graphs"]:
                continue
            differing += 1
            print(f"{file}: graph {number} differs")
            for a, b in zip(expected, ours["graphs"]):
                if a["counts"] != b["counts"]:
                    print(f"  '{a['path']}': expected {a['counts']} arguments, types, places, numbers; fx_tool {b['counts']}")
                for x, y in zip(a["nodes"] + [None], b["nodes"] + [None]):
                    if x != y:
                        print(f"  '{a['path']}': expected {x}\n  '{b['path']}': fx_tool  {y}")
                        break
    print(f"{compared} graphs compared, {differing} differ")
    return 1 if differing or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
