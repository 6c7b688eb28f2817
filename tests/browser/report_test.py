"""Opens reports in headless Chromium and uses them as a person would. Exit 77: no browser here, with the reason.

usage: report_test.py STRATA SCREENSHOTS
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
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("skipped: Selenium is not installed; ./dev test installs it")
    sys.exit(77)

HOSTILE = "</script><img src=x onerror=alert(1)>"
STEP = """graph step
  x = placeholder : f32[4, 8][8, 1]cpu #1
  w = placeholder : f32[8, 8][8, 1]cpu #2
  d = aten.detach.default(w) : f32[8, 8][8, 1]cpu {forward module=layers.0.wq} #3
  t = aten.t.default(d) : f32[8, 8][1, 8]cpu {forward module=layers.0.wq} #4
  mm = aten.mm.default(x, t) : f32[4, 8][8, 1]cpu {forward module=layers.0.wq seq=3 loc=('model.py', 7, 'forward', 'q = wq(x)')} #5
  %'HOSTILE' = aten.view.default(mm, [2, 16]) : f32[2, 16][16, 1]cpu {forward module=%'HOSTILE'} #6
  g = aten.mm.default(mm, d) : f32[4, 8][8, 1]cpu {backward module=layers.0.wq seq=3} #7
  dead = aten.neg.default(g) : f32[4, 8][8, 1]cpu {backward module=layers.0.wq} #8
  output([%'HOSTILE', g]) #9
"""


class Page:
    def __init__(self, driver, url, shots):
        self.driver, self.url, self.shots = driver, url, shots

    def open(self, fragment=""):
        self.driver.get("about:blank")
        self.driver.get(self.url + fragment)
        self.wait(lambda: self.driver.execute_script("return document.documentElement.dataset.ready"))

    def wait(self, condition, what="the page"):
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.03)
        raise AssertionError(f"timed out waiting for {what}")

    def text(self, selector):
        # In one step: elements that the page replaces meanwhile would be stale.
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText).join(' ')"
        return self.driver.execute_script(script, selector)

    def click(self, selector):
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def count(self, selector):
        return self.driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector)

    def press(self, keys):
        self.driver.find_element(By.TAG_NAME, "body").send_keys(keys)

    def shows(self, selector, words):
        self.wait(lambda: words in self.text(selector), f"“{words}” in {selector}: {self.text(selector)[:200]}")

    def shot(self, name):
        self.driver.save_screenshot(os.path.join(self.shots, name + ".png"))


def overview(page):
    page.open()
    page.shows(".timeline", "canonicalize")
    page.shows(".timeline", "dce")
    assert "Words" in page.text(".overview h2"), page.text(".overview h2")
    page.shot("overview_light")
    page.click("[data-theme-button=dark]")
    assert page.driver.execute_script("return document.documentElement.dataset.theme") == "dark"
    page.shot("overview_dark")
    page.click("[data-theme-button=light]")


def one_pass(page):
    page.open()
    page.click(".timeline button.row:last-of-type")  # canonicalize; dce is the one above
    page.shows(".pass-head", "canonicalize")
    assert page.driver.find_element(By.CSS_SELECTOR, ".stage canvas").size["width"] > 300
    page.shows(".inspector", "press n for the first change")
    page.press("n")
    page.wait(lambda: page.count(".inspector h2"), "a node in the inspector")
    first = page.driver.current_url
    assert "node=" in first, first
    page.press("n")
    page.wait(lambda: page.driver.current_url != first, "the next change")
    page.shot("graph_light")
    page.press("2")
    page.wait(lambda: page.count(".sheet tbody tr"), "the table")
    table = page.text(".sheet tbody")
    assert "operands[1]" in table or "operands[0]" in table, table
    assert HOSTILE in table, table
    page.shot("table_light")
    page.press("3")
    page.shows(".lines", "aten.reshape.default")
    page.press("4")
    page.wait(lambda: page.count(".sheet .pattern, .sheet .empty"), "patterns")
    page.driver.back()
    page.shows(".lines", "aten.reshape.default")
    page.press("k")
    page.shows(".pass-head", "dce")


def deep_link(page):
    page.open("#run=1,graph=step,pass=canonicalize&tab=table&node=t")
    page.shows(".pass-head", "canonicalize")
    page.shows(".inspector", "operands[0]")
    assert page.count(".sheet tbody tr[aria-selected=true]"), "the row is selected"
    page.open("#run=1,graph=step,pass=1&node=mm")
    page.shows(".inspector", "model.py:7")
    page.shows(".inspector", "q = wq(x)")
    page.open("#run=9,graph=nowhere,pass=77&node=none")  # a link of another report
    page.shows(".pass-head", "")


def search(page):
    page.open("#run=1,graph=step,pass=1&tab=table")
    box = page.driver.find_element(By.CSS_SELECTOR, ".search")
    box.send_keys("reshape|^mm ")
    page.wait(lambda: page.count(".sheet tbody tr") in (1, 2), "fewer rows")
    box.clear()
    box.send_keys("((((")
    page.shows(".sheet", "Nothing matches")
    box.send_keys(Keys.ESCAPE)


def nothing_runs(page):
    """A name that is markup is shown as text: no element, no dialog, no request, no message."""
    for fragment in ("", "#run=1,graph=step,pass=1", "#run=1,graph=step,pass=1&tab=table", "#run=1,graph=step,pass=1&tab=text"):
        page.open(fragment)
        assert not page.count("img"), fragment
    assert page.driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    problems = [entry for entry in page.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert not problems, problems


def narrow(page):
    page.driver.set_window_size(500, 900)
    page.open()
    wide = page.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{wide} px wider than the screen"
    page.shot("overview_narrow")
    page.open("#run=1,graph=step,pass=1&node=mm")
    page.shows(".inspector", "mm")
    page.shot("graph_narrow")
    page.driver.set_window_size(1280, 900)


def main():
    strata, shots = sys.argv[1:3]
    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver_path:
        print("skipped: no chromium and chromedriver; ./dev test installs them")
        sys.exit(77)
    os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        text, trace, html = (os.path.join(folder, name) for name in ("step.txt", "run.strata", "run.html"))
        with open(text, "w", encoding="utf-8") as file:
            file.write(STEP.replace("HOSTILE", HOSTILE))
        subprocess.run([strata, "opt", text, "--passes", "dce,canonicalize", "-o", trace], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([strata, "report", trace, "-o", html], check=True)
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", f"--user-data-dir={folder}/profile"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver_path))
        try:
            page = Page(driver, "file://" + html, shots)
            for test in (overview, one_pass, deep_link, search, nothing_runs, narrow):
                test(page)
                print(f"ok: {test.__name__}")
        finally:
            driver.quit()


main()
