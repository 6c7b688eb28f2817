"""The report for everybody: names and roles, contrast, focus, keyboard alone, nothing cut or covered; at two widths, in light and dark.

usage: access_test.py STRATA SCREENSHOTS
"""

from browser import PASS, PHONE, WIDE, Keys, run
from checks import CONTRAST, CUT, RULES

VIEWS = {"overview": "", "graph": PASS, "node": PASS + "&node=view_0", "side": PASS + "&mode=side", "table": PASS + "&tab=table", "text": PASS + "&tab=text", "patterns": PASS + "&tab=patterns", "memory": "#memory", "operators": "#operators", "ranks": "#ranks"}


def rules(site):
    for name, fragment in VIEWS.items():
        site.open(site.training(), fragment)
        problems = site.js(RULES)
        assert not problems, (name, problems)
    site.open(site.ranks(), "#ranks")
    problems = site.js(RULES)
    assert not problems, ("ranks", problems)


def readable(site):
    """Contrast of text, and no text cut or covered."""
    # Colours that are on their way have any contrast.
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    for size in (WIDE, (1000, 800), PHONE):
        site.resize(size)
        for name, fragment in VIEWS.items():
            site.open(site.ranks() if name == "ranks" else site.training(), fragment)
            cut = site.js(CUT)
            assert not cut, (size, name, cut)
            wide = site.js("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} at {size}: {wide} px wider than the screen"
            for theme in ("light", "dark"):
                site.js("document.documentElement.dataset.theme = arguments[0]", theme)
                low = site.js(CONTRAST)
                assert not low, (size, theme, name, low)
    site.resize(WIDE)
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def tokens(site):
    """The colours of statuses against the fills they are drawn on, as the design has them: 3 for lines, 4.5 for text."""
    script = r"""
    const luminance = (hex) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4, full = hex.length === 4 ? hex.replace(/[0-9a-f]/gi, '$&$&') : hex, n = parseInt(full.slice(1), 16); return 0.2126 * f(n >> 16) + 0.7152 * f(n >> 8 & 255) + 0.0722 * f(n & 255); };
    const read = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(), ratio = (a, b) => { const [x, y] = [luminance(read(a)), luminance(read(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    const bad = [];
    for (const status of ['added', 'removed', 'changed', 'moved']) { if (ratio(status, `${status}-fill`) < 3) bad.push(status); for (const back of [`${status}-fill`, 'surface', 'bg', 'accent-fill']) if (ratio(`${status}-text`, back) < 4.5) bad.push(`${status}-text on ${back}`); }
    for (const back of ['surface', 'well', 'well-2', 'fold', 'bg']) for (const ink of ['ink', 'ink-2', 'ink-3']) if (ratio(ink, back) < 4.5) bad.push(`${ink} on ${back}`);
    for (const back of ['surface', 'well', 'well-2']) if (ratio('edge', back) < 3) bad.push(`edge on ${back}`);
    return bad;"""
    site.open(site.training())
    for theme in ("light", "dark"):
        site.js("document.documentElement.dataset.theme = arguments[0]", theme)
        bad = site.js(script)
        assert not bad, (theme, bad)


# Everything a graph writes, at some zoom: in its box, nine pixels and more, on no other text and under no line.
WRITTEN = r"""
const v = document.querySelector('.panes').view, proto = CanvasRenderingContext2D.prototype, original = proto.fillText, texts = [], lines = [], problems = [];
v.detail.clusters.forEach((c, i) => v.open.add(i));
v.layout();
v.zoom(arguments[0] / v.scale);
v.center(v.scene.boxes[Math.floor(v.scene.boxes.length * arguments[1])].members[0]);
proto.fillText = function (text, x, y) {
  if (this.canvas === v.panes[0].canvas) {
    const size = parseFloat(/([\d.]+)px/.exec(this.font)[1]), width = this.measureText(text).width, box = v.scene.boxes.find((b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height);
    if (size * v.scale < 8.99) problems.push(`${(size * v.scale).toFixed(1)} px: ${text}`);
    if (box && x + width > box.x + box.width + 0.5) problems.push(`beyond its box: ${text}`);
    texts.push({text, left: x, right: x + width, top: y - size * 0.4, bottom: y + size * 0.4});
  }
  return original.call(this, text, x, y);
};
v.paint();
proto.fillText = original;
const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
const line = (x0, y0, x1, y1) => lines.push({left: Math.min(x0, x1) - 1, right: Math.max(x0, x1) + 1, top: Math.min(y0, y1) - 1, bottom: Math.max(y0, y1) + 1});
for (const {points} of v.scene.edges) for (let k = 0; k + 1 < points.length; k++) line(...points[k], ...points[k + 1]);
for (const f of v.scene.flows) for (const share of v.detail.twoLanes ? [0.25, 0.75] : [0.5]) line(f.x + f.width * share, f.y, f.x + f.width * share, f.y + f.height);
for (const s of v.scene.skips) line(s.rail, s.from, s.rail, s.to);
texts.forEach((a, i) => { for (const b of texts.slice(i + 1)) if (meet(a, b)) problems.push(`“${a.text}” on “${b.text}”`); for (const l of lines) if (meet(a, l)) problems.push(`a line through “${a.text}”`); });
return [texts.length, problems.slice(0, 5)];"""


def canvas_text(site):
    for fragment in (PASS, PASS + "&hops=all"):
        site.open(site.training(), fragment)
        site.drawn()
        for scale in (1, 0.8, 0.6, 0.45, 0.3):
            for part in (0.1, 0.6):
                count, problems = site.js(WRITTEN, scale, part)
                assert not problems, (fragment, scale, problems)
                assert count > 3, (fragment, scale)


def keyboard(site):
    """Everything without a mouse: into the timeline, a pass, its tabs, the graph, a node, and back."""
    site.open(site.training())
    site.press(Keys.TAB)
    assert site.js("return document.activeElement.className") == "skip"
    site.press(Keys.ENTER)
    assert site.js("return document.activeElement.id") == "main"
    seen = []
    for _ in range(40):
        site.press(Keys.TAB)
        seen.append(site.js("const e = document.activeElement; return e.id || e.className"))
        if seen[-1] == "p1":
            break
    assert seen[-1] == "p1", seen
    outline = site.js("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "focus cannot be seen"
    site.press(Keys.ENTER)
    site.shows(".pass-head", "canonicalize")
    site.drawn()
    site.js("document.querySelector('[role=tab][aria-selected=true]').focus()")
    site.press(Keys.ARROW_RIGHT)
    site.wait(lambda: site.js("return document.activeElement.id") == "tab-table", "the next tab has the focus")
    site.js("document.querySelector('.nodes tbody tr').focus()")
    site.press(Keys.ENTER)
    site.shows(".inspector", "Fields")
    site.js("document.querySelector('#tab-table').focus()")
    site.press(Keys.ARROW_LEFT)
    site.drawn()
    site.js("document.querySelector('canvas.graph').focus()")
    first = site.node()
    site.press(Keys.ARROW_DOWN)
    site.wait(lambda: site.node() != first, "the node below")
    slabs = site.view("v.scene.slabs.length")
    site.press(Keys.ENTER)
    site.wait(lambda: site.view("v.scene.slabs.length") != slabs, "a slab closed or opened")
    site.press("h")
    site.press("l")
    site.press(Keys.ESCAPE)
    site.shows(".inspector", "No node selected")


def order_of_focus(site):
    """Focus goes from top to bottom and, in a row, from left to right."""
    site.open(site.training(), PASS + "&tab=table")
    places = []
    for _ in range(14):
        site.press(Keys.TAB)
        places.append(site.js("const r = document.activeElement.getBoundingClientRect(); return [Math.round(r.top), Math.round(r.left)]"))
    header = [place for place in places if 0 <= place[0] < 48]
    assert header == sorted(header, key=lambda place: place[1]), places
    assert places.index(header[-1]) < len(places) - 1, "focus leaves the header"


def reduced_motion_and_print(site):
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    site.open(site.training())
    assert site.js("return getComputedStyle(document.querySelector('button')).transitionDuration") == "0s"
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    for fragment in ("", PASS + "&tab=table", PASS + "&tab=text"):
        site.open(site.training(), fragment)
        assert site.js("return document.querySelector('header.top').checkVisibility()") is False
        cut = site.js("const m = document.querySelector('main'); return m.scrollHeight - m.clientHeight")
        assert cut <= 1, f"{fragment}: {cut} px would not be printed"
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


run((rules, readable, tokens, canvas_text, keyboard, order_of_focus, reduced_motion_and_print))
