"""`strata diff` as scripts use it: exit codes, JSON, errors.

    diff_test.py STRATA
"""

import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from small_graphs import AFTER, BEFORE, NATIVE  # noqa: E402
from strata_case import LOGS, ROOT, StrataCase, main, read_log  # noqa: E402


class DiffTest(StrataCase):
    def setUp(self):
        super().setUp()
        self.write("before.txt", BEFORE)
        self.write("after.txt", AFTER)
        self.write("native.txt", NATIVE)

    def diff(self, *arguments):
        done = self.run_strata("diff", *arguments, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_exit_codes(self):
        self.assertEqual(self.run_strata("diff", "before.txt", "before.txt").returncode, 0)
        self.assertEqual(self.run_strata("diff", "before.txt", "after.txt").returncode, 1)
        self.assertEqual(self.run_strata("diff", "before.txt", "missing.txt").returncode, 2)

    def test_only_renamed_is_no_difference(self):
        renamed = re.sub(r"\bmm\b(?!\.)", "mm_7", BEFORE).replace("detach:", "detach_1:").replace(
            "Tensor(detach,", "Tensor(detach_1,").replace("detach = None", "detach_1 = None")
        self.write("renamed.txt", renamed)
        code, diff = self.diff("before.txt", "renamed.txt")
        self.assertEqual(code, 0)
        self.assertEqual(diff["summary"]["renamed"], 2)
        self.assertEqual({pair["status"] for pair in diff["pairs"]}, {"same", "renamed"})

    def test_json(self):
        code, diff = self.diff("before.txt", "after.txt")
        self.assertEqual(code, 1)
        self.assertEqual(list(diff), ["schema", "before", "after", "summary", "pairs", "inserted",
                                      "deleted", "relations", "patterns"])
        self.assertEqual(diff["schema"], "strata.diff/1")
        self.assertEqual((diff["before"]["ref"], diff["before"]["nodes"]), ("before.txt", 19))
        self.assertEqual((diff["after"]["ref"], diff["after"]["nodes"]), ("after.txt", 18))
        self.assertRegex(diff["before"]["fingerprint"], r"^[0-9a-f]{32}$")
        self.assertEqual(diff["summary"], {
            "same": 14, "renamed": 3, "moved": 0, "changed": 3, "derived": 0, "inserted": 0,
            "deleted": 1, "replaced": 0, "cloned": 0, "merged": 0, "became_input": 0,
            "became_compute": 0})
        self.assertEqual(diff["deleted"], ["detach"])
        self.assertEqual(diff["inserted"], [])
        pairs = {pair["before"]: pair for pair in diff["pairs"]}
        self.assertEqual([pair["before"] for pair in diff["pairs"]], [
            "l_x_", "l_w_", "mm", "split", "getitem", "getitem_1", "view", "true_graph_0",
            "false_graph_0", "cond", "getitem_2", "output", "true_graph_0/arg0_1",
            "true_graph_0/sin", "true_graph_0/output", "false_graph_0/arg0_1", "false_graph_0/cos",
            "false_graph_0/output"])
        self.assertEqual(list(pairs["mm"]),
                         ["before", "after", "status", "confidence", "via", "fields"])
        self.assertEqual((pairs["mm"]["after"], pairs["mm"]["status"]), ("mm_1", "renamed"))
        self.assertEqual(pairs["split"]["status"], "changed")
        self.assertEqual(pairs["split"]["fields"], [
            {"path": "operands[0]", "before": "detach", "after": "mm_1", "derived": False}])
        self.assertEqual(pairs["view"]["status"], "renamed+changed")
        self.assertEqual(pairs["view"]["fields"], [
            {"path": "target", "before": "aten.view.default", "after": "aten.reshape.default",
             "derived": False}])
        self.assertEqual(pairs["false_graph_0/cos"]["after"], "false_graph_0/tan")

    def test_every_node_occurs_once(self):
        _, diff = self.diff("before.txt", "after.txt")
        befores = [pair["before"] for pair in diff["pairs"]] + diff["deleted"]
        afters = [pair["after"] for pair in diff["pairs"]] + diff["inserted"]
        self.assertEqual((len(befores), len(set(befores))), (19, 19))
        self.assertEqual((len(afters), len(set(afters))), (18, 18))

    def test_same_input_same_bytes(self):
        first, second = (self.run_strata("diff", "before.txt", "after.txt", "--format", "json")
                         for _ in range(2))
        self.assertEqual(first.stdout, second.stdout)

    def test_metadata_is_compared_on_request_and_changes_nothing(self):
        self.write("other_line.txt", BEFORE.replace("m.py:3", "m.py:30"))
        code, diff = self.diff("before.txt", "other_line.txt", "--meta")
        self.assertEqual(code, 0)
        fields = {pair["before"]: pair["fields"] for pair in diff["pairs"] if pair["fields"]}
        self.assertTrue(all(field["path"].startswith("meta.") for list_ in fields.values()
                            for field in list_))
        self.assertIn({"path": "meta.location", "before": "m.py:3", "after": "m.py:30",
                       "derived": False}, fields["mm"])
        _, plain = self.diff("before.txt", "other_line.txt")
        self.assertEqual([pair for pair in plain["pairs"] if pair["fields"]], [])

    def test_text(self):
        done = self.run_strata("diff", "before.txt", "after.txt")
        self.assertIn("3 changed · 1 deleted · 3 renamed · 14 same", done.stdout)
        self.assertIn("- detach = aten.detach.default(mm)", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_colours(self):
        plain = self.run_strata("diff", "before.txt", "after.txt").stdout
        coloured = self.run_strata("diff", "before.txt", "after.txt", "--color", "always").stdout
        self.assertIn("\x1b[38;5;166m- detach", coloured)
        self.assertEqual(re.sub(r"\x1b\[[0-9;]*m", "", coloured), plain)
        self.assertEqual(self.run_strata("diff", "before.txt", "after.txt", "--color", "never").stdout,
                         plain)

    def test_policy(self):
        self.write("all.toml", "[limit]\ndeleted = 1\n")
        done = self.run_strata("diff", "before.txt", "after.txt", "--policy", "all.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("policy  all.toml  allows it", done.stdout)
        self.write("none.toml", '[[forbid]]\nwhy = "no"\ntargets = "aten.tan.*"\n')
        done = self.run_strata("diff", "before.txt", "after.txt", "--policy", "none.toml", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["policy"], {
            "file": "none.toml", "allowed": False, "violations": [
                {"what": "changed false_graph_0/cos -> false_graph_0/tan (aten.tan.default): target",
                 "rule": "forbidden by none.toml:1: no", "before": "false_graph_0/cos",
                 "after": "false_graph_0/tan"}]})
        self.write("wrong.toml", "[forbid]\nstatus = 'moved'\n")
        self.assertEqual(
            self.fails("diff", "before.txt", "after.txt", "--policy", "wrong.toml"),
            "wrong.toml:2:1: unknown key 'status' in [[forbid]], did you mean 'statuses'; it has why, "
            "statuses, kinds, targets, modules, fields, patterns, nodes\n"
            "  status = 'moved'\n  ^")

    def test_markdown(self):
        done = self.run_strata("diff", "before.txt", "after.txt", "--format", "md",
                               "--link", "https://ci.example/report.html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stdout.startswith(
            "### Graph diff: 3 changed · 1 deleted · 3 renamed · 14 same\n"))
        self.assertIn("[Open the whole report](<https://ci.example/report.html>)", done.stdout)
        self.assertIn("- detach = aten.detach.default(mm)", done.stdout)
        self.assertIn("--link", self.fails("diff", "before.txt", "after.txt", "--format", "md",
                                           "--link", "javascript:alert(1)"))

    def test_side_by_side(self):
        done = self.run_strata("diff", "before.txt", "after.txt", "--side-by-side", "--width", "100")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("detach = aten.detach.default(mm)                 -\n", done.stdout)
        self.assertIn("view = aten.view.default(getitem, [16])          ~ reshape = ", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        wide = self.run_strata("diff", "before.txt", "after.txt", "--side-by-side", COLUMNS="300")
        self.assertGreater(max(map(len, wide.stdout.splitlines())), 150)

    def test_the_script_of_the_recipe(self):
        script = os.path.join(ROOT, "docs", "examples", "graph-review", "compare.sh")
        self.write("none.toml", "[limit]\ndeleted = 0\n")
        self.write("all.toml", "[limit]\ndeleted = 1\n")
        path = os.path.dirname(self.strata) + os.pathsep + os.environ["PATH"]
        for policy, status in (("all.toml", 0), ("none.toml", 1), ("missing.toml", 2)):
            done = subprocess.run(
                ["sh", script, "before.txt", "after.txt", policy, "out", "https://ci.example/1"],
                cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            with open(os.path.join(self.folder, "out", "comment.md"), encoding="utf-8") as file:
                comment = file.read()
            self.assertEqual("could not be compared" in comment, status == 2)
        self.assertEqual(self.run_strata("patch", "before.txt", "out/change.patch").returncode, 0)

    def test_whole_runs(self):
        """All graphs of two logs by one policy, with one exit status."""
        log = read_log(os.path.join(LOGS, "llama3_compile_torch2.11.log.zst")).decode()
        self.write("base/a.log", log)
        self.write("head/a.log", log.replace("torch.ops.aten.rsqrt.default(", "torch.ops.aten.sqrt.default("))
        self.write("none.toml", "[limit]\ntouched = 0\n")
        self.write("all.toml", "[limit]\ntouched = 1000\n")
        same = self.run_strata("diff", "base", "base")
        self.assertEqual(same.returncode, 0, same.stderr)
        total = re.match(r"(\d+) of (\d+) graphs are equal\n$", same.stdout)
        self.assertEqual(total[1], total[2])
        done = self.run_strata("diff", "base/a.log", "head/a.log", "--policy", "none.toml")
        self.assertEqual(done.returncode, 1, done.stderr)
        head, *lines = done.stdout.split("\n")
        found = re.match(r"(\d+) of (\d+) graphs are equal; (\d+) do not pass$", head)
        self.assertEqual(int(found[1]) + int(found[3]), int(total[2]))
        self.assertIn("  graph 'aot_joint_graph' [0/0]: differs, 1 violation of the policy", lines)
        self.assertIn("aten.sqrt.default", done.stdout)
        allowed = self.run_strata("diff", "base", "head", "--policy", "all.toml", "--json")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        report = json.loads(allowed.stdout)
        self.assertEqual(report["schema"], "strata.diff-runs/1")
        differing = [graph for graph in report["graphs"] if not graph["equal"]]
        self.assertEqual(len(differing), int(found[3]))
        self.assertTrue(all(graph["passes"] for graph in report["graphs"]))
        self.assertTrue(all(graph["diff"]["schema"] == "strata.diff/1" for graph in differing))
        comment = self.run_strata("diff", "base", "head", "--policy", "none.toml", "--format", "md")
        self.assertEqual(comment.returncode, 1)
        self.assertTrue(comment.stdout.startswith("### Graphs of two runs: "))
        self.assertIn("- `graph 'aot_joint_graph' [0/0]`: differs, 1 violation of the policy\n", comment.stdout)
        self.assertLessEqual(len(comment.stdout.encode()), 65536)
        html = self.run_strata("diff", "base", "head", "--format", "html")
        self.assertEqual(html.returncode, 1)
        self.assertIn("<html", html.stdout)

    def test_a_page_of_several_ranks_shows_the_first_that_differs(self):
        log = read_log(os.path.join(LOGS, "llama3_compile_torch2.11.log.zst")).decode()
        changed = log.replace("torch.ops.aten.rsqrt.default(", "torch.ops.aten.sqrt.default(")
        for side, rank, text in (("base", 0, log), ("base", 1, log), ("head", 0, log), ("head", 1, changed)):
            self.write(f"{side}/dedicated_log_torch_trace_rank_{rank}_x.log", text)
        done = self.run_strata("diff", "base", "head", "--format", "html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the page shows rank 1 of several: name another one by #rank=R", done.stderr)
        one = self.run_strata("diff", "base#rank=1", "head#rank=1", "--format", "html")
        self.assertEqual(done.stdout, one.stdout)

    def test_a_graph_that_one_run_lacks_does_not_pass(self):
        log = read_log(os.path.join(LOGS, "llama3_compile_torch2.11.log.zst")).decode()
        self.write("base/a.log", log)
        self.write("head/a.log", log.replace('"aot_joint_graph": {}', '"another_graph": {}'))
        self.write("all.toml", "[limit]\ntouched = 1000\n")
        done = self.run_strata("diff", "base", "head", "--policy", "all.toml")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("  graph 'aot_joint_graph' [0/0]: only before\n", done.stdout)
        self.assertIn("leave out --pins, --patch", self.fails("diff", "base", "head", "--patch", "p"))

    def test_html(self):
        done = self.run_strata("diff", "before.txt", "after.txt", "--format", "html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stdout.startswith("<!"), done.stdout[:80])
        self.assertIn("before.txt → after.txt", done.stdout)

    def test_standard_input(self):
        done = self.run_strata("diff", "-", "before.txt", stdin=BEFORE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_pipes(self):
        # As a shell's <(COMMAND) hands them over.
        reading, writing = os.pipe()
        with os.fdopen(writing, "w") as pipe:
            pipe.write(BEFORE)
        self.addCleanup(os.close, reading)
        done = subprocess.run([self.strata, "diff", f"/dev/fd/{reading}", "before.txt"], cwd=self.folder, pass_fds=[reading],
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_bare_forward(self):
        body = '''def forward(self, x):
    sin = torch.ops.aten.sin.default(x);  x = None
    return sin
'''
        self.write("bare.txt", body)
        code, diff = self.diff("bare.txt", "bare.txt")
        self.assertEqual((code, diff["before"]["nodes"]), (0, 3))

    def test_native_text_against_fx_text(self):
        self.write("fx.txt", self.run_strata("show", "native.txt", "--format", "fx").stdout)
        code, diff = self.diff("native.txt", "fx.txt")
        self.assertEqual(code, 0)
        self.assertEqual(diff["before"]["fingerprint"], diff["after"]["fingerprint"])

    def test_pins(self):
        _, plain = self.diff("before.txt", "after.txt")
        prints = [plain[side]["fingerprint"] for side in ("before", "after")]
        head = f'before = "{prints[0]}"\nafter = "{prints[1]}"\n'
        self.write("pins", head + 'same = [["view", "reshape"]]\nnever = [["mm", "mm_1"]]\n')
        done = self.run_strata("diff", "before.txt", "after.txt", "--pins", "pins", "--format", "json")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        diff = json.loads(done.stdout)
        pairs = {pair["before"]: pair for pair in diff["pairs"]}
        self.assertEqual((pairs["view"]["via"], pairs["view"]["confidence"]), ("pin", 1))
        self.assertNotEqual(pairs.get("mm", {}).get("after"), "mm_1")

    def test_pins_that_do_not_fit(self):
        _, plain = self.diff("before.txt", "after.txt")
        after = plain["after"]["fingerprint"]
        self.write("unsaid", 'same = [["view", "reshape"]]\n')
        done = self.run_strata("diff", "before.txt", "after.txt", "--pins", "unsaid")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the pins do not say for which graphs they are: unsaid: add before = ", done.stderr)
        self.write("stale", f'before = "{"0" * 32}"\nafter = "{after}"\n'
                            'same = [["view", "reshape"], ["gone", "mm_1"]]\n')
        done = self.run_strata("diff", "before.txt", "after.txt", "--pins", "stale")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("strata: warning: the pins are for other graphs: stale: ", done.stderr)
        self.assertIn("left out: gone = mm_1", done.stderr)
        self.write("wrong", 'same = [["view", "reshape"]]\nnvr = []\n')
        self.assertEqual(
            self.fails("diff", "before.txt", "after.txt", "--pins", "wrong"),
            "wrong:2:1: unknown key 'nvr' in a file of pins; it has before, after, same, never\n"
            "  nvr = []\n  ^")
        self.write("wrong", 'same = [["view"]]\n')
        self.assertEqual(
            self.fails("diff", "before.txt", "after.txt", "--pins", "wrong"),
            "wrong:1:9: 'same' is an array of pairs, [[\"a\", \"b\"], …]\n"
            '  same = [["view"]]\n          ^')
        self.write("wrong", 'same = [["view", "reshape"]\n')
        self.assertTrue(self.fails("diff", "before.txt", "after.txt", "--pins", "wrong").startswith(
            "wrong:"))

    def test_patch(self):
        done = self.run_strata("diff", "before.txt", "after.txt", "--format", "json", "--patch", "p")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["schema"], "strata.diff/1")
        printed = self.run_strata("patch", "before.txt", "p")
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertIn("tan: \"f32[16][1]cpu\" = torch.ops.aten.tan.default(arg0_1)", printed.stdout)
        self.assertNotIn("# ", printed.stdout)
        self.assertEqual(self.run_strata("patch", "before.txt", "p", "-o", "out.txt").stdout, "")
        code, diff = self.diff("out.txt", "after.txt")
        self.assertEqual((code, diff["summary"]["same"]), (0, 18))
        self.assertEqual(diff["before"]["fingerprint"], diff["after"]["fingerprint"])

    def test_a_patch_for_another_graph(self):
        self.run_strata("diff", "before.txt", "after.txt", "--patch", "p")
        _, diff = self.diff("before.txt", "after.txt")
        self.assertEqual(
            self.fails("patch", "after.txt", "p", "-o", "out.txt"),
            "the patch is for another graph: p: it expects fingerprint "
            f"{diff['before']['fingerprint']} (19 nodes), this graph has "
            f"{diff['after']['fingerprint']} (18 nodes): give the graph that it was made from")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out.txt")))
        self.write("q", "strata patch\n")
        self.assertEqual(self.fails("patch", "after.txt", "q"),
                         "q:1:13: expected a number\n  strata patch\n              ^")

    def test_unreadable_text(self):
        broken = BEFORE.replace("aten.detach.default(mm)", "aten.detach.default(mm", 1)
        self.write("broken.txt", broken)
        self.assertIn("broken.txt", self.fails("diff", "broken.txt", "after.txt"))
        done = self.run_strata("diff", "broken.txt", "after.txt", "--lenient")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("strata: warning: ", done.stderr)

    def test_long_lists_of_operands_fold(self):
        def text(function):
            lines = "".join(f"  n{i} = aten.{function if i % 2 else 'neg'}.default(x{i}) : f32[{i + 1}]\n" for i in range(80))
            inputs = "".join(f"  x{i} = placeholder : f32[{i + 1}]\n" for i in range(80))
            outputs = ", ".join(f"n{i}" if function == "cos" or i % 2 else f"x{i}" for i in range(80))
            return f"graph g\n{inputs}{lines}  output([{outputs}])\n"

        self.write("many.txt", text("cos"))
        self.write("fewer.txt", text("sin"))
        done = self.run_strata("diff", "many.txt", "fewer.txt")
        self.assertEqual(done.stdout.count("operands["), 24, done.stdout)
        self.assertIn("      and 16 more (--all)\n", done.stdout)
        self.assertEqual(self.run_strata("diff", "many.txt", "fewer.txt", "--all").stdout.count("operands["), 40)

    def test_errors(self):
        self.assertEqual(self.fails("diff", "missing.txt", "after.txt"),
                         "no such file: missing.txt: check the path")
        self.assertEqual(self.fails("diff", "before.txt", "."), "is a directory: .: give a file")
        self.write("words.txt", "nothing to see\n")
        self.assertEqual(
            self.fails("diff", "before.txt", "words.txt"),
            "not a graph: words.txt: give a trace, a log of PyTorch, or the text of a graph")
        self.assertEqual(
            self.fails("diff", "before.txt", "after.txt", "--fromat", "json"),
            "unknown option '--fromat', did you mean '--format': strata diff: see 'strata diff "
            "--help'")
        self.assertEqual(self.fails("diff", "before.txt"),
                         "missing argument AFTER: strata diff: see 'strata diff --help'")
        self.assertEqual(
            self.fails("diff", "native.txt#grph=step", "native.txt"),
            "unknown selector 'grph', did you mean 'graph': native.txt#grph=step: a selector is "
            "run=N, rank=N, graph=NAME, pass=N|NAME[:before|:after], joined by commas")
        self.assertEqual(self.fails("diff", "native.txt#graph=stop", "native.txt"),
                         "no graph 'stop': native.txt: it has graph=step")
        self.write("two.txt", NATIVE + NATIVE.replace("graph step", "graph other"))
        self.assertEqual(self.fails("diff", "two.txt", "native.txt"),
                         "REF names several graphs: two.txt: say which one:\n"
                         "  two.txt#graph=step\n  two.txt#graph=other")

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([self.strata, "diff", "before.txt", "after.txt"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                  check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("strata: error: disk full", done.stderr)

    def test_a_closed_pipe_ends_quietly(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run([self.strata, "diff", "before.txt", "after.txt"], stdout=write_end,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder, check=False)
        os.close(write_end)
        self.assertEqual(done.returncode, -signal.SIGPIPE)
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    main()
