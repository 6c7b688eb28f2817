"""Golden graphs: a test compares a graph with a text that was reviewed."""

import os

from strata._look import diff, show

_HEAD = "# A golden graph: pytest --strata-update writes it anew.\n"


def assert_graph(graph, golden, *, policy=None, update=None):
    """Fails when `graph` differs from the golden graph in the file `golden`, node by node.

    Names of nodes, their numbers and locations do not matter. policy: a file with the allowed changes (docs/policy.md).
    update: write the file instead; by default when STRATA_UPDATE is set to 1, which CI refuses. A missing file fails.
    """
    __tracebackhide__ = True
    golden = os.fspath(golden)
    if update is None:
        update = os.environ.get("STRATA_UPDATE") == "1"
    if update:
        if os.environ.get("CI"):
            raise AssertionError(f"golden graph {golden}: CI does not update golden graphs: unset STRATA_UPDATE")
        _write(golden, show(graph, format="fx").text)
        return
    if not os.path.exists(golden):
        raise AssertionError(f"golden graph {golden} is missing: STRATA_UPDATE=1 or pytest --strata-update writes it")
    found = diff(golden, graph, policy=policy)
    if found.differs:
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.summary.items()
                           if count and name not in ("same", "renamed"))
        raise AssertionError(f"the graph differs from {golden}: {counts}\n\n{found.to_text()}\n"
                             "If the change is right: pytest --strata-update")


def _write(path, text):
    """Whole or not at all: tests may run side by side."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    aside = f"{path}.{os.getpid()}.tmp"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(_HEAD + text)
    os.replace(aside, path)
