"""Measures the page in headless Chromium, which draws in software; `./dev bench report` runs it.

usage: bench.py DIR, which holds 10k.html and 100k.html of `strata bench report --pages DIR`
"""

import os
import shutil
import statistics
import sys

try:
    from selenium import webdriver
except ImportError:
    print("skipped: Selenium is not installed; ./dev test installs it")
    sys.exit(0)

# What a person does: before each run, the step, how often, and the milliseconds it may take at 10k and at 100k nodes.
OPEN_PASS = "location.hash = '#run=1,graph=step,pass=0'; await ready();"
MIDDLE = "v.zoom({} / v.scale); v.center(v.scene.boxes[v.scene.boxes.length >> 1].members[0]);"
# Twenty frames as the browser shows them, each panned; the time of one.
FRAMES = "for (let i = 0; i < 20; i++) { v.x -= 3; v.y -= 11; v.paint(); await new Promise(requestAnimationFrame); }"
STEPS = [
    ("open a pass: inflate, lay out, draw", "", OPEN_PASS, 1, (1000, 1000)),
    ("open a slab", "v.open.delete(deep); v.layout();", "v.open.add(deep); v.layout(); v.paint();", 9, (50, 50)),
    ("search all nodes, a regular expression", "", "d.search('^mm.*_1[0-9]|rsqrt|layers\\\\.1[0-9]\\\\.att')", 9, (50, 50)),
    ("a frame of panning: zoom 1", MIDDLE.format(1), FRAMES, 5, (17, 17)),
    ("a frame of panning: zoom 0.3", MIDDLE.format(0.3), FRAMES, 5, (17, 17)),
    ("open everything and lay out", "", "d.clusters.forEach((c, i) => v.open.add(i)); v.hops = 'all'; v.layout();", 1, (None, None)),
    ("a frame, everything open: zoom 1", MIDDLE.format(1), FRAMES, 5, (17, 34)),
    ("a frame, everything open: zoom 0.3", MIDDLE.format(0.3), FRAMES, 5, (17, 34)),
    ("a frame, everything open: zoom 0.05", MIDDLE.format(0.05), FRAMES, 5, (17, 34)),
]

RUN = """
const done = arguments[arguments.length - 1], [prepare, work, runs] = arguments;
const ready = async () => { while (!document.querySelector('.panes') || !document.querySelector('.panes').view.fitted) await new Promise(requestAnimationFrame); };
const v = document.querySelector('.panes') && document.querySelector('.panes').view, d = v && v.detail, deep = d && d.clusters.findIndex((c, i) => c.path.startsWith('layers.5.') && c.blocks.some((b) => b.places));
const times = [];
(async () => {
  const before = new Function('v', 'd', 'deep', prepare), step = new (async () => {}).constructor('v', 'd', 'deep', 'ready', work);
  for (let i = 0; i < runs; i++) { before(v, d, deep); await new Promise(requestAnimationFrame); const begin = performance.now(); await step(v, d, deep, ready); times.push(performance.now() - begin); }
  done(times);
})();
"""


def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=shutil.which("chromedriver")))


def line(what, value, limit, note=""):
    verdict = "" if limit is None else f"   limit {limit} ms: {'met' if value <= limit else 'MISSED'}"
    print(f"{what:<44} {value:>8.1f} ms{note:>18}{verdict}", flush=True)


def measure(browser, name, url, size):
    print(f"\n{name}, {os.path.getsize(url) / 1e6:.2f} MB")
    browser.get("about:blank")
    browser.get("file://" + url)
    browser.execute_async_script("const done = arguments[0]; (function wait() { if (document.documentElement.dataset.ready) done(); else setTimeout(wait, 5); })();")
    # The page marks when it was ready: from the start of the navigation to the first overview.
    line("ready to use", browser.execute_script("return performance.getEntriesByName('ready')[0].startTime"), 1000)
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # for the steps below, which are text
    browser.get("about:blank")
    browser.get("file://" + url)
    for what, prepare, work, runs, limits in STEPS:
        times = browser.execute_async_script(RUN, prepare, work, runs)
        if work == FRAMES:
            times = [time / 20 for time in times]
        line(what, statistics.median(times), limits[size], f"{min(times):.1f} … {max(times):.1f}" if runs > 1 else "")


def main():
    folder = os.path.abspath(sys.argv[1])
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: no chromium and chromedriver; ./dev test installs them")
        return
    browser = driver()
    browser.set_script_timeout(120)
    try:
        for size, name in enumerate(("10k", "100k")):
            measure(browser, name + " nodes in the browser", os.path.join(folder, name + ".html"), size)
    finally:
        browser.quit()


main()
