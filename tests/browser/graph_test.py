"""The picture of a pass: where things stand, what opens and folds, how both graphs are shown.

usage: graph_test.py STRATA SCREENSHOTS
"""

from browser import PASS, Keys, run


def one_pass(site):
    site.open(site.training())
    site.click(".timeline a.row:last-of-type")
    site.shows(".pass-head", "canonicalize")
    site.drawn()
    site.shows(".inspector", "press n for the first change")
    site.press("n")
    site.says("change 1 of")
    first = site.node()
    assert first
    site.press("n")
    site.wait(lambda: site.node() != first, "the next change")
    site.press("N")
    site.wait(lambda: site.node() == first, "the change before")
    site.shot("graph_light")
    # Places: nodes that were rewritten together are one step.
    site.press("]")
    site.says("place ")
    place = site.node()
    site.press("]")
    site.wait(lambda: site.node() != place, "the next place")
    site.press("[")
    site.wait(lambda: site.node() == place, "the place before")
    site.press("k")
    site.shows(".pass-head", "dce")
    site.press("j")
    site.shows(".pass-head", "canonicalize")
    site.driver.back()
    site.shows(".pass-head", "dce")


def places_hold(site):
    """No two boxes touch, no line crosses a box, and unchanged nodes keep their place from pass to pass."""
    for fragment in (PASS + "&hops=all", PASS, "#run=1,graph=step,pass=0&hops=all"):
        site.graph(site.training(), fragment)
        problems = site.js("""
            const v = document.querySelector('.panes').view, problems = [];
            v.detail.clusters.forEach((c, i) => v.open.add(i));
            v.layout();
            const {boxes, edges, slabs} = v.scene, meets = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
            boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => { if (meets(a, b)) problems.push(['boxes', a.members, b.members]); }));
            for (const box of boxes) { const slab = v.scene.slabOf.get(box.cluster); if (box.x < slab.x || box.x + box.width > slab.x + slab.width || box.y + box.height > slab.y + slab.height) problems.push(['outside', box.members]); }
            for (const {a, b, points} of edges) for (let k = 0; k + 1 < points.length; k++) {
              const [p, q] = [points[k], points[k + 1]], line = {x: Math.min(p[0], q[0]), y: Math.min(p[1], q[1]), width: Math.abs(p[0] - q[0]), height: Math.abs(p[1] - q[1])};
              for (const o of boxes) if (o !== a && o !== b && meets(line, o)) problems.push(['line', a.members, b.members, o.members]);
            }
            return problems;""")
        assert not problems, (fragment, problems[:5])
        assert site.view("v.scene.boxes.length") > 20


def steps_keep_the_view(site):
    """From pass to pass what is open stays open, and the node in the middle stays where it is."""
    site.graph(site.training(), "#run=1,graph=step,pass=0&hops=all&open=layers.0;layers.0.attention;layers.0.attention.wq")
    site.view("v.center(v.detail.find('q_0'))")
    site.drawn()
    opened = site.view("v.openPaths().sort()")
    life, place = site.view("(() => { const a = v.anchor(); return [a.life, a.node]; })()")
    site.press("j")
    site.shows(".pass-head", "canonicalize")
    site.drawn()
    assert set(site.view("v.openPaths()")) >= set(opened) - {"inputs"}, opened
    moved = site.view(f"(() => {{ const b = v.scene.boxOf.get(v.detail.ofLife({life})); return [v.x + b.x * v.scale, v.y + b.y * v.scale]; }})()")
    assert max(abs(a - b) for a, b in zip(place, moved)) < 1, (place, moved)


def modes(site):
    site.graph(site.training(), PASS)
    site.press("2")
    site.wait(lambda: site.count("canvas.graph") == 2, "two graphs")
    site.drawn()
    site.shows(".caption", "Before")
    site.shows(".caption", "After")
    assert "mode=side" in site.driver.current_url
    site.shot("side_by_side_light")
    site.press("3")
    site.shows(".caption", "hold b for before")
    site.js("dispatchEvent(new KeyboardEvent('keydown', {key: 'b'}))")
    site.drawn()
    assert site.text(".caption b") == "Before"
    site.js("dispatchEvent(new KeyboardEvent('keyup', {key: 'b'}))")
    site.wait(lambda: site.text(".caption b") == "After", "after again")
    site.press("1")
    site.wait(lambda: site.count("canvas.graph") == 1 and site.count(".mini"), "one graph")


