"""A pass in words: the inspector, the table, the text, the patterns.

usage: table_test.py STRATA SCREENSHOTS
"""

from browser import PASS, Keys, run
from examples import COND


def inspector_and_blame(site):
    site.open(site.training(), PASS + "&node=view_0")
    site.shows(".inspector", "reshape")
    site.shows(".inspector .cause", "target")
    site.shows(".inspector", "Provenance")
    site.shows(".provenance", "canonicalize")
    site.shows(".inspector", "Inputs 1")
    site.shows(".inspector pre", "aten.reshape.default")
    site.open(site.training(), PASS + "&node=q_0")
    site.shows(".inspector", "model.py:20")
    site.shows(".inspector", "h = x + self.attention(x)")
    site.drawn()
    site.shot("node_details_light")
    site.view("v.zoom(1 / v.scale)")
    site.view("v.center(v.selected)")
    site.drawn()
    site.shot("module_light")
    # A removed node names the nodes that replace it.
    site.open(site.training(), PASS + "&node=detach_0")
    site.shows(".inspector .chip", "removed")


def table(site):
    site.open(site.training(), PASS + "&tab=table&node=view_1")
    site.wait(lambda: site.count(".nodes tbody tr") > 4, "the table")
    assert site.count(".nodes tbody tr[aria-selected=true]") == 1
    site.shows(".nodes", "target: aten.view.default → aten.reshape.default")
    statuses = site.texts(".nodes .chip")
    assert statuses == sorted(statuses, key=lambda word: ["~ changed", "+ added", "− removed", "↷ moved", "~ derived"].index(word)), statuses
    site.shot("table_light")


def sorted_columns(site):
    """Headings are buttons: a press sorts upwards, the next one downwards, the third as it was; the keyboard stays there."""
    def names():
        return site.texts(".nodes tbody tr td:nth-child(2)")

    site.open(site.training(), PASS + "&tab=table")
    site.wait(lambda: site.count(".nodes tbody tr") > 4, "the table")
    plain = names()
    site.js("document.querySelector('#sort-node').focus()")
    site.press(Keys.ENTER)
    site.wait(lambda: site.js("return document.querySelector('#sort-node').closest('th').getAttribute('aria-sort')") == "ascending", "sorted upwards")
    up = names()
    assert up == sorted(plain) and up != plain, (plain, up)
    assert site.js("return document.activeElement.id") == "sort-node"
    site.press(Keys.ENTER)
    site.wait(lambda: site.js("return document.querySelector('#sort-node').closest('th').getAttribute('aria-sort')") == "descending", "sorted downwards")
    assert names() == up[::-1]
    assert "sort=-node" in site.driver.current_url
    site.press(Keys.ENTER)
    site.wait(lambda: "sort=" not in site.driver.current_url and names() == plain, "as it was")
    # What the graph is coloured by is a column, too.
    site.open(site.training(), PASS + "&tab=table&hops=all&overlay=bytes&sort=-memory%20of%20outputs")
    site.wait(lambda: site.count(".nodes tbody tr") > 20, "the table")
    first = site.text(".nodes tbody tr:first-child")
    assert "16.0 KiB" in first, first


def text(site):
    site.open(site.training(), PASS + "&tab=text")
    site.shows(".text", "aten.reshape.default")
    site.shows(".text", "unchanged lines")
    # What differs inside the line is marked, and nothing else.
    marks = site.texts(".plus mark")
    assert "aten.reshape.default" in marks, marks
    site.shot("text_light")
    fold = site.count(".text .line")
    site.click(".fold-line")
    site.wait(lambda: site.count(".text .line") > fold, "the lines of a fold")
    site.open(site.training(), PASS + "&tab=text&spelling=fx")
    site.shows(".text", 'view_0: "f32[2, 4, 64][256, 64, 1]cpu" = torch.ops.aten.reshape.default(q_0, [2, 4, 64])')
    line = site.texts(".text .line:last-of-type .nr")[1]
    site.press("g")
    site.wait(lambda: site.count("dialog.palette"), "the palette")
    site.press(line, Keys.ENTER)
    site.wait(lambda: site.count(".text .line[aria-selected=true]"), f"line {line}")
    assert line in site.texts(".text .line[aria-selected=true] .nr")
    site.press("j")  # no further pass: said, not done
    site.says("last")


def bodies(site):
    """A branch of a conditional has lines in the text, in both spellings."""
    source = site.path("cond.txt")
    with open(source, "w", encoding="utf-8") as file:
        file.write(COND)
    page = site.report(source)
    site.open(page)
    site.click(".section ~ .box a[href*='graph=']")
    site.drawn()
    site.press("4")
    site.shows(".text", "aten.neg.default")
    site.shows(".text .place", "true_graph_0")
    site.click_words(".segments button", "FX")
    site.shows(".text", 'neg: "f32[4][1]cpu" = torch.ops.aten.neg.default(x)')
    # The copy is a program that our own reader takes for the same.
    site.catch_copies()
    site.click_words(".toolbar button", "Copy graph")
    with open(site.path("copied.txt"), "w", encoding="utf-8") as file:
        file.write(site.copied("the graph"))
    site.run("diff", source, site.path("copied.txt"))


def patterns(site):
    site.open(site.training(), PASS + "&tab=patterns")
    site.shows(".pattern h2", "view became reshape")
    site.shows(".pattern", "layers.{0..3}")
    assert site.count(".multiples button") >= 4
    site.shot("patterns_light")
    site.click(".multiples button")
    site.drawn()
    site.wait(lambda: "node=" in site.driver.current_url, "the node")


run((inspector_and_blame, table, sorted_columns, text, bodies, patterns))
