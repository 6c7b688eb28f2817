"""The report as a person uses it.

usage: report_test.py STRATA SCREENSHOTS
"""

import os
import urllib.parse

from browser import PHONE, ROOT, WIDE, Keys, run

CANONICALIZE = "#run=1,graph=step,pass=1"
COND = """class cond(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu", p: "b8[][]cpu"):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,))
        getitem: "f32[4][1]cpu" = cond[0]
        return (getitem,)

    class true_graph_0(torch.nn.Module):
        def forward(self, x: "f32[4][1]cpu"):
            neg: "f32[4][1]cpu" = torch.ops.aten.neg.default(x)
            return (neg,)

    class false_graph_0(torch.nn.Module):
        def forward(self, x: "f32[4][1]cpu"):
            abs_1: "f32[4][1]cpu" = torch.ops.aten.abs.default(x)
            return (abs_1,)
"""


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


def one_pass(site):
    site.open(site.training())
    site.click(".timeline a.row:last-of-type")
    site.shows(".pass-head", "canonicalize")
    site.drawn()
    site.shows(".inspector", "press n for the first change")
    site.press("n")
    site.shows("[role=status]", "change 1 of")
    first = site.node()
    assert first
    site.press("n")
    site.wait(lambda: site.node() != first, "the next change")
    site.press("N")
    site.wait(lambda: site.node() == first, "the change before")
    site.shot("graph_light")
    # Places: nodes that were rewritten together are one step.
    site.press("]")
    site.shows("[role=status]", "place ")
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
    for fragment in (CANONICALIZE + "&hops=all", CANONICALIZE, "#run=1,graph=step,pass=0&hops=all"):
        site.open(site.training(), fragment)
        site.drawn()
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
    site.open(site.training(), "#run=1,graph=step,pass=0&hops=all&open=layers.0;layers.0.attention;layers.0.attention.wq")
    site.drawn()
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
    site.open(site.training(), CANONICALIZE)
    site.drawn()
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
    site.open(site.training(), CANONICALIZE)
    site.drawn()
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
    site.open(site.training(), CANONICALIZE + "&hops=0&open=layers.0.attention")
    site.drawn()
    few = site.view("v.scene.boxes.filter((b) => b.node >= 0).length")
    site.press("c")
    site.wait(lambda: site.view(folds) == 0, "everything")
    assert site.view("v.scene.boxes.filter((b) => b.node >= 0).length") >= few
    assert "hops=all" in site.driver.current_url


def light_and_paths(site):
    site.open(site.training(), CANONICALIZE + "&node=q_0")
    site.drawn()
    site.press("u")
    site.shows("[role=status]", "nodes lit")
    site.press("d")
    site.press("i")
    site.js("const v = document.querySelector('.panes').view; v.select(v.detail.find('t_0')); v.select(v.detail.find('o_0'))")
    site.press("p")
    site.shows("[role=status]", "A way over")
    site.press(Keys.ESCAPE)
    assert site.view("v.lit") is None


def inspector_and_blame(site):
    site.open(site.training(), CANONICALIZE + "&node=view_0")
    site.shows(".inspector", "reshape")
    site.shows(".inspector .cause", "target")
    site.shows(".inspector", "Provenance")
    site.shows(".provenance", "canonicalize")
    site.shows(".inspector", "Inputs 1")
    site.shows(".inspector pre", "aten.reshape.default")
    site.open(site.training(), CANONICALIZE + "&node=q_0")
    site.shows(".inspector", "model.py:20")
    site.shows(".inspector", "h = x + self.attention(x)")
    site.drawn()
    site.shot("node_details_light")
    site.view("v.zoom(1 / v.scale)")
    site.view("v.center(v.selected)")
    site.drawn()
    site.shot("module_light")
    # A removed node tells what stands for it.
    site.open(site.training(), CANONICALIZE + "&node=detach_0")
    site.shows(".inspector .chip", "removed")


def relations(site):
    """Nodes that stand for others are joined to them by a line with a word."""
    site.open(site.training(), CANONICALIZE + "&hops=all")
    site.drawn()
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
    site.open(site.training(), CANONICALIZE)
    site.drawn()
    tip = site.view("v.tip(v.scene.boxes.find((b) => b.node >= 0))")
    assert "aten." in tip and "layers.0" in tip, tip