def slabs_open_and_fold(site):
    site.graph(site.training(), PASS)
    paths = site.view("v.scene.slabs.filter((s) => s.open).map((s) => v.detail.clusters[s.cluster].path)")
    assert any("attention" in path for path in paths), paths
    slabs = site.view("v.scene.slabs.length")
    # The slab's corner stays where it was when a click closes it.
    corner = "(() => { const s = v.scene.slabOf.get(v.detail.clusterOfPath.get('layers.0')); return [v.x + s.x * v.scale, v.y + s.y * v.scale]; })()"
    before = site.view(corner)
    site.view("v.toggle(v.detail.clusterOfPath.get('layers.0'))")
    assert site.view("v.scene.slabs.length") < slabs
    after = site.view(corner)
    assert max(abs(a - b) for a, b in zip(before, after)) < 1, (before, after)
    assert "open=" in site.driver.current_url
    site.driver.refresh()
    site.drawn()
    assert site.view("v.scene.slabs.length") < slabs, "the link remembers what is open"
    folds = "v.scene.boxes.filter((b) => b.node < 0).length"
    site.graph(site.training(), PASS + "&hops=0&open=layers.0.attention")
    few = site.view("v.scene.boxes.filter((b) => b.node >= 0).length")
    site.press("c")
    site.wait(lambda: site.view(folds) == 0, "everything")
    assert site.view("v.scene.boxes.filter((b) => b.node >= 0).length") >= few
    assert "hops=all" in site.driver.current_url


def light_and_paths(site):
    site.graph(site.training(), PASS + "&node=q_0")
    site.press("u")
    site.says("nodes lit")
    site.press("d")
    site.press("i")
    site.js("const v = document.querySelector('.panes').view; v.select(v.detail.find('t_0')); v.select(v.detail.find('o_0'))")
    site.press("p")
    site.says("A way over")
    site.press(Keys.ESCAPE)
    assert site.view("v.lit") is None


def relations(site):
    """Nodes that stand for others are joined to them by a line with a word."""
    site.graph(site.training(), PASS + "&hops=all")
    words = site.js("""
        const v = document.querySelector('.panes').view, d = v.detail, drawn = [], original = CanvasRenderingContext2D.prototype.fillText;
        d.clusters.forEach((c, i) => v.open.add(i));
        v.layout();
        d.relations.push({kind: 'replace', before: [d.find('detach_0')], after: [d.find('q_0'), d.find('gq_3')], confidence: 1});
        v.select(d.find('detach_0'));
        v.zoom(0.9 / v.scale);
        v.center(v.selected);
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { drawn.push(text); return original.call(this, text, x, y); };
        v.paint();
        CanvasRenderingContext2D.prototype.fillText = original;
        return drawn.filter((text) => text === 'replaced').length;""")
    assert words == 2, words


def hover(site):
    site.graph(site.training(), PASS)
    tip = site.view("v.tip(v.scene.boxes.find((b) => b.node >= 0))")
    assert "aten." in tip and "layers.0" in tip, tip


def minimap(site):
    """What is brought into view leaves the minimap's place free; counts of a slab that is moved under it stay readable."""
    site.graph(site.training(), PASS + "&hops=all")
    under = "(() => { const m = document.querySelector('.mini').getBoundingClientRect(), s = v.panes[0].stage.getBoundingClientRect(); return v.x + v.scene.width * v.scale > m.left - s.left; })()"
    faded = "document.querySelector('.mini').classList.contains('faded')"
    for move in ("v.fitAll()", "v.home()"):
        site.view(move)
        site.drawn()
        assert not site.view(under) and not site.view(faded), move
    site.view("v.zoom(2 / v.scale)")
    site.view("(v.x = v.size().width - v.scene.width * v.scale, v.y = 20, v.draw())")
    site.drawn()
    assert site.view(under) and site.view(faded)


def dark(site):
    site.graph(site.training(), PASS)
    site.theme("dark")
    site.press("n")
    site.says("change 1 of")
    site.drawn()
    site.shot("graph_dark")
    site.view("v.zoom(0.5)")
    site.drawn()
    site.shot("graph_far_dark")
    site.open(site.training(), PASS + "&tab=text")
    site.shows(".text", "reshape")
    site.shot("text_dark")
    site.theme("light")


CHAIN = """graph step
  x = placeholder : f32[4, 600][600, 1]cpu
  a = aten.mul.Scalar(x, 2.0) : f32[4, 600][600, 1]cpu {forward module=scale}
  b = aten.add.Scalar(a, 0.5) : f32[4, 600][600, 1]cpu {forward module=scale}
  output([b])
"""


def generated_code(site):
    """A fused node shows the function that runs, a node without one no heading."""
    page = site.opt("chain", CHAIN, "fuse")
    site.graph(page, "#run=1,graph=step,pass=0&node=fused")
    site.shows(".inspector", "Generated C++")
    site.shows(".inspector .code", 'extern "C" void kernel_0')
    site.graph(page, "#run=1,graph=step,pass=0&node=x")
    site.shows(".inspector", "placeholder")
    assert "Generated" not in site.text(".inspector")


run((one_pass, places_hold, steps_keep_the_view, modes, slabs_open_and_fold, light_and_paths, relations, hover, minimap, generated_code, dark))
