"""Several ranks in one report: where they diverge, and what is different between two of them.

usage: ranks_test.py STRATA SCREENSHOTS
"""

from browser import run


def parting(site):
    site.open(site.training(), "#ranks")
    site.shows("main", "One rank in this file")
    site.open(site.ranks(), "#ranks")
    site.shows(".told", "Ranks diverge at #0")
    site.shows(".told", "ranks 0–1 | rank 2")
    letters = site.texts(".matrix .cell")
    assert letters == ["A", "A", "B"], letters
    site.shows(".told", "is the first that differs")
    site.shows(".told", "Missing on rank 0, rank 1.")
    assert site.count(".collective.missing") == 3
    site.shot("ranks_light")


def which_ranks_have_a_node(site):
    site.graph(site.ranks(), "#run=1,pass=fuse&overlay=rank&hops=all")
    site.shows(".legend", "all ranks")
    site.shows(".legend", "ranks 0–1")


def two_cells(site):
    """Two cells of the matrix are a difference; one and its link the graph."""
    cell = ".matrix tbody tr:nth-child({}) .cell"
    site.open(site.ranks(), "#ranks")
    site.click(cell.format(1))
    site.shows("[role=note]", "rank 0, fuse_pass: group A: open it, or choose a second cell")
    assert site.js("return document.querySelector('.cell[aria-pressed=true]').innerText") == "A"
    site.shot("ranks_choice_light")
    site.click(cell.format(2))
    site.shows("[role=note]", "Both run the same.")
    site.click(cell.format(2))
    site.click(cell.format(3))
    site.shows(".pass-head", "fuse_pass: rank 0 → rank 2")
    site.drawn()
    site.press("n")
    site.shows(".inspector .cause", "args[2]")
    assert "#run=3,graph=" in site.driver.current_url and "&from=run=1,graph=" in site.driver.current_url
    site.shot("ranks_pair_light")
    site.driver.refresh()
    site.shows(".pass-head", "fuse_pass: rank 0 → rank 2")
    site.open(site.ranks(), "#ranks")
    site.click(cell.format(3))
    site.click("[role=note] a")
    site.shows(".pass-head", "fuse")
    site.shows(".pass-head", "other on ranks 0, 1")
    assert "run=3" in site.driver.current_url
    site.press("r")
    site.wait(lambda: "run=1" in site.driver.current_url, "the next rank")
    site.quiet()


run((parting, which_ranks_have_a_node, two_cells))
