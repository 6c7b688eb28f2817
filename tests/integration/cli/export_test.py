"""`strata export` as scripts use it, and what the real tlparse says of its logs.

    export_test.py STRATA

tlparse comes with `./dev test` into .venv. Without it the tests that need it fail; with STRATA_SKIP_TLPARSE=1 they say
that they skip.
"""

import collections
import glob
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import LOGS, ROOT, decompress_log, read_log  # noqa: E402

DATA = os.path.join(ROOT, "tests", "data")
COMPILE = os.path.join(LOGS, "compile_torch2.11.log.zst")
TRAINER = os.path.join(LOGS, "trainer_torch2.11.log.zst")

# What tlparse writes for the log as a whole, and pages with links to files whose names hold a counter.
WHOLE_LOG = re.compile(r"^(index\.html|compile_directory\.json|raw\.jsonl|raw\.log|failures_and_restarts\.html)$"
                       r"|metrics_\d+\.html$")  # fmt: skip

STEP = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2][1]cpu"):
        mul: "f32[2][1]cpu" = torch.ops.aten.mul.Tensor(x, 3);  x = None
        unused: "f32[2][1]cpu" = torch.ops.aten.add.Tensor(mul, 1);  unused = None
        return (mul,)
'''


def logs():
    return sorted(glob.glob(os.path.join(LOGS, "**", "*.log.zst"), recursive=True))


def tlparse_program():
    beside = os.path.join(ROOT, ".venv", "bin", "tlparse")
    return beside if os.path.exists(beside) else shutil.which("tlparse")


def record(name, payload, rank=None, encoding="string"):
    envelope = {"artifact": {"name": name, "encoding": encoding}}
    if rank is not None:
        envelope["rank"] = rank
    envelope |= {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    envelope["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    lines = "".join(f"\t{line}\n" for line in payload.split("\n"))
    return f"V1120 18:28:13.658000 9595 torch/x.py:10] {json.dumps(envelope)}\n{lines}"


def without_id(text):
    """A graph's text without the address that some records end with."""
    return re.sub(rb"\s*# graph id: \d+\s*$", b"", text).rstrip()


def tree(folder):
    """What tlparse made of each record: (folder of the compilation, name without its counter, bytes), counted."""
    files = collections.Counter()
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            relative = os.path.relpath(path, folder)
            if WHOLE_LOG.search(relative):
                continue
            with open(path, "rb") as stream:
                content = stream.read()
            if name.endswith(".html"):  # links to other files of the folder
                content = b""
            files[re.sub(r"_\d+(\.\w+)$", r"\1", relative), content] += 1
    return files


class ExportTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.count = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def fresh(self):
        self.count += 1
        return self.path(f"out{self.count}")

    def run_strata(self, *words):
        return subprocess.run([self.strata, *words], capture_output=True, text=True, check=False, cwd=self.folder)

    def export(self, source, option="--torch-trace"):
        out = self.fresh()
        done = self.run_strata("export", source, option, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def runs(self, trace):
        done = self.run_strata("ls", trace, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["runs"]

    def imported(self, *sources):
        trace = self.fresh() + ".strata"
        done = self.run_strata("import", *sources, "-o", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        return trace

    def tlparse(self, log, strict=True, options=()):
        program = tlparse_program()
        if program is None:
            if os.environ.get("STRATA_SKIP_TLPARSE") == "1":
                self.skipTest("no tlparse, and STRATA_SKIP_TLPARSE=1 says to go on without it")
            self.fail("no tlparse: run './dev setup test', or set STRATA_SKIP_TLPARSE=1 to go on without it")
        out = self.fresh()
        done = subprocess.run([program, *(["--strict"] if strict else []), *options, "--no-browser", "-o", out, log],
                              capture_output=True, check=False)  # fmt: skip
        if strict:
            self.assertEqual(done.returncode, 0, f"{log}: {done.stderr.decode(errors='replace')[-2000:]}")
        return out

    def plain(self, log):
        """A copy of the log that tlparse reads."""
        return decompress_log(log, self.folder)

    def logs_of(self, folder):
        return sorted(glob.glob(os.path.join(folder, "*.log")))

    def test_tlparse_reads_the_same_out_of_an_export_as_out_of_the_log(self):
        for log in logs():
            with self.subTest(log=log):
                (exported,) = self.logs_of(self.export(log))
                before, after = tree(self.tlparse(self.plain(log), strict=False)), tree(self.tlparse(exported))
                # tlparse drops records of a ranked log that lack the rank, and shows unknown ones by their md5.
                lost = [key for key in (before - after) if not key[0].startswith("payloads/")]
                self.assertEqual([name for name, _ in lost], [])

    def test_tlparse_takes_the_export_of_every_log_that_import_takes(self):
        taken = 0
        for log in sorted(glob.glob(os.path.join(LOGS, "malformed", "*.log"))):
            with self.subTest(log=os.path.basename(log)):
                trace = self.fresh() + ".strata"
                if self.run_strata("import", log, "-o", trace).returncode != 0:
                    continue
                taken += 1
                for exported in self.logs_of(self.export(trace)):
                    self.tlparse(exported)
        self.assertGreaterEqual(taken, 69)

    def test_damaged_logs_come_back_and_are_taken(self):
        odd = [b"../", b"\xff", b"\0", b"\r\n", b'"', b"{", b"}", b"NaN", b"-1", b"99999999999999999999", b"null", b"\\ud800", b"1.5", b"\t", b"\n", b"[]", b'"rank": 3, ']
        for seed in range(12):
            chance = random.Random(seed)
            lines = read_log(chance.choice((COMPILE, TRAINER))).split(b"\n")
            for _ in range(8):
                headers = [i for i, line in enumerate(lines) if line.startswith(b"V")]
                i = chance.choice(headers)
                at = chance.randrange(len(lines[i]))
                lines[i] = lines[i][:at] + chance.choice(odd) + lines[i][at + chance.randrange(3) :]
                lines.insert(chance.randrange(len(lines)), chance.choice(lines))
                del lines[chance.randrange(len(lines))]
            damaged = self.path(f"{seed}.log")
            with open(damaged, "wb") as file:
                file.write(b"\n".join(lines))
            with self.subTest(seed=seed):
                before, out = self.imported(damaged), self.export(damaged)
                for log in self.logs_of(out):
                    self.tlparse(log)
                told = [self.essence(trace) for trace in (before, self.imported(out))]
                self.assertEqual(told[0], told[1])

    def essence(self, trace):
        """What a trace says of each run, but for where it comes from."""
        crowds = ("records", "moments", "graph")  # lines with ranks, and texts that several runs share
        return [([(g["name"], g["fingerprint"]) for g in run["graphs"]],
                 [(p["name"], p["status"], p["before"], p["after"]) for p in run["passes"]],
                 [(a["name"], a["kind"], a["bytes"]) for a in run["artifacts"] if a["kind"] not in crowds])
                for run in self.runs(trace)]  # fmt: skip

    def test_graphs_of_tlparse_are_those_of_the_fx_export(self):
        for log in logs():
            with self.subTest(log=os.path.basename(log)):
                texts = set()
                for path in glob.glob(os.path.join(self.export(log, "--fx"), "**", "*.txt"), recursive=True):
                    with open(path, "rb") as file:
                        texts.add(without_id(file.read()))
                graph = re.compile(rb"^ *class .*\(torch\.nn\.Module\):\n+ *def forward\(", re.MULTILINE)
                shown = [(name, content) for name, content in tree(self.tlparse(self.plain(log), strict=False))
                         if graph.search(content) and not re.search(rb"^(import|from) ", content, re.MULTILINE)]  # fmt: skip
                self.assertTrue(shown)
                self.assertEqual([name for name, content in shown if without_id(content) not in texts], [])

    def test_tlparse_takes_what_opt_recorded(self):
        with open(self.path("step.txt"), "w", encoding="utf-8") as file:
            file.write(STEP)
        trace = self.path("opt.strata")
        done = self.run_strata("opt", "step.txt", "--passes", "dce,canonicalize", "-o", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        (log,) = self.logs_of(self.export(trace))
        names = {name for name, _ in tree(self.tlparse(log))}
        for wanted in ("-_0_0_0/step.txt", "-_0_0_0/before_dce.txt", "-_0_0_0/after_canonicalize.txt",
                       "-_-_-_-/strata_run.json"):  # fmt: skip
            self.assertIn(wanted, names)
        before, after = self.runs(trace)[0], self.runs(self.imported(log))[0]
        for key in ("before", "after"):
            self.assertEqual([p[key]["fingerprint"] for p in before["passes"]],
                             [p[key]["fingerprint"] for p in after["passes"]])  # fmt: skip
        self.assertEqual([p["name"] for p in after["passes"]], ["dce", "canonicalize"])

    def test_tlparse_takes_what_training_recorded(self):
        trace = self.path("train.strata")
        config = os.path.join(ROOT, "configs", "demo_llama3.toml")
        done = self.run_strata("train", config, "--set", "steps=1", "--trace", trace)
        if done.returncode != 0 and "LibTorch" in done.stderr:
            self.skipTest("built without LibTorch: nothing trains")
        self.assertEqual(done.returncode, 0, done.stderr)
        (log,) = self.logs_of(self.export(trace))
        names = {name for name, _ in tree(self.tlparse(log))}
        for wanted in ("executed_step.txt", "step.txt"):
            self.assertIn("-_0_0_0/" + wanted, names)
        self.assertIn("-_0_1_0/executed_optimizer.txt", names)
        before = {g["name"]: g["fingerprint"] for g in self.runs(trace)[0]["graphs"]}
        after = {g["name"]: g["fingerprint"] for g in self.runs(self.imported(log))[0]["graphs"]}
        self.assertEqual(before | after, after)

    def test_one_log_per_rank(self):
        for rank in (0, 1):
            with open(self.path(f"dedicated_log_torch_trace_rank_{rank}_x.log"), "w", encoding="utf-8") as file:
                # PyTorch writes records without a rank among those with one, which tlparse drops.
                file.write(record("traced", STEP, rank) + record("torch_version", "2.14"))
        out = self.export(self.folder)
        names = [os.path.basename(log) for log in self.logs_of(out)]
        self.assertEqual(names, [f"dedicated_log_torch_trace_rank_{rank}.log" for rank in (0, 1)])
        for log in self.logs_of(out):
            self.assertIn("-_0_0_0/torch_version.txt", {name for name, _ in tree(self.tlparse(log))})
        self.assertEqual([run["rank"] for run in self.runs(self.imported(out))], [0, 1])
        only = self.fresh()
        trace = self.imported(out)
        self.assertEqual(self.run_strata("export", trace + "#rank=1", "--torch-trace", only).returncode, 0)
        (log,) = self.logs_of(only)
        self.assertEqual(os.path.basename(log), "dedicated_log_torch_trace.log")
        self.assertEqual(self.runs(self.imported(log))[0]["rank"], 1)

    def test_tlparse_compares_ranks_of_an_export_as_those_of_the_logs(self):
        source = self.fresh()
        os.mkdir(source)
        for log in glob.glob(os.path.join(LOGS, "llama3_fsdp2_2ranks", "*")):
            decompress_log(log, source)
        trees = []
        for folder in (source, self.export(source)):
            out = self.tlparse(folder, strict=folder != source, options=["--all-ranks-html"])
            files = {}
            for parent, _, names in os.walk(out):
                for name in names:
                    with open(os.path.join(parent, name), "rb") as file:
                        files[os.path.relpath(os.path.join(parent, name), out)] = file.read()
            # Strings of stacks come first in an export.
            trees.append({name: content for name, content in files.items() if os.path.basename(name) != "raw.log"})
        self.assertEqual(sorted(trees[0]), sorted(trees[1]))
        self.assertEqual([name for name in trees[0] if trees[0][name] != trees[1][name]], [])

    def test_refs_of_the_index_name_the_graphs_of_the_files(self):
        text = os.path.join(DATA, "fx", "symbolic.txt")
        for source in (TRAINER, COMPILE, self.imported(COMPILE), text):
            with self.subTest(source=source):
                out = self.export(source, "--fx")
                with open(os.path.join(out, "index.json"), encoding="utf-8") as file:
                    index = json.load(file)
                self.assertEqual(index["schema"], "strata.export/1")
                entries = [(e["file"], e["ref"]) for e in index["files"]]
                self.assertTrue(entries)
                for entry in index["passes"]:
                    entries += [(entry["before"], entry["ref"] + ":before"), (entry["after"], entry["ref"] + ":after")]
                for file, ref in entries:
                    shown = self.run_strata("show", ref, "--format", "fx")
                    self.assertEqual(shown.returncode, 0, shown.stderr)
                    graph = self.run_strata("show", os.path.join(out, file), "--format", "fx")
                    self.assertEqual(graph.stdout, shown.stdout)
                for entry in index["files"]:
                    self.assertRegex(entry["file"], r"^1/\d{3}_[\w.-]+\.txt$")
                    (run,) = self.runs(self.imported(os.path.join(out, entry["file"])))
                    self.assertEqual([g["fingerprint"] for g in run["graphs"]], [entry["fingerprint"]])

    def test_hostile_names_stay_in_the_folder_and_come_back(self):
        names = ["../../up", "/etc/x", "a,graph=b#c%2C", "-rf", "x" * 300, "<img src=x onerror=alert(1)>", "..", "\u202eevil"]
        with open(self.path("hostile.log"), "w", encoding="utf-8") as file:
            file.write("".join(record(name, STEP.replace("3", str(i))) for i, name in enumerate(names)))
        os.mkdir(self.path("jail"))
        logs_out, fx_out = self.path("jail/logs"), self.path("jail/fx")
        done = self.run_strata("export", "hostile.log", "--torch-trace", logs_out, "--fx", fx_out)
        self.assertEqual(done.returncode, 0, done.stderr)
        (log,) = self.logs_of(logs_out)
        self.tlparse(log)
        self.assertEqual(sorted(os.listdir(self.path("jail"))), ["fx", "logs"])
        self.assertEqual(len(os.listdir(os.path.join(fx_out, "1"))), len(names))
        run = self.runs(self.imported(log))[0]
        self.assertEqual([graph["name"] for graph in run["graphs"]], names)
        with open(os.path.join(fx_out, "index.json"), encoding="utf-8") as file:
            for entry in json.load(file)["files"]:
                shown = self.run_strata("show", entry["ref"], "--format", "fx")
                self.assertEqual(shown.returncode, 0, shown.stderr)
                with open(os.path.join(fx_out, entry["file"]), encoding="utf-8") as text:
                    self.assertEqual(shown.stdout, text.read())

    def test_errors_say_what_to_do_and_leave_nothing(self):
        with open(self.path("file"), "w", encoding="utf-8") as file:
            file.write("hello\n")
        os.mkdir(self.path("full"))
        with open(self.path("full/x"), "w", encoding="utf-8") as file:
            file.write("x")
        before = sorted(os.listdir(self.folder))
        cases = [
            (["file", "--torch-trace", "new"], "nothing to import: file: it is neither a log of TORCH_TRACE nor an FX graph"),
            (["gone", "--torch-trace", "new"], "no such file: gone: check the path"),
            ([TRAINER, "--torch-trace", "file"], "not a folder: file: give the name of a new folder"),
            ([TRAINER, "--fx", "full"], "folder is not empty: full: give a new one, or remove what is in it"),
            ([TRAINER], "nothing to write: strata export: give --torch-trace DIR, --fx DIR or both"),
            ([TRAINER, "--fx", "a", "--torch-trace", "./a"], "one folder for two exports: a: give each its own"),
            ([TRAINER + "#rank=7", "--fx", "new"], f"no such run: {TRAINER}#rank=7: it has run=1,rank=0"),
            ([TRAINER + "#pass=1", "--fx", "new"], "a pass cannot be exported: "),
            ([TRAINER + "#graph=make_fx", "--fx", "new"], "no graph 'make_fx': "),
        ]  # fmt: skip
        for words, message in cases:
            with self.subTest(words=words):
                done = self.run_strata("export", *words)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith("strata: error: " + message), done.stderr)
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_an_empty_folder_is_filled_and_bytes_are_the_same_each_time(self):
        os.mkdir(self.path("empty"))
        self.assertEqual(self.run_strata("export", TRAINER, "--torch-trace", "empty").returncode, 0)
        self.assertEqual(os.listdir(self.path("empty")), ["dedicated_log_torch_trace.log"])
        (again,) = self.logs_of(self.export(TRAINER))
        with open(again, "rb") as a, open(self.path("empty/dedicated_log_torch_trace.log"), "rb") as b:
            self.assertEqual(a.read(), b.read())


if __name__ == "__main__":
    ExportTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
