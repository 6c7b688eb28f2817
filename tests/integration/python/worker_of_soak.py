"""What the workers of soak_test.py run; a module of its own, so that spawned ones can import it."""

import torch
from torch import fx

import strata


@strata.watch
def change(gm):
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.sigmoid


def work(number):
    """Records a pass where a recording is open; the number of nodes."""
    gm = fx.symbolic_trace(lambda x: torch.relu(x + number) * 2)
    change(gm)
    return len(gm.graph.nodes)
