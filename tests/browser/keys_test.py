"""Every key of the help, as a person presses it.

usage: keys_test.py STRATA SCREENSHOTS
"""

from browser import PASS, PHONE, WIDE, Keys, run

OPEN = "v.openPaths().sort().join()"
NODES = "v.scene.boxes.filter((b) => b.node >= 0).map((b) => v.detail.nodeName(b.node))"


def passes(site, count=8):
    """A report whose passes all change something."""
    return site.opt("many", "graph step\n  x = placeholder : f32[4][1]cpu\n  y = aten.neg.default(x) : f32[4][1]cpu\n  output([y])\n", ",".join(["dce", "canonicalize"] * count))


def help_tells_of_all(site):
    site.open(site.training(), PASS)
    site.press("?")
    site.shows("dialog[open]", "Next change in this pass")
    # Every key of the help is handled: by the map of keys, or where the frame's file says it is.
    told = [key for keys in site.texts(".help kbd") for key in keys.split()]
    wanted = "j k J K n N ] [ h l ← ↑ ↓ → Enter / F3 g Ctrl P f Space + - 0 u d p i x X 1 2 3 4 b s c o O t m x ' x r R y Y Alt ← → Ctrl Z Ctrl E ? Tab Ctrl O F5 Esc".split()
    assert told == wanted, told
    for size in (PHONE, WIDE):
        site.resize(size)
        beyond = site.js("return [...document.querySelectorAll('.help kbd')].filter((k) => k.getBoundingClientRect().right > k.nextSibling.getBoundingClientRect().left - 4).map((k) => k.innerText)")
        assert not beyond, (size, beyond)
        assert site.js("const d = document.querySelector('.help'); return d.scrollWidth <= d.clientWidth"), size
        site.shot(f"help_light_{size[0]}")
    site.click_words(".help button", "Close")
    site.wait(lambda: not site.count("dialog[open]"), "closed")


def counts(site):
    site.open(passes(site), "#run=1,graph=step,pass=0")
    site.press("5", "j")
    site.shows(".pass-head", "#5")
    site.press("1", "0", "k")  # 1 is a mode, 0 a zoom: no count
    site.shows(".pass-head", "#4")
    site.press("6", "0", "j")
    site.shows(".pass-head", "3 nodes")  # the graph itself is the last
    site.press("5", Keys.ESCAPE, "k")  # Esc forgets the count
    site.shows(".pass-head", "#15")
    site.graph(site.training(), PASS)
    site.press("7", "n")
    site.says("change 7 of")


def slabs(site):
    """h closes and goes out, l opens and goes in; Enter and Shift Enter; what they did is undone and done again."""
    site.graph(site.training(), PASS + "&node=q_0")
    first = site.view(OPEN)
    assert "layers.0.attention.wq" in first
    site.press("h")
    site.says("layers.0.attention.wq")
    site.press("h")
    site.says("layers.0.attention")
    closed = site.view(OPEN)
    assert "layers.0.attention" not in closed.split(","), closed
    site.press(Keys.CONTROL + "z")
    site.says("Undone")
    assert "layers.0.attention" in site.view(OPEN).split(",")
    site.press(Keys.CONTROL + "z")
    site.wait(lambda: site.view(OPEN) == first, "as it was")
    site.press(Keys.CONTROL + "z")
    site.says("Nothing to undo")
    site.press(Keys.CONTROL + Keys.SHIFT + "z")
    site.says("Done again")
    site.press(Keys.CONTROL + Keys.SHIFT + "z")
    site.wait(lambda: site.view(OPEN) == closed, "done again")
    site.press("l")
    site.says("layers.0.attention")
    assert "layers.0.attention" in site.view(OPEN).split(",")
    site.press("l")
    site.says("layers.0.attention.wq")
    site.press("l")
    assert site.node() == "t_0", "the first node inside"
    site.press(Keys.ESCAPE, "l")
    count = len(site.view(OPEN).split(","))
    site.js("document.querySelector('canvas.graph').focus()")
    site.view("v.select(v.detail.find('q_0'))")
    site.press(Keys.ENTER)
    site.wait(lambda: len(site.view(OPEN).split(",")) < count, "closed by Enter")
    site.view("(v.cursor = v.detail.clusterOfPath.get('layers.3'))")
    site.press(Keys.SHIFT + Keys.ENTER)
    site.wait(lambda: "layers.3.attention.wq" in site.view(OPEN), "all below")