def table(site):
    site.open(site.training(), CANONICALIZE + "&tab=table&node=view_1")
    site.wait(lambda: site.count(".nodes tbody tr") > 4, "the table")
    assert site.count(".nodes tbody tr[aria-selected=true]") == 1
    site.shows(".nodes", "target: aten.view.default → aten.reshape.default")
    statuses = site.js("return [...document.querySelectorAll('.nodes .chip')].map((e) => e.innerText)")
    assert statuses == sorted(statuses, key=lambda word: ["~ changed", "+ added", "− removed", "↷ moved", "~ derived"].index(word)), statuses
    site.shot("table_light")


def sorted_columns(site):
    """Headings are buttons: a press sorts upwards, the next one downwards, the third as it was; the keyboard stays there."""
    def names():
        return site.js("return [...document.querySelectorAll('.nodes tbody tr td:nth-child(2)')].map((e) => e.innerText)")

    site.open(site.training(), CANONICALIZE + "&tab=table")
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
    site.open(site.training(), CANONICALIZE + "&tab=table&hops=all&overlay=bytes&sort=-memory%20of%20outputs")
    site.wait(lambda: site.count(".nodes tbody tr") > 20, "the table")
    first = site.text(".nodes tbody tr:first-child")
    assert "16.0 KiB" in first, first


def profile(site):
    """A profiled training: time and values as colours, as columns and in words; memory node by node."""
    page = site.profiled()
    if page is None:
        print("profile: no LibTorch, not tried")
        return
    site.open(page, CANONICALIZE + "&overlay=time&hops=all")
    site.drawn()
    site.shows(".legend", "Time of a step")
    assert site.js("return /\\d(\\.\\d+)? (µs|ms)/.test(document.querySelector('.legend').innerText)")
    words = site.view("v.overlay.ofNode(v.detail.changes.find((i) => v.detail.time.has(i)))")
    assert words["fill"].startswith("rgb") and words["text"].endswith("s"), words
    assert site.view("v.overlay.shareOf(0)") == 1
    offered = site.js("return [...document.querySelectorAll('[aria-label=\"Colour by\"] option')].map((e) => e.value)")
    assert {"time", "measured", "least", "greatest", "mean"} <= set(offered), offered
    assert "nan" not in offered, "no value of this training is NaN"
    node = site.view("v.detail.nodeName([...v.detail.values.keys()].find((i) => v.detail.status[i] === 3))")
    site.open(page, CANONICALIZE + f"&overlay=mean&node={node}")
    site.drawn()
    site.shows(".inspector", "all finite")
    site.shows(".inspector", "time of a step")
    site.shot("profile_light")
    site.open(page, CANONICALIZE + "&tab=table&hops=all&overlay=time&sort=-time%20of%20a%20step")
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


def not_finite(site):
    """Values that are NaN are a colour of their own; numbers of both signs have a scale."""
    site.open(site.training(), CANONICALIZE + "&hops=all")
    site.drawn()
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


def two_runs(site):
    """Two runs of one program: a row per step, each with what differs; all ways to look at it."""
    page = site.two_runs()
    site.open(page)
    assert site.text("h1") == "training.strata → other.strata", site.text("h1")
    site.shows(".hero", site.path("other.strata"))
    assert site.count(".cause") == 1, "one cause, however many steps it lasts"
    site.shows(".cause", "#0 …")
    site.shows(".cards", "at the end")
    site.shows(".timeline", "as it came")
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
    site.shows("[role=status]", "Link copied")
    site.quiet()


