"""The overview, and reports of other things than a trace: one pass, two runs, stages of a compilation, nothing.

usage: overview_test.py STRATA SCREENSHOTS
"""

import json
import os
import re
import subprocess
import urllib.parse

from browser import PASS, PHONE, ROOT, WIDE, run


def overview(site):
    site.open(site.training())
    site.shows(".timeline", "canonicalize")
    site.shows(".timeline", "dce")
    site.shows(".cards", "Nodes")
    site.shows(".cards", "Peak memory")
    site.shows("main", "Root causes")
    # Equal changes of all layers are one cause.
    site.shows(".cause", "equal places")
    site.shows(".cause", "layers.{0..3}")
    site.shot("overview_light")
    site.theme("dark")
    assert site.js("return document.documentElement.dataset.theme") == "dark"
    site.shot("overview_dark")
    site.theme("light")


def unchanged_passes_are_folded(site):
    site.open(site.opt("quiet", "graph step\n  x = placeholder : f32[4][1]cpu\n  y = aten.neg.default(x) : f32[4][1]cpu\n  output([y])\n"))
    site.shows(".timeline .fold", "2 passes without change")
    site.shows(".timeline .fold", "dce, canonicalize")
    site.open(site.opt("quiet", ""), "#run=1,graph=step,pass=0")
    site.shows(".empty", "No changes in this pass")


def report_of_a_pass(site):
    """A selector names one pass, or one graph as it stands."""
    site.training()
    page = site.report(site.path("training.strata") + "#pass=canonicalize")
    site.open(page)
    assert site.count(".timeline a.row") == 1
    site.shows("main", "view became reshape")
    site.click(".timeline a.row")
    site.shows(".pass-head", "canonicalize")
    site.drawn()
    page = site.report(site.path("training.strata") + "#graph=step,pass=dce:after")
    site.open(page)
    assert site.text("h1") == "training.strata", site.text("h1")
    assert not site.count(".timeline")
    site.js("document.querySelector('td a').click()")
    site.shows(".pass-head", "step")
    site.drawn()
    assert site.view("v.detail.changes.length") == 0


def two_runs(site):
    """Two runs of one program: a row per step, each with what differs; all ways to look at it."""
    page = site.two_runs()
    site.open(page)
    assert site.text("h1") == "training.strata → other.strata", site.text("h1")
    site.shows(".hero span", "training.strata#run=1 → other.strata#run=1")
    assert site.count(".cause") == 1, "one cause, however many steps it lasts"
    site.shows(".cause", "#0 …")
    site.shows(".cards", "at the end")
    site.shows(".timeline", "initial")
    site.shows(".timeline", "canonicalize")
    site.shows(".cause", "silu became relu")
    site.shows(".cause", "layers.2.feed_forward")
    site.shot("two_runs_light")
    site.click(".timeline a.row:last-of-type")
    site.drawn()
    site.press("n")
    site.wait(lambda: site.node() == "silu_2", "the node that differs")
    site.shows(".inspector .cause", "aten.relu.default")
    site.press("2")
    site.wait(lambda: site.count("canvas.graph") == 2, "side by side")
    site.press("3")
    site.shows(".caption", "hold b for before")
    site.press("4")
    site.shows(".text .plus", "aten.relu.default")
    site.driver.back()
    site.shows(".caption", "hold b for before")
    site.driver.back()
    site.wait(lambda: site.count("canvas.graph") == 2, "side by side again")
    site.press("y")
    site.says("Link copied")
    site.catch_copies()
    site.click(".menu-box > button")
    site.click_words(".menu button", "Copy command")
    command = site.copied("the command")
    assert command == 'strata report "training.strata#run=1" "other.strata#run=1"', command
    site.quiet()


