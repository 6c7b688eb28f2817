"""A node as a statement of FX text, as `print_readable` of PyTorch writes it.

Nothing here calls `repr`, `==` or `bool` of a foreign object: of values that FX does not allow in a graph only the
type is written. Sizes that are symbolic are written by their expression, which adds no guard.
"""

import re
import zlib

_LIMIT = 4096
_MAX_NAMES = 10_000
_MAX_ENTRIES, _MAX_ENTRY = 20, 200  # of `custom`
_MAGIC = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "truediv": "{} / {}", "floordiv": "{} // {}",
    "mod": "{} % {}", "pow": "{} ** {}", "matmul": "{} @ {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}",
    "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "neg": "-{}", "pos": "+{}", "invert": "~{}",
    "getitem": "{}[{}]",
}
_DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64",
}
_NAME = re.compile(r"[A-Za-z_]\w*\Z")


def _plain(text):
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _string(text):
    """A Python string literal of at most _LIMIT characters."""
    if len(text) > _LIMIT:
        text = text[:_LIMIT] + f"... ({len(text)} characters)"
    return repr(_plain(text))


def _integer(value):
    """Python refuses to write more than 4,300 decimal digits: a longer one is a text with hexadecimal digits."""
    return int.__repr__(value) if value.bit_length() < 10_000 else _string(hex(value))


def _cut(text):
    return text if len(text) <= _LIMIT else text[:_LIMIT] + "..."


def name_of(node):
    """The name of a node as texts can have it: programs may set it to anything."""
    name = node.name
    if type(name) is str and name.isidentifier():
        return name
    name = str(name)
    return f"_{re.sub(r'[^0-9A-Za-z]', '_', name)}_{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