def walking(site):
    site.graph(site.training(), PASS + "&hops=all&node=q_0")
    site.press(Keys.ARROW_UP)
    site.wait(lambda: site.node() == "t_0", "the node above")
    site.press(Keys.ARROW_DOWN)
    site.wait(lambda: site.node() == "q_0", "the node below")
    site.press("g")
    site.wait(lambda: site.count("dialog.palette"), "the palette")
    site.press("silu_3", Keys.ENTER)
    site.wait(lambda: site.node() == "silu_3", "the node gone to")
    site.press(Keys.CONTROL + "f")
    assert site.js("return document.activeElement.type") == "search"
    site.press("mm", Keys.ESCAPE)
    site.press(Keys.F3)
    site.says("hit ")
    site.press(Keys.SHIFT + Keys.F3)
    site.says("hit ")


def zoom(site):
    site.graph(site.training(), PASS + "&hops=all&node=q_0")
    site.press("0")
    assert site.view("v.scale") == 1
    site.press("+")
    assert site.view("v.scale") == 1.25
    site.press("6", "-")
    assert abs(site.view("v.scale") - 1.25**-5) < 1e-9
    site.press("f")
    assert site.view("v.scale") == 1, "the selection at its own size"
    middle = site.view("(() => { const b = v.scene.boxOf.get(v.selected); return [v.x + (b.x + b.width / 2) * v.scale - v.size().room / 2, v.size().height / 2 - v.y - (b.y + b.height / 2) * v.scale]; })()")
    assert max(map(abs, middle)) < 1, middle
    site.press(" ")
    assert site.view("v.scene.height * v.scale <= v.size().height && v.scene.width * v.scale <= v.size().room")


def light(site):
    site.graph(site.training(), PASS + "&hops=all&node=o_0")
    site.press("u")
    site.says("3 nodes lit")
    site.press("5", "u")
    site.wait(lambda: site.view("v.lit.size") > 6, "five steps more")
    site.press("d")
    site.says("2 nodes lit")
    site.press(Keys.ESCAPE)
    assert site.view("v.lit") is None
    site.view("v.select(v.detail.find('t_0'))")
    site.view("v.select(v.detail.find('o_0'))")
    site.press("p")
    site.says("A way over 4 nodes")


def isolate_and_hide(site):
    site.graph(site.training(), PASS + "&node=q_0")
    before = site.view(NODES)
    site.press("i")
    site.says("within 1 step")
    near = site.view(NODES)
    assert set(near) >= {"q_0", "t_0", "view_0"} and "o_0" not in near, near
    site.press("i")
    site.says("within 2 steps")
    assert "o_0" in site.view(NODES)
    folds = site.view("v.scene.boxes.filter((b) => b.node < 0).map((b) => b.wanted)")
    assert folds and all(folds), "what is not near is folded as hidden"
    site.shot("isolated_light")
    site.press(Keys.ESCAPE)
    site.says("")
    site.press("x")
    site.says("1 node hidden")
    assert "q_0" not in site.view(NODES)
    site.press("X")
    site.says("All is shown")
    assert "q_0" in site.view(NODES)
    site.press("x", Keys.CONTROL + "z")
    assert "q_0" in site.view(NODES)
    assert set(before) <= set(site.view(NODES)) | {"q_0"}


