"""`strata ls` and `strata check` as scripts use them: exit codes, JSON, errors.

    trace_test.py STRATA
"""

import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import StrataCase, main  # noqa: E402

LOGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "logs")

STEP = """\
graph step
  x = placeholder : f32[4][1]cpu
  a = aten.relu.default(x) : f32[4][1]cpu
  dead = aten.neg.default(x) : f32[4][1]cpu
  output([a])
"""


class TraceTest(StrataCase):
    def setUp(self):
        super().setUp()
        self.write("step.txt", STEP.encode())
        self.check(["opt", "step.txt", "--passes", "dce,canonicalize", "-o", "t.strata"], 0)

    def check(self, words, code, stderr=""):
        result = self.run_strata(*words)
        self.assertEqual(result.stderr, stderr)
        self.assertEqual(result.returncode, code, result.stdout)
        return result.stdout

    def test_the_listing_tells_what_each_pass_did(self):
        listing = json.loads(self.check(["ls", "t.strata", "--json"], 0))
        self.assertEqual(listing["schema"], "strata.ls/1")
        (run,) = listing["runs"]
        self.assertEqual((run["id"], run["kind"], run["rank"], run["source"]), (1, "opt", 0, "step.txt"))
        dce, canonicalize = run["passes"]
        self.assertEqual((dce["index"], dce["name"], dce["status"]), (0, "dce", "ok"))
        self.assertEqual(dce["counts"], {"inserted": 0, "deleted": 1, "changed": 0, "moved": 0})
        self.assertEqual((dce["before"]["nodes"], dce["after"]["nodes"]), (4, 3))
        self.assertEqual((canonicalize["index"], canonicalize["status"]), (1, "unchanged"))
        self.assertEqual(canonicalize["before"], canonicalize["after"])
        (graph,) = run["graphs"]
        self.assertEqual(graph["fingerprint"], dce["after"]["fingerprint"])
        self.assertEqual(graph["ref"], "t.strata#run=1,graph=step")
        # A ref is what other commands take.
        self.check(["diff", dce["ref"] + ":before", graph["ref"]], 1)
        self.check(["diff", dce["ref"] + ":after", graph["ref"]], 0)

    def test_same_input_gives_the_same_listing_but_for_times(self):
        def listing():
            text = self.check(["ls", "t.strata", "--json"], 0)
            return [dict(entry, ms=0) for entry in json.loads(text)["runs"][0]["passes"]]

        first = listing()
        self.check(["opt", "step.txt", "--passes", "dce,canonicalize", "-o", "t.strata"], 0)
        self.assertEqual(listing(), first)

    def test_a_sound_trace_is_told_so(self):
        self.assertEqual(self.check(["check", "t.strata"], 0), "t.strata: sound\n")

    def test_a_damaged_trace_gives_findings_and_cannot_be_listed(self):
        data = bytearray(self.read("t.strata"))
        place = data.find(b"canonicalize", data.find(b"canonicalize") + 1)
        data[place] = ord("K")
        self.write("damaged.strata", data)
        lines = self.check(["check", "damaged.strata"], 1).splitlines()
        self.assertRegex(lines[0], r"^damaged.strata: table (run|pass), row [12]: checksum differs$")
        self.assertEqual(lines[-1], "damaged.strata: 1 finding")
        table = lines[0].split(": ")[1]
        self.check(["ls", "damaged.strata"], 2,
                   f"strata: error: damaged trace: damaged.strata: {table}: checksum differs: "
                   "record or import it again; 'strata check' lists what is damaged\n")

    def test_what_is_no_trace_is_one_line(self):
        self.write("newer.strata", self.read("t.strata")[:63] + b"\x07" + self.read("t.strata")[64:])
        self.write("empty.strata", b"")
        os.mkdir(self.path("folder"))
        made_by = "give a file made by 'strata import', 'opt' or 'train'"
        for name, what in [
                ("missing.strata", "no such file: missing.strata: check the path"),
                ("folder", "is a directory: folder: give a file"),
                ("empty.strata", f"not a trace: empty.strata: {made_by}"),
                ("step.txt", f"not a trace: step.txt: {made_by}"),
                ("newer.strata", "written by a newer Strata: newer.strata: its schema is 7, this build reads "
                                 "up to 2; update Strata"),
        ]:
            # ls reads logs and texts, too.
            for command in ["check"] + (["ls"] if name in ("missing.strata", "newer.strata") else []):
                with self.subTest(name=name, command=command):
                    self.assertEqual(self.check([command, name], 2, f"strata: error: {what}\n"), "")

    def test_ls_lists_logs_and_folders_of_them(self):
        log = os.path.join(LOGS, "compile_torch2.11.log.zst")
        text = self.check(["ls", log], 0)
        self.assertRegex(text, r"\n    aot_joint_graph +68  [0-9a-f]{32} +1  \[0/0\]\n")
        self.assertRegex(text, r"\n    dynamo_output_graph@1/0_1 +5  [0-9a-f]{32} +1  \[1/0_1\]\n")
        (run,) = json.loads(self.check(["ls", log, "--json"], 0))["runs"]
        joint = run["graphs"][1]
        self.assertEqual((joint["compilation"], joint["ref"]), ("0/0", f"{log}#run=1,graph=aot_joint_graph"))
        shown = self.check(["show", joint["ref"]], 0)
        self.assertTrue(shown.startswith("symbol s77 hint=4\ngraph aot_joint_graph "), shown[:80])
        os.mkdir(self.path("ranks"))
        for rank in (0, 1):
            shutil.copy(log, self.path(f"ranks/dedicated_log_torch_trace_rank_{rank}_x.log.zst"))
        self.assertEqual(len(json.loads(self.check(["ls", "ranks", "--json"], 0))["runs"]), 2)

    def test_commands_of_whole_files_take_no_selector(self):
        for words in (["ls", "t.strata#run=1"], ["check", "t.strata#run=1"], ["merge", "t.strata#run=1", "-o", "o"],
                      ["import", "t.strata#run=1", "-o", "o"]):
            self.check(words, 2, "strata: error: takes whole files: t.strata#run=1: leave out '#run=1'\n")
        self.check(["ls", "no#run=1"], 2, "strata: error: no such file: no#run=1: check the path\n")

    def test_a_text_has_no_passes(self):
        self.check(["show", "step.txt#pass=1"], 2, "strata: error: no runs and passes: step.txt#pass=1: it is the "
                   "text of graphs, leave out the selector\n")

    def test_names_that_no_file_can_have(self):
        long = "x" * 300
        for words, what in [
                (["show", ""], "empty file name: '': give a name"),
                (["ls", ""], "empty file name: '': give a name"),
                (["import", "", "-o", "o"], "empty file name: '': give a name"),
                (["show", "step.txt", "-o", ""], "empty file name: '': give a name"),
                (["show", long], f"no such file: {long}: the name is too long for one"),
                (["show", "step.txt", "-o", long], f"name is too long: {long}: give a shorter one"),
        ]:
            self.check(words, 2, f"strata: error: {what}\n")

    def test_bench_asks_what_to_measure(self):
        self.check(["bench"], 2, "strata: error: missing argument WHAT: strata bench: see 'strata bench --help'\n")

    def test_a_failed_output_leaves_what_was_there(self):
        for target, what in [
                ("step.txt", "cannot write: step.txt: it exists and is not a trace; remove it or give another name"),
                ("no/t.strata", "cannot write: no/t.strata: no folder 'no', create it first"),
        ]:
            with self.subTest(target=target):
                before = sorted(os.listdir(self.folder))
                self.check(["opt", "t.strata#graph=step", "--passes", "dce", "-o", target], 2,
                           f"strata: error: {what}\n")
                self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(self.read("step.txt").decode(), STEP)


if __name__ == "__main__":
    main()
