"""The report as a file: one policy that names exactly its script and style, data that inflates, nothing from outside.

usage: page_test.py STRATA
"""

import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

BEFORE = """graph step
  x = placeholder : f32[4, 8][8, 1]cpu #1
  %'</script><b>' = aten.neg.default(x) : f32[4, 8][8, 1]cpu {forward module=%'<img src=x onerror=alert(1)>'} #2
  b = aten.detach.default(%'</script><b>') #3
  c = aten.abs.default(b) #4
  output([c]) #5
"""


def main():
    strata = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        text, trace, page = (os.path.join(folder, name) for name in ("step.txt", "run.strata", "run.html"))
        with open(text, "w", encoding="utf-8") as file:
            file.write(BEFORE)
        subprocess.run([strata, "opt", text, "--passes", "dce,canonicalize", "-o", trace], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([strata, "report", trace, "-o", page], check=True)
        with open(page, "rb") as file:
            html = file.read()
        # `--open` hands the file to the user's browser.
        browser, opened = os.path.join(folder, "browser"), os.path.join(folder, "opened")
        with open(browser, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$1" >{opened}\n')
        os.chmod(browser, 0o755)
        subprocess.run([strata, "report", trace, "-o", page, "--open"], check=True, env={**os.environ, "BROWSER": browser})
        with open(opened, encoding="utf-8") as file:
            assert file.read().strip() == page

    policies = re.findall(rb'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert len(policies) == 1, policies
    policy = policies[0].decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy, policy
    for tag, name in (("script", "script-src"), ("style", "style-src")):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), html, re.S)
        assert len(bodies) == 1, (tag, len(bodies))
        digest = base64.b64encode(hashlib.sha256(bodies[0]).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy, (tag, digest, policy)
    outside = set(re.findall(rb"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", html))
    assert outside <= {b"http://www.w3.org"}, outside  # the name of SVG
    assert b"<img" not in html and b"<b>" not in html

    data = dict(re.findall(rb'<script type="application/octet-stream" id="([a-z0-9-]+)">([^<]*)</script>', html))
    main_json = json.loads(gzip.decompress(base64.b64decode(data[b"data-main"])))
    passes = main_json["runs"][0]["passes"]
    assert [p["name"] for p in passes] == ["dce", "canonicalize"], passes
    assert passes[1]["counts"][:3] == [0, 1, 1], passes[1]
    unpack = lambda name: json.loads(gzip.decompress(base64.b64decode(data[name.encode()])))
    scene, texts = unpack(f"data-{passes[1]['detail']}"), unpack("names-0")
    names, at = [], 0
    for step in scene["name"]:
        at += step
        names.append(texts[at])
    assert names == ["x", "</script><b>", "b", "c", "output"], names
    assert scene["status"] == [0, 0, 2, 3, 0], scene["status"]
    assert len(html) - sum(map(len, data.values())) < 160_000, "script, style and summary are small"
    print("the page is sound")


main()
