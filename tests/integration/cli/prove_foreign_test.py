"""`strata prove ONE_DEVICE RANKS`: PyTorch's own graphs of ranks, against those of one device.

    prove_foreign_test.py STRATA
"""

import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main, read_log  # noqa: E402

PROGRAMS = os.path.join(ROOT, "tests", "data", "torch_parallel")


def log(program, name):
    return os.path.join(PROGRAMS, program, f"{name}.log.zst")


class ProveForeignTest(StrataCase):
    def prove(self, program, *words, ranks="ranks", status=0):
        done = self.run_strata("prove", log(program, "one_device"), log(program, ranks), *words, "--json")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def found(self, program, bug, *words):
        """The class, node and outputs of each finding."""
        proof = self.prove(program, *words, ranks=bug, status=1)
        return [(finding["class"], finding["node"], finding["module"]) for finding in proof["findings"]]

    def test_pv_70_programs_of_dtensor_are_proven(self):
        for program, values in (("tensor_parallel", 5), ("sequence_parallel", 12), ("vocabulary_parallel", 3)):
            with self.subTest(program):
                proof = self.prove(program, "--accept-inferred")
                self.assertEqual((proof["schema"], proof["kind"]), ("strata.prove/1", "foreign"))
                (step,) = proof["passes"]
                self.assertEqual((step["status"], step["mesh"], step["values"]), ("proven", "tp=2", values))
                self.assertEqual(step["unknown_operators"], [])

    def test_pv_70_programs_of_fsdp2_and_ddp_are_proven_if_they_average(self):
        for program, steps, axis in (("fsdp", 2, "world"), ("ddp", 1, "world"), ("token_mean", 1, "world"), ("two_axes", 2, "outer")):
            with self.subTest(program):
                proof = self.prove(program, "--accept-inferred")
                self.assertEqual(proof["summary"], {"proven": steps, "differs": 0, "unproven": 0})
                averaged = f"gradients and losses are averaged over {axis} outside of the graphs"
                self.assertIn(averaged, proof["passes"][0]["inferred"])
                stated = self.prove(program, "--accept-inferred", "--assume", f"{axis}=averages")
                self.assertEqual(stated["passes"][0]["assumed"], [averaged])
        # The loss of each rank is a mean of its own data, so gradients must not be summed.
        summed = self.prove("ddp", "--accept-inferred", "--assume", "world=sums", status=1)
        self.assertEqual(summed["summary"], {"proven": 0, "differs": 1, "unproven": 0})

    def test_pv_70_programs_with_their_own_collectives_are_proven(self):
        for program in ("by_hand", "buckets", "grid"):
            with self.subTest(program):
                self.assertEqual(self.prove(program, "--accept-inferred")["summary"]["proven"], 1)

    def test_graphs_that_dynamo_cut_at_the_buckets_of_ddp_are_joined(self):
        proof = self.prove("ddp_buckets", "--accept-inferred")
        (step,) = proof["passes"]
        self.assertEqual((step["status"], step["values"]), ("proven", 21))
        self.assertEqual(self.found("ddp_buckets", "half")[0], ("wrong-factor", "submod_3_div", "output 0"))
        text = read_log(log("ddp_buckets", "ranks")).decode()
        self.write("ranks.log", text.replace("optimize_ddp_split_graph", "another_graph"))
        self.assertEqual(self.fails("prove", log("ddp_buckets", "one_device"), "ranks.log"),
                         "several forward graphs: ranks.log: compilation 4/0: the log does not say how they belong "
                         "together")

    def test_operators_that_inductor_makes_have_definitions(self):
        (step,) = self.prove("inductor", "--accept-inferred")["passes"]
        self.assertEqual((step["status"], step["unknown_operators"]), ("proven", []))

    def test_parts_of_ranks_may_have_other_sizes(self):
        for program, values in (("uneven_batch", 5), ("uneven_columns", 5), ("uneven_vocabulary", 3)):
            with self.subTest(program):
                (step,) = self.prove(program, "--accept-inferred")["passes"]
                self.assertEqual((step["status"], step["values"]), ("proven", values))
        proof = self.prove("uneven_batch", ranks="own_mean", status=1)
        self.assertIn("the ranks' values add up to it with the weights 4/7, 3/7", proof["findings"][-1]["what"])

    def test_gradients_of_local_parts_are_summands(self):
        self.assertEqual(self.prove("local_gradients", "--accept-inferred")["passes"][0]["status"], "proven")
        self.assertEqual([(kind, module) for kind, _, module in self.found("local_gradients", "replicated")],
                         [("missing-collective", "gradient of norm")])

    def test_a_factor_explains_more_than_another_way_to_reduce(self):
        self.assertEqual(self.prove("accumulation", "--accept-inferred")["passes"][0]["status"], "proven")
        self.assertEqual({kind for kind, _, _ in self.found("accumulation", "no_division")}, {"wrong-factor"})

    def test_what_is_inferred_is_no_proof_until_it_is_accepted(self):
        done = self.run_strata("prove", log("tensor_parallel", "one_device"), log("tensor_parallel", "ranks"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, """\
✓ compilation 0/0, 2 ranks tp=2: 5 values equal
inferred: ranks hold R on tp: L_x_

proven: 1 of 1 steps, seed 1, p = 2^61-1
""")

    def test_what_was_inferred_can_be_pinned(self):
        files = log("fsdp", "one_device"), log("fsdp", "ranks")
        inferred = self.run_strata("prove", *files)
        self.assertEqual(inferred.returncode, 1)
        self.write("pins.txt", inferred.stdout)
        done = self.run_strata("prove", *files, "--pins", "pins.txt")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout, inferred.stdout.replace("inferred:", "assumed: "))
        # Of another program, what is new is inferred.
        done = self.run_strata("prove", log("ddp", "one_device"), log("ddp", "ranks"), "--pins", "pins.txt")
        self.assertEqual(done.returncode, 1)
        self.assertIn("inferred: ranks hold R on world: w3.weight, w3.bias\n", done.stdout)
        self.assertIn("inferred: ranks hold S(0) on world: L_y_\n", done.stdout)
        self.assertIn("assumed:  ranks hold S(0) on world: L_x_\n", done.stdout)
        self.write("none.txt", "nothing\n")
        self.assertEqual(self.fails("prove", *files, "--pins", "none.txt"),
                         "no pins: none.txt: give lines 'inferred: …' that strata prove printed")

    def test_pv_78_means_of_each_ranks_own_tokens_have_weights(self):
        proof = self.prove("token_mean", "--accept-inferred")
        self.assertEqual(proof["summary"], {"proven": 1, "differs": 0, "unproven": 0})
        self.prove("token_mean", "--accept-inferred", "--assume", "world=sums", status=1)
        proof = self.prove("token_mean", "--accept-inferred", "--assume", "world=averages", ranks="local_count", status=1)
        gradients = proof["findings"][-1]
        self.assertEqual((gradients["class"], gradients["module"]),
                         ("missing-collective", "gradient of w1.weight, gradient of w1.bias and 2 more"))
        weights = re.search(r"the ranks' values add up to it with the weights (\d+)/(\d+), (\d+)/(\d+)$", gradients["what"])
        self.assertTrue(weights, gradients["what"])
        tokens, total, others, of_all = map(int, weights.groups())
        self.assertNotEqual(tokens * of_all, others * total)
        self.assertEqual(tokens * of_all + others * total, total * of_all)

    def test_pv_78_a_view_that_joins_a_cut_dimension_is_no_cause(self):
        """Each rank's mean is over its own labels; the view behind a transpose is right."""
        found = self.found("encoder", "ranks", "--accept-inferred")
        self.assertEqual([(node, module.split(",")[0]) for _, node, module in found],
                         [("nll_loss_forward", "output 0"), ("div_1", "gradient of embedding.weight")])

    def test_pv_71_errors_of_programs_are_found_and_named(self):
        found = self.found("by_hand", "norm_gradient")
        self.assertEqual([(kind, module) for kind, _, module in found],
                         [("missing-collective", "gradient of norm")])
        found = self.found("by_hand", "loss_twice")
        self.assertEqual([kind for kind, _, _ in found], ["wrong-factor", "wrong-factor"])
        self.assertEqual((found[0][2], found[1][2]), ("output 0", "gradient of positions, gradient of norm and 2 more"))
        found = self.found("by_hand", "no_sum")
        self.assertEqual(found[0][0], "missing-collective")
        found = self.found("by_hand", "no_offset")
        self.assertEqual([(kind, node) for kind, node, _ in found], [("wrong-offset", "arange")])
        found = self.found("buckets", "exchanged")
        self.assertEqual([(kind, module) for kind, _, module in found],
                         [("exchanged", "gradient of wk"), ("exchanged", "gradient of wv")])
        found = self.found("grid", "wrong_group")
        self.assertEqual({kind for kind, _, _ in found}, {"wrong-group"})

    def test_pv_70_models_with_other_layers_are_proven(self):
        for program, steps, values in (("gated_mlp", 1, 7), ("grouped_queries", 2, 13), ("accumulated_tokens", 1, 9)):
            with self.subTest(program):
                proof = self.prove(program, "--accept-inferred")
                self.assertEqual(proof["summary"], {"proven": steps, "differs": 0, "unproven": 0})
                self.assertEqual(sum(step["values"] for step in proof["passes"]), values)

    def test_pv_71_the_call_that_is_wrong_is_compared_with_that_of_one_device(self):
        for program, bug, kind, node, reason in (
                ("gated_mlp", "bias_early", "partial-operand", "add_1",
                 "every rank adds primals_6 to its summand _unsafe_view_4 before the sum over the ranks"),
                ("gated_mlp", "norm", "missing-collective", "view_8", "it is P(sum) on world"),
                ("gated_mlp", "gate", "extra-operation", "roll", "roll (aten.roll.default) was not there"),
                ("grouped_queries", "repeat", "wrong-operation", "repeat",
                 "repeat (aten.repeat.default) reads cat_1, which unsqueeze_1 (aten.unsqueeze.default) reads on one device"),
                ("grouped_queries", "scale", "literal", "div", "4 instead of 2 in div"),
                ("grouped_queries", "causal", "missing-operation", "_softmax",
                 "masked_fill (aten.masked_fill.Scalar) is left out"),
                ("accumulated_tokens", "own_tokens", "missing-collective", "div",
                 "reads getitem_3, which is P(sum) on world")):
            with self.subTest(bug):
                first = self.prove(program, ranks=bug, status=1)["findings"][0]
                self.assertEqual((first["class"], first["node"], first["reason"]), (kind, node, reason))

    def test_an_input_that_no_rank_reads_decides_nothing_by_itself(self):
        proof = self.prove("accumulated_tokens", ranks="all_labels", status=1)
        (step,) = proof["passes"]
        self.assertEqual(step["status"], "differs")
        self.assertIn("the ranks do not read L_all_labels_", step["inferred"])

    def test_pv_72_the_log_of_one_of_several_ranks_is_no_proof(self):
        text = read_log(log("tensor_parallel", "ranks")).decode()
        first = text[: text.index('"rank": 1')].rsplit("\nV", 1)[0] + "\n"
        self.write("ranks/rank_0.log", first)
        done = self.run_strata("prove", log("tensor_parallel", "one_device"), "ranks")
        self.assertEqual(done.returncode, 1)
        self.assertIn("? compilation 0/0, 1 rank: unproven: an axis of 2 ranks, but logs of 1: give one of each rank",
                      done.stdout)

    def test_pv_73_logs_of_other_models_are_no_proof(self):
        done = self.run_strata("prove", log("ddp", "one_device"), log("tensor_parallel", "ranks"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("? compilation 0/0, 2 ranks: unproven: input w2.weight: sizes [8, 6] on ranks, [12, 12] on one "
                      "device, which no cut explains", done.stdout)
        done = self.run_strata("prove", log("by_hand", "one_device"), log("ddp", "ranks"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("unproven: inputs that have no counterpart: positions, norm and 3 more on one device, w1.weight, "
                      "w1.bias and 5 more on a rank", done.stdout)

    def test_ranks_that_compiled_other_modules_are_told_so(self):
        # Blocks that are compiled one by one, and a model that is compiled as a whole.
        done = self.run_strata("prove", log("ddp", "one_device"), log("two_axes", "ranks"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("unproven: one device has no such compilation, it has 0/0: compile the same modules on both",
                      done.stdout)

    def test_a_log_of_one_device_is_compared_with_logs_of_ranks(self):
        one = log("tensor_parallel", "one_device")
        self.write("empty.log", "")
        self.write("notes.txt", "no graph\n")
        for word in ("empty.log", "notes.txt", one):
            with self.subTest(word=word):
                self.assertEqual(self.fails("prove", one, word),
                                 f"no logs of several ranks: {word}: {one} is the log of one device, to compare with "
                                 "those")

    def test_a_folder_without_logs_says_so(self):
        os.mkdir(self.path("ranks"))
        one = log("tensor_parallel", "one_device")
        self.assertEqual(self.fails("prove", one, "ranks"), "no logs: ranks: give a folder with logs of PyTorch")

    def test_an_assumption_has_an_axis_and_what_is_done_over_it(self):
        words = ["prove", log("ddp", "one_device"), log("ddp", "ranks"), "--assume", "world"]
        self.assertEqual(self.fails(*words),
                         "not an assumption: 'world': write an axis and what code outside of the graphs does over it: "
                         "dp=averages or dp=sums")


if __name__ == "__main__":
    main()
