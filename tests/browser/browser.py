"""What the browser tests share: reports to look at, and a page in headless Chromium that is used as a person would.

A test file calls `run(tests)`, with functions that take a Site. Exit 77: no browser here, with the reason.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys  # noqa: F401, for the tests
except ImportError:
    print("skipped: Selenium is not installed; ./dev test installs it")
    sys.exit(77)

from examples import rank_log, training_step

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIDE, PHONE = (1280, 900), (390, 844)
PASS = "#run=1,graph=step,pass=1"  # of the training: canonicalize


class Site:
    """Reports made by the program, and one browser to open them in."""

    def __init__(self, strata, shots, folder):
        self.strata, self.shots, self.folder, self.reports = strata, shots, folder, {}
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", f"--user-data-dir={folder}/profile"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=shutil.which("chromedriver")))
        self.size = WIDE

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments):
        subprocess.run([self.strata, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def report(self, source, *arguments):
        """The address of the report of a file, made once."""
        key = (source, *arguments)
        if key not in self.reports:
            page = self.path(f"report_{len(self.reports)}.html")
            self.run("report", source, "-o", page, *arguments)
            self.reports[key] = "file://" + page
        return self.reports[key]

    def opt(self, name, text, passes="dce,canonicalize"):
        """The report of passes over a native text."""
        source, trace = self.path(name + ".txt"), self.path(name + ".strata")
        if not os.path.exists(trace):
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            self.run("opt", source, "--passes", passes, "-o", trace)
        return self.report(trace)

    def training(self):
        return self.opt("training", training_step())

    def ranks(self):
        logs = self.path("ranks")
        if not os.path.isdir(logs):
            os.makedirs(logs)
            for rank in range(3):
                with open(os.path.join(logs, f"dedicated_log_torch_trace_rank_{rank}_x.log"), "w", encoding="utf-8") as file:
                    file.write(rank_log(group="1" if rank == 2 else "0", add_pass=rank == 2))
        return self.report(logs)

    def profiled(self):
        """The report of a training whose last step was measured node by node; None without LibTorch."""
        if not os.path.exists(os.path.join(os.path.dirname(self.strata), "strata-runtime")):
            return None
        trace = self.path("profiled.strata")
        if not os.path.exists(trace):
            self.run("train", os.path.join(ROOT, "configs", "demo_llama3.toml"), "--set", "steps=2", "--passes", "dce,canonicalize", "--profile", "1", "--values", "last", "--trace", trace)
        return self.report(trace)

    def placed(self):
        """The report of a step that was placed automatically; None without LibTorch."""
        if not os.path.exists(os.path.join(os.path.dirname(self.strata), "strata-runtime")):
            return None
        trace = self.path("placed.strata")
        if not os.path.exists(trace):
            self.run("place", os.path.join(ROOT, "configs", "demo_llama3.toml"), "--mesh", "fsdp=2,tp=2", "--topology", "cpu", "--trace", trace)
        return self.report(trace)

    def pipeline(self):
        """The report of a profiled training with two stages; None without LibTorch."""
        if not os.path.exists(os.path.join(os.path.dirname(self.strata), "strata-runtime")):
            return None
        trace = self.path("pipeline.strata")
        if not os.path.exists(trace):
            self.run("train", os.path.join(ROOT, "configs", "demo_llama3.toml"), "--set", "steps=2", "--set", "parallelism.pipeline_parallel_degree=2", "--set", "parallelism.pipeline_parallel_microbatch_size=4", "--profile", "1", "--trace", trace)
        return self.report(trace)

    def two_runs(self):
        """One program in two versions, through the same passes."""
        self.opt("training", training_step())
        self.opt("other", training_step().replace("aten.silu.default(ff_2)", "aten.relu.default(ff_2)"))
        return self.report(self.path("training.strata"), self.path("other.strata"))

    # --- The page ---

    def resize(self, size):
        if size != self.size:
            # The window of a headless browser has a least width; the view can be any.
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})
            self.size = size

    def open(self, url, fragment=""):
        self.driver.get("about:blank")
        self.driver.get(url + fragment)
        self.wait(lambda: self.js("return document.documentElement.dataset.ready"))

    def graph(self, url, fragment=""):
        """Opens a page that shows a graph, and waits for the picture."""
        self.open(url, fragment)
        self.drawn()

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, what="the page"):
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.02)
        raise AssertionError(f"timed out waiting for {what}")

    def text(self, selector):
        # In one step: elements that the page replaces meanwhile would be stale.
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText).join(' ')", selector)

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def says(self, words):
        """Waits for words in the status line, which screen readers announce."""
        self.shows("[role=status]", words)

    def click_words(self, selector, words):
        self.js("[...document.querySelectorAll(arguments[0])].find((e) => e.innerText === arguments[1]).click()", selector, words)

    def catch_copies(self):
        self.js("window.copied = ''; navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")

    def copied(self, what):
        self.wait(lambda: self.js("return window.copied"), what)
        return self.js("return window.copied")

    def click(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)

    def count(self, selector):
        return self.js("return document.querySelectorAll(arguments[0]).length", selector)

    def press(self, *keys):
        # To what has the focus, as a keyboard does.
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def type(self, selector, text):
        box = self.driver.find_element(By.CSS_SELECTOR, selector)
        box.clear()
        box.send_keys(text)

    def shows(self, selector, words):
        self.wait(lambda: words in self.text(selector), f"“{words}” in {selector}: {self.text(selector)[:300]}")

    def node(self):
        return self.js("return (/&node=([^&]*)/.exec(location.hash) || ['', ''])[1]")

    def view(self, expression):
        """A value of the graph that is drawn; `v` is its view."""
        return self.js(f"const v = document.querySelector('.panes').view; return {expression}")

    def drawn(self):
        self.wait(lambda: self.js("const p = document.querySelector('.panes'); return p && p.view.fitted && !p.view.pending"), "the graph")

    def theme(self, name):
        self.click(f"[data-theme-button={name}]")

    def shot(self, name):
        self.driver.save_screenshot(os.path.join(self.shots, name + ".png"))

    def quiet(self):
        """No message on the console and no request since the last call."""
        problems = [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        assert not problems, problems
        requests = self.js("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert not requests, requests


def run(tests):
    strata, shots = sys.argv[1:3]
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: no chromium and chromedriver; ./dev test installs them")
        sys.exit(77)
    os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        site = Site(strata, shots, folder)
        try:
            for test in tests:
                begin = time.monotonic()
                try:
                    test(site)
                except Exception:
                    site.shot("failed_" + test.__name__)
                    print(f"FAILED: {test.__name__}, at {site.driver.current_url}")
                    raise
                print(f"ok: {test.__name__}, {time.monotonic() - begin:.1f} s", flush=True)
        finally:
            site.driver.quit()
