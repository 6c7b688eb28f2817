"""Tests of a pass: its golden graphs, its numbers, and that Inductor runs it. `pytest --strata-update` writes the graphs anew."""

import json
import subprocess

import pytest
import strata
import torch
import torch._inductor.config as inductor
from fold_scales import FoldScales, fold_scales
from strata._program import find_program
from torch.fx.experimental.proxy_tensor import make_fx


def chain(x):
    return torch.relu(x * 2 * 0.5 * 4)


def read_twice(x):
    half = x * 0.5
    return half * 4 + half


@pytest.mark.parametrize("model", [chain, read_twice])
def test_graph(graph_golden, model):
    gm = make_fx(model)(torch.randn(8))
    fold_scales(gm.graph)
    graph_golden(gm)


@pytest.mark.parametrize("model", [chain, read_twice])
def test_values_are_the_same_bits(model):
    x = torch.randn(1000)
    gm = make_fx(model)(x)
    fold_scales(gm.graph)
    gm.recompile()
    assert torch.equal(gm(x), model(x))


def test_a_graph_without_scales_is_left_alone():
    gm = make_fx(torch.sin)(torch.randn(8))
    before = make_fx(torch.sin)(torch.randn(8))
    fold_scales(gm.graph)
    assert not strata.diff(before, gm).differs


def test_inductor_runs_it(tmp_path):
    trace = str(tmp_path / "run.strata")
    x = torch.randn(64)
    with inductor.patch(post_grad_custom_pre_pass=FoldScales()), strata.record(trace):
        assert torch.equal(torch.compile(chain)(x), chain(x))
    listed = subprocess.run([find_program(), "ls", trace, "--json"], capture_output=True, text=True, check=True)
    [recorded] = [item for item in json.loads(listed.stdout)["runs"][0]["passes"] if "FoldScales" in item["name"]]
    assert recorded["status"] == "ok"
    assert (recorded["counts"]["inserted"], recorded["counts"]["deleted"]) == (1, 3)