class Writer:
    """Writes nodes; keeps what it found out about targets and types by object."""

    def __init__(self, torch):
        self._torch = torch
        self._node = torch.fx.Node
        self._names = {}
        self._dtypes = {getattr(torch, name): short for name, short in _DTYPES.items() if hasattr(torch, name)}
        self._devices = {}
        self._exact = {
            int: _integer, float: float.__repr__, complex: complex.__repr__, bool: bool.__repr__, str: _string,
            bytes: lambda value: repr(bytes(value[:_LIMIT])), type(None): lambda _: "None",
            type(Ellipsis): lambda _: "...", torch.dtype: str, torch.layout: str, torch.memory_format: str,
            torch.device: self._device_literal, torch.Size: self._list,
        }

    # Targets.

    def target(self, target):
        name = self._names.get(id(target))
        if name is None:
            name = self._target(target)
            if len(self._names) > _MAX_NAMES:
                self._names.clear()
            self._names[id(target)] = (target, name)  # holds it, so that its id stays its own
            return name
        return name[1]

    def _target(self, target):
        torch = self._torch
        if isinstance(target, torch._ops.OpOverload):
            return f"torch.ops.{target}"
        if isinstance(target, torch._ops.HigherOrderOperator):
            return f"torch.ops.higher_order.{target.name()}"
        try:
            name = torch.fx.node._get_qualified_name(target)
        except Exception:
            name = f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', type(target).__name__)}"
        name = re.sub(r"[^\w.]", "_", name if isinstance(name, str) else "unknown")
        if name.startswith(("builtins.", "_operator.")):
            name = name.partition(".")[2] if name.startswith("builtins.") else "operator." + name.partition(".")[2]
        return name

    # Arguments.

    def value(self, value, depth=0):
        kind = type(value)
        if kind is self._node:
            return name_of(value)
        exact = self._exact.get(kind)
        if exact is not None:
            return exact(value)
        if depth > 20:
            return "..."
        if isinstance(value, self._node):
            return name_of(value)
        if isinstance(value, tuple):
            return self._tuple(value, depth)
        if isinstance(value, list):
            return self._list(value, depth)
        if isinstance(value, dict):
            items = (f"{self.value(key, depth + 1)}: {self.value(item, depth + 1)}" for key, item in dict.items(value))
            return "{" + _cut_list(items) + "}"
        if kind is slice:
            parts = (self.value(part, depth + 1) for part in (value.start, value.stop, value.step))
            return f"slice({', '.join(parts)})"
        if kind is range:
            return f"range({value.start}, {value.stop}, {value.step})"
        return self._foreign(value)

    def _tuple(self, value, depth=0):
        items = [self.value(item, depth + 1) for item in tuple.__iter__(value)]
        return f"({items[0]},)" if len(items) == 1 else f"({_cut_list(items)})"

    def _list(self, value, depth=0):
        return f"[{_cut_list(self.value(item, depth + 1) for item in value)}]"

    def _device_literal(self, device):
        index = "" if device.index is None else f", index={device.index}"
        return f"device(type='{device.type}'{index})"

    def _foreign(self, value):
        torch = self._torch
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.size(value)
        if isinstance(value, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)) or callable(value):
            return self.target(value)
        if isinstance(value, torch.Tensor):
            return f"tensor({_string(self.type(value) or '')})"
        if isinstance(value, int):
            return _integer(value)
        if isinstance(value, float):
            return float.__repr__(value)
        if isinstance(value, str):
            return _string(str.__str__(value))
        return re.sub(r"\W", "_", type(value).__name__) + "(...)"

    # Types.

    def size(self, size):
        kind = type(size)
        if kind is int:
            return int.__repr__(size)
        try:
            return str(size.node.expr)
        except Exception:
            return "s_unknown"

    def _sizes(self, sizes):
        return ", ".join(map(self.size, sizes))

    def type(self, value):
        """`f32[2, 3][3, 1]cpu` of a tensor, `Sym(s0)` of a size; None of anything else."""
        torch = self._torch
        try:
            if isinstance(value, torch.Tensor):
                dtype = self._dtypes.get(value.dtype) or str(value.dtype).removeprefix("torch.")
                if value.layout is not torch.strided:
                    return f"{dtype}[{self._sizes(value.shape)}]"
                device = str(value.device)
                return f"{dtype}[{self._sizes(value.shape)}][{self._sizes(value.stride())}]{device}"
            if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                return f"Sym({self.size(value)})"
        except Exception:
            return None
        return None

    def _annotation(self, node):
        meta = node.meta
        value = meta.get("val", meta.get("example_value"))
        text = self.type(value) if value is not None else None
        if text is None and value is None and "tensor_meta" in meta:
            text = self._tensor_meta(meta["tensor_meta"])
        return f': "{text}"' if text else ""

    def _tensor_meta(self, meta):
        try:
            dtype = self._dtypes.get(meta.dtype) or str(meta.dtype).removeprefix("torch.")
            return f"{dtype}[{self._sizes(meta.shape)}][{self._sizes(meta.stride)}]"
        except Exception:
            return None

    # Nodes.

    def node(self, node):
        """(kind, text, alias) of a node; kind: "p" input, "o" output, "n" any other."""
        op = node.op
        if op == "placeholder":
            return self._placeholder(node)
        if op == "output":
            return "o", self.value(node.args[0] if node.args else None), ""
        left = name_of(node) + self._annotation(node) + " = "
        if op == "get_attr":
            return "n", left + _self_path(node.target), ""
        arguments = [self.value(item) for item in node.args]
        if op == "call_method":
            base = arguments[0] if arguments else "None"
            return "n", f"{left}{base}.{node.target}({self._call(arguments[1:], node.kwargs)})", ""
        if op == "call_module":
            return "n", f"{left}{_self_path(node.target)}({self._call(arguments, node.kwargs)})", ""
        name = self.target(node.target)
        if name.startswith("operator."):
            form = _MAGIC.get(name[len("operator."):])
            if form and not node.kwargs and form.count("{}") == len(arguments):
                return "n", left + form.format(*arguments), ""
        if name == "getattr" and len(node.args) == 2 and not node.kwargs and isinstance(node.args[1], str) \
                and _NAME.match(node.args[1]):
            return "n", f"{left}{arguments[0]}.{node.args[1]}", ""
        return "n", f"{left}{name}({self._call(arguments, node.kwargs)})", ""

    def _call(self, arguments, kwargs):
        return ", ".join([*arguments, *(f"{name} = {self.value(value)}" for name, value in kwargs.items())])

    def _placeholder(self, node):
        name = name_of(node)
        target = node.target if isinstance(node.target, str) else name
        target = target.lstrip("*")
        argument = target if _NAME.match(target) else name
        default = " = " + self.value(node.args[0]) if node.args else ""
        return "p", argument + self._annotation(node) + default, name if argument != name else ""


