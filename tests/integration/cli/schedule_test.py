"""`strata schedule` prints, checks and measures schedules of pipelines.

    schedule_test.py STRATA
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


class ScheduleTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_strata(self, *arguments, code=0):
        result = subprocess.run([self.strata, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout if code < 2 else result.stderr

    def test_prints_the_file_of_pytorch(self):
        text = self.run_strata("schedule", "Interleaved1F1B", "--stages", "4", "--ranks", "2", "--microbatches", "4")
        rows = [[cell for cell in line.split(",") if cell] for line in text.splitlines()]
        self.assertEqual(rows[0], "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3".split())
        self.assertEqual(rows[1], "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3".split())
        self.assertEqual(self.run_strata("schedule", "--check", self.write("printed.csv", text)), "")

    def test_simulates_the_stages_of_a_run(self):
        config = self.write("config.toml", 'model = "llama3"\ndim = 16\nn_layers = 4\nn_heads = 2\nvocab_size = 32\n'
                            "multiple_of = 8\nseq_len = 8\nbatch_size = 4\nsteps = 1\n[parallelism]\n"
                            'pipeline_parallel_degree = 2\npipeline_parallel_schedule = "ZBVZeroBubble"\n')
        trace = self.path("run.strata")
        self.run_strata("train", config, "--trace", trace, "--threads", "1")
        on_cpu = ("--topology", "cpu")
        stages = {f"{stage}{action}": json.loads(self.run_strata(
            "simulate", f"{trace}#graph=stage{stage}.{graph}", "--json", *on_cpu))["after"]["step_us"]
                  for stage in range(4) for action, graph in (("F", "forward"), ("B", "backward"))}
        # Each action takes as long as its graph, after what it reads, one at a time on a rank.
        found = json.loads(self.run_strata("simulate", trace, "--schedule", "Interleaved1F1B", "--json", *on_cpu))
        ends, free = {}, {0: 0.0, 1: 0.0}
        for rank_of in found["actions"]:
            name, rank = rank_of["action"], rank_of["rank"]
            stage, kind, microbatch = int(name[0]), name[1], name[2:]
            reads = [f"{stage - 1}F{microbatch}"] if kind == "F" else [f"{stage}F{microbatch}", f"{stage + 1}B{microbatch}"]
            begin = max([free[rank], *(ends[read] for read in reads if read in ends)])
            ends[name] = free[rank] = begin + stages[name[:2]]
            self.assertAlmostEqual(rank_of["begin"], begin, places=3)
            self.assertAlmostEqual(rank_of["end"], ends[name], places=3)
        self.assertEqual(len(ends), 2 * 4 * 4)
        text = self.run_strata("simulate", trace, "--schedule", "ZBVZeroBubble", *on_cpu)
        self.assertRegex(text.splitlines()[0], r"^µs +F +I +W$")
        error = self.run_strata("simulate", trace, "--schedule", "1F1B", "--ranks", "3", code=2)
        self.assertEqual(error, "strata: error: 4 stages on 3 ranks: --ranks: take a divisor\n")
        error = self.run_strata("simulate", trace, "--schedule", self.write("two.csv", "0F0,0B0\n1F0,1B0\n"), code=2)
        self.assertIn("the run has 4 stages, the schedule 2", error)

    def test_refuses_sizes(self):
        error = self.run_strata("schedule", "Interleaved1F1B", "--stages", "5", "--ranks", "2", code=2)
        self.assertEqual(error, "strata: error: 5 stages on 2 ranks: --stages: give a multiple of --ranks\n")
        error = self.run_strata("schedule", "LoopedBFS", "--stages", "4", "--stages-per-rank", "2", code=2)
        self.assertEqual(error, "strata: error: two numbers of stages: --stages, --stages-per-rank: give one of them\n")
        self.run_strata("schedule", "ZBVZeroBubble", "--stages", "6", "--ranks", "2", code=2)

    def test_checks_files(self):
        path = self.write("bad.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B1,1B0\n")
        self.assertEqual(self.run_strata("schedule", "--check", path, code=1),
                         f"{path}: the schedule deadlocks: rank 0: action 1, 0B0 waits for 1B0; rank 1: action 1, 1F1 waits for 0F1\n")
        path = self.write("short.csv", "0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n")
        self.assertEqual(self.run_strata("schedule", "--check", path, code=1), f"{path}: rank 0: 0B1 is missing\n")
        path = self.write("typo.csv", "0F0,0B0\n1F0,1Q0\n")
        self.assertRegex(self.run_strata("schedule", "--check", path, code=2), rf"^strata: error: {re.escape(path)}:2:5: ")
        self.run_strata("schedule", "--check", self.path("none.csv"), code=2)
        error = self.run_strata("schedule", "GPipe", "--check", path, code=2)
        self.assertEqual(error, "strata: error: --check reads one file: give no other schedule, and no --search\n")

    def test_shows_what_ranks_did(self):
        if not os.path.exists(os.path.join(os.path.dirname(self.strata), "strata-runtime")):
            self.skipTest("no LibTorch")
        trace = self.path("pipeline.strata")
        self.run_strata("train", "configs/demo_llama3.toml", "--set", "steps=3", "--profile", "2", "--trace", trace,
                        *(f"--set=parallelism.pipeline_parallel_{key}" for key in
                          ("degree=2", "schedule=Interleaved1F1B", "microbatch_size=2")))
        timeline = self.path("timeline.json")
        text = self.run_strata("schedule", trace, "--timeline", timeline)
        self.assertRegex(text, r"\nmeasured in step 3, µs +\d+ +\d+\.\d %  \d+ \d+\nsimulated, µs +\d+ ")

        # What was executed is the schedule of that name, lowered.
        executed = self.run_strata("schedule", trace, "--format", "actions")
        lowered = self.run_strata("schedule", "Interleaved1F1B", "--format", "actions")
        self.assertEqual(executed, lowered)
        self.assertEqual(self.run_strata("schedule", "--check", self.write("measured.csv", self.run_strata("schedule", trace, "--format", "csv"))), "")

        with open(timeline, encoding="utf-8") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        for pid in (0, 1):  # measured, simulated
            for rank in (0, 1):
                mine = sorted((e for e in events if e["pid"] == pid and e["tid"] == rank), key=lambda e: e["ts"])
                computed = [e["name"] for e in mine if e["cat"] != "communication"]
                self.assertEqual(computed, [word for word in lowered.splitlines()[rank].split() if re.fullmatch(r"\d[FB]\d", word)])
                for one, next_one in zip(mine, mine[1:]):
                    self.assertLessEqual(one["ts"] + one["dur"], next_one["ts"] + 0.002, "a rank does one thing at a time")

        svg = self.run_strata("schedule", trace, "--format", "svg")
        self.assertEqual(len(re.findall(r"<title>rank [01]: \d[FB]\d,", svg)), 2 * 32)
        self.run_strata("report", trace, "-o", self.path("report.html"))
        with open(self.path("report.html"), encoding="utf-8") as file:
            self.assertIn(f'<template id="figure">{svg}</template>', file.read())

    def test_nodes_of_stages_lead_to_those_of_the_step(self):
        if not os.path.exists(os.path.join(os.path.dirname(self.strata), "strata-runtime")):
            self.skipTest("no LibTorch")
        trace = self.path("pp.strata")
        self.run_strata("train", "configs/demo_llama3.toml", "--set", "steps=1", "--trace", trace,
                        "--set", "parallelism.pipeline_parallel_degree=2",
                        "--set", "parallelism.pipeline_parallel_microbatch_size=4")
        forward = self.run_strata("show", f"{trace}#graph=stage1.forward")
        node = re.search(r"^  (mm_\d+) = ", forward, flags=re.M)[1]
        history = self.run_strata("blame", f"{trace}#graph=stage1.forward", node, "--follow")
        self.assertRegex(history, f"split-backward +born: stands for {node} of 'stage1'")
        self.assertRegex(history, f"split-stages +born: stands for {node} of 'step'")
        self.assertRegex(history, rf"{node}  in graph 'step'\n")

    def test_names_what_was_not_measured(self):
        graph = self.write("graph.txt", "graph step\n  x = placeholder : f32[4][1]cpu\n  output([x])\n")
        trace = self.path("plain.strata")
        self.run_strata("opt", graph, "--passes", "dce", "-o", trace)
        error = self.run_strata("schedule", trace, code=2)
        self.assertEqual(error, f"strata: error: no measured actions of a pipeline: {trace}: record them with strata train --trace T --profile 1\n")


if __name__ == "__main__":
    ScheduleTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
