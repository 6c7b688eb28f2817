"""The passes of a graph trainer (as torchtitan's experiment runs them over one graph of forward, loss and backward), written
from their published behaviour, and the runner that applies a list of them.

A pass is `fn(gm, example_inputs, …bound options…) → gm`. It may change the module in place. Nodes are marked with
`autograd_backward`, `custom["module_fqn"]` and, by the memory policy, `recompute`.
"""

import enum
import functools
import operator

import torch
from torch import fx

aten = torch.ops.aten
c10d = torch.ops._c10d_functional
INT_MAX = 2 ** 63 - 1

_library = torch.library.Library("strata_gt", "DEF")
for _schema in ("offload(Tensor x) -> Tensor", "reload(Tensor x) -> Tensor", "enter(str name) -> ()", "leave(str name) -> ()",
                "wait(Tensor x, Tensor? keep, Tensor? last_use) -> Tensor"):
    _library.define(_schema)
for _name in ("offload", "reload"):
    _library.impl(_name, lambda x: x.clone(), "CompositeExplicitAutograd")
_library.impl("wait", lambda x, keep, last_use: x.clone(), "CompositeExplicitAutograd")
for _name in ("enter", "leave"):
    _library.impl(_name, lambda name: None, "CompositeExplicitAutograd")
OFFLOAD, RELOAD, WAIT_COPY = (getattr(torch.ops.strata_gt, name).default for name in ("offload", "reload", "wait"))
ENTER, LEAVE = torch.ops.strata_gt.enter.default, torch.ops.strata_gt.leave.default
GATHER, SCATTER, WAIT = (c10d.all_gather_into_tensor.default, c10d.reduce_scatter_tensor.default, c10d.wait_tensor.default)

VIEWS = {aten.t.default, aten.transpose.int, aten.view.default, aten._unsafe_view.default, aten.reshape.default,
         aten.unsqueeze.default, aten.squeeze.dim, aten.slice.Tensor, aten.select.int, aten.expand.default,
         aten.permute.default, aten.alias.default, aten.detach.default, aten.split.Tensor}
SAVED = {aten.mm.default, aten.bmm.default, aten.addmm.default, aten.convolution.default, SCATTER}


class Memory(enum.Enum):
    MUST_SAVE = 0
    PREFER_RECOMPUTE = 1
    MUST_RECOMPUTE = 2
    MUST_CPU_OFFLOAD = 3


def is_backward(node):
    return node.meta.get("autograd_backward") is True


def module_path(node):
    return (node.meta.get("custom") or {}).get("module_fqn", "")


def layer_of(node):
    parts = module_path(node).split(".")
    return int(parts[1]) if parts[0] == "layers" and len(parts) > 1 and parts[1].isdigit() else -1


def calls(gm):
    return [node for node in gm.graph.nodes if node.op == "call_function"]


def finish(gm):
    gm.graph.lint()
    gm.recompile()
    return gm


def new_node(graph, target, args, like, value=None, **meta):
    node = graph.call_function(target, args)
    node.meta = {key: item for key, item in like.meta.items() if key not in ("recompute", "val", "tensor_meta")}
    node.meta["custom"] = dict(like.meta.get("custom") or {})
    node.meta["val"] = like.meta.get("val") if value is None else value
    node.meta.update(meta)
    return node


# --- Cleanup ----------------------------------------------------------------------------------------------------------


def eliminate_dead_code_pass(gm, example_inputs):
    gm.graph.eliminate_dead_code()
    return finish(gm)


def remove_detach_pass(gm, example_inputs=None):
    for node in calls(gm):
        if node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    return finish(gm)


def remove_identity_view_pass(gm, example_inputs=None):
    for node in calls(gm):
        if node.target in (aten.view.default, aten.reshape.default, aten._unsafe_view.default):
            source = node.args[0]
            if "val" in source.meta and tuple(source.meta["val"].shape) == tuple(node.meta["val"].shape):
                node.replace_all_uses_with(source)
                gm.graph.erase_node(node)
    return finish(gm)


