"""Names, paths, code and artifacts that try to be markup or script: they are shown as text, nothing runs, nothing leaves.

usage: hostile_test.py STRATA SCREENSHOTS
"""

import hashlib
import json
import os

from browser import run

MARKS = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    "<!--<script>window.hacked = 1//",
    "javascript:window.hacked=1",
    "'\"><a href=javascript:window.hacked=1>",
    "${window.hacked=1}",
    "`);window.hacked=1;//",
    "]]>",
    "&lt;b&gt;",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "\u202egnp.exe\u2066",
    "\u200b\ufeff",
    "a\x7fb",
    "../../etc/passwd",
    "%00%2e",
    "C:\\con",
]


def quoted(name):
    return "%'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def hostile_step():
    """A step in which each node, module path, source line and tag has such a name."""
    lines, last = ["graph step", "  x = placeholder : f32[4][1]cpu"], "x"
    for i, mark in enumerate(MARKS):
        name, where = quoted(f"{mark}{i}" if not mark.isidentifier() else mark), quoted(mark)
        code = "'" + mark.replace("\\", "\\\\").replace("'", "\\'") + "'"
        lines.append(f"  {name} = aten.view.default({last}, [{i + 1}, 4]) : f32[{i + 1}, 4][4, 1]cpu {{forward module={where} loc=({code}, 7, {code}, {code}) +tag={code}}}")
        last = name
    lines.append(f"  gone = aten.neg.default({last}) : f32[4][1]cpu {{backward module={quoted(MARKS[0])}}}")
    return "\n".join([*lines, f"  output([{last}])"]) + "\n"


