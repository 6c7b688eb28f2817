"""`compile.memory_policy`: backward computes again what forward does not save, and nothing else changes.

    train_memory_test.py STRATA
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 3
n_heads = 4
n_kv_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 3
"""


class TrainMemoryTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_strata(self, *words, status=0):
        result = subprocess.run([self.strata, *words], cwd=self.folder.name, capture_output=True, text=True,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def train(self, name, *options, status=0):
        """The bytes of metrics, gradients and parameters of a training."""
        out = self.run_strata("train", "config.toml", "--metrics", f"{name}.jsonl", "--dump-grads", f"{name}.grads",
                              "--save", f"{name}.parameters", "--trace", f"{name}.strata", *options, status=status)
        if status != 0:
            return out
        files = []
        for suffix in ("jsonl", "grads", "parameters"):
            with open(self.path(f"{name}.{suffix}"), "rb") as file:
                files.append(file.read())
        return files

    def passes(self, trace):
        (run,) = json.loads(self.run_strata("ls", trace, "--json"))["runs"]
        return {entry["name"]: entry for entry in run["passes"] if entry["graph"] == "step"}

    def test_policies_train_the_same(self):
        expected = self.train("none")
        self.assertNotIn("recompute", self.passes("none.strata"))
        nodes = {}
        for policy in ("default", "eager", "full", "min_cut"):
            self.assertEqual(self.train(policy, "--set", f"compile.memory_policy={policy}"), expected, policy)
            passes = self.passes(f"{policy}.strata")
            self.assertEqual([passes[name]["status"] for name in ("tag-memory", "recompute")], ["ok", "ok"])
            nodes[policy] = self.run_strata("show", f"{policy}.strata#graph=step").count("recomputed_from=")
            self.assertIn("proven: 6 of 6 steps", self.run_strata("prove", f"{policy}.strata"))
        self.assertTrue(0 < nodes["default"] < nodes["eager"] < nodes["full"], nodes)

    def test_offloaded_results_train_the_same(self):
        large = ("--set", "seq_len=64", "--set", "rope.max_seq_len=64", "--set", "dim=32")
        expected = self.train("none", *large)
        self.assertEqual(self.train("offload", *large, "--set", "compile.memory_policy=sac_and_offload"), expected)
        passes = self.passes("offload.strata")
        self.assertEqual([passes[name]["status"] for name in ("tag-offload", "recompute", "offload")], ["ok"] * 3)
        self.assertIn("ao.reload.default", self.run_strata("show", "offload.strata#graph=step,pass=offload:after"))
        self.assertNotIn("✗", self.run_strata("prove", "offload.strata"))

    def test_a_budget_between_all_and_nothing_holds(self):
        large = ("--set", "seq_len=64", "--set", "rope.max_seq_len=64", "--set", "dim=32")
        expected = self.train("none", *large)
        memory = json.loads(self.run_strata("memory", "none.strata#graph=step,pass=canonicalize:after", "--pareto",
                                            "--json"))
        front = memory["front"]
        self.assertGreater(len(front), 3)
        self.assertEqual(front, sorted(front, key=lambda point: (point["bytes"], -point["us"])))
        self.assertEqual(front[-1]["us"], 0)
        budget = (front[0]["bytes"] + front[-1]["bytes"]) // 2
        options = ("--set", "compile.memory_policy=budget", "--set", f"compile.memory_budget_bytes={budget}")
        self.assertEqual(self.train("budget", *large, *options), expected)
        error = self.train("small", *large, "--set", "compile.memory_policy=budget", "--set",
                           "compile.memory_budget_bytes=1000", status=2)
        self.assertRegex(error, r"the smallest peak that was found is \d+ bytes")

    def test_a_budget_of_ranks_that_share_the_vocabulary_holds(self):
        ranks = ("--set", "parallelism.tensor_parallel_degree=2")
        budget = ("--set", "compile.memory_policy=budget", "--set", "compile.memory_budget_bytes=1000000")
        self.assertEqual(self.train("budget", *ranks, *budget), self.train("none", *ranks))

    def test_a_budget_uses_recorded_times(self):
        large = ("--set", "seq_len=64", "--set", "rope.max_seq_len=64", "--set", "dim=32")
        expected = self.train("none", *large, "--profile", "2")
        graph = "none.strata#graph=step,pass=canonicalize:after"
        front = json.loads(self.run_strata("memory", graph, "--pareto", "--json"))
        self.assertEqual(front["times"], "recorded")
        profile = self.run_strata("profile", "none.strata#graph=step", "--json")
        with open(self.path("times.json"), "w", encoding="utf-8") as file:
            file.write(profile)
        budget = (front["front"][0]["bytes"] + front["front"][-1]["bytes"]) // 2
        options = ("--set", "compile.memory_policy=budget", "--set", f"compile.memory_budget_bytes={budget}")
        self.assertEqual(self.train("timed", *large, *options, "--set", "compile.memory_budget_times=times.json"),
                         expected)
        self.assertEqual(self.train("kept", *large, *options, "--set", "compile.memory_budget_offload=false"), expected)
        self.assertNotIn("offload", self.passes("kept.strata"))
        self.assertNotIn("ao.offload", self.run_strata("show", "kept.strata#graph=step"))

    def test_a_front_is_drawn(self):
        self.train("t")
        graph = "t.strata#graph=step,pass=canonicalize:after"
        listed = json.loads(self.run_strata("memory", graph, "--pareto", "--json", "--picture", "front.svg"))
        self.assertEqual(listed["times"], "modelled")
        root = xml.etree.ElementTree.parse(self.path("front.svg")).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        points = root.findall(".//{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(points), len(listed["front"]))
        # Less memory is to the left, and takes more time: higher up.
        places = [(float(point.get("cx")), -float(point.get("cy"))) for point in points]
        self.assertEqual(places, sorted(places, key=lambda place: (place[0], -place[1])))
        self.run_strata("report", "t.strata", "-o", "t.html", "--pareto", graph)
        with open(self.path("t.html"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("<circle"), len(points))
        self.assertEqual(
            self.run_strata("memory", graph, "--picture", "no.svg", status=2),
            "strata: error: --picture requires --pareto: strata memory: there is no other picture\n")
        self.assertEqual(
            self.run_strata("memory", graph, "--pareto", "--before", graph, status=2),
            f"strata: error: --pareto compares plans of one graph: --before {graph}: leave one of them out\n")

    def test_overrides_replace_tags(self):
        expected = self.train("none")
        override = "layers.1.feed_forward.w1::aten.mm.default#1=MUST_RECOMPUTE"
        self.assertEqual(self.train("t", "--set", "compile.memory_policy=default", "--set",
                                    f"compile.memory_overrides={override}"), expected)
        products = [line for line in self.run_strata("show", "t.strata#graph=step").splitlines()
                    if "aten.mm.default" in line and "recomputed_from=" in line]
        self.assertEqual(len(products), 1)
        self.assertIn("module=layers.1.feed_forward.w1", products[0])

    def test_forward_and_backward_are_written_apart(self):
        passes = "dce,canonicalize,tag-memory{policy=min_cut},recompute,split-step"
        self.assertEqual(self.train("split", "--passes", passes), self.train("none"))
        forward = self.run_strata("show", "split.strata#graph=step.forward")
        backward = self.run_strata("show", "split.strata#graph=step.backward")
        self.assertNotIn("{backward", forward)
        self.assertIn("recomputed_from=", backward)
        self.assertEqual(len(re.findall(r"slot='saved \d+'", backward)), len(re.findall(r"saved \d+", forward)))
        self.assertNotIn("✗", self.run_strata("prove", "split.strata"))

    def test_parts_of_a_rank_are_proven_exactly(self):
        ranks = ("--set", "parallelism.data_parallel_shard_degree=2")
        self.train("t", *ranks, "--passes", "dce,canonicalize,tag-memory,recompute,split-step", "--prove")
        passes = json.loads(self.run_strata("prove", "t.strata", "--json"))["passes"]
        self.assertIn(("bucket-transformer-blocks", "step.backward"),
                      [(step["name"], step["graph"]) for step in passes])
        self.assertEqual({step["status"] for step in passes}, {"proven"})

    def test_copies_read_what_came_back_from_the_host(self):
        large = ("--set", "seq_len=64", "--set", "rope.max_seq_len=64", "--set", "dim=32")
        expected = self.train("none", *large)
        self.assertEqual(self.train("t", *large, "--passes", "tag-memory,tag-offload,offload,recompute"), expected)
        text = self.run_strata("show", "t.strata#graph=step")
        self.assertRegex(text, r"_recomputed = .*_reloaded")

    def test_gathered_parameters_stay_or_are_gathered_again(self):
        ranks = ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=2")
        never = (*ranks, "--set", "parallelism.fsdp_reshard_after_forward=never")
        expected = self.train("none", *ranks)
        self.assertEqual(self.train("full", *never, "--set", "compile.memory_policy=full"), expected)
        gather = re.compile(r"all_gather_into_tensor\S*_recomputed = ")
        self.assertFalse(gather.search(self.run_strata("show", "full.strata#graph=step")))
        (run,) = json.loads(self.run_strata("ls", "full.strata", "--json"))["runs"][:1]
        self.assertIn("recompute", {entry["name"] for entry in run["passes"]})

    def test_ranks_recompute_gathers_and_train_the_same(self):
        ranks = ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=2")
        expected = self.train("none", *ranks)
        self.assertEqual(self.train("full", *ranks, "--set", "compile.memory_policy=full"), expected)
        text = self.run_strata("show", "full.strata#graph=step,pass=recompute:after")
        self.assertTrue(re.search(r"all_gather_into_tensor\S*_recomputed = ", text), "no gather is recomputed")

    def test_memory_is_listed(self):
        self.train("t", "--set", "compile.memory_policy=full")
        after, before = "t.strata#pass=recompute:after", "t.strata#pass=recompute:before"
        listed = json.loads(self.run_strata("memory", after, "--before", before, "--json"))
        self.assertEqual(listed["schema"], "strata.memory/1")
        self.assertLess(listed["saved_bytes"], listed["before"]["saved_bytes"])
        self.assertLess(listed["peak_bytes"], listed["before"]["peak_bytes"])
        self.assertEqual(sum(value["bytes"] for value in listed["alive"]), listed["peak_bytes"])
        self.assertEqual({value["policy"] for value in listed["saved_for_backward"]}, {"SAVE", "SAVE*"})
        self.assertIn("RECOMPUTE!", {value["policy"] for value in listed["before"]["saved_for_backward"]})
        for graph in (listed, listed["before"]):
            for rows in (graph["by_module"], graph["by_line"]):
                self.assertEqual(sum(row["alive_bytes"] for row in rows), graph["peak_bytes"])
                self.assertEqual(sum(row["saved_bytes"] for row in rows), graph["saved_bytes"])
        saved = {row["module"]: row["saved_bytes"] for row in listed["before"]["by_module"]}
        self.assertGreater(saved["layers.0.feed_forward"], 0)
        text = self.run_strata("memory", after, "--before", before)
        self.assertTrue(text.startswith("peak: "))
        for heading in ("changes by module", "changes by line of code", "by module", "by line of code"):
            self.assertIn(f"\n{heading}\n", text)
        self.assertTrue("[layers 0-1] (x2, same pattern) (" in text, text)

    def test_full_saves_what_selectors_name(self):
        self.train("t", "--set", "compile.memory_policy=full", "--set",
                   "compile.full_recompute_save_ops=layers.*.feed_forward.w1::aten.mm.default")
        text = self.run_strata("show", "t.strata#graph=step,pass=tag-memory:after")
        products = [line for line in text.splitlines() if "aten.mm.default" in line and "{forward module=layers" in line]
        saved = [line for line in products if "MUST_SAVE" in line]
        self.assertEqual(len(saved), 3)
        self.assertTrue(all("feed_forward.w1" in line for line in saved))
        self.assertGreater(len(products), 3)

    def test_the_diff_of_the_pass_tells_copies(self):
        self.train("t", "--set", "compile.memory_policy=full")
        command = [self.strata, "diff", "t.strata#pass=recompute:before", "t.strata#pass=recompute:after"]
        diff = subprocess.run(command, cwd=self.folder.name, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(diff.returncode, 1)
        self.assertTrue(re.search(r"clone +(\w+) → \1, \1_recomputed\n", diff.stdout))
        self.run_strata("report", "t.strata#pass=recompute", "-o", "t.html")
        self.assertGreater(os.path.getsize(self.path("t.html")), 100_000)

    def test_contradictions_are_told(self):
        self.assertEqual(
            self.train("t", "--set", "compile.memory_policy=full", "--passes", "tag-memory,recompute", status=2),
            "strata: error: pass and configuration contradict each other: tag-memory: compile.memory_policy is 'full', "
            "take one of them out\n")
        self.assertEqual(
            self.train("t", "--set", "compile.memory_policy=full", "--set", "compile.enable_passes=false", status=2),
            "strata: error: keys of the configuration contradict each other: compile.memory_policy: "
            "compile.enable_passes is false, take one of them out\n")


if __name__ == "__main__":
    TrainMemoryTest.strata = sys.argv.pop(1)
    unittest.main()