def remove_double_transpose_pass(gm, example_inputs=None):
    for node in calls(gm):
        inner = node.args[0] if node.target is aten.t.default else None
        if inner is not None and inner.target is aten.t.default:
            node.replace_all_uses_with(inner.args[0])
            gm.graph.erase_node(node)
            if not inner.users:
                gm.graph.erase_node(inner)
    return finish(gm)


def remove_identity_slice_pass(gm, example_inputs=None):
    for node in calls(gm):
        if node.target is not aten.slice.Tensor or len(node.args) < 4:
            continue
        source, dim, start, end, *step = node.args
        if start == 0 and step in ([], [1]) and isinstance(end, int) and end >= source.meta["val"].shape[dim]:
            node.replace_all_uses_with(source)
            gm.graph.erase_node(node)
    return finish(gm)


def normalize_views_pass(gm, example_inputs=None):
    for node in calls(gm):
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default
    return finish(gm)


def canonicalize_graph_pass(gm, example_inputs):
    for part in (remove_detach_pass, remove_identity_view_pass, remove_double_transpose_pass, remove_identity_slice_pass,
                 normalize_views_pass):
        gm = part(gm)
    return gm


# --- Parameters that are gathered -------------------------------------------------------------------------------------


def unshard_outputs(parameter):
    """The waits of the all-gathers that a parameter feeds."""
    return [wait for gather in parameter.users if gather.target is GATHER for wait in gather.users if wait.target is WAIT]


def deduplicate_fsdp_unshard_chains_pass(gm, example_inputs):
    for parameter in [node for node in gm.graph.nodes if node.op == "placeholder"]:
        first, *rest = unshard_outputs(parameter) or [None]
        for wait in rest:
            gather = wait.args[0]
            wait.replace_all_uses_with(first)
            gm.graph.erase_node(wait)
            gm.graph.erase_node(gather)
    return finish(gm)


def reassign_collective_pgs_pass(gm, example_inputs, *, extra):
    """All-gathers of parameters go to a second group of the same ranks."""
    for node in calls(gm):
        if node.target is GATHER:
            node.args = (node.args[0], node.args[1], extra)
    return finish(gm)


def _buckets(gm, target):
    """[(block, direction)] → collectives of the block."""
    found = {}
    for node in calls(gm):
        if node.target is target and len(node.users) == 1:
            layer = layer_of(next(iter(node.users)))
            block = f"layers.{layer}" if layer >= 0 else module_path(node)
            found.setdefault((block, is_backward(node), node.args[-1]), []).append(node)
    return [members for members in found.values() if len(members) > 1]


def joint_transformer_block_bucketing_reordering_pass(gm, example_inputs):
    """One all-gather and one reduce-scatter for each block and direction; all members are ready before the merged one."""
    graph = gm.graph
    for target in (GATHER, SCATTER):
        for members in _buckets(gm, target):
            at = {node: place for place, node in enumerate(graph.nodes)}
            waits = [next(iter(member.users)) for member in members]
            # Only members whose waits come after the last launch can share it.
            last = max(members, key=at.get)
            kept = [(member, wait) for member, wait in zip(members, waits)
                    if all(at[user] > at[last] for user in wait.users)]
            if len(kept) > 1:
                _merge(graph, [member for member, _ in kept], [wait for _, wait in kept], last)
    graph.eliminate_dead_code(is_impure_node=lambda node: node.op in ("placeholder", "output"))
    return finish(gm)


