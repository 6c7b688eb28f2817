"""How one gets somewhere, and takes something away: search, palette, links, the history, copies.

usage: link_test.py STRATA SCREENSHOTS
"""

import urllib.parse

from browser import PASS, Keys, run


def search(site):
    site.graph(site.training(), PASS)
    site.press("/")
    site.type(".finder .search", "silu_[0-9]")
    site.shows("#results", "4 nodes")
    assert site.view("v.hits.size") == 4
    site.press(Keys.ENTER)
    site.says("hit 1 of 4")
    site.shows(".inspector", "silu")
    site.type(".finder .search", "((((")
    site.shows("#results", "Nothing here")
    site.type(".finder .search", "canonic")
    site.shows("#results", "1 pass")
    site.open(site.training(), PASS + "&tab=table&filter=^mm|reshape")
    site.wait(lambda: 0 < site.count(".nodes tbody tr") <= 8, "fewer rows")
    # A node of another pass is found there.
    site.open(site.training(), PASS)
    site.type(".finder .search", "dead_2")
    site.press(Keys.ENTER)
    site.shows(".pass-head", "dce")
    site.shows(".inspector", "dead_2")


def palette(site):
    site.graph(site.training(), PASS)
    site.press(Keys.CONTROL + "p")
    site.wait(lambda: site.count("dialog.palette [role=option]") > 10, "choices")
    site.shot("palette_light")
    site.press("every slab")
    site.wait(lambda: site.count("dialog.palette [role=option]") == 2, "both commands")
    site.press(Keys.ENTER)
    site.wait(lambda: site.view("v.open.size === v.detail.clusters.length"), "every slab is open")
    site.press(Keys.CONTROL + "z", Keys.CONTROL + "p")
    site.press("memory")
    site.shows(".palette [aria-selected=true]", "Memory")
    site.press(Keys.ENTER)
    site.shows("h1", "Memory")
    site.press("?")
    site.shows("dialog[open]", "The same among passes with changes")
    site.press(Keys.ESCAPE)
    site.wait(lambda: not site.count("dialog[open]"), "no dialog")


def links(site):
    """Every state has a link; selectors may leave out parts; a link of another report shows something."""
    site.open(site.training(), "#run=1,pass=canonicalize:after&tab=table&node=t_1")
    site.shows(".pass-head", "canonicalize")
    site.shows(".inspector", "t_1")
    site.graph(site.training(), PASS)
    site.view("v.zoom(1.3)")
    site.catch_copies()
    site.press("y")
    link, camera = site.copied("the link"), site.view("v.camera()")
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
    fragments = ["#overview", "#run=1,graph=step,pass=0", PASS, PASS + "&mode=side", PASS + "&mode=blink&hops=2", PASS + "&overlay=flops", PASS + "&node=view_2",
                 PASS + "&tab=table&sort=-operator", PASS + "&tab=text&spelling=fx", PASS + "&tab=patterns", PASS + "&tab=table&filter=silu", "#memory", "#operators", "#ranks"]
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


def copies(site):
    site.graph(site.training(), PASS)
    site.catch_copies()

    def copied(words):
        site.js("window.copied = ''")
        site.click(".menu-box > button")
        site.click_words(".menu button", words)
        return site.copied(words)

    markdown = copied("Copy as Markdown")
    assert "| status | node | operator | what changed | module |" in markdown, markdown[:300]
    assert "**view became reshape**" in markdown, markdown[:300]
    fx = copied("Copy graph as FX")
    assert fx.startswith("class GraphModule(torch.nn.Module):\n    def forward(self, tokens: \"i64[8][1]cpu\""), fx[:200]
    assert fx.rstrip().endswith("return [loss, grad_0]"), fx[-200:]
    assert copied("Copy command").endswith("training.strata#run=1,graph=step,pass=1:after'"), copied("Copy command")
    picture = copied("Copy picture as SVG")
    assert picture.startswith("<svg ") and "attention" in picture
    broken = site.js("return new DOMParser().parseFromString(arguments[0], 'image/svg+xml').querySelector('parsererror')", picture)
    assert broken is None, "the SVG is no XML"
    # The picture as a file: a PNG of the whole scene.
    site.js("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }")
    site.click(".menu-box > button")
    site.click_words(".menu button", "Save picture as PNG")
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


def hash_is_selector(site):
    site.open(site.training(), PASS + "&node=q_0")
    fragment = urllib.parse.unquote(site.driver.current_url.split("#")[1])
    assert fragment.split("&")[0] == "run=1,graph=step,pass=1", fragment


run((search, palette, links, back_through_everything, copies, hash_is_selector))
