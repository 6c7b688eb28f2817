"""Pipelines train bitwise as one rank that accumulates the gradients of the same microbatches.

    pipeline_matrix_test.py STRATA [--all]

Without --all: 4 steps of cases that together have each schedule with each number of ranks, of stages and of microbatches,
and each model and layout. With --all: 20 steps of all combinations.
"""

import itertools
import json
import os
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main, sets  # noqa: E402

SEQ_LEN, VOCAB = 8, 40
COMMON = f"init=torchtitan_sharpened vocab_size={VOCAB} seq_len={SEQ_LEN} seed=3 optimizer.lr=3e-3 optimizer.max_grad_norm=0.5"
EXPERTS = "moe.num_experts=8 moe.top_k=2 moe.moe_hidden_dim=16"
MODELS = {
    "llama3": "model=llama3 dim=16 n_heads=4 n_kv_heads=4 hidden_dim=32",
    "qwen3 tied": "model=qwen3 dim=16 n_heads=4 n_kv_heads=4 head_dim=8 hidden_dim=32 enable_weight_tying=true",
    "deepseek_v3": f"model=deepseek_v3 dim=16 n_heads=4 hidden_dim=16 n_dense_layers=1 moe.num_shared_experts=1 {EXPERTS} "
                   "mla.kv_lora_rank=8 mla.qk_nope_head_dim=8 mla.qk_rope_head_dim=8 mla.v_head_dim=8",
}
# Sizes of values that go from forward to backward graphs depend on the tokens.
MODELS["deepseek_v3 data-dependent"] = MODELS["deepseek_v3"] + " moe.use_grouped_mm=false"
# Stages of a rank.
SCHEDULES = {"GPipe": (1,), "1F1B": (1,), "LoopedBFS": (2, 3), "Interleaved1F1B": (2, 3), "InterleavedZeroBubble": (2, 3),
             "ZBVZeroBubble": (2,), "DualPipeV": (2,)}
FIELDS = {"replicate": "data_parallel_replicate", "shard": "data_parallel_shard", "tensor": "tensor_parallel", "expert": "expert_parallel"}
LAYOUTS = ("shard=2", "replicate=2", "tensor=2", "shard=2 tensor=2", "replicate=2 shard=2", "shard=2 expert=2", "shard=2 tensor=2 expert=2")


