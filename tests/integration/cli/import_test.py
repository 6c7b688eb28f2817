"""`strata import` as scripts use it: what a trace holds of a log, exit codes, errors.

    import_test.py STRATA [--verdicts]

With --verdicts: writes tests/data/logs/malformed_verdicts.tsv anew.
"""

import glob
import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import ROOT, decompress_log, read_log  # noqa: E402

DATA = os.path.join(ROOT, "tests", "data")
TRAINER = os.path.join(DATA, "logs", "trainer_torch2.11.log.zst")
COMPILE = os.path.join(DATA, "logs", "compile_torch2.11.log.zst")
GRAPH_TRAINER = os.path.join(DATA, "logs", "graph_trainer_2layer_torch2.14.1.log.zst")
MALFORMED = os.path.join(DATA, "logs", "malformed")
VERDICTS = os.path.join(DATA, "logs", "malformed_verdicts.tsv")

GRAPH = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2][1]cpu"):
        y = {}
        return (y,)
'''


def record(name, payload, **context):
    envelope = {"artifact": {"name": name, "encoding": "string"}, **context,
                "has_payload": hashlib.md5(payload.encode()).hexdigest()}  # fmt: skip
    lines = "".join(f"\t{line}\n" for line in payload.split("\n"))
    return f"V1120 18:28:13.658000 9595 torch/x.py:10] {json.dumps(envelope)}\n{lines}"


def payloads(log):
    """The payloads of artifacts by name; of equal names the last."""
    found, lines = {}, None
    for line in read_log(log).decode().split("\n"):
        header = re.match(r"V\d{4} \S+ \d+ [^:]+:\d+\] (\{.*)", line)
        if header:
            name = json.loads(header.group(1)).get("artifact", {}).get("name")
            lines = found[name] = []
        elif line.startswith("\t"):
            lines.append(line[1:])
    return {name: "\n".join(lines) for name, lines in found.items()}


class ImportTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out")
        os.mkdir(self.out)
        self.trace = os.path.join(self.out, "t.strata")

    def run_strata(self, *words):
        return subprocess.run([self.strata, *words], capture_output=True, text=True, check=False)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        return path

    def succeeds(self, *words):
        done = self.run_strata(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, expected, *words, warnings=0):
        done = self.run_strata(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        errors = done.stderr.replace(self.folder, "{dir}").split("\n", warnings)[-1]
        self.assertEqual(errors, f"strata: error: {expected}\n")
        self.assertEqual(os.listdir(self.out), [])

    def listing(self):
        return json.loads(self.succeeds("ls", self.trace, "--json").stdout)["runs"]

    def test_a_log_gives_a_run_with_its_passes(self):
        done = self.succeeds("import", TRAINER, "-o", self.trace)
        self.assertEqual(done.stdout, "")
        (run,) = self.listing()
        self.assertEqual((run["kind"], run["rank"], run["source"]), ("import", 0, TRAINER))
        self.assertEqual([graph["name"] for graph in run["graphs"]], ["make_fx_graph_traced"])
        self.assertEqual(
            [(p["index"], p["name"], p["status"]) for p in run["passes"]],
            [(0, "eliminate_dead_code_pass", "unchanged"), (1, "remove_detach_pass", "ok"),
             (2, "fold_transposes_pass", "ok"), (3, "normalize_view_ops_as_reshape", "ok")])  # fmt: skip
        for before, after in zip(run["passes"], run["passes"][1:]):
            self.assertEqual(before["after"], after["before"])
        for p in run["passes"]:
            added = p["counts"]["inserted"] - p["counts"]["deleted"]
            self.assertEqual(p["before"]["nodes"] + added, p["after"]["nodes"])
        self.assertEqual(self.succeeds("check", self.trace).returncode, 0)

    def test_a_trace_gives_the_texts_of_the_log_back(self):
        for log in (TRAINER, GRAPH_TRAINER):
            self.succeeds("import", log, "-o", self.trace)
            texts = payloads(log)
            for p in self.listing()[0]["passes"]:
                for moment in ("before", "after"):
                    for source in (self.trace, log):
                        ref = f"{source}#pass={p['index']}:{moment}"
                        shown = self.succeeds("show", ref, "--format", "fx").stdout
                        self.assertEqual(shown, texts[f"{moment}_{p['name']}"], ref)

    def test_the_same_log_gives_the_same_trace(self):
        again = os.path.join(self.out, "again.strata")
        bytes_of = []
        for trace in (self.trace, again):
            self.succeeds("import", COMPILE, "-o", trace)
            os.rename(trace, self.trace)
            bytes_of.append(self.succeeds("ls", self.trace, "--json").stdout)
        self.assertEqual(bytes_of[0].replace("t.strata", ""), bytes_of[1].replace("again.strata", "").replace("t.strata", ""))

    def test_ranks_of_a_folder_become_runs(self):
        for rank in (1, 0):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_x.log", record("g", GRAPH.format(f"x + {rank}"), rank=rank))
        self.succeeds("import", os.path.join(self.folder, "logs"), "-o", self.trace)
        self.assertEqual([run["rank"] for run in self.listing()], [0, 1])
        difference = self.run_strata("diff", f"{self.trace}#rank=0", f"{self.trace}#rank=1")
        self.assertEqual(difference.returncode, 1, difference.stderr)

    def test_a_rank_that_its_file_does_not_name_is_in_order_too(self):
        self.write("logs/dedicated_log_torch_trace_a.log",
                   record("early", GRAPH.format("x + 1")) + record("g", GRAPH.format("x + 2"), rank=1))  # fmt: skip
        for rank in (0, 2):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_x.log", record("g", GRAPH.format("-x"), rank=rank))
        self.succeeds("import", os.path.join(self.folder, "logs"), "-o", self.trace)
        self.assertEqual([run["rank"] for run in self.listing()], [0, 1, 2])

    def test_a_rank_that_logged_nothing_is_passed_over(self):
        for name in ("a", "b"):
            self.write(f"logs/{name}.log", "")
        folder = os.path.join(self.folder, "logs")
        self.fails("nothing to import: {dir}/logs: its logs hold no records",
                   "import", folder, "-o", self.trace, warnings=2)  # fmt: skip
        self.write("logs/c.log", record("g", GRAPH.format("x + 1")))
        done = self.succeeds("import", folder, "-o", self.trace)
        self.assertEqual(done.stderr.splitlines()[0], f"strata: warning: {folder}/a.log: nothing in it")
        self.assertEqual(len(self.listing()), 1)

    def test_what_went_wrong_in_compilations_is_said(self):
        def metrics(frame, compilation, **values):
            at = {"frame_id": frame, "frame_compile_id": compilation, "attempt": 0}
            return f"V1120 18:28:13.658000 9595 torch/x.py:10] {json.dumps({'compilation_metrics': values, **at})}\n"

        self.write("a.log", record("g", GRAPH.format("x")) +
                   metrics(0, 0, co_name="f", fail_type=None, recompile_reason=None, restart_reasons=[
                       "Failed to trace builtin operator\n  Hint\n\nFor more details about this graph break, please visit"]) +
                   metrics(0, 1, co_name="f", fail_type=None, restart_reasons=[],
                           recompile_reason="0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4") +
                   metrics(1, 0, co_name="g", fail_type="BackendCompilerFailed", restart_reasons=None,
                           fail_reason="backend='bad' raised:\nRuntimeError: it is broken"))
        done = self.run_strata("import", self.folder + "/a.log", "-o", self.trace)
        self.assertIn(": 1 compilation failed, 1 recompilation, 1 graph break: 'strata ls' lists them\n", done.stderr)
        listed = re.sub(" +", " ", self.run_strata("ls", self.trace).stdout)
        for line in ("[0/0] graph break f Failed to trace builtin operator",
                     "[0/1] recompiled f tensor 'x' size mismatch at index 0. expected 3, actual 4",
                     "[1/0] failed g BackendCompilerFailed: backend='bad' raised: RuntimeError: it is broken"):
            self.assertIn(line, listed)
        events = self.listing()[0]["compile_events"]
        self.assertEqual([event["what"] for event in events], ["graph break", "recompiled", "failed"])

    def test_a_graph_break_without_a_restart_is_said(self):
        """Dynamo goes on behind a branch on data, and logs no reason for a restart."""
        at = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        restarted = {"frame_id": 1, "frame_compile_id": 0, "attempt": 1}
        reason = ("Graph break in user code at /home/me/model.py:4\nGraph Break Reason: Data-dependent branching\n"
                  "  Explanation: ...")
        metrics = "V1120 18:28:13.658000 9595 torch/x.py:10] " + json.dumps({"compilation_metrics": {"co_name": "f"}, **at})
        again = "V1120 18:28:13.658000 9595 torch/x.py:10] " + json.dumps(
            {"compilation_metrics": {"co_name": "g", "restart_reasons": ["A graph break"]}, **restarted})
        self.write("a.log", record("dynamo_graph_break_reason", reason, **at) + record("g", GRAPH.format("x")) +
                   metrics + "\n" + record("dynamo_graph_break_reason", reason, **{**restarted, "attempt": 0}) + again + "\n")
        done = self.run_strata("import", self.folder + "/a.log", "-o", self.trace)
        self.assertIn(": 2 graph breaks: 'strata ls' lists them\n", done.stderr)
        listed = re.sub(" +", " ", self.run_strata("ls", self.trace).stdout)
        self.assertIn("[0/0] graph break f Data-dependent branching (model.py:4)", listed)
        self.assertIn("[1/0_1] graph break g A graph break", listed)

    def test_output_of_torch_logs(self):
        def lines(title, tag, text, at="[1/0] "):
            head = f"V1122 09:21:42.497000 12524 torch/_dynamo/x.py:2417] {at}[{tag}] "
            content = f"TRACED GRAPH\n ===== {title} =====\n /a b/_lazy_graph_module.py {text}\n\n"
            return "".join(head + line + "\n" for line in content.split("\n"))

        text = ("step 1\n" + lines("__compiled_fn_1_12a9", "__graph_code", GRAPH.format("x + 1")) +
                "I1122 09:21:46.094000 12524 torch/x.py:1648] [1/0] [__aot_graphs] aot_config id: 0, {}\n" +
                lines("Forward graph 0", "__aot_graphs", GRAPH.format("torch.ops.aten.add.Tensor(x, 1)")) +
                lines("BEFORE POST GRAD", "__post_grad_graphs", GRAPH.format("torch.ops.aten.add.Tensor(x, 1)")) +
                lines("AFTER POST GRAD", "__post_grad_graphs", GRAPH.format("torch.ops.aten.sub.Tensor(x, -1)")) +
                "loss 0.5\n")
        bare = re.sub(r"(?m)^V1122 .*?\[__\w+\] ", "", text)
        forms = {
            "plain": text,
            "crlf": text.replace("\n", "\r\n"),
            "rank": re.sub("(?m)^(?=[VI])", "[rank0]:", text),
            "colours": text.replace("aten.add", "\x1b[36maten\x1b[0m.add"),
            "quoted": "".join(f"> {line}\n" for line in text.split("\n")),
            "bare": bare,
            "fenced": "Here is the log:\n```\n" + bare + "```\nThanks\n",
        }
        for form, content in forms.items():
            with self.subTest(form):
                log = self.write(f"{form}.txt", content)
                self.trace = os.path.join(self.folder, f"{form}.strata")
                self.succeeds("import", log, "-o", self.trace)
                (run,) = self.listing()
                self.assertEqual([graph["name"] for graph in run["graphs"]], ["dynamo_output_graph", "aot_forward_graph"])
                self.assertEqual([(p["name"], p["counts"]["changed"]) for p in run["passes"]], [("post_grad_graph", 1)])
                shown = self.succeeds("show", f"{log}#pass=post_grad_graph:after", "--format", "fx").stdout
                self.assertIn("aten.sub.Tensor(x, -1)", shown)
                self.assertEqual(self.run_strata("bisect", log, self.trace).returncode, 0)

    def test_compressed_logs(self):
        log = read_log(TRAINER)
        path = os.path.join(self.folder, "a.log.gz")
        half = len(log) // 2
        with open(path, "wb") as stream:
            stream.write(gzip.compress(log[:half]) + gzip.compress(log[half:]))
        self.succeeds("import", path, "-o", self.trace)
        self.assertEqual(len(self.listing()[0]["passes"]), 4)
        ref = "#pass=0:before"
        self.assertEqual(self.succeeds("show", path + ref).stdout, self.succeeds("show", TRAINER + ref).stdout)
        os.remove(self.trace)
        with open(path, "wb") as stream:
            stream.write(gzip.compress(log)[:-20])
        self.fails("damaged: {dir}/a.log.gz: the compressed data is cut or changed", "import", path, "-o", self.trace)

    def test_an_fx_text_is_a_run_of_one_graph(self):
        text = self.write("step.txt", GRAPH.format("x + 1"))
        self.succeeds("import", text, "-o", self.trace)
        (run,) = self.listing()
        self.assertEqual([(g["name"], g["nodes"]) for g in run["graphs"]], [("step", 3)])

    def test_damage_is_warned_of_and_strictly_an_error(self):
        log = self.write("a.log", "hello\n" + record("g", GRAPH.format("f(x, y")) + record("h", GRAPH.format("x + 1")))
        done = self.succeeds("import", log, "-o", self.trace)
        self.assertEqual(
            done.stderr.replace(self.folder, "{dir}").splitlines()[:2],
            ["strata: warning: {dir}/a.log:1: not a record of a trace: the line is passed over",
             "strata: warning: {dir}/a.log:5:19: unknown name: passed over 'y = f(x, y' (g)"])  # fmt: skip
        self.assertEqual([g["name"] for g in self.listing()[0]["graphs"]], ["g", "h"])
        os.remove(self.trace)
        self.fails("{dir}/a.log:1: not a record of a trace: the line is passed over", "import", log, "-o", self.trace, "--strict")
        log = self.write("a.log", record("g", GRAPH.format("f(x, y")))
        self.fails("{dir}/a.log:4:19: unknown name\n          y = f(x, y\n                   ^",
                   "import", log, "-o", self.trace, "--strict")  # fmt: skip

    def test_bad_input(self):
        nothing = self.write("empty/readme.md", "no log")
        self.fails("no such file: {dir}/no.log: check the path", "import", os.path.join(self.folder, "no.log"), "-o", self.trace)
        self.fails("no logs: {dir}/empty: the folder has no file '*.log'",
                   "import", os.path.dirname(nothing), "-o", self.trace)  # fmt: skip
        what = "nothing to import: {dir}/%s: it is neither a log of TORCH_TRACE nor an FX graph"
        self.fails(what % "empty/readme.md", "import", nothing, "-o", self.trace)
        self.fails(what % "zero.log", "import", self.write("zero.log", ""), "-o", self.trace)
        self.fails("cannot write: {dir}/no/t.strata: no folder '{dir}/no', create it first",
                   "import", TRAINER, "-o", os.path.join(self.folder, "no", "t.strata"))  # fmt: skip
        self.fails("missing option --output: strata import: see 'strata import --help'", "import", TRAINER)
        self.fails("missing argument LOG: strata import: see 'strata import --help'", "import", "-o", self.trace)

    def test_names_cannot_command_a_terminal(self):
        name = "red\x1b[31m\u202etxt\nline"
        texts = record(f"before_{name}", GRAPH.format("x + 1")) + record(f"after_{name}", GRAPH.format("x + 2"))
        log = self.write("evil.log", texts)
        self.succeeds("import", log, "-o", self.trace)
        self.assertEqual(self.listing()[0]["passes"][0]["name"], name)
        ref = f"{self.trace}#graph={name}"
        for words in (["ls", self.trace], ["check", self.trace], ["ranks", self.trace], ["bisect", self.trace, log], ["blame", ref, "y"],
                      ["diff", f"{ref},pass=0:before", ref], ["blame", ref, "z\x1b"], ["show", f"{self.trace}#graph={name}s"],
                      ["show", f"{self.trace}s{name}"], [name], ["ls", f"--{name}"]):  # fmt: skip
            done = self.run_strata(*words)
            for said in (done.stdout, done.stderr):
                self.assertNotRegex(said, "[\x1b\u202e]", words)
            self.assertNotIn("txt\nline", done.stdout, words)

    def test_refs_into_logs(self):
        self.fails(f"no pass 'cse': {TRAINER}: the log has eliminate_dead_code_pass, remove_detach_pass, fold_transposes_pass, "
                   "normalize_view_ops_as_reshape", "show", f"{TRAINER}#pass=cse")  # fmt: skip
        self.fails(f"no graph 'make_fx_graph_trace': {TRAINER}: the log has make_fx_graph_traced, did you mean "
                   "'make_fx_graph_traced'", "show", f"{TRAINER}#graph=make_fx_graph_trace")  # fmt: skip
        several = self.run_strata("show", COMPILE)
        self.assertEqual(several.returncode, 2)
        self.assertIn(f"strata: error: REF names several graphs: {COMPILE}: say which one:\n", several.stderr)
        for line in several.stderr.splitlines()[1:]:
            self.succeeds("show", line.strip(), "--format", "fx")

    def test_malformed_logs(self):
        # Verdicts beside those of tlparse 0.4.3. All that it accepts is accepted, what kills it is survived, and nothing
        # is written but the trace.
        with open(VERDICTS, encoding="utf-8") as stream:
            expected = stream.read()
        self.assertEqual(verdicts(self.strata), expected)
        for line in expected.splitlines()[1:]:
            case, code, strict, _, _, _, tlparse, tlparse_strict = line.split("\t")
            if tlparse_strict == "0" and case not in ("empty_file",):
                self.assertEqual((code, strict), ("0", "0"), case)
            if tlparse == "0" and case not in ("empty_file", "json_array"):
                self.assertEqual(code, "0", case)

    def test_standard_input(self):
        for log in (TRAINER, decompress_log(TRAINER, self.folder)):
            with open(log, "rb") as stream:
                done = subprocess.run([self.strata, "import", "-", "-o", self.trace], stdin=stream, capture_output=True,
                                      check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            (run,) = self.listing()
            self.assertEqual((run["source"], len(run["passes"])), ("standard input", 4))

    def test_folder_of_fx_texts(self):
        for name in ("b", "a"):
            self.write(f"texts/{name}.txt", GRAPH.format("x + 1"))
        self.succeeds("import", os.path.join(self.folder, "texts"), "-o", self.trace)
        self.assertEqual([g["name"] for run in self.listing() for g in run["graphs"]], ["a", "b"])

    def test_ranks_are_in_order_of_numbers(self):
        for rank in (10, 9, 0):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_x.log", record("g", GRAPH.format("x + 1")))
        self.succeeds("import", os.path.join(self.folder, "logs"), "-o", self.trace)
        self.assertEqual([run["rank"] for run in self.listing()], [0, 9, 10])

    def test_output_of_tlparse(self):
        tlparse = os.path.join(ROOT, ".venv", "bin", "tlparse")
        if not os.path.exists(tlparse):
            self.skipTest("tlparse is not installed")
        folder = os.path.join(self.folder, "tl_out")
        subprocess.run([tlparse, decompress_log(COMPILE, self.folder), "--no-browser", "-o", folder], check=True, capture_output=True)
        def graphs():
            (run,) = self.listing()
            return [(g["name"], g["fingerprint"]) for g in run["graphs"]], [(p["name"], p["graph"]) for p in run["passes"]]
        self.succeeds("import", COMPILE, "-o", self.trace)
        expected = graphs()
        for gone in (None, "raw.log", "raw.jsonl"):
            if gone:
                os.remove(os.path.join(folder, gone))
            self.succeeds("import", folder, "-o", self.trace)
            self.assertEqual(graphs(), expected, gone)

    def test_following_a_live_run(self):
        log = os.path.join(self.folder, "live.log")
        command = [self.strata, "import", log, "--follow", "-o", self.trace]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as follower:
            for number in range(5):
                text = record("before_p", GRAPH.format(f"x + {number}")) + record("after_p", GRAPH.format(f"x + {number + 1}"))
                with open(log, "a", encoding="utf-8") as stream:
                    stream.write(text[:100])
                    stream.flush()
                    stream.write(text[100:])
                self.wait_for(lambda count=number + 1: len(self.listing()[0]["passes"]) == count)
            self.assertIn("running", self.succeeds("ls", self.trace).stdout)
            second = self.run_strata("import", log, "-o", self.trace)
            self.assertIn("it is being written already", second.stderr)
            self.assertEqual(second.returncode, 2)
            follower.send_signal(signal.SIGINT)
            stderr = follower.communicate(timeout=60)[1]
        self.assertEqual(follower.returncode, 0, stderr)
        self.assertIn("finished", self.succeeds("ls", self.trace).stdout)
        self.assertEqual(self.succeeds("check", self.trace).returncode, 0)
        self.assertEqual(os.listdir(self.out), ["t.strata"])
        done = self.succeeds("import", log, "--follow", "--idle", "0.3", "-o", self.trace)
        self.assertIn("5 passes", done.stderr)

    def wait_for(self, condition):
        end = time.monotonic() + 60
        while True:
            try:
                if condition():
                    return
            except (AssertionError, IndexError):
                pass  # the trace or its run is not there yet
            self.assertLess(time.monotonic(), end, "nothing came")
            time.sleep(0.05)


def verdicts(strata):
    """A line per malformed log: exit codes, what was read, and what tlparse said."""
    with open(os.path.join(MALFORMED, "tlparse_0.4.3_results.tsv"), encoding="utf-8") as stream:
        theirs = {words[0]: words[1:3] for words in (line.split("\t") for line in stream)}
    lines = ["case\tcode\tstrict\trecords\tgraphs\twarnings\ttlparse\ttlparse_strict"]
    with tempfile.TemporaryDirectory() as folder:
        for log in sorted(glob.glob(os.path.join(MALFORMED, "*.log"))):
            words = [strata, "import", log, "-o", "t.strata"]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
            if os.listdir(folder) != (["t.strata"] if done.returncode == 0 else []):
                raise AssertionError(f"{log}: left {os.listdir(folder)}")
            summary = re.search(r"(\d+) records, (\d+) graphs", done.stderr)
            read = summary.groups() if summary else ("0", "0")
            if done.returncode == 0:
                check = subprocess.run([strata, "check", "t.strata"], cwd=folder, capture_output=True, check=False)
                if check.returncode != 0:
                    raise AssertionError(f"{log}: {check.stdout}")
                os.remove(os.path.join(folder, "t.strata"))
            strict = subprocess.run([*words, "--strict"], cwd=folder, capture_output=True, check=False)
            if strict.returncode == 0:
                os.remove(os.path.join(folder, "t.strata"))
            case = os.path.basename(log).removesuffix(".log")
            lines.append("\t".join([case, str(done.returncode), str(strict.returncode), *read,
                                    str(done.stderr.count("warning: ")), *theirs.get(case, ["-", "-"])]))  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    ImportTest.strata = os.path.abspath(sys.argv.pop(1))
    if sys.argv[1:] == ["--verdicts"]:
        with open(VERDICTS, "w", encoding="utf-8") as table:
            table.write(verdicts(ImportTest.strata))
        sys.exit(0)
    unittest.main()
