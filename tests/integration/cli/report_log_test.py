"""The report of a log holds all that tlparse writes for it: each file of its output folder, each compilation, each event.

    report_log_test.py STRATA
"""

import base64
import collections
import glob
import gzip
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import LOGS, ROOT, decompress_log  # noqa: E402

FIELDS = ["line", "compile", "kind", "name", "prefix", "meta", "bytes", "part", "slot", "ref", "nodes", "count"]


def logs():
    return sorted(glob.glob(os.path.join(LOGS, "**", "*.log.zst"), recursive=True))


def data(page):
    """The parts of a page by their ids."""
    with open(page, encoding="utf-8") as file:
        parts = re.findall(r'<script type="application/octet-stream" id="([^"]*)">([^<]*)</script>', file.read())
    return {name: json.loads(gzip.decompress(base64.b64decode(packed))) for name, packed in parts}


def value(text):
    """What a JSON text says; of other text the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def directory_of(compile_id):
    """tlparse's folder of a compilation: "!3/1/2_1" is "3_1_2_1"."""
    if not compile_id:
        return "-_-_-_-"
    match = re.fullmatch(r"(?:!(\d+)/)?([\d-]+)/([\d-]+)(?:_(\d+))?", compile_id)
    return "_".join([match[1] or "-", match[2], match[3], match[4] or "0"])


class ReportLogTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        beside = os.path.join(ROOT, ".venv", "bin", "tlparse")
        self.tlparse = beside if os.path.exists(beside) else shutil.which("tlparse")
        if self.tlparse is None:
            if os.environ.get("STRATA_SKIP_TLPARSE") == "1":
                self.skipTest("no tlparse, and STRATA_SKIP_TLPARSE=1 says to go on without it")
            self.fail("no tlparse: run './dev setup test', or set STRATA_SKIP_TLPARSE=1 to go on without it")

    def test_every_file_of_tlparse_is_in_the_report(self):
        for i, log in enumerate(logs()):
            with self.subTest(log=os.path.basename(log)):
                page, out = os.path.join(self.folder, f"{i}.html"), os.path.join(self.folder, str(i))
                plain = decompress_log(log, self.folder)
                subprocess.run([self.strata, "report", log, "-o", page], check=True, capture_output=True)
                subprocess.run([self.tlparse, "--no-browser", "-o", out, plain], check=True, capture_output=True)
                self.compare(data(page), out)

    def compare(self, parts, out):
        index = parts["log-1"]
        records = [dict(zip(FIELDS, row)) for row in index["records"]]
        self.assertEqual(parts["data-main"]["left_out"], [])
        texts, names, graphs = collections.defaultdict(set), collections.defaultdict(set), collections.Counter()
        for record in records:
            where = directory_of(record["compile"])
            names[where] |= {record["kind"], record["name"]}
            if record["part"] >= 0:
                texts[where].add(parts[f"log-1-{record['part']}"][record["slot"]])
            if record["ref"]:
                graphs[where, record["name"]] += 1
        everything = set().union(*texts.values()) if texts else set()
        for folder, _, files in os.walk(out):
            where = os.path.relpath(folder, out)
            for name in files:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    content = file.read()
                if where == ".":
                    continue
                stem = re.sub(r"_\d+\.\w+$", "", name)
                if where == "payloads":  # of records whose kind tlparse has no page for, or shows as a page only
                    self.assertTrue(content in everything or any(graphs.values()), name)
                elif where == "dump_file":
                    self.assertTrue(any(record["kind"] == "dump_file" for record in records), name)
                elif name.endswith(".html"):
                    self.assertTrue(any(stem.startswith(n) for n in names[where]), f"{where}/{name}")
                elif (where, stem) in graphs:
                    graphs[where, stem] -= 1
                elif name.endswith(".json"):  # set out by tlparse, where it is JSON
                    self.assertIn(value(content), [value(text) for text in texts[where]], f"{where}/{name}")
                else:
                    self.assertIn(content, texts[where], f"{where}/{name}")
        with open(os.path.join(out, "compile_directory.json"), encoding="utf-8") as file:
            compiles = {html.unescape(key).strip("[] ") for key in json.load(file)} - {"-/-", "(unknown)"}
        self.assertEqual(compiles - {record["compile"] for record in records}, set())
        events = os.path.join(out, "chromium_events.json")
        if os.path.exists(events):
            with open(events, encoding="utf-8") as file:
                theirs = json.load(file)
            told = [(event.get("name"), event.get("ph"), round(event.get("ts", 0))) for event in theirs]
            ours = [event for event in map(value, parts.get("log-1-events", [])) if isinstance(event, dict)]
            self.assertEqual([(event.get("name"), event.get("ph"), round(event.get("ts", 0))) for event in ours], told)


if __name__ == "__main__":
    ReportLogTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