def _merge(graph, members, waits, last):
    shapes = [member.args[0].meta["val"].shape for member in members]
    sizes = [shape.numel() for shape in shapes]
    with graph.inserting_before(last.next):
        flat = [new_node(graph, aten.reshape.default, (member.args[0], [-1]), member) for member in members]
        packed = new_node(graph, aten.cat.default, (flat,), members[0])
        launched = new_node(graph, members[0].target, (packed, *members[0].args[1:]), members[0])
        waited = new_node(graph, WAIT, (launched,), waits[0])
        parts = new_node(graph, aten.split_with_sizes.default, (waited, sizes), waits[0])
        for number, (wait, shape) in enumerate(zip(waits, shapes)):
            part = new_node(graph, operator.getitem, (parts, number), wait)
            whole = new_node(graph, aten.reshape.default, (part, list(shape)), wait)
            whole.meta["val"] = wait.meta.get("val")
            wait.replace_all_uses_with(whole)
    for member, wait in zip(members, waits):
        graph.erase_node(wait)
        graph.erase_node(member)


# --- Memory -----------------------------------------------------------------------------------------------------------


def tag_with_memory_policy_pass(gm, example_inputs, *, offload=True, smallest=256):
    """Matrix products are saved, the rest of the forward pass is recomputed; what the next layer reads is saved."""
    nodes = [node for node in calls(gm) if not is_backward(node) and not module_path(node).startswith(("lm_head", "loss"))]
    for node in nodes:
        if node.target in (operator.getitem, WAIT):
            parent = node.args[0].meta.get("recompute")
            if parent is not None:
                node.meta["recompute"] = parent
        else:
            node.meta["recompute"] = Memory.MUST_SAVE if node.target in SAVED else Memory.PREFER_RECOMPUTE
    for node in nodes:
        if node.meta.get("recompute") is Memory.PREFER_RECOMPUTE and any(
                user.meta.get("recompute") is Memory.PREFER_RECOMPUTE and layer_of(user) > layer_of(node)
                for user in node.users):
            node.meta["recompute"] = Memory.MUST_SAVE
    if offload:
        last = max(map(layer_of, nodes), default=-1)
        for node in nodes:
            is_saved = node.meta.get("recompute") is Memory.MUST_SAVE and node.target not in VIEWS | {SCATTER, WAIT}
            if is_saved and 0 <= layer_of(node) < last and node.meta["val"].numel() * 4 >= smallest:
                node.meta["recompute"] = Memory.MUST_CPU_OFFLOAD
    return finish(gm)


def _through_views(node):
    """(user, view that it reads or None) of the users in the backward pass, and the views of the forward pass."""
    views, users, queue = [], [], [node]
    while queue:
        source = queue.pop(0)
        for user in source.users:
            if is_backward(user):
                users.append((user, None if source is node else source))
            elif user.target in VIEWS and user not in views:
                views.append(user)
                queue.append(user)
    return views, users


def apply_cpu_offload_pass(gm, example_inputs):
    graph = gm.graph
    for node in calls(gm):
        if node.meta.get("recompute") is not Memory.MUST_CPU_OFFLOAD:
            continue
        views, users = _through_views(node)
        if not users:
            continue
        at = {item: place for place, item in enumerate(graph.nodes)}
        first = min((user for user, _ in users), key=at.get)
        forward = [user for source in (node, *views) for user in source.users if not is_backward(user)]
        last_use = max(forward, key=at.get, default=None)
        with graph.inserting_before(node.next):
            away = new_node(graph, OFFLOAD, (node,), node)
        with graph.inserting_before((last_use or away).next):
            done = new_node(graph, WAIT_COPY, (away, node, last_use), node)
        with graph.inserting_before(first):
            back = new_node(graph, RELOAD, (done,), node, autograd_backward=True)
            ready = new_node(graph, WAIT_COPY, (back, done, None), node, autograd_backward=True)
            copies = {node: ready}
            for view in views:
                copies[view] = graph.node_copy(view, lambda source: copies.get(source, source))
                copies[view].meta["autograd_backward"] = True
                copies[view].meta.pop("recompute", None)
        for user, view in users:
            user.replace_input_with(view or node, copies[view or node])
        for view in reversed(views):
            if not copies[view].users:
                graph.erase_node(copies[view])
    return finish(gm)


