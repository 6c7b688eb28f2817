"""What the browser tests share: reports to look at, and a page in headless Chromium that is used as a person would.

A test file calls `run(tests)`, with functions that take a Site. Exit 77: no browser here, with the reason.
"""

import hashlib
import json
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

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIDE, PHONE = (1280, 900), (390, 844)


def training_step(layers=4):
    """A small training step in native text: embedding, equal blocks with attention and feed-forward, loss, backward."""
    lines, backward = [], []
    types = "f32[8, 64][64, 1]cpu"

    def call(name, op, operands, module, type_text=types, into=lines, phase="forward", more=""):
        into.append(f"  {name} = {op}({', '.join(operands)}) : {type_text} {{{phase} module={module}{more}}}")
        return name

    lines.append("graph step")
    lines.append("  tokens = placeholder : i64[8][1]cpu")
    for layer in range(layers):
        for weight in ("wq", "wo", "w1"):
            lines.append(f"  {weight}_{layer} = placeholder : f32[64, 64][64, 1]cpu")
    x = call("embedding", "aten.neg.default", ["tokens"], "tok_embeddings")
    for i in range(layers):
        where = f"layers.{i}.attention"
        seq = f" seq={10 * i + 1} loc=('model.py', {20 + i}, 'forward', 'h = x + self.attention(x)')"
        d = call(f"detach_{i}", "aten.detach.default", [x], where)
        t = call(f"t_{i}", "aten.t.default", [f"wq_{i}"], f"{where}.wq", "f32[64, 64][1, 64]cpu")
        q = call(f"q_{i}", "aten.mm.default", [d, t], f"{where}.wq", more=seq)
        v = call(f"view_{i}", "aten.view.default", [q, "[2, 4, 64]"], where, "f32[2, 4, 64][256, 64, 1]cpu")
        o = call(f"o_{i}", "aten.mm.default", [v, f"wo_{i}"], f"{where}.wo")
        h = call(f"add_{i}", "aten.add.Tensor", [x, o], f"layers.{i}")
        f = call(f"ff_{i}", "aten.mm.default", [h, f"w1_{i}"], f"layers.{i}.feed_forward.w1")
        x = call(f"silu_{i}", "aten.silu.default", [f], f"layers.{i}.feed_forward")
        g = f"grad_{i + 1}" if i + 1 < layers else "loss_grad"
        back = [call(f"g1_{i}", "aten.mm.default", [g, f"w1_{i}"], f"layers.{i}.feed_forward.w1", into=[], phase="backward")]
        mine = []
        call(f"g1_{i}", "aten.mm.default", [g, f"w1_{i}"], f"layers.{i}.feed_forward.w1", into=mine, phase="backward")
        call(f"dead_{i}", "aten.neg.default", [back[0]], f"layers.{i}.feed_forward", into=mine, phase="backward")
        call(f"gq_{i}", "aten.mm.default", [back[0], d], f"{where}.wq", into=mine, phase="backward")
        call(f"grad_{i}", "aten.add.Tensor", [f"gq_{i}", back[0]], f"layers.{i}", into=mine, phase="backward")
        backward = mine + backward
    call("loss", "aten.sum.default", [x], "loss", "f32[][]cpu", phase="loss")
    call("loss_grad", "aten.expand.default", ["loss", "[8, 64]"], "loss", phase="backward")
    return "\n".join(lines + backward + ["  output([loss, grad_0])"]) + "\n"


def rank_log(group, add_pass=False):
    """A log of one rank: a graph with collectives, before and after a pass."""
    def text(op):
        return (
            "class <lambda>(torch.nn.Module):\n"
            "    def forward(self, x: \"f32[4, 8][8, 1]cpu\", w: \"f32[8, 8][8, 1]cpu\"):\n"
            f"        ag: \"f32[8, 8][8, 1]cpu\" = torch.ops._c10d_functional.all_gather_into_tensor.default(w, 2, '{group}')\n"
            "        wait: \"f32[8, 8][8, 1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(ag)\n"
            "        mm: \"f32[4, 8][8, 1]cpu\" = torch.ops.aten.mm.default(x, wait)\n"
            f"        act: \"f32[4, 8][8, 1]cpu\" = torch.ops.aten.{op}.default(mm)\n"
            "        ar: \"f32[4, 8][8, 1]cpu\" = torch.ops._c10d_functional.all_reduce.default(act, 'sum', '0')\n"
            "        out: \"f32[4, 8][8, 1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(ar)\n"
            "        return [out]\n")

    records = []
    for name, op in (("before_fuse_pass", "relu"), ("after_fuse_pass", "silu" if add_pass else "gelu")):
        payload = text(op)
        envelope = {"artifact": {"name": name, "encoding": "string"}, "has_payload": hashlib.md5(payload.encode()).hexdigest()}
        records.append("V1120 18:32:38.396000 14073 torch/x.py:10] " + json.dumps(envelope) + "\n\t" + payload.replace("\n", "\n\t") + "\n")
    return "".join(records)


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
            self.run("train", os.path.join(ROOT, "configs", "demo_llama3.toml"), "--set", "steps=2", "--profile", "1", "--values", "last", "--trace", trace)
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
