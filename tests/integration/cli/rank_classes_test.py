"""`strata ranks` and `merge` as scripts use them, over logs made by hand and edited fixtures.

    rank_classes_test.py STRATA
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from run_logs import (  # noqa: E402
    graph, LAYERS, log, pipeline, record, RunsCase, TWO_RANKS, vocabulary_shard, with_relu, without_detach,
)
from strata_case import main  # noqa: E402


class RanksTest(RunsCase):
    def ranks(self, lines_of_rank, code):
        for rank, lines in enumerate(lines_of_rank):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_x.log", log(pipeline(lines), rank))
        return self.json("ranks", "logs", code=code)

    def test_equal_ranks_are_one_class(self):
        report = self.ranks([LAYERS] * 4, 0)
        self.assertEqual(report["schema"], "strata.ranks/1")
        self.assertEqual(report["classes"], [[0, 1, 2, 3]])
        self.assertIsNone(report["first_difference"])
        self.assertEqual((report["collectives"], report["constants"]), ([], []))

    def test_a_log_from_standard_input(self):
        text = log(pipeline(LAYERS))
        self.write("a.log", text)
        for words in (["ranks", "-"], ["bisect", "-", "a.log"], ["blame", "-", "si"]):
            done = self.run_strata(*words, stdin=text)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_fixture_of_two_ranks(self):
        self.assertEqual(self.json("ranks", TWO_RANKS, code=0)["classes"], [[0, 1]])

    def test_one_rank_that_computes_something_else(self):
        odd = [line.replace("aten.mul.Tensor(wr, 2)", "aten.mul.Tensor(wr, 3)") for line in LAYERS]
        report = self.ranks([LAYERS, LAYERS, odd, LAYERS], 1)
        self.assertEqual(report["classes"], [[0, 1, 3], [2]])
        first = report["first_difference"]
        self.assertEqual((first["pass"], first["node"], first["ranks"]), (None, "ou", [2]))
        self.assertEqual(first["what"], "change args[1] of aten.mul.Tensor: 2 → 3")
        for ref in first["refs"]:
            self.assertIn("ou", self.nodes_of(ref))

    def test_the_pass_at_which_a_rank_parts(self):
        for rank in range(4):
            steps = pipeline(LAYERS)
            if rank == 1:
                steps[3] = ("fuse", without_detach(LAYERS))
            self.write(f"logs/rank_{rank}.log", log(steps, rank))
        first = self.json("ranks", "logs", code=1)["first_difference"]
        self.assertEqual((first["pass"], first["pass_name"], first["node"], first["ranks"]),
                         (2, "fuse", "si", [1]))

    def test_values_that_follow_the_rank_are_constants(self):
        report = self.ranks([[line.replace("wt, 0, 0, 8", f"wt, 0, {2 * rank}, {2 * rank + 2}")
                              for line in LAYERS] for rank in range(4)], 0)
        self.assertEqual(report["classes"], [[0, 1, 2, 3]])
        constants = {(c["node"], c["path"]): c["formula"] for c in report["constants"]}
        self.assertEqual(constants, {("sl", "args[2]"): "2·rank", ("sl", "args[3]"): "2·rank + 2"})

    def test_a_value_that_no_rule_explains_parts_ranks(self):
        report = self.ranks([[line.replace("wt, 0, 0, 8", f"wt, 0, 0, {8 if rank != 2 else 7}")
                              for line in LAYERS] for rank in range(4)], 1)
        self.assertEqual(report["classes"], [[0, 1, 3], [2]])
        self.assertEqual(report["first_difference"]["node"], "sl")
        self.assertEqual(report["first_difference"]["what"], "args[3]: 7 on rank 2, 8 on ranks 0, 1, 3")
        self.assertEqual([ref.split("#")[0][-12:] for ref in report["first_difference"]["refs"]],
                         ["rank_0_x.log", "rank_2_x.log"])
        for ref in report["first_difference"]["refs"]:
            self.assertIn("sl", self.nodes_of(ref))

    def test_an_offset_that_is_0_on_one_of_two_ranks(self):
        def ranks(offset, code):
            return self.ranks([[line.replace("wt, 0, 0, 8", f"wt, 0, {rank * offset}, 64") for line in LAYERS]
                               for rank in range(2)], code)

        # Tensors have 8 rows. None has a size of 5.
        self.assertEqual([(c["node"], c["path"], c["formula"]) for c in ranks(8, 0)["constants"]],
                         [("sl", "args[2]", "8·rank")])
        report = ranks(5, 1)
        self.assertEqual((report["classes"], report["first_difference"]["what"]),
                         ([[0], [1]], "args[2]: 0 on rank 0, 5 on rank 1"))

    def test_a_group_of_another_name_on_one_rank(self):
        odd = [line.replace("'tp'", "'pt'") for line in LAYERS]
        report = self.ranks([LAYERS, LAYERS, odd, LAYERS], 1)
        self.assertEqual(report["classes"], [[0, 1, 2, 3]])
        self.assertEqual([(e["kind"], e["group"], e["ranks"], e["what"]) for e in report["collectives"]],
                         [("group", "pt", [2], "group: all_reduce f32[8, 8] in 'pt', on the other ranks in 'tp'")])

    def test_two_collectives_in_another_order(self):
        swapped = [line.replace("(si, 'sum', 'tp')", "(wr, 'sum', 'tp')").replace("(wa, 'sum'", "(si, 'sum'")
                   for line in LAYERS]
        swapped = swapped[:6] + swapped[8:10] + swapped[6:8] + [LAYERS[10].replace("wr", "wa")]
        report = self.ranks([LAYERS, LAYERS, LAYERS, swapped], 1)
        self.assertEqual(len(report["collectives"]), 1, report["collectives"])
        entry = report["collectives"][0]
        self.assertEqual((entry["index"], entry["ranks"], entry["kind"], entry["group"]),
                         (0, [3], "order", "tp"))

    def test_kinds_of_mismatches(self):
        def kinds(change):
            report = self.ranks([LAYERS, LAYERS, [change(line) for line in LAYERS]], 1)
            return [(e["kind"], e["group"], e["index"], e["ranks"]) for e in report["collectives"]]

        self.assertEqual(kinds(lambda line: line.replace("all_reduce.default(si, 'sum', 'tp')",
                                                         "all_reduce.default(si, 'sum', 'fsdp')")),
                         [("group", "tp", 0, [2])])
        self.assertEqual(kinds(lambda line: line.replace("all_reduce.default", "broadcast.default")),
                         [("op", "tp", 0, [2])])
        self.assertEqual(kinds(lambda line: line.replace("_c10d_functional.all_reduce.default(si, 'sum', 'tp')",
                                                         "aten.neg.default(si)")),
                         [("missing", "tp", 0, [2])])
        self.assertEqual(kinds(lambda line: line.replace("wait_tensor.default(ar)", "neg.default(ar)")),
                         [("wait", "tp", 0, [2])])

    def test_shapes_of_collectives(self):
        text = log(pipeline(LAYERS), 1).replace('si: "f32[8, 8]"', 'si: "bf16[8, 8]"')
        self.write("a.log", log(pipeline(LAYERS), 0))
        self.write("b.log", text)
        report = self.json("ranks", "a.log", "b.log", code=1)
        self.assertEqual([(e["kind"], e["index"]) for e in report["collectives"]], [("dtype", 0)])

    def test_traces_and_merged_traces(self):
        odd = [line.replace("aten.mul.Tensor(wr, 2)", "aten.mul.Tensor(wr, 3)") for line in LAYERS]
        for rank, lines in enumerate([LAYERS, LAYERS, odd]):
            self.write(f"{rank}.log", log(pipeline(lines), rank))
            self.assertEqual(self.run_strata("import", f"{rank}.log", "-o", f"{rank}.strata").returncode, 0)
        report = self.json("ranks", "0.strata", "1.strata", "2.strata", code=1)
        self.assertEqual(report["classes"], [[0, 1], [2]])
        self.assertEqual(self.run_strata("merge", "0.strata", "1.strata", "2.strata", "-o", "all.strata").returncode, 0)
        self.assertEqual(self.run_strata("check", "all.strata").returncode, 0)
        merged = self.json("ranks", "all.strata", code=1)
        self.assertEqual(merged["classes"], [[0, 1], [2]])
        self.assertEqual(merged["first_difference"]["node"], "ou")
        listing, parts = json.loads(self.run_strata("ls", "all.strata", "--json").stdout), []
        for rank in range(3):
            parts += json.loads(self.run_strata("ls", f"{rank}.strata", "--json").stdout)["runs"]
        self.assertEqual([run["rank"] for run in listing["runs"]], [0, 1, 2])
        for run, part in zip(listing["runs"], parts):
            for key in ("graphs", "passes"):
                strip = [{k: v for k, v in item.items() if k != "ref"} for item in run[key]]
                self.assertEqual(strip, [{k: v for k, v in item.items() if k != "ref"} for item in part[key]])
            self.assertEqual(run["artifacts"], part["artifacts"])

    def test_merge_of_one_rank_twice(self):
        self.write("0.log", log(pipeline(LAYERS), 0))
        for name in ("a", "b"):
            self.run_strata("import", "0.log", "-o", f"{name}.strata")
        self.assertEqual(self.fails("merge", "a.strata", "b.strata", "-o", "c.strata"),
                         "two traces of rank 0: a.strata and b.strata: give one trace per rank, or number "
                         "them with --renumber")
        self.assertIn("two traces of rank 0: a.strata and a.strata: ",
                      self.fails("merge", "a.strata", "a.strata", "-o", "c.strata"))
        self.assertFalse(os.path.exists(self.path("c.strata")))
        self.assertEqual(self.run_strata("merge", "a.strata", "b.strata", "-o", "c.strata", "--renumber").returncode, 0)
        self.assertEqual(self.json("ranks", "c.strata", code=0)["classes"], [[0, 1]])

    def test_other_passes_that_leave_the_same(self):
        self.write("a.log", log(pipeline(LAYERS), 0))
        self.write("b.log", log([("", LAYERS), ("remove_detach", without_detach(LAYERS)),
                                 ("fuse", with_relu(without_detach(LAYERS)))], 1))
        self.assertEqual(self.json("ranks", "a.log", "b.log", code=0)["classes"], [[0, 1]])

    def test_same_input_same_bytes(self):
        self.ranks([LAYERS, with_relu(LAYERS), LAYERS], 1)
        outputs = {self.run_strata("ranks", "logs", *json_).stdout for json_ in ((), (), ("--json",), ("--json",))}
        self.assertEqual(len(outputs), 2)

    def test_errors(self):
        os.mkdir(self.path("empty"))
        self.assertEqual(self.fails("ranks", "empty"), "no logs: empty: the folder has no file '*.log'")
        self.assertEqual(self.fails("ranks", "missing"), "no such file: missing: check the path")


class RanksOfOneProgramTest(RunsCase):
    def test_what_follows_from_the_rank_is_no_difference(self):
        for rank in (0, 1):
            self.write(f"r/rank_{rank}.log", record("aot_forward_graph", vocabulary_shard(rank), rank))
        self.assertEqual(self.json("ranks", "r", code=0)["classes"], [[0, 1]])
        self.assertTrue(self.json("bisect", "r/rank_0.log", "r/rank_1.log", code=0)["equal"])
        self.assertTrue(self.json("bisect", "r/rank_1.log", "r/rank_0.log", code=0)["equal"])

    def test_a_bound_that_no_size_explains_is_a_difference(self):
        for rank in (0, 1):
            self.write(f"r/rank_{rank}.log",
                       record("aot_forward_graph", vocabulary_shard(rank, low=rank * 7), rank))
        self.json("ranks", "r", code=1)
        found = self.json("bisect", "r/rank_0.log", "r/rank_1.log", code=1)
        self.assertEqual((found["node"], found["graph"]), ("lt", "aot_forward_graph"))

    def test_runs_of_one_rank_are_compared_exactly(self):
        for rank in (0, 1):
            self.write(f"{rank}.log", record("aot_forward_graph", vocabulary_shard(rank), 0))
        self.json("bisect", "0.log", "1.log", code=1)


if __name__ == "__main__":
    main()