def selective_activation_remat_pass(gm, example_inputs, *, told=None):
    """Copies what is to be recomputed in front of its first backward user. `told(original, copy)` hears of each copy."""
    graph = gm.graph
    recomputed = (Memory.PREFER_RECOMPUTE, Memory.MUST_RECOMPUTE)
    nodes = list(graph.nodes)
    start = 1 + max((place for place, node in enumerate(nodes)
                     if module_path(node) in ("loss", "lm_head") and node.target not in (SCATTER, WAIT)), default=-1)
    target = {}
    for node in nodes[start:]:
        if is_backward(node):
            stack = list(node.all_input_nodes)
            while stack:
                source = stack.pop()
                if source.meta.get("recompute") in recomputed and source not in target:
                    target[source] = node
                    stack += source.all_input_nodes
    copies = {}
    at = {node: place for place, node in enumerate(nodes)}
    for node in nodes:
        if node not in target:
            continue
        with graph.inserting_before(target[node]):
            copy = graph.node_copy(node, lambda source: copies.get(source, source))
        copy.name = f"{node.name}_recomputed"
        copy.meta["autograd_backward"] = True
        copies[node] = copy
        if told is not None:
            told(node, copy)
    for node, copy in copies.items():
        for user in list(node.users):
            if is_backward(user) and user not in copies.values() and at.get(user, -1) >= at[target[node]]:
                user.replace_input_with(node, copy)
    for node in reversed(list(copies)):
        if not node.users:
            graph.erase_node(node)
    return finish(gm)


# --- Compilation ------------------------------------------------------------------------------------------------------


def annotate_rmsnorm_pass(gm, example_inputs):
    for node in calls(gm):
        if module_path(node).endswith("norm") and not is_backward(node):
            node.meta["custom"] = {**node.meta["custom"], "compile_with_inductor": {}}
    return gm


def regional_compilation_pass(gm, example_inputs):
    """Each annotated region becomes one call of a module."""
    from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

    regions, before = [], None
    for node in calls(gm):
        if "compile_with_inductor" in (node.meta.get("custom") or {}):
            if before is None or module_path(before) != module_path(node):
                regions.append({})
            regions[-1][node] = None
            before = node
        else:
            before = None
    return fuse_by_partitions(gm, [region for region in regions if len(region) > 1], prefix="compiled_")


def insert_kernel_annotations_pass(gm, example_inputs):
    previous = None
    for node in list(gm.graph.nodes):
        path = module_path(node) if node.op in ("call_function", "call_module") else ""
        if path == previous:
            continue
        with gm.graph.inserting_before(node):
            if previous:
                gm.graph.call_function(LEAVE, (previous,))
            if path:
                gm.graph.call_function(ENTER, (path,))
        previous = path
    return finish(gm)


def cudagraph_pass(gm, example_inputs):
    """Replaces how the module is called; its graph stays."""
    forward = gm.forward
    gm.forward = lambda *inputs: forward(*inputs)
    return gm


# --- The list and its runner ------------------------------------------------------------------------------------------


def default_passes(extra_group):
    return [eliminate_dead_code_pass, canonicalize_graph_pass, deduplicate_fsdp_unshard_chains_pass,
            functools.partial(tag_with_memory_policy_pass, offload=True), apply_cpu_offload_pass,
            selective_activation_remat_pass, functools.partial(reassign_collective_pgs_pass, extra=extra_group),
            joint_transformer_block_bucketing_reordering_pass, annotate_rmsnorm_pass, regional_compilation_pass,
            insert_kernel_annotations_pass, cudagraph_pass]


def apply_graph_passes(gm, example_inputs, passes, *, disable_passes=()):
    inputs = list(example_inputs)
    for fn in passes:
        name = fn.func.__name__ if isinstance(fn, functools.partial) else fn.__name__
        if name in disable_passes:
            continue
        gm = fn(gm, inputs)
        assert isinstance(gm, fx.GraphModule), f"{name} returned {type(gm).__name__}"
    return gm
