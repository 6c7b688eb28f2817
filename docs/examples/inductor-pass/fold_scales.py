"""A pass for Inductor: two products with constants become one.

    torch._inductor.config.post_grad_custom_pre_pass = FoldScales()
"""

import math

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

aten = torch.ops.aten


def fold_scales(graph):
    """x * a * b → x * (a * b), where nothing else reads x * a.

    Powers of two alone: short of overflow no bit changes.
    """
    for node in list(graph.nodes):
        inner = node.args[0] if _is_scale(node) else None
        if _is_scale(inner) and len(inner.users) == 1:
            with graph.inserting_after(node):
                folded = graph.call_function(aten.mul.Tensor, (inner.args[0], inner.args[1] * node.args[1]))
            folded.meta.update(node.meta)
            node.replace_all_uses_with(folded)
            graph.erase_node(node)
            graph.erase_node(inner)


def _is_scale(node):
    return (isinstance(node, torch.fx.Node) and node.target is aten.mul.Tensor and type(node.args[1]) in (int, float)
            and math.frexp(node.args[1])[0] == 0.5)


class FoldScales(CustomGraphPass):
    """As Inductor's configuration takes it: `uuid` keeps its caches right when this file changes."""

    def __call__(self, graph):
        fold_scales(graph)

    def uuid(self):
        return get_hash_for_files((__file__,))
