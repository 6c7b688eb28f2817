"""Exchange files, as docs/exchange_format.md specifies them: imported, cut, damaged, followed."""

import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from strata_case import StrataCase, main  # noqa: E402

RECORDS = [
    {"r": "head", "schema": "strata.exchange/1", "rank": 0, "world": 1, "source": "model.py", "command": "model.py"},
    {"r": "text", "id": 1, "s": "# File: model.py:3 in forward, code: return relu(x)"},
    {"r": "graph", "g": 1, "name": "model"},
    {"r": "snap", "g": 1, "p": 0, "when": "before", "class": "Model",
     "nodes": [[1, "p", 'x: "f32[2]"'], [2, "n", 'relu: "f32[2]" = torch.relu(x)', 1], [3, "o", "relu"]],
     "bodies": [["", [[1, 3]]]]},
    {"r": "begin", "p": 1, "pass": "use_gelu", "g": 1, "ns": 100, "file": "passes.py", "line": 7},
    {"r": "snap", "g": 1, "p": 1, "when": "after",
     "nodes": [[4, "n", 'gelu: "f32[2]" = torch.gelu(x)', 1], [3, "o", "gelu"]],
     "bodies": [["", [[1, 1], [4, 1], [3, 1]]]]},
    {"r": "edge", "p": 1, "how": "replace", "new": [4], "old": [2]},
    {"r": "end", "p": 1, "ns": 5000, "status": "ok"},
    {"r": "begin", "p": 2, "pass": "look", "g": 1, "ns": 6000, "later": {"key": [1, "2"]}},
    {"r": "later", "x": 1},
    {"r": "end", "p": 2, "ns": 10, "status": "unchanged"},
    {"r": "tail"},
]


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


class ExchangeTest(StrataCase):

    def imported(self, content, *options):
        self.write("run.d/host-1-r0.jsonl", content)
        return self.run_strata("import", "run.d", "-o", "run.strata", *options)

    def runs(self):
        return json.loads(self.run_strata("ls", "run.strata", "--json").stdout)["runs"]

    def test_a_file_becomes_a_run_with_its_passes(self):
        self.assertEqual(self.imported(lines(RECORDS), "--strict").returncode, 0)
        [run] = self.runs()
        self.assertEqual((run["kind"], run["status"], run["source"]), ("opt", "finished", "model.py"))
        self.assertEqual([(p["name"], p["status"]) for p in run["passes"]], [("use_gelu", "ok"), ("look", "unchanged")])
        done = self.run_strata("diff", "run.strata#pass=0:before", "run.strata#pass=0:after", "--json")
        found = json.loads(done.stdout)
        self.assertEqual([(r["kind"], r["before"], r["after"]) for r in found["relations"]],
                         [("replace", ["relu"], ["gelu"])])
        self.assertEqual({pair["via"] for pair in found["pairs"]}, {"id"})
        self.assertIn("born: stands for relu", self.run_strata("blame", "run.strata", "gelu").stdout)
        self.assertEqual(self.run_strata("check", "run.strata").returncode, 0)

    def test_texts_of_the_run_become_artifacts(self):
        code = {"r": "artifact", "name": "inductor_output_code", "content": "# kernel\n\u00fc = 1\n"}
        self.assertEqual(self.imported(lines([*RECORDS[:-1], code, RECORDS[-1]]), "--strict").returncode, 0)
        [run] = self.runs()
        self.assertEqual([(item["name"], item["bytes"]) for item in run["artifacts"]], [("inductor_output_code", 16)])
        nameless = self.imported(lines([*RECORDS[:-1], {**code, "name": ""}, RECORDS[-1]]), "--strict")
        self.assertEqual(nameless.returncode, 2)
        self.assertIn("an artifact without a name", nameless.stderr)

    def test_the_same_file_gives_the_same_bytes(self):
        self.imported(lines(RECORDS))
        first = self.read("run.strata")
        self.imported(lines(RECORDS))
        self.assertEqual(self.read("run.strata"), first)

    def test_a_process_that_was_killed(self):
        text = lines(RECORDS[:8]) + '{"r":"begin","p":2,"pass":"look","g":1}\n{"r":"en'
        self.assertEqual(self.imported(text, "--strict").returncode, 0)
        [run] = self.runs()
        self.assertEqual((run["status"], [(p["name"], p["status"]) for p in run["passes"]]),
                         ("failed", [("use_gelu", "ok"), ("look", "failed")]))

    def test_a_file_that_was_cut_anywhere_is_read_as_far_as_it_goes(self):
        text = lines(RECORDS)
        for end in range(len(lines(RECORDS[:1])), len(text), 97):
            done = self.imported(text[:end], "--strict")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.run_strata("check", "run.strata").returncode, 0)

    def test_a_damaged_file_is_a_warning_never_a_crash(self):
        text = lines(RECORDS).encode()
        dice = random.Random(7)
        for _ in range(60):
            damaged = bytearray(text)
            for _ in range(dice.randrange(1, 6)):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            done = self.imported(bytes(damaged))
            self.assertIn(done.returncode, (0, 2), done.stderr)
            if done.returncode == 0:
                self.assertEqual(self.run_strata("check", "run.strata").returncode, 0)

    def test_what_is_wrong_has_a_place(self):
        wrong = [*RECORDS[:4], {"r": "snap", "g": 9, "p": 0, "when": "after"}, RECORDS[-1]]
        done = self.imported(lines(wrong))
        self.assertEqual(done.returncode, 0)
        self.assertIn("run.d/host-1-r0.jsonl:5: a snapshot of an unknown graph", done.stderr)
        done = self.imported(lines(wrong), "--strict")
        self.assertEqual(done.returncode, 2)
        self.assertIn("strata: error: cannot read: run.d/host-1-r0.jsonl:5: a snapshot of an unknown graph", done.stderr)

    def test_a_later_version_is_refused(self):
        done = self.imported(lines([{**RECORDS[0], "schema": "strata.exchange/2"}, *RECORDS[1:]]), "--strict")
        self.assertEqual(done.returncode, 2)
        self.assertIn("schema strata.exchange/2: this version reads strata.exchange/1", done.stderr)

    def test_ids_and_ranges_beyond_reason_take_no_memory(self):
        for body in ([[1, 2 ** 40]], [[2 ** 60, 1]], [[1, 2 ** 24 - 1]] * 3, [[-1, 5]]):
            done = self.imported(lines([*RECORDS[:3], {**RECORDS[3], "bodies": [["", body]]}, RECORDS[-1]]))
            self.assertIn(done.returncode, (0, 2), done.stderr)

    def test_ranks_are_runs_of_one_trace(self):
        for rank in (0, 1):
            self.write(f"run.d/host-{rank}-r{rank}.jsonl",
                       lines([{**RECORDS[0], "rank": rank, "world": 2}, *RECORDS[1:]]))
        self.assertEqual(self.run_strata("import", "run.d", "-o", "run.strata").returncode, 0)
        self.assertEqual([(run["rank"], run["world"]) for run in self.runs()], [(0, 2), (1, 2)])

    def test_follow_reads_what_is_there_and_stops_when_idle(self):
        self.write("run.d/host-1-r0.jsonl", lines(RECORDS))
        done = self.run_strata("import", "run.d", "-o", "run.strata", "--follow", "--idle", "0.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([p["name"] for p in self.runs()[0]["passes"]], ["use_gelu", "look"])


if __name__ == "__main__":
    main()