def views(site):
    site.graph(site.training(), PASS)
    for key, mode in (("2", "side"), ("3", "blink"), ("1", "")):
        site.press(key)
        site.wait(lambda: (f"mode={mode}" in site.driver.current_url) == bool(mode), key)
    site.drawn()
    side = "v.sideOf(v.panes[0])"
    site.js("dispatchEvent(new KeyboardEvent('keydown', {key: 'b'}))")
    assert site.view(side) == "before", "held: the graph before, in any picture of both"
    site.js("dispatchEvent(new KeyboardEvent('keyup', {key: 'b'}))")
    assert site.view(side) == "union"
    site.press("s")
    site.says("Side by side only")
    site.press("2")
    site.wait(lambda: site.count("canvas.graph") == 2, "two graphs")
    site.drawn()
    site.press("s")
    site.says("Each side moves alone")
    site.press("+")
    assert site.view("v.panes[0].cam.scale > v.panes[1].cam.scale")
    site.press("s")
    site.says("Both sides move together")
    assert site.view("v.panes[0].cam === v.panes[1].cam")
    site.press("4")
    site.shows("[role=tab][aria-selected=true]", "Text")
    site.press("1")
    site.drawn()
    site.press("c")
    site.wait(lambda: "hops=all" in site.driver.current_url, "everything")
    site.press("o")
    site.wait(lambda: "overlay=" in site.driver.current_url, "a colour")
    site.press("O")
    site.wait(lambda: "overlay=" not in site.driver.current_url, "no colour")


def values_on_lines(site):
    """What flows along a line, in words that touch nothing."""
    drawn = """
        const v = document.querySelector('.panes').view, proto = CanvasRenderingContext2D.prototype, original = proto.fillText, texts = [];
        v.zoom(1 / v.scale);
        proto.fillText = function (text, x, y) { if (this.canvas === v.panes[0].canvas) { const width = this.measureText(text).width, size = parseFloat(/([\\d.]+)px/.exec(this.font)[1]); texts.push({text, left: x, right: x + width, top: y - size * 0.4, bottom: y + size * 0.4}); } return original.call(this, text, x, y); };
        v.paint();
        proto.fillText = original;
        const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
        return [texts.map((t) => t.text), texts.flatMap((a, i) => texts.slice(i + 1).filter((b) => meet(a, b)).map((b) => `${a.text} on ${b.text}`))];"""
    lines = ["x = placeholder", "a = aten.neg.default(x)", "b = aten.mul.Tensor(a, x)", "c = aten.add.Tensor(a, b)", "d = aten.mul.Tensor(b, c)"]
    site.graph(site.opt("chain", "graph step\n" + "".join(f"  {line} : f32[8, 64][64, 1]cpu\n" for line in lines) + "  output([d])\n"), "#run=1,graph=step")
    plain, _ = site.js(drawn)
    for words, wanted in (("shape", "[8, 64]"), ("dtype", "f32"), ("bytes", "2.00 KiB")):
        site.press("t")
        site.says(f"On the lines: {words}")
        assert f"labels={words}" in site.driver.current_url
        texts, touching = site.js(drawn)
        assert texts.count(wanted) == plain.count(wanted) + 4, (words, texts)
        assert not touching, touching
        site.shot(f"labels_{words}_light")
    site.press("t")
    site.says("Nothing on the lines")


def bookmarks_and_history(site):
    site.graph(site.training(), PASS + "&node=q_0")
    site.press("m", "a")
    site.says("Bookmark a set")
    site.press("k")
    site.shows(".pass-head", "dce")
    site.press("'", "a")
    site.shows(".pass-head", "canonicalize")
    site.wait(lambda: site.node() == "q_0", "the node of the bookmark")
    site.press("'", "z")
    site.says("No bookmark z")
    site.press("k")
    site.shows(".pass-head", "dce")
    site.press(Keys.ALT + Keys.ARROW_LEFT)
    site.shows(".pass-head", "canonicalize")
    site.press(Keys.ALT + Keys.ARROW_RIGHT)
    site.shows(".pass-head", "dce")
    site.press("J")
    site.shows(".pass-head", "canonicalize")
    site.press("K")
    site.shows(".pass-head", "dce")
    site.press("r")
    site.says("One run in this file")


def copying(site):
    site.graph(site.training(), PASS + "&node=q_0")
    site.catch_copies()
    site.press("y")
    assert PASS in site.copied("a link")
    site.catch_copies()
    site.press("Y")
    assert site.copied("a name") == "q_0"
    site.press(Keys.CONTROL + "e")
    site.shows(".menu", "Save picture as PNG")
    site.press(Keys.ESCAPE)
    site.wait(lambda: site.js("return document.querySelector('.menu').hidden"), "closed")


run((help_tells_of_all, counts, slabs, walking, zoom, light, isolate_and_hide, views, values_on_lines, bookmarks_and_history, copying))