def hostile_log(megabytes):
    """A log whose passes, graphs, attributes and artifacts have such names, one of them megabytes long."""
    def record(envelope, payload):
        envelope = {**envelope, "has_payload": hashlib.md5(payload.encode()).hexdigest()}
        return "V1120 18:32:38.396000 14073 torch/x.py:10] " + json.dumps(envelope) + "\n\t" + payload.replace("\n", "\n\t") + "\n"

    def graph(op, name):
        return (f"class {name}(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\"):\n"
                f"        # File: /tmp/</script><img src=x onerror=window.hacked=1>.py:3 in forward, code: <!--</script><b>\n"
                f"        a: \"f32[4][1]cpu\" = torch.ops.aten.{op}.default(x)\n        return [a]\n")

    records = []
    for mark in MARKS:
        records.append(record({"artifact": {"name": f"before_{mark}_pass", "encoding": "string"}}, graph("relu", "G")))
        records.append(record({"artifact": {"name": f"after_{mark}_pass", "encoding": "string"}}, graph("gelu", "G")))
        records.append(record({"artifact": {"name": mark, "encoding": "json"}}, json.dumps({mark: mark})))
        records.append(record({"artifact": {"name": mark, "encoding": "string"}}, f"<html><body><script>window.hacked = 1</script>{mark}"))
    long = "A<script>" * (megabytes * 1_000_000 // 9)
    records.append(record({"artifact": {"name": f"before_{long}_pass", "encoding": "string"}}, graph("relu", "G")))
    records.append(record({"artifact": {"name": f"after_{long}_pass", "encoding": "string"}}, graph("silu", "G")))
    return "".join(records)


def is_calm(site, fragment):
    assert site.js("return window.hacked === undefined && ({}).hacked === undefined"), f"{fragment}: something ran"
    strange = site.js("""return [...document.querySelectorAll('img, iframe, object, embed, link, form, base, video, audio, script:not([type]):not(:last-of-type)')].map((e) => e.outerHTML.slice(0, 100))
        .concat([...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((href) => !href.startsWith('#')))
        .concat([...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).map((e) => e.outerHTML.slice(0, 100)));""")
    assert not strange, (fragment, strange)
    hidden = site.js(r"return /[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test(document.body.innerText)")
    assert not hidden, f"{fragment}: direction marks are left in the text"
    site.quiet()


def look_at_everything(site, url):
    site.open(url)
    is_calm(site, "overview")
    subjects = site.js("return [...new Set([...document.querySelectorAll('main a')].map((a) => a.hash).filter((hash) => hash.includes('graph=')).map((hash) => hash.split('&')[0]))]")
    assert subjects
    for subject in (subjects[0], subjects[-1]):
        for more in ("", "&hops=all", "&tab=table&hops=all", "&tab=text", "&tab=text&spelling=fx", "&tab=patterns", "&mode=side"):
            site.open(url, subject + more)
            is_calm(site, subject + more)
        site.open(url, subject + "&hops=all")
        site.drawn()
        count = site.view("v.detail.count")
        for node in range(0, min(count, 24)):
            site.view(f"v.select({node})")
        is_calm(site, subject)
    for view in ("#memory", "#operators", "#ranks"):
        site.open(url, view)
        is_calm(site, view)


def names_of_a_step(site):
    url = site.opt("hostile", hostile_step())
    look_at_everything(site, url)
    site.open(url, "#run=1,graph=step,pass=1&tab=table&hops=all")
    shown = site.text(".nodes")
    for mark in ("</script><script>window.hacked = 1</script>0", "__proto__", "constructor", "${window.hacked=1}6"):
        assert mark in shown, mark
    # Every one of them can be selected, linked to and copied.
    site.open(url, "#run=1,graph=step,pass=1&tab=table&hops=all&node=__proto__")
    site.shows(".inspector", "__proto__")
    site.open(url, "#run=1,graph=step,pass=1")
    site.drawn()
    site.js("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    site.click(".menu-box > button")
    site.js("[...document.querySelectorAll('.menu button')].find((e) => e.innerText === 'Copy picture as SVG').click()")
    site.wait(lambda: site.js("return window.copied"), "the SVG")
    parsed = site.js("const x = new DOMParser().parseFromString(window.copied, 'image/svg+xml'); return [x.querySelector('parsererror') === null, x.querySelectorAll('script, image, a, foreignObject').length]")
    assert parsed == [True, 0], parsed
    is_calm(site, "copies")


def names_of_a_log(site):
    log = site.path("hostile.log")
    with open(log, "w", encoding="utf-8") as file:
        file.write(hostile_log(megabytes=10))
    url = site.report(log)
    size = os.path.getsize(url.removeprefix("file://"))
    assert size < 2_000_000, f"{size} bytes: the long name is not cut"
    look_at_everything(site, url)


def links(site):
    """Fragments are input too."""
    url = site.opt("hostile", hostile_step())
    for fragment in ("#<img src=x onerror=window.hacked=1>", "#__proto__", "#constructor&tab=__proto__&node=constructor", "#javascript:window.hacked=1", "#run=1&__proto__=1&mode=toString", "#%", "#memory&graph=<b>&run=__proto__",
                     "#run=1,graph=step,pass=1&from=__proto__&labels=constructor&open=__proto__;constructor&overlay=toString&spelling=constructor&filter=((("):
        site.open(url, fragment)
        is_calm(site, fragment)


def policy_holds(site):
    """The page's policy stops what a mistake in the page would let through."""
    site.open(site.opt("hostile", hostile_step()))
    site.js("""const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s);
        const i = document.createElement('img'); i.src = 'https://example.com/x.png'; document.body.append(i);
        const d = document.createElement('div'); d.setAttribute('onclick', 'window.hacked = 1'); document.body.append(d); d.click();""")
    assert site.js("return window.hacked === undefined")
    blocked = [entry for entry in site.driver.get_log("browser") if "Content Security Policy" in entry["message"]]
    assert len(blocked) >= 2, blocked
    assert "unsafe" not in site.js("return document.querySelector('meta[http-equiv]').content")


run((names_of_a_step, names_of_a_log, links, policy_holds))
