"""What nodes are coloured by, and found by: memory, time, values; in words, too.

usage: colour_test.py STRATA SCREENSHOTS
"""

from browser import PASS, Keys, run


def overlays(site):
    site.graph(site.training(), PASS + "&overlay=bytes&hops=all")
    site.shows(".legend", "KiB")
    site.shows(".legend", "no value")
    fill = site.view("v.overlay.ofNode(v.detail.find('q_0'))")
    assert fill["text"] == "2.00 KiB" and fill["fill"].startswith("rgb"), fill
    site.shot("overlay_memory_light")
    site.press("o")
    site.wait(lambda: "overlay=bytes" not in site.driver.current_url, "another property")


def ranges(site):
    """Nodes are found by what they can be coloured by: sizes with units, kinds by name."""
    site.graph(site.training(), PASS)
    sizes = "[...v.detail.bytes.values()].filter((b) => {}).length"
    for words, wanted in (("bytes>2048", sizes.format("b > 2048")), ("bytes >= 2KiB", sizes.format("b >= 2048")), ("bytes<1KiB", sizes.format("b < 1024")), ("flops>0", "v.detail.flops.size"), ("dtype=i64", "1"), ("placement=R", "0"), ("bytes>x", "0")):
        counts = site.view(f"[v.detail.search('{words}').length, {wanted}]")
        assert counts[0] == counts[1], (words, counts)
        assert counts[0] > 0 or wanted == "0", words
    site.type(".finder .search", "dtype=i64")
    site.shows("#results", "1 node")


def profile(site):
    """A profiled training: time and values as colours, as columns and in words; memory node by node."""
    page = site.profiled()
    if page is None:
        print("profile: no LibTorch, not tried")
        return
    site.graph(page, PASS + "&overlay=time&hops=all")
    site.shows(".legend", "Time of a step")
    assert site.js("return /\\d(\\.\\d+)? (µs|ms)/.test(document.querySelector('.legend').innerText)")
    words = site.view("v.overlay.ofNode(v.detail.changes.find((i) => v.detail.time.has(i)))")
    assert words["fill"].startswith("rgb") and words["text"].endswith("s"), words
    assert site.view("v.overlay.shareOf(0)") == 1
    offered = site.js("return [...document.querySelectorAll('[aria-label=\"Colour by\"] option')].map((e) => e.value)")
    assert {"time", "measured", "least", "greatest", "mean"} <= set(offered), offered
    assert "nan" not in offered, "no value of this training is NaN"
    node = site.view("v.detail.nodeName([...v.detail.values.keys()].find((i) => v.detail.status[i] === 3))")
    site.graph(page, PASS + f"&overlay=mean&node={node}")
    site.shows(".inspector", "all finite")
    site.shows(".inspector", "time of a step")
    site.shot("profile_light")
    site.open(page, PASS + "&tab=table&hops=all&overlay=time&sort=-time%20of%20a%20step")
    site.wait(lambda: site.count(".nodes tbody tr") > 20, "the table")
    site.shows(".nodes thead", "time of a step ↓")
    site.open(page, "#memory")
    site.shows("h1", "Memory")
    site.js("document.querySelector('svg.chart').focus()")
    site.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    site.wait(lambda: "iB" in site.text("svg.chart .mark:last-child") + site.js("return document.querySelector('svg.chart').getAttribute('aria-label')"), "a point")
    told = site.js("return document.querySelector('svg.chart').getAttribute('aria-label')")
    site.press(Keys.ENTER)
    site.shows(".inspector", "Fields")
    assert site.node() in told, (site.node(), told)


def placed(site):
    """Placements are colours, and so is what computation and communication were modelled to cost."""
    page = site.placed()
    if page is None:
        print("placed: no LibTorch, not tried")
        return
    site.graph(page, "#run=1,graph=step,pass=0&hops=all&overlay=placement")
    site.shows(".legend", "RR")
    product = "v.detail.find('mm')"
    assert site.view(f"v.overlay.ofNode({product}).text") == "S(0)S(0)"
    site.shot("placed_light")
    for key, label in (("compute", "Computation, modelled"), ("communication", "Communication, modelled")):
        site.js("const s = document.querySelector('[aria-label=\"Colour by\"]'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", key)
        site.shows(".legend", label)
        site.shot(f"placed_{key}_light")
    site.view(f"v.select({product})")
    site.shows(".inspector", "place.instead")


def not_finite(site):
    """Values that are NaN are a colour of their own; numbers of both signs have a scale."""
    site.graph(site.training(), PASS + "&hops=all")
    told = site.js("""
        const v = document.querySelector('.panes').view, d = v.detail;
        d.values = new Map([[3, [8, 0, 0, -4, 4, 0.5]], [4, [8, 2, 1, 0, 9, -0.125]]]);
        return null;""")
    assert told is None
    site.js("document.querySelector('[aria-label=\"Colour by\"]').append(new Option('x', 'nan'), new Option('y', 'least'))")
    for key, words in (("nan", "3"), ("least", "−4")):
        site.js("const s = document.querySelector('[aria-label=\"Colour by\"]'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", key)
        site.wait(lambda: f"overlay={key}" in site.driver.current_url, key)
        texts = site.view("[3, 4].map((i) => v.overlay.ofNode(i)).filter(Boolean).map((o) => o.text)")
        assert words in texts, (key, texts)
        assert len(texts) == (1 if key == "nan" else 2), "nothing is a value, too"


def times_across_ranks(site):
    """What several ranks took for a node: how far they are apart as a colour, least, median, most and the slowest rank in words."""
    site.graph(site.training(), PASS + "&hops=all&node=q_0")
    site.js("""
        const v = document.querySelector('.panes').view, d = v.detail;
        d.across = new Map([[d.find('q_0'), [1000000, 2000000, 9000000, 3]], [d.find('o_0'), [1000, 1000, 2000, 0]]]);
        document.querySelector('[aria-label="Colour by"]').append(new Option('x', 'across'));""")
    site.js("const s = document.querySelector('[aria-label=\"Colour by\"]'); s.value = 'across'; s.dispatchEvent(new Event('change'))")
    site.shows(".legend", "Time across ranks")
    assert site.view("v.overlay.ofNode(v.detail.find('q_0')).text") == "8.0 ms"
    site.view("v.select(v.detail.find('q_0'))")
    site.shows(".inspector", "1.0 ms · 2.0 ms · 9.0 ms, slowest rank 3")
    site.press("4")
    site.shows("[aria-selected=true]", "Text")
    site.click("#tab-table")
    site.shows(".nodes thead", "time across ranks")
    site.shows(".nodes", "1.0 µs · 1.0 µs · 2.0 µs, slowest rank 0")
    site.type(".finder .search", "across>1ms")
    site.shows("#results", "1 node")


def ranks_that_are_too_large(site):
    """The choice of colours says which ranks were not compared."""
    site.graph(site.training(), PASS)
    site.js("document.querySelector('.panes').view.detail.ranksLeftOut = true")
    site.click("#tab-table")
    site.wait(lambda: site.count(".nodes"), "the table")
    site.click("#tab-graph")
    site.drawn()
    assert "Ranks: not compared, too many nodes" in site.texts("[aria-label='Colour by'] option:disabled")


run((overlays, ranges, profile, placed, not_finite, times_across_ranks, ranks_that_are_too_large))