def stages(site):
    """Graphs of one compilation, each beside the one that it was made from."""
    page = site.report(os.path.join(ROOT, "tests", "data", "logs", "compile_torch2.11.log"))
    site.open(page)
    rows = site.js("return [...[...document.querySelectorAll('section')].find((e) => e.innerText.startsWith('Stages')).querySelectorAll('tbody tr')].map((e) => [...e.cells].slice(0, 2).map((c) => c.innerText))")
    for pair in (["aot_joint_graph", "dynamo_output_graph"], ["aot_forward_graph", "aot_joint_graph"], ["aot_backward_graph", "aot_joint_graph"]):
        assert pair in rows, rows
    site.js("[...document.querySelectorAll('a')].find((e) => e.getAttribute('href').endsWith('graph=aot_backward_graph,from=aot_joint_graph')).click()")
    site.shows(".pass-head", "aot_joint_graph → aot_backward_graph")
    site.drawn()
    assert site.view("v.detail.counts[1]") > 0, "forward nodes are not in the backward graph"
    site.press("n")
    site.wait(site.node, "a difference")
    # The plain graph has a link of its own.
    site.open(page, "#run=1,graph=aot_joint_graph")
    assert site.text(".pass-head h1") == "aot_joint_graph"
    site.quiet()


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
    site.js("[...document.querySelectorAll('.segments button')].find((e) => e.innerText === 'FX').click()")
    site.shows(".text", 'neg: "f32[4][1]cpu" = torch.ops.aten.neg.default(x)')
    # The copy is a program that our own reader takes for the same.
    site.js("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    site.js("[...document.querySelectorAll('.toolbar button')].find((e) => e.innerText === 'Copy graph').click()")
    site.wait(lambda: site.js("return window.copied"), "the graph")
    with open(site.path("copied.txt"), "w", encoding="utf-8") as file:
        file.write(site.js("return window.copied"))
    site.run("diff", source, site.path("copied.txt"))


def text(site):
    site.open(site.training(), CANONICALIZE + "&tab=text")
    site.shows(".text", "aten.reshape.default")
    site.shows(".text", "unchanged lines")
    # What differs inside the line is marked, and nothing else.
    marks = site.js("return [...document.querySelectorAll('.plus mark')].map((e) => e.innerText)")
    assert "aten.reshape.default" in marks, marks
    site.shot("text_light")
    fold = site.count(".text .line")
    site.click(".fold-line")
    site.wait(lambda: site.count(".text .line") > fold, "the lines of a fold")
    site.open(site.training(), CANONICALIZE + "&tab=text&spelling=fx")
    site.shows(".text", 'view_0: "f32[2, 4, 64][256, 64, 1]cpu" = torch.ops.aten.reshape.default(q_0, [2, 4, 64])')
    site.press("j")  # no further pass: said, not done
    site.shows("[role=status]", "last")


def patterns(site):
    site.open(site.training(), CANONICALIZE + "&tab=patterns")
    site.shows(".pattern h2", "view became reshape")
    site.shows(".pattern", "layers.{0..3}")
    assert site.count(".multiples button") >= 4
    site.shot("patterns_light")
    site.click(".multiples button")
    site.drawn()
    site.wait(lambda: "node=" in site.driver.current_url, "the node")


def search(site):
    site.open(site.training(), CANONICALIZE)
    site.drawn()
    site.press("/")
    site.type(".finder .search", "silu_[0-9]")
    site.shows("#results", "4 nodes")
    assert site.view("v.hits.size") == 4
    site.press(Keys.ENTER)
    site.shows("[role=status]", "hit 1 of 4")
    site.shows(".inspector", "silu")
    site.type(".finder .search", "((((")
    site.shows("#results", "Nothing here")
    site.type(".finder .search", "canonic")
    site.shows("#results", "1 pass")
    site.open(site.training(), CANONICALIZE + "&tab=table&filter=^mm|reshape")
    site.wait(lambda: 0 < site.count(".nodes tbody tr") <= 8, "fewer rows")
    # A node of another pass is found there.
    site.open(site.training(), CANONICALIZE)
    site.type(".finder .search", "dead_2")
    site.press(Keys.ENTER)
    site.shows(".pass-head", "dce")
    site.shows(".inspector", "dead_2")


def palette(site):
    site.open(site.training(), CANONICALIZE)
    site.drawn()
    site.press(Keys.CONTROL + "p")
    site.wait(lambda: site.count("dialog.palette [role=option]") > 10, "choices")
    site.shot("palette_light")
    site.press("memory")
    site.shows(".palette [aria-selected=true]", "Memory")
    site.press(Keys.ENTER)
    site.shows("h1", "Memory")
    site.press("?")
    site.shows("dialog", "Next pass with changes")
    site.press(Keys.ESCAPE)
    site.wait(lambda: not site.count("dialog"), "no dialog")


def links(site):
    """Every state has a link; selectors may leave out parts; a link of another report shows something."""
    site.open(site.training(), "#run=1,pass=canonicalize:after&tab=table&node=t_1")
    site.shows(".pass-head", "canonicalize")
    site.shows(".inspector", "t_1")
    site.open(site.training(), CANONICALIZE)
    site.drawn()
    site.view("v.zoom(1.3)")
    site.js("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    site.press("y")
    site.wait(lambda: site.js("return window.copied"), "the link")
    link, camera = site.js("return window.copied"), site.view("v.camera()")
    site.driver.get("about:blank")
    site.driver.get(link)
    site.drawn()
    assert site.view("v.camera()").split(",")[2] == camera.split(",")[2], (camera, site.view("v.camera()"))
    site.open(site.training(), "#run=9,graph=nowhere,pass=77&node=none&tab=nothing&mode=odd&hops=x&cam=a,b,c&open=;;%ff")
    site.shows(".pass-head", "")
    site.quiet()


STATE = """
const chosen = (selector) => [...document.querySelectorAll(selector)].map((e) => e.innerText).join();
return [document.querySelector('h1').innerText, chosen('[role=tab][aria-selected=true]'), chosen('.segments [aria-pressed=true]'), [...document.querySelectorAll('.toolbar select')].map((e) => e.value).join(),
  [...document.querySelectorAll('th[aria-sort]')].map((e) => e.innerText + e.getAttribute('aria-sort')).join(), chosen('.inspector .node-head h2'), document.querySelector('.finder .search').value, document.querySelectorAll('canvas.graph').length];"""


def back_through_everything(site):
    """Whatever is chosen is a step of the history and a link: back and forth show the same, and so does a fresh page."""
    fragments = ["#overview", "#run=1,graph=step,pass=0", CANONICALIZE, CANONICALIZE + "&mode=side", CANONICALIZE + "&mode=blink&hops=2", CANONICALIZE + "&overlay=flops", CANONICALIZE + "&node=view_2",
                 CANONICALIZE + "&tab=table&sort=-operator", CANONICALIZE + "&tab=text&spelling=fx", CANONICALIZE + "&tab=patterns", CANONICALIZE + "&tab=table&filter=silu", "#memory", "#operators", "#ranks"]
    # A tab of its own: a history ends at fifty steps.
    first = site.driver.current_window_handle
    site.driver.switch_to.new_window("tab")
    site.open(site.training(), fragments[0])
    seen = [site.js(STATE)]
    for fragment in fragments[1:]:
        rendered = site.js("return document.documentElement.dataset.ready")
        site.js("location.hash = arguments[0]", fragment)
        site.wait(lambda: site.js("return document.documentElement.dataset.ready") != rendered, fragment)
        seen.append(site.js(STATE))
    assert len({str(state) for state in seen}) == len(seen), "all of these differ"
    for state, fragment in list(zip(seen, fragments))[-2::-1]:
        # The browser's own button skips what no hand has done.
        site.js("history.back()")
        site.wait(lambda: site.js(STATE) == state, f"{state}, back at {fragment}")
    for state, fragment in list(zip(seen, fragments))[1:]:
        site.js("history.forward()")
        site.wait(lambda: site.js(STATE) == state, f"{state}, forth at {fragment}")
    for state, fragment in zip(seen, fragments):
        site.open(site.training(), fragment)
        site.wait(lambda: site.js(STATE) == state, f"{state}, on a fresh page at {fragment}")
    site.driver.close()
    site.driver.switch_to.window(first)


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


def copies(site):
    site.open(site.training(), CANONICALIZE)
    site.drawn()
    site.js("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")

    def copied(words):
        site.js("window.copied = ''")
        site.click(".menu-box > button")
        site.js("[...document.querySelectorAll('.menu button')].find((e) => e.innerText === arguments[0]).click()", words)
        site.wait(lambda: site.js("return window.copied"), words)
        return site.js("return window.copied")

    markdown = copied("Copy as Markdown")
    assert "| status | node | operator | what changed | module |" in markdown, markdown[:300]
    assert "**view became reshape**" in markdown, markdown[:300]
    fx = copied("Copy graph as FX")
    assert fx.startswith("class GraphModule(torch.nn.Module):\n    def forward(self, tokens: \"i64[8][1]cpu\""), fx[:200]
    assert fx.rstrip().endswith("return [loss, grad_0]"), fx[-200:]
    picture = copied("Copy picture as SVG")
    assert picture.startswith("<svg ") and "attention" in picture
    broken = site.js("return new DOMParser().parseFromString(arguments[0], 'image/svg+xml').querySelector('parsererror')", picture)
    assert broken is None, "the SVG is no XML"
    # The picture as a file: a PNG of the whole scene.
    site.js("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }")
    site.click(".menu-box > button")
    site.js("[...document.querySelectorAll('.menu button')].find((e) => e.innerText === 'Save picture as PNG').click()")
    site.wait(lambda: site.js("return window.saved"), "the picture")
    kind, size, head = site.driver.execute_async_script("const done = arguments[0]; saved.arrayBuffer().then((b) => done([saved.type, b.byteLength, [...new Uint8Array(b, 0, 4)]]))")
    assert kind == "image/png" and size > 4000 and head == [0x89, 0x50, 0x4E, 0x47], (kind, size, head)
    site.press(Keys.ESCAPE, "g")
    site.wait(lambda: site.count("dialog.palette"), "the palette")
    site.press("silu_3", Keys.ENTER)
    site.wait(lambda: site.node() == "silu_3", "the node gone to")
    with open(site.path("fx.txt"), "w", encoding="utf-8") as file:
        file.write(fx)
    site.run("show", site.path("fx.txt"))  # our own reader takes it


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


def overlays(site):
    site.open(site.training(), CANONICALIZE + "&overlay=bytes&hops=all")
    site.drawn()
    site.shows(".legend", "KiB")
    site.shows(".legend", "no value")
    fill = site.view("v.overlay.ofNode(v.detail.find('q_0'))")
    assert fill["text"] == "2.00 KiB" and fill["fill"].startswith("rgb"), fill
    site.shot("overlay_memory_light")
    site.press("s")
    site.wait(lambda: "overlay=bytes" not in site.driver.current_url, "another property")


def ranks(site):
    site.open(site.training(), "#ranks")
    site.shows("main", "One rank in this file")
    site.open(site.ranks(), "#ranks")
    site.shows(".told", "Ranks part at #0")
    site.shows(".told", "ranks 0–1 | rank 2")
    letters = site.js("return [...document.querySelectorAll('.matrix .cell')].map((e) => e.innerText)")
    assert letters == ["A", "A", "B"], letters
    site.shows(".told", "is the first that differs")
    assert site.count(".collective.odd") == 1
    site.shot("ranks_light")
    # Which ranks have a node is a colour and a word.
    site.open(site.ranks(), "#run=1,pass=fuse&overlay=rank&hops=all")
    site.drawn()
    site.shows(".legend", "all ranks")
    site.shows(".legend", "ranks 0–1")
    site.open(site.ranks(), "#ranks")
    site.click(".matrix tr:last-child .cell")
    site.shows(".pass-head", "fuse")
    site.shows(".pass-head", "other on ranks 0, 1")
    assert "run=3" in site.driver.current_url
    site.press("r")
    site.wait(lambda: "run=1" in site.driver.current_url, "the next rank")


def dark(site):
    site.open(site.training(), CANONICALIZE)
    site.drawn()
    site.theme("dark")
    site.press("n")
    site.shows("[role=status]", "change 1 of")
    site.drawn()
    site.shot("graph_dark")
    site.view("v.zoom(0.5)")
    site.drawn()
    site.shot("graph_far_dark")
    site.open(site.training(), CANONICALIZE + "&tab=text")
    site.shows(".text", "reshape")
    site.shot("text_dark")
    site.theme("light")


def phone(site):
    site.resize(PHONE)
    for fragment, name in (("", "overview"), (CANONICALIZE, "graph"), (CANONICALIZE + "&tab=table", "table"), (CANONICALIZE + "&tab=text", "text"), ("#memory", "memory"), ("#operators", "operators")):
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


def hash_is_selector(site):
    site.open(site.training(), CANONICALIZE + "&node=q_0")
    fragment = urllib.parse.unquote(site.driver.current_url.split("#")[1])
    assert fragment.split("&")[0] == "run=1,graph=step,pass=1", fragment


run((overview, unchanged_passes_are_folded, one_pass, places_hold, steps_keep_the_view, modes, slabs_open_and_fold, light_and_paths, inspector_and_blame, relations, hover, table, sorted_columns, text, stages, bodies, patterns, search,
     palette, links, back_through_everything, report_of_a_pass, copies, memory_and_operators, overlays, profile, not_finite, two_runs, ranks, dark, phone, nothing_to_show, without_script, hash_is_selector))
