"""A diff in a cell of a notebook: a table, and the report in a frame that may run scripts and nothing else.

usage: notebook_test.py STRATA SCREENSHOTS
"""

import os
import sys

from browser import ROOT, run

sys.path.insert(0, os.path.join(ROOT, "python"))
import strata  # noqa: E402

HOSTILE = "</iframe><img src=x onerror=alert(1)>"


def text(nodes, every=0):
    """An FX text; the function of each `every`-th node is another."""
    names = ["x"] + [f"n{i}" for i in range(nodes)]
    lines = [f"    {name} = torch.{'sigmoid' if every and i % every == every - 1 else 'relu'}({names[i]})"
             for i, name in enumerate(names[1:])]
    return "\n".join(["def forward(self, x):", f"    # File: {HOSTILE}.py:1 in f, code: {HOSTILE}", *lines, f"    return {names[-1]}", ""])


def cell(site, name, *texts):
    """Opens a page with the cell of a diff, as a notebook has it; returns the cell."""
    os.environ["STRATA_BIN"] = site.strata
    found = strata.diff(*texts)._repr_html_()
    page = site.path(name + ".html")
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"<!doctype html><html data-ready=1><meta charset=utf-8><title>{name}</title><body>{found}</body></html>")
    site.open("file://" + page)
    return found


def a_cell_shows_the_changes(site):
    cell(site, "cell", text(40), text(40, 10))
    site.shows("table", "torch.relu → torch.sigmoid")
    assert site.js("return document.querySelector('iframe').getAttribute('sandbox')") == "allow-scripts"
    assert site.count("img") == 0, "names are text"
    site.driver.switch_to.frame(0)
    site.wait(lambda: site.js("return document.documentElement.dataset.ready"), "the report in the frame")
    site.wait(lambda: site.js("const p = document.querySelector('.panes'); return p && p.view && p.view.fitted"), "the graph")
    assert site.js("const c = document.querySelector('canvas'); return c.width > 100 && c.height > 100")
    # Links, keys and the buttons of the browser work there, too.
    site.press("j")
    site.click_words("header a", "Overview")
    site.shows("h1", "after.txt")
    site.click_words("header a", "Passes")
    site.wait(lambda: site.count(".panes"), "the graph again")
    site.driver.find_element("css selector", "h1").click()
    site.press("n")
    site.shows(".inspector", "torch.sigmoid")
    site.js("history.back()")
    site.wait(lambda: site.count(".panes") == 0, "the overview again")
    site.driver.switch_to.default_content()
    assert site.driver.current_url.endswith("cell.html"), site.driver.current_url
    site.shot("notebook_light")
    site.quiet()


def a_large_graph_stays_small(site):
    found = cell(site, "large", text(7000), text(7000, 140))
    assert len(found.encode()) < 500_000, len(found.encode())
    assert "<iframe" in found, "the report is in the cell"
    site.shows("table", "torch.relu → torch.sigmoid")


run((a_cell_shows_the_changes, a_large_graph_stays_small))