def _cut_list(items):
    """Joins items; what is beyond _LIMIT characters is left out."""
    out, size = [], 0
    for item in items:
        size += len(item) + 2
        if size > 64 * _LIMIT:
            out.append("...")
            break
        out.append(item)
    return ", ".join(out)


def _self_path(target):
    """As FX writes it: `self.a.b`, `getattr(self.layers, "0").weight`."""
    out = "self"
    for atom in (target if isinstance(target, str) else "").split("."):
        out = f"{out}.{atom}" if _NAME.match(atom) else f'getattr({out}, "{_plain(atom)}")'
    return out


# --- Comments ---------------------------------------------------------------------------------------------------------

_FRAME = re.compile(r'File "([^"\n]*)", line (\d+), in ([^\n]*)\n\s*([^\n]*)')


def location(stack):
    """`File: PATH:LINE in FUNCTION, code: SOURCE` of the innermost frame of a stack trace."""
    frames = _FRAME.findall(stack[-8192:])
    if not frames:
        return ""
    path, line, function, code = frames[-1]
    return f"File: {path}:{line} in {function}, code: {code.strip()}"


def module_path(stack):
    """The module path of `nn_module_stack`: `layers.0.attention`."""
    try:
        path = list(stack.values())[-1][0]
        path = re.sub(r"^L\['self'\]\.?|^L__self___?", "", path)
        path = re.sub(r"\._modules\['([^']*)'\]|\['([^']*)'\]|\[(\d+)\]", r".\1\2\3", path)
        return path.lstrip(".") if isinstance(path, str) else ""
    except Exception:
        return ""


def annotation(meta):
    """The entries of `custom` that are short and of plain types, and the module path, which some trainers write there."""
    path = module_path(meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {})
    custom = meta.get("custom")
    entries = []
    for key, value in list(custom.items())[:_MAX_ENTRIES] if type(custom) is dict else ():
        if type(key) is not str:
            continue
        if key == "module_fqn" and type(value) is str:
            path = path or value
            continue
        text = _literal(value, 3)
        if text is not None and len(text) <= _MAX_ENTRY:
            entries.append(f"{_plain(key)!r}: {text}")
    if path:
        entries.insert(0, f"'module_fqn': {_plain(path)!r}")
    return "Annotation: {" + ", ".join(entries) + "}" if entries else ""


def _literal(value, depth):
    """The text of a value of built-in types; None of others, and of long ones."""
    kind = type(value)
    if kind is str:
        return repr(_plain(value)) if len(value) <= _MAX_ENTRY else None
    if value is None or kind in (bool, float) or kind is int and value.bit_length() <= 256:
        return repr(value)
    if kind not in (list, tuple, dict) or depth == 0 or len(value) > _MAX_ENTRIES:
        return None
    if kind is dict:
        items = [(_literal(key, 0), _literal(item, depth - 1)) for key, item in value.items()]
        return None if any(None in item for item in items) else "{" + ", ".join(f"{k}: {v}" for k, v in items) + "}"
    items = [_literal(item, depth - 1) for item in value]
    if None in items:
        return None
    text = ", ".join(items)
    return f"[{text}]" if kind is list else f"({text},)" if len(items) == 1 else f"({text})"


def comment(meta, locations):
    """What FX prints above a node; "" when nothing is known. `locations` keeps locations by stack trace."""
    parts = []
    keys = []
    number = meta.get("seq_nr")
    if type(number) is int and number >= 0:
        keys.append(f"seq_nr: {number}")
    if meta.get("autograd_backward") is True or (meta.get("partitioner_tag") == "is_backward"):
        keys.append("autograd_backward: True")
    recompute = meta.get("recompute")
    if recompute is not None:
        name = getattr(recompute, "name", None)
        if isinstance(name, str):
            keys.append(f"recompute: {name}")
    if keys:
        parts.append(", ".join(keys))
    note = annotation(meta)
    if note:
        parts.append(note)
    stack = meta.get("stack_trace")
    where = ""
    if isinstance(stack, str):
        where = locations.get(stack)
        if where is None:
            where = locations[stack] = location(stack)
    if where:
        parts.append(where)
    if not parts:
        return ""
    if keys:
        rest = " ".join(parts[1:]) or "No stacktrace found for following nodes"
        text = f"# {parts[0]} # {rest}"
    else:
        text = "# " + " ".join(parts)
    return _plain(text).replace("\n", " ").replace("\r", " ")