def stages(site):
    """Graphs of one compilation, each beside the one that it was made from."""
    log = os.path.join(ROOT, "tests", "data", "logs", "compile_torch2.11.log.zst")
    page = site.report(log)
    site.open(page)
    rows = site.js("return [...[...document.querySelectorAll('section')].find((e) => e.innerText.startsWith('Stages')).querySelectorAll('tbody tr')].map((e) => [...e.cells].slice(0, 2).map((c) => c.innerText))")
    for pair in (["aot_joint_graph", "dynamo_output_graph"], ["aot_forward_graph", "aot_joint_graph"], ["aot_backward_graph", "aot_joint_graph"]):
        assert pair in rows, rows
    site.js("[...document.querySelectorAll('a')].find((e) => e.getAttribute('href').endsWith('#run=1,graph=aot_backward_graph&from=run=1,graph=aot_joint_graph')).click()")
    site.shows(".pass-head", "aot_joint_graph → aot_backward_graph")
    site.drawn()
    assert site.view("v.detail.counts[1]") > 0, "forward nodes are not in the backward graph"
    site.press("n")
    site.wait(site.node, "a difference")
    # Both are REFs that the command line takes: it finds the same difference.
    _, ref, base = re.split("[#&]from=|#", urllib.parse.unquote(site.driver.current_url.split("&node")[0]))
    result = subprocess.run([site.strata, "diff", f"{log}#{base}", f"{log}#{ref}", "--format", "json"], stdout=subprocess.PIPE, check=False)
    assert json.loads(result.stdout)["summary"]["deleted"] == site.view("v.detail.counts[1]")
    # The plain graph has a link of its own.
    site.open(page, "#run=1,graph=aot_joint_graph")
    assert site.text(".pass-head h1") == "aot_joint_graph"
    site.quiet()


def memory_and_operators(site):
    site.open(site.training(), "#memory")
    site.shows("h1", "Memory")
    site.shows("main", "Largest at the peak")
    assert site.count(".chart polyline.line") >= 1
    site.shot("memory_light")
    site.open(site.training(), "#operators")
    site.shows("main", "aten.reshape.default")
    site.shows("main", "aten.view.default")
    site.shot("operators_light")


def phone(site):
    site.resize(PHONE)
    for fragment, name in (("", "overview"), (PASS, "graph"), (PASS + "&tab=table", "table"), (PASS + "&tab=text", "text"), ("#memory", "memory"), ("#operators", "operators")):
        site.open(site.training(), fragment)
        wide = site.js("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{fragment}: {wide} px wider than the screen"
        if name == "graph":
            site.drawn()
            site.press("n")
            site.shows(".inspector.sheet-open", "Fields")
            site.drawn()
        site.shot(f"phone_{name}_light")
    site.click(".inspector .close") if site.count(".inspector .close") else None
    site.open(site.ranks(), "#ranks")
    site.shot("phone_ranks_light")
    site.resize(WIDE)


def pipeline(site):
    """What the ranks of a pipeline did in a profiled step."""
    page = site.pipeline()
    if page is None:
        return
    site.open(page)
    site.shows("main", "ranks over time")
    svg = "main svg.lanes"
    assert site.count(svg) == 1
    words = site.js("return document.querySelector(arguments[0]).textContent", svg)
    assert "measured in step 2" in words and "simulated" in words, words
    # Both ranks and both microbatches, forward and backward, measured and simulated.
    titles = site.js("return [...document.querySelectorAll('main svg.lanes g title')].map((title) => title.textContent)")
    computed = [title.split(",")[0] for title in titles if re.fullmatch(r"rank \d: \d[FB]\d", title.split(",")[0])]
    assert sorted(computed) == sorted(2 * [f"rank {r}: {r}{kind}{m}" for r in (0, 1) for kind in "FB" for m in (0, 1)]), computed
    assert site.js("return document.documentElement.scrollWidth - innerWidth") <= 0
    site.shot("pipeline_light")
    site.quiet()


def nothing_to_show(site):
    """A log that only names files has no run."""
    log = site.path("names.log")
    with open(log, "w", encoding="utf-8") as file:
        file.write('V1120 18:32:38.396000 14073 torch/x.py:10] {"str": ["x.py", 0]}\n')
    for fragment in ("", "#memory", "#run=1,graph=step"):
        site.open(site.report(log), fragment)
        site.shows("main", "holds no run")
    site.quiet()


def without_script(site):
    """The summary of a reader without JavaScript."""
    site.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    site.driver.get("about:blank")
    site.driver.get(site.training())
    words = site.driver.find_element("tag name", "noscript").text
    site.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "canonicalize" in words and "view" in words, words[:400]


run((overview, unchanged_passes_are_folded, report_of_a_pass, two_runs, stages, memory_and_operators, pipeline, phone, nothing_to_show, without_script))