def is_possible(schedule, stages, ranks, microbatches):
    if schedule == "1F1B":
        return microbatches >= ranks
    if schedule in ("Interleaved1F1B", "InterleavedZeroBubble"):
        return microbatches % max(1, microbatches // ranks) == 0 and microbatches >= ranks
    return schedule != "DualPipeV" or microbatches >= stages * ranks


def combinations():
    """(model, schedule, stages of a rank, ranks, microbatches)"""
    for model, schedule, ranks, microbatches in itertools.product(MODELS, SCHEDULES, (2, 4), (2, 4, 8)):
        for stages in SCHEDULES[schedule]:
            if is_possible(schedule, stages, ranks, microbatches):
                yield model, schedule, stages, ranks, microbatches


def covering(cases, parts):
    """Some of the cases. `parts` of a case are what some chosen case has to have; the first choice has the most new ones."""
    cases, chosen = list(cases), []
    missing = {part for case in cases for part in parts(*case)}
    while missing:
        best = max(cases, key=lambda case: len(missing.intersection(parts(*case))))
        missing.difference_update(parts(*best))
        chosen.append(best)
    return chosen


class PipelineMatrixTest(StrataCase):
    every, steps = False, 4

    def setUp(self):
        super().setUp()
        self.write("config.toml", "")
        self.oracles = {}

    def tokens(self, name, microbatches, rows, backwards):
        """A file of tokens: for each microbatch of each step `rows` sequences; in each step the last microbatch first."""
        values = []
        for sequence in range(self.steps * microbatches * rows):  # each token follows from the one before
            values += [(17 * sequence + 3 * place) % VOCAB for place in range(SEQ_LEN + 1)]
        size = rows * (SEQ_LEN + 1)
        batches = [values[i:i + size] for i in range(0, len(values), size)]
        if backwards:
            batches = [batches[step * microbatches + m] for step in range(self.steps) for m in reversed(range(microbatches))]
        data = struct.pack(f"<{len(values)}q", *(token for batch in batches for token in batch))
        shape = [len(batches), rows, SEQ_LEN + 1]
        header = json.dumps({"tokens": {"dtype": "I64", "shape": shape, "data_offsets": [0, len(data)]}}).encode()
        with open(self.path(name), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + data)

    def train(self, settings, microbatches, rows, backwards=False):
        """(losses, norms, bytes of gradients and parameters)"""
        self.tokens("tokens.safetensors", microbatches, rows, backwards)
        done = self.run_strata("train", "config.toml", "--threads", "1", "--tokens", "tokens.safetensors", "--metrics", "m.jsonl", "--dump-grads", "g.safetensors",
                               "--save", "p.safetensors", "--overwrite", "--passes", "dce,canonicalize", *sets(*COMMON.split(), f"steps={self.steps}", *settings))
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = list(map(json.loads, self.read("m.jsonl").splitlines()))
        self.assertEqual(len(steps), self.steps)
        files = []
        for name in ("g.safetensors", "p.safetensors"):
            with open(self.path(name), "rb") as file:
                files.append(file.read())
        return [step["loss"] for step in steps], [step["grad_norm"] for step in steps], files

    def compare(self, model, layers, layout, schedule, stages, ranks, microbatches):
        degrees = {axis: int(size) for axis, size in (word.split("=") for word in layout.split())}
        rows = degrees.get("shard", 1) * degrees.get("replicate", 1)
        common = [*MODELS[model].split(), f"n_layers={layers}", *(f"parallelism.{FIELDS[axis]}_degree={size}" for axis, size in degrees.items())]
        if len(degrees) > 0:
            # One collective a step adds in another order than one for each microbatch.
            common.append('compile.disable_passes=["split-fsdp","bucket-transformer-blocks"]')
        backwards = schedule == "LoopedBFS"
        key = (model, layers, layout, microbatches, backwards)
        if key not in self.oracles:
            self.oracles[key] = self.train([*common, "batch_size=1", f"training.num_tokens_per_train_step={SEQ_LEN * microbatches * rows}"], microbatches, rows, backwards)
        parallelism = [f"parallelism.pipeline_parallel_{key}={value}" for key, value in (("degree", ranks), ("schedule", schedule))]
        if schedule not in ("GPipe", "1F1B"):
            parallelism.append(f"parallelism.pipeline_parallel_layers_per_stage={(layers + 2) // (stages * ranks)}")
        one = self.oracles[key]
        found = self.train([*common, *parallelism, "batch_size=1", f"parallelism.num_pp_microbatches={microbatches}"], microbatches, rows)
        if backwards:  # Losses are added from the first microbatch to the last.
            self.assertLess(max(abs(a - b) for a, b in zip(found[0], one[0])), 2e-6)
        else:
            self.assertEqual(found[0], one[0])
        self.assertEqual(found[1], one[1])
        self.assertEqual(found[2], one[2])
        if self.steps == 20:
            self.assertLess(one[0][-1], one[0][0])

    def test_each_schedule_has_the_bits_of_one_rank(self):
        def parts(model, schedule, stages, ranks, microbatches):
            return {model, (schedule, "stages", stages), (schedule, "ranks", ranks), (schedule, "microbatches", microbatches)}

        cases = list(combinations()) if self.every else covering(combinations(), parts)
        for case in cases:
            with self.subTest(case=case):
                model, schedule, stages, ranks, microbatches = case
                units = stages * ranks  # layers, and the embedding and the head, which count as one each
                self.compare(model, 2 * units - 2 if units < 6 else units - 2, "", schedule, stages, ranks, microbatches)
        print(f"{len(cases)} pipelines", file=sys.stderr)

    def test_each_layout_has_the_bits_of_its_ranks_without_a_pipeline(self):
        layouts = [(model, layout, schedule) for model, layout, schedule in itertools.product(MODELS, LAYOUTS, SCHEDULES)
                   if "data-dependent" not in model and ("expert" not in layout or "moe" in MODELS[model])]
        cases = layouts if self.every else covering(layouts, lambda *case: set(case))
        for model, layout, schedule in cases:
            with self.subTest(model=model, layout=layout, schedule=schedule):
                self.compare(model, 6, layout, schedule, SCHEDULES[schedule][0], 2, 4)
        print(f"{len(cases)} layouts", file=sys.stderr)


if __name__ == "__main__":
    if "--all" in sys.argv:
        sys.argv.remove("--all")
        PipelineMatrixTest.every, PipelineMatrixTest.steps = True, 20
    main()
