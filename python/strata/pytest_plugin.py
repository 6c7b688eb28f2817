"""The pytest plugin: the option --strata-update and the fixture `graph_golden`."""

import os
import re

import pytest


def pytest_addoption(parser):
    parser.getgroup("strata").addoption("--strata-update", action="store_true",
                                        help="write golden graphs instead of comparing with them")


@pytest.fixture
def graph_golden(request):
    """`graph_golden(gm)` compares with `golden/<test>.txt` beside the test file; `graph_golden(gm, "name")` names it."""
    update = request.config.getoption("--strata-update") or None

    def check(graph, name=None, *, policy=None):
        __tracebackhide__ = True
        from strata.testing import assert_graph

        stem = re.sub(r"[^\w.-]+", "_", name or request.node.name).strip("_")
        path = os.path.join(os.path.dirname(str(request.node.path)), "golden", stem + ".txt")
        assert_graph(graph, path, policy=policy, update=update)

    return check
