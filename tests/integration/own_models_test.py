"""A step that PyTorch traced trains as graphs of Strata's own do, on one rank and on several.

    own_models_test.py STRATA
"""

import json
import math
import os
import struct
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOG = os.path.join(ROOT, "tests", "data", "logs", "graph_trainer_2layer_torch2.14.1.log.zst")
PROGRAM = f"{LOG}#pass=0:before"
DATA = os.path.join(ROOT, "tests", "data", "own_program")
sys.path[:0] = [DATA, os.path.join(ROOT, "tests", "support")]

import make_losses  # noqa: E402
from own_model_case import LOOP, OwnModelCase, draw  # noqa: E402
from tensor_files import read_tensors, write_tensors  # noqa: E402

# A constant, tokens, two parameters, labels, the gradient of the loss.
JOINT = """\
class inner_f(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[8]"; primals_2: "i64[2, 4]"; primals_3: "f32[8]"; primals_4: "f32[8]"; primals_5: "i64[2, 4]"; tangents_1: "f32[]";
        primals_1, primals_2, primals_3, primals_4, primals_5, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        _tensor_constant0: "i64[8]" = self._tensor_constant0
        rows: "f32[8]" = torch.ops.aten.index.Tensor(primals_3, [_tensor_constant0])
        sums: "f32[8]" = torch.ops.aten.add.Tensor(rows, primals_4)
        off: "f32[8]" = torch.ops.aten.sub.Tensor(sums, primals_1)
        square: "f32[8]" = torch.ops.aten.mul.Tensor(off, off)
        loss: "f32[]" = torch.ops.aten.sum.default(square)
        twice: "f32[]" = torch.ops.aten.mul.Tensor(tangents_1, 2)
        gradient: "f32[8]" = torch.ops.aten.mul.Tensor(off, twice)
        return pytree.tree_unflatten([loss, None, None, gradient, gradient, None], self._out_spec)
"""
IN_ORDER = """\
graph step
  a = placeholder : f32[8][1]cpu
  b = placeholder : f32[8][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  off = aten.sub.Tensor(a, b) : f32[8][1]cpu
  square = aten.mul.Tensor(off, off) : f32[8][1]cpu
  loss = aten.sum.default(square) : f32[][]cpu
  g = aten.mul.Tensor(off, 2) : f32[8][1]cpu
  output([loss, g])
"""

# Half of the parameter's elements are dropped.
DROPOUT = """\
graph step
  a = placeholder : f32[8][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  keep = aten.bernoulli.p(a, 0.5) : f32[8][1]cpu
  kept = aten.mul.Tensor(a, keep) : f32[8][1]cpu
  square = aten.mul.Tensor(kept, kept) : f32[8][1]cpu
  loss = aten.sum.default(square) : f32[][]cpu
  g = aten.mul.Tensor(kept, 2) : f32[8][1]cpu
  output([loss, g])
"""

# The square of a parameter that decays, and its gradient, as operators or as calls of bodies.
DECAY = """\
graph step
  a = placeholder : f32[8][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
{calls}
  loss = aten.sum.default(square) : f32[][]cpu
  g = aten.mul.Tensor(b, 2) : f32[8][1]cpu
  output([loss, g])
"""
FLAT_DECAY = DECAY.format(calls="""\
  half = aten.full.default([8], 0.5, dtype=torch.float32, device=device('cpu')) : f32[8][1]cpu
  b = aten.mul.Tensor(a, half) : f32[8][1]cpu
  square = aten.mul.Tensor(b, b) : f32[8][1]cpu""")
NESTED_DECAY = DECAY.format(calls="""\
  body = attr decays(graph(1))
  (b, square) = higher_order.{call}) as call : (f32[8][1]cpu, f32[8][1]cpu)""") + """\
graph decays body
  x = placeholder : f32[8][1]cpu
  half = aten.full.default([8], 0.5, dtype=torch.float32, device=device('cpu')) : f32[8][1]cpu
  b = aten.mul.Tensor(x, half) : f32[8][1]cpu
  square = aten.mul.Tensor(b, b) : f32[8][1]cpu
  output((b, square))
"""

# Rows of a table, of which half the elements are dropped, and noise: numbers by the place in the batch of all ranks.
NOISE = """\
graph step
  w = placeholder : f32[8, 4][4, 1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  x = aten.embedding.default(w, tokens) : f32[2, 4, 4][16, 4, 1]cpu
  memory = aten.empty_like.default(x) : f32[2, 4, 4][16, 4, 1]cpu
  keep = aten.bernoulli_.float(memory, 0.5) : f32[2, 4, 4][16, 4, 1]cpu ~memory
  scale = aten.div_.Scalar(keep, 0.5) : f32[2, 4, 4][16, 4, 1]cpu ~memory
  kept = aten.mul.Tensor(x, scale) : f32[2, 4, 4][16, 4, 1]cpu
  again = aten.bernoulli.p(kept, 0.5) : f32[2, 4, 4][16, 4, 1]cpu
  even = aten.rand_like.default(kept) : f32[2, 4, 4][16, 4, 1]cpu
  normal = aten.randn.default([2, 4, 4], dtype=torch.float32) : f32[2, 4, 4][16, 4, 1]cpu
  both = aten.add.Tensor(even, normal) : f32[2, 4, 4][16, 4, 1]cpu
  noise = aten.mul.Tensor(both, again) : f32[2, 4, 4][16, 4, 1]cpu
  sum = aten.add.Tensor(kept, noise) : f32[2, 4, 4][16, 4, 1]cpu
  (some, mask) = aten.native_dropout.default(sum, 0.25, True) as dropout : (f32[2, 4, 4][16, 4, 1]cpu, b8[2, 4, 4][16, 4, 1]cpu)
  order = aten.randperm.default(4, dtype=torch.int64) : i64[4][1]cpu
  mixed = aten.index.Tensor(some, [None, order]) : f32[2, 4, 4][16, 4, 1]cpu
  times = aten.randint.low(1, 4, [2, 4, 1], dtype=torch.int64) : i64[2, 4, 1][4, 1, 1]cpu
  turned = aten.transpose.int(mixed, 1, 2) : f32[2, 4, 4][16, 1, 4]cpu ~mixed
  other = aten.randn_like.default(turned) : f32[2, 4, 4][16, 1, 4]cpu
  more = aten.transpose.int(other, 1, 2) : f32[2, 4, 4][16, 4, 1]cpu ~other
  y = aten.addcmul.default(more, mixed, times) : f32[2, 4, 4][16, 4, 1]cpu
  square = aten.mul.Tensor(y, y) : f32[2, 4, 4][16, 4, 1]cpu
  loss = aten.sum.default(square) : f32[][]cpu
  g_y = aten.native_dropout_backward.default(y, mask, 2) : f32[2, 4, 4][16, 4, 1]cpu
  g_x = aten.mul.Tensor(g_y, scale) : f32[2, 4, 4][16, 4, 1]cpu
  g = aten.embedding_dense_backward.default(g_x, tokens, 8, -1, False) : f32[8, 4][4, 1]cpu
  output([loss, g])
"""

# A batch norm's running mean: the step writes it, and reads it in the next one.
RUNNING_MEAN = """\
graph step
  a = placeholder : f32[8][1]cpu
  running_mean = placeholder : f32[8][1]cpu
  tracked = placeholder : i64[][]cpu
  turn = placeholder : c64[8][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  next = aten.lerp.Scalar(running_mean, a, 0.5) : f32[8][1]cpu
  written = aten.copy_.default(running_mean, next) : f32[8][1]cpu
  counted = aten.add_.Tensor(tracked, 1) : i64[][]cpu
  angle = aten.angle.default(turn) : f32[8][1]cpu
  off = aten.sub.Tensor(a, next) : f32[8][1]cpu
  turned = aten.add.Tensor(off, angle) : f32[8][1]cpu
  square = aten.mul.Tensor(turned, turned) : f32[8][1]cpu
  loss = aten.sum.default(square) : f32[][]cpu
  g = aten.mul.Tensor(turned, 2) : f32[8][1]cpu
  output([loss, g])
"""

# The same as AOTAutograd returns it: new values come before the loss.
RETURNED_MEAN = RUNNING_MEAN.replace("  written = aten.copy_.default(running_mean, next) : f32[8][1]cpu\n", "").replace(
    "aten.add_.Tensor(tracked", "aten.add.Tensor(tracked").replace(
    "output([loss, g])", "output([next, counted, loss, g, None, None, None, None, None])")
# The same in another order, with descriptors. The first constant has the type of the mean, too.
DESCRIBED_MEAN = RETURNED_MEAN.replace(
    "  a = placeholder : f32[8][1]cpu\n  running_mean = placeholder : f32[8][1]cpu\n",
    "  a = placeholder : f32[8][1]cpu\n  scale = placeholder : f32[8][1]cpu\n"
    "  running_mean = placeholder : f32[8][1]cpu {+descriptor='PlainAOTInput(idx=1)'}\n").replace(
    "  tracked = placeholder : i64[][]cpu\n",
    "  tracked = placeholder : i64[][]cpu {+descriptor='PlainAOTInput(idx=2)'}\n").replace(
    "output([next, counted, loss, g, None, None, None, None, None])",
    "output([counted, next, loss, g, None, None, None, None, None, None]) "
    "{+descriptors='InputMutationAOTOutput(mutated_input=PlainAOTInput(idx=2))\\n"
    "InputMutationAOTOutput(mutated_input=PlainAOTInput(idx=1))\\nPlainAOTOutput(idx=0)'}")

# Features in floats, by the number of their row.
FEATURES = """\
graph step
  a = placeholder : f32[3][1]cpu
  features = placeholder : f32[8, 3][3, 1]cpu
  classes = placeholder : i64[8][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  x = aten.index.Tensor(features, [tokens]) : f32[2, 4, 3][12, 3, 1]cpu
  wanted = aten.index.Tensor(classes, [tokens]) : i64[2, 4][4, 1]cpu
  terms = aten.mul.Tensor(x, a) : f32[2, 4, 3][12, 3, 1]cpu
  found = aten.sum.dim_IntList(terms, [2]) : f32[2, 4][4, 1]cpu
  off = aten.sub.Tensor(found, wanted) : f32[2, 4][4, 1]cpu
  square = aten.mul.Tensor(off, off) : f32[2, 4][4, 1]cpu
  loss = aten.sum.default(square) : f32[][]cpu
  twice = aten.mul.Tensor(off, 2) : f32[2, 4][4, 1]cpu
  apart = aten.unsqueeze.default(twice, 2) : f32[2, 4, 1][4, 1, 1]cpu ~twice
  parts = aten.mul.Tensor(x, apart) : f32[2, 4, 3][12, 3, 1]cpu
  g = aten.sum.dim_IntList(parts, [0, 1]) : f32[3][1]cpu
  output([loss, g])
"""


# A gradient of what was written in place, as autograd takes it, and one of a diagonal.
STRIDES = """\
graph step
  a = placeholder : f32[8, 4][4, 1]cpu
  low = placeholder : f32[4][1]cpu
  tokens = placeholder : i64[2, 4][4, 1]cpu
  labels = placeholder : i64[2, 4][4, 1]cpu
  x = aten.embedding.default(a, tokens) : f32[2, 4, 4][16, 4, 1]cpu
  corner = aten.diagonal.default(x, 0, 1, 2) : f32[2, 4][16, 5]cpu ~x
  masked = aten.add.Tensor(corner, low) : f32[2, 4][4, 1]cpu
  soft = aten._safe_softmax.default(masked, -1) : f32[2, 4][4, 1]cpu
  square = aten.mul.Tensor(soft, soft) : f32[2, 4][4, 1]cpu
  mean = aten.mean.dim(x, [0, 1], True) : f32[1, 1, 4][4, 4, 1]cpu
  squares = aten.mul.Tensor(mean, mean) : f32[1, 1, 4][4, 4, 1]cpu
  of_mean = aten.sum.default(squares) : f32[][]cpu
  of_soft = aten.sum.default(square) : f32[][]cpu
  loss = aten.add.Tensor(of_mean, of_soft) : f32[][]cpu
  twice = aten.mul.Tensor(soft, 2) : f32[2, 4][4, 1]cpu
  of_masked = aten._softmax_backward_data.default(twice, soft, -1, torch.float32) : f32[2, 4][4, 1]cpu
  of_corner = aten.diagonal_backward.default(of_masked, [2, 4, 4], 0, 1, 2) : f32[2, 4, 4][16, 4, 1]cpu
  memory = aten.new_empty_strided.default(of_corner, [2, 4, 4], [16, 4, 1]) : f32[2, 4, 4][16, 4, 1]cpu
  copied = aten.copy_.default(memory, of_corner) : f32[2, 4, 4][16, 4, 1]cpu ~memory
  part = aten.as_strided.default(copied, [2, 4, 2], [16, 4, 1], 2) : f32[2, 4, 2][16, 4, 1]cpu@(2) ~memory
  half = aten.mul_.Tensor(part, 0.5) : f32[2, 4, 2][16, 4, 1]cpu@(2) ~memory
  g_x = aten.add.Tensor(copied, mean) : f32[2, 4, 4][16, 4, 1]cpu
  g = aten.embedding_dense_backward.default(g_x, tokens, 8, -1, False) : f32[8, 4][4, 1]cpu
  output([loss, g])
"""


class OwnModelsTest(OwnModelCase):
    def write_parameters(self):
        """Values for the inputs of the program of the log: weights, norms of ones, the rope table."""
        shapes = {0: [256, 64], 20: [256, 64]}
        for layer in (1, 10):
            shapes.update({layer + i: [64, 64] for i in range(4)})
            shapes.update({layer + 4: [256, 64], layer + 5: [64, 256], layer + 6: [256, 64]})
        tensors = {}
        for index, shape in shapes.items():
            elements = shape[0] * shape[1]
            tensors[f"arg{index}_1"] = ("F32", shape, draw(elements, 0.05, index + 1))
        for index in (8, 9, 17, 18, 19):
            tensors[f"arg{index}_1"] = ("F32", [64], struct.pack("<64f", *[1.0] * 64))
        tensors["arg21_1#complex"] = ("F32", [128, 8, 2], struct.pack("<2048f", *[1.0, 0.0] * 1024))
        write_tensors(self.path("init.safetensors"), tensors)
        return tensors

    def test_a_joint_graph_of_pytorch_trains_and_computes_what_its_text_computes(self):
        self.write("config.toml", LOOP.format(vocab=256, seq=128))
        tensors = self.write_parameters()
        self.printed("train", "config.toml", "--program", PROGRAM, "--init", "init.safetensors", "--metrics",
                     "m.jsonl", "--dump-inputs", "in.safetensors", "--dump-grads", "grads.safetensors",
                     "--trace", "t.strata")
        losses = self.losses("m.jsonl")
        self.assertEqual(len(losses), 6)
        self.assertLess(losses[-1], losses[0])

        # The text itself, executed on the same batch, in the types that it has.
        batch = read_tensors(self.path("in.safetensors"))
        inputs = {name: self.narrowed(tensor) if "complex" not in name else tensor for name, tensor in tensors.items()}
        inputs["arg22_1"], inputs["arg23_1"] = batch["tokens"], batch["labels"]
        write_tensors(self.path("text.safetensors"), inputs)
        self.printed("run", PROGRAM, "--inputs", "text.safetensors", "--outputs", "out.safetensors")
        outputs = read_tensors(self.path("out.safetensors"))
        (loss,) = struct.unpack("<f", outputs["getitem_4"][2])
        self.assertEqual(losses[0], loss)
        embedding = read_tensors(self.path("grads.safetensors"))["arg0_1"]
        self.assertEqual(self.narrowed(embedding)[2], outputs["embedding_dense_backward"][2])

        # Nodes keep the module paths of the program.
        self.assertIn("layers.1.attention", self.printed("show", "t.strata#graph=step"))

    def narrowed(self, tensor):
        """bf16, rounded to nearest even."""
        _, shape, data = tensor
        narrow = []
        for (bits,) in struct.iter_unpack("<I", data):
            narrow.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
        return "BF16", shape, struct.pack(f"<{len(narrow)}H", *narrow)

    def test_what_is_no_step_is_refused(self):
        self.write("config.toml", LOOP.format(vocab=16, seq=4))
        self.write_parameters()
        self.assertIn("must be int64 of [batch_size, seq_len] of the configuration, [2, 4]: its int64 inputs are "
                      "arg22_1 [2, 128], arg23_1 [2, 128]",
                      self.printed("train", "config.toml", "--program", PROGRAM, "--init", "init.safetensors",
                                   status=2))
        self.write("g.txt", "graph g\n  x = placeholder : f32[4][1]cpu\n  y = aten.neg.default(x) : f32[4][1]cpu\n"
                            "  output([y])\n")
        self.assertIn("the first output must be the loss",
                      self.printed("train", "config.toml", "--program", "g.txt", "--init", "init.safetensors",
                                   status=2))
        self.write("product.txt", IN_ORDER.replace("aten.mul.Tensor(off, off)", "aten.mm.default(off, off)"))
        write_tensors(self.path("two.safetensors"), {name: ("F32", [8], draw(8, 1.0, 3)) for name in ("a", "b")})
        self.assertIn("cannot trace aten.mm.default: square: ",
                      self.printed("train", "config.toml", "--program", "product.txt", "--init", "two.safetensors",
                                   status=2))
        self.assertIn("a program has no initial values",
                      self.printed("train", "config.toml", "--program", PROGRAM, "--set", "seq_len=128", status=2))
        self.assertIn("'dim'", self.printed("train", "config.toml", "--program", "g.txt", "--set", "dim=8", status=2))
        self.assertIn("cannot load the model",
                      self.printed("train", "config.toml", "--model", "none.so", status=2))
        self.assertIn("empty file name", self.printed("train", "config.toml", "--model", "", status=2))
        self.assertIn("are two models", self.printed("train", "config.toml", "--model", "a.so", "--program", "g.txt",
                                                     status=2))

    def test_models_that_pytorch_traced_lose_what_they_lose_there(self):
        with open(os.path.join(DATA, "losses.json"), encoding="utf-8") as file:
            stored = json.load(file)
        self.write("config.json", json.dumps(make_losses.CONFIG))
        for name, theirs in stored.items():
            with self.subTest(name):
                model = os.path.join(DATA, name)
                self.printed("train", "config.json", "--program", f"{model}.txt", "--init", f"{model}.safetensors",
                             "--tokens", os.path.join(DATA, "tokens.safetensors"), "--threads", "1", "--metrics",
                             f"{name}.jsonl", "--save", f"{name}.safetensors")
                with open(self.path(f"{name}.jsonl"), encoding="utf-8") as file:
                    ours = [[step["loss"], step["grad_norm"]] for step in map(json.loads, file)]
                self.assertEqual(len(ours), len(theirs))
                # Bitwise on one processor; libraries of others round otherwise.
                self.assertLess(max(abs(a - b) for pair in zip(ours, theirs) for a, b in zip(*pair)), 1e-5)
                # What is trained has the names of the model's state_dict.
                self.assertLessEqual(set(read_tensors(self.path(f"{name}.safetensors"))),
                                     set(read_tensors(f"{model}.safetensors")))

    def test_models_that_pytorch_traced_lose_the_same_on_several_ranks(self):
        """The graph has the batch of all ranks; every pass is proven."""
        self.write("config.json", json.dumps({**make_losses.CONFIG, "steps": 5}))
        with open(os.path.join(DATA, "losses.json"), encoding="utf-8") as file:
            stored = json.load(file)
        shard = ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=1")
        tensor = ("--set", "parallelism.tensor_parallel_degree=2")
        replicate = ("--set", "parallelism.data_parallel_replicate_degree=2", "--set", "batch_size=1")
        for name, layouts in {"transformer": [shard + tensor, (*shard, "--nproc", "2")],
                              "convolution": [shard + tensor, replicate]}.items():
            for number, layout in enumerate(layouts):
                with self.subTest(name, layout=layout):
                    model = os.path.join(DATA, name)
                    proof = () if "--nproc" in layout else ("--prove-exact",)
                    self.printed("train", "config.json", "--program", f"{model}.txt", "--init",
                                 f"{model}.safetensors", "--tokens", os.path.join(DATA, "tokens.safetensors"),
                                 "--metrics", f"{name}{number}.jsonl", "--save", f"{name}{number}.safetensors",
                                 *layout, *proof)
                    self.close(self.losses(f"{name}{number}.jsonl"), [loss for loss, _ in stored[name][:5]])
                    # Whole tensors, and the constants.
                    self.assertEqual(
                        {key: tensor[1] for key, tensor in read_tensors(self.path(f"{name}{number}.safetensors")).items()},
                        {key: tensor[1] for key, tensor in read_tensors(f"{model}.safetensors").items()})

    def test_a_plan_that_is_found_for_a_program_trains_it(self):
        self.write("config.json", json.dumps({**make_losses.CONFIG, "steps": 2}))
        model = os.path.join(DATA, "transformer")

        def losses(name, *options):
            self.printed("train", "config.json", "--program", f"{model}.txt", "--init", f"{model}.safetensors",
                         "--metrics", name, *options)
            return self.losses(name)

        whole = losses("one.jsonl", "--trace", "t.strata")
        found = self.printed("place", "t.strata#graph=step,pass=0:before", "--mesh", "fsdp=2,tp=2", "--topology",
                             "cpu", "-o", "plan.toml")
        self.assertIn("no placements cost less", found)
        self.close(losses("ranks.jsonl", "--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=1",
                          "--set", "parallelism.tensor_parallel_degree=2", "--set", "parallelism.plan=plan.toml"), whole)
        self.assertIn("no input is known to be a parameter: ",
                      self.printed("place", f"{model}.txt", "--mesh", "tp=2", status=2))

    def test_ranks_write_what_one_rank_writes_and_resume(self):
        self.write("joint.txt", RUNNING_MEAN)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        write_tensors(self.path("init.safetensors"), {
            "a": ("F32", [8], draw(8, 1.0, 3)), "running_mean": ("F32", [8], draw(8, 1.0, 4)),
            "tracked": ("I64", [], struct.pack("<q", 0)), "turn#complex": ("F32", [8, 2], draw(16, 1.0, 5))})

        def train(name, *options):
            self.printed("train", "config.toml", "--program", "joint.txt", "--init", "init.safetensors", "--metrics",
                         f"{name}.jsonl", "--save", f"{name}.safetensors", *options)
            return self.losses(f"{name}.jsonl"), read_tensors(self.path(f"{name}.safetensors"))

        ranks = ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=1")
        losses, end = train("one")
        of_ranks, on_ranks = train("ranks", *ranks)
        self.close(of_ranks, losses)
        self.assertEqual(on_ranks["tracked"], end["tracked"])
        self.close(*(struct.unpack("<8f", tensors["running_mean"][2]) for tensors in (on_ranks, end)))
        kept = (*ranks, "--set", "checkpoint.enable=true", "--set", "checkpoint.interval=3", "--set",
                "checkpoint.folder=c", "--set", "checkpoint.last_save_model_only=false")
        begun, _ = train("begun", *kept, "--set", "steps=3")
        rest, resumed = train("rest", *kept, "--resume")
        self.assertEqual(begun + rest, of_ranks)
        self.assertEqual(resumed, on_ranks)

    def test_bodies_of_a_program_are_traced_into_its_step(self):
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        write_tensors(self.path("init.safetensors"), {"a": ("F32", [8], draw(8, 1.0, 3))})
        self.write("flat.txt", FLAT_DECAY)
        self.write("nested.txt", NESTED_DECAY.format(call="invoke_subgraph(body, 'decays', a"))
        self.write("cond.txt", NESTED_DECAY.format(call="cond(True, body, body, (a,)"))

        def train(name, *options, status=0):
            return self.printed("train", "config.toml", "--program", f"{name}.txt", "--init", "init.safetensors",
                                "--metrics", f"{name}.jsonl", *options, status=status)

        train("flat")
        for ranks in ((), ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=1")):
            train("nested", *ranks, "--prove-exact")
            self.close(self.losses("nested.jsonl"), self.losses("flat.jsonl"))
        self.assertIn("call: higher_order.cond runs what data decides, which a training cannot trace: strata run "
                      "executes it", train("cond", status=2))

    def test_what_ranks_cannot_share_of_a_program_is_refused(self):
        self.write("joint.txt", DROPOUT)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        write_tensors(self.path("init.safetensors"), {"a": ("F32", [8], draw(8, 1.0, 3))})
        train = ("train", "config.toml", "--program", "joint.txt", "--init", "init.safetensors")
        for key, why in (("pipeline_parallel_degree", "is not cut into stages"),
                         ("context_parallel_degree", "has whole sequences"),
                         ("expert_parallel_degree", "has no experts that Strata knows")):
            self.assertIn(why, self.printed(*train, "--set", f"parallelism.{key}=2", "--set",
                                            "parallelism.data_parallel_shard_degree=2", status=2))
        self.assertIn("must be int64 of [batch_size · 2 data ranks, seq_len] of the configuration, [4, 4]: its int64 inputs "
                      "are tokens [2, 4], labels [2, 4]",
                      self.printed(*train, "--set", "parallelism.data_parallel_shard_degree=2", status=2))
        self.write("joint.txt", DROPOUT.replace("aten.bernoulli.p(a, 0.5)", "aten.special_bessel_j0.default(a)"))
        self.assertIn("no sharding rule for aten.special_bessel_j0.default: ",
                      self.printed(*train, "--set", "parallelism.data_parallel_shard_degree=2", "--set",
                                   "batch_size=1", status=2))

    def test_pytorch_traces_and_loses_the_same_again(self):
        python = os.path.join(ROOT, ".venv-bench", "bin", "python")
        if not os.path.exists(python):
            self.skipTest("no PyTorch: ./dev setup bench")
        done = subprocess.run([python, "-B", "-W", "ignore", os.path.join(DATA, "make_losses.py"), self.folder],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in make_losses.NAMES:
            with open(self.path(f"{name}.txt"), encoding="utf-8") as ours, \
                    open(os.path.join(DATA, f"{name}.txt"), encoding="utf-8") as stored:
                self.assertEqual(ours.read(), stored.read())

    def test_a_joint_graph_of_aot_autograd_trains(self):
        """Gradients are in the places of their inputs, None where there is none; the loss has a gradient of its own,
        1. Types without strides are what print_readable() writes by default."""
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        self.write("joint.txt", JOINT)
        write_tensors(self.path("init.safetensors"), {
            "primals_1": ("F32", [8], draw(8, 1.0, 3)), "primals_3": ("F32", [8], draw(8, 1.0, 4)),
            "primals_4": ("F32", [8], draw(8, 1.0, 5)), "_tensor_constant0": ("I64", [8], struct.pack("<8q", *range(8)))})
        self.printed("train", "config.toml", "--program", "joint.txt", "--init", "init.safetensors", "--metrics",
                     "m.jsonl", "--save", "end.safetensors", "--trace", "t.strata")
        losses = self.losses("m.jsonl")
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(sorted(read_tensors(self.path("end.safetensors"))),
                         ["_tensor_constant0", "primals_1", "primals_3", "primals_4"])
        self.assertIn("aten.ones", self.printed("show", "t.strata#graph=step,pass=0:before"))

    def test_an_input_that_may_be_a_parameter_is_named(self):
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        self.write("joint.txt", IN_ORDER)
        write_tensors(self.path("init.safetensors"), {
            "a": ("F32", [8], draw(8, 1.0, 3)), "b": ("F32", [8], draw(8, 1.0, 4))})
        done = subprocess.run([self.strata, "train", "config.toml", "--program", "joint.txt", "--init",
                               "init.safetensors"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("joint.txt: output 1, g, may be the gradient of a or of b, which have its sizes: a is taken as "
                      "the parameter; list parameters before constants", done.stderr)

    def test_an_input_whose_descriptor_is_a_buffers_is_no_parameter(self):
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        for buffer, parameter in (("a", "b"), ("b", "a")):
            line = f"  {buffer} = placeholder : f32[8][1]cpu"
            self.write("joint.txt", IN_ORDER.replace(
                line, f"{line} {{+descriptor='BufferAOTInput(target=\\'{buffer}\\')'}}"))
            write_tensors(self.path("init.safetensors"), {
                "a": ("F32", [8], draw(8, 1.0, 3)), "b": ("F32", [8], draw(8, 1.0, 4))})
            done = subprocess.run([self.strata, "train", "config.toml", "--program", "joint.txt", "--init",
                                   "init.safetensors", "--save", "end.safetensors"], cwd=self.folder,
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            begin, end = (read_tensors(self.path(f"{name}.safetensors")) for name in ("init", "end"))
            self.assertEqual(begin[buffer], end[buffer])
            self.assertNotEqual(begin[parameter], end[parameter])

    def test_random_numbers_depend_on_seed_and_step_only(self):
        self.write("joint.txt", DROPOUT)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        write_tensors(self.path("init.safetensors"), {"a": ("F32", [8], draw(8, 1.0, 3))})

        def losses(name, *options):
            self.printed("train", "config.toml", "--program", "joint.txt", "--metrics", name, *options)
            return self.losses(name)

        init = ("--init", "init.safetensors")
        whole = losses("whole.jsonl", *init)
        self.assertEqual(losses("again.jsonl", *init), whole)
        self.assertNotEqual(losses("other.jsonl", *init, "--set", "seed=2"), whole)
        kept = (*init, "--set", "checkpoint.enable=true", "--set", "checkpoint.interval=3", "--set",
                "checkpoint.folder=c", "--set", "checkpoint.last_save_model_only=false")
        begun = losses("begun.jsonl", *kept, "--set", "steps=3")
        self.assertEqual(begun + losses("rest.jsonl", *kept, "--resume"), whole)

    def test_ranks_draw_the_numbers_of_one_rank(self):
        """Each its part of them, from the same seed."""
        self.write("joint.txt", NOISE)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        write_tensors(self.path("init.safetensors"), {"w": ("F32", [8, 4], draw(32, 1.0, 3))})

        def losses(name, *options):
            self.printed("train", "config.toml", "--program", "joint.txt", "--init", "init.safetensors", "--metrics",
                         f"{name}.jsonl", *options)
            return self.losses(f"{name}.jsonl")

        whole = losses("whole")
        shard = ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=1")
        tensor = ("--set", "parallelism.tensor_parallel_degree=2")
        for name, layout in {"threads": (*shard, "--prove-exact"), "processes": (*shard, "--nproc", "2"),
                             "found": tensor, "both": shard + tensor}.items():
            with self.subTest(name):
                ranks = losses(name, *layout)
                self.assertEqual(len(ranks), len(whole))
                for of_ranks, of_one in zip(ranks, whole):
                    self.assertAlmostEqual(of_ranks, of_one, delta=1e-5 * of_one)
        self.assertNotEqual(losses("other", *shard, "--set", "seed=2"), whole)

    def test_ranks_view_gradients_by_strides_and_diagonals(self):
        """Nothing of it is gathered, and every pass is proven."""
        self.write("joint.txt", STRIDES)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        write_tensors(self.path("init.safetensors"), {
            "a": ("F32", [8, 4], draw(32, 1.0, 3)),
            "low": ("F32", [4], struct.pack("<4f", 0.0, -math.inf, 0.0, 0.5))})

        def train(name, *options):
            done = subprocess.run([self.strata, "train", "config.toml", "--program", "joint.txt", "--init",
                                   "init.safetensors", "--metrics", f"{name}.jsonl", *options], cwd=self.folder,
                                  capture_output=True, text=True, timeout=180, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("not proved", done.stderr)
            return self.losses(f"{name}.jsonl")

        whole = train("one")
        shard = ("--set", "parallelism.data_parallel_shard_degree=2", "--set", "batch_size=1", "--prove-exact")
        tensor = ("--set", "parallelism.tensor_parallel_degree=2", "--prove-exact")
        self.close(train("shard", *shard, "--trace", "t.strata"), whole)
        self.close(train("tensor", *tensor), whole)
        placed = self.printed("show", "t.strata#graph=step,pass=place:after")
        self.assertIn("aten.slice.Tensor(copy_", placed)
        self.assertNotIn("strided", placed)

    def test_what_a_step_writes_is_saved_and_resumed(self):
        self.write("joint.txt", RUNNING_MEAN)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        begin = {"a": ("F32", [8], draw(8, 1.0, 3)), "running_mean": ("F32", [8], draw(8, 1.0, 4)),
                 "tracked": ("I64", [], struct.pack("<q", 0)), "turn#complex": ("F32", [8, 2], draw(16, 1.0, 5))}
        write_tensors(self.path("init.safetensors"), begin)

        def train(name, init, *options):
            self.printed("train", "config.toml", "--program", "joint.txt", "--init", init, "--metrics",
                         f"{name}.jsonl", "--save", f"{name}.safetensors", *options)
            return self.losses(f"{name}.jsonl"), read_tensors(self.path(f"{name}.safetensors"))

        losses, end = train("whole", "init.safetensors")
        self.assertEqual(set(end), set(begin))
        self.assertEqual(struct.unpack("<q", end["tracked"][2]), (6,))
        self.assertEqual(end["turn#complex"], begin["turn#complex"])
        self.assertNotEqual(end["running_mean"], begin["running_mean"])

        kept = ("--set", "checkpoint.enable=true", "--set", "checkpoint.interval=3", "--set", "checkpoint.folder=c",
                "--set", "checkpoint.last_save_model_only=false")
        begun, _ = train("begun", "init.safetensors", *kept, "--set", "steps=3")
        rest, resumed = train("rest", "init.safetensors", *kept, "--resume")
        self.assertEqual(begun + rest, losses)
        self.assertEqual(resumed, end)
        # What was saved starts a training.
        _, after = train("again", "whole.safetensors")
        self.assertEqual(struct.unpack("<q", after["tracked"][2]), (12,))

    def test_what_a_step_returns_as_new_values_is_what_it_would_write(self):
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        begin = {"a": ("F32", [8], draw(8, 1.0, 3)), "running_mean": ("F32", [8], draw(8, 1.0, 4)),
                 "tracked": ("I64", [], struct.pack("<q", 0)), "turn#complex": ("F32", [8, 2], draw(16, 1.0, 5))}
        ends = []
        for text in (RUNNING_MEAN, RETURNED_MEAN, DESCRIBED_MEAN):
            more = {"scale": ("F32", [8], draw(8, 1.0, 6))} if text is DESCRIBED_MEAN else {}
            self.write("joint.txt", text)
            write_tensors(self.path("init.safetensors"), {**begin, **more})
            self.printed("train", "config.toml", "--program", "joint.txt", "--init", "init.safetensors", "--metrics",
                         "m.jsonl", "--save", "end.safetensors")
            end = read_tensors(self.path("end.safetensors"))
            for name, tensor in more.items():
                self.assertEqual(end.pop(name), tensor)
            ends.append((self.losses("m.jsonl"), end))
        self.assertEqual(ends[1], ends[0])
        self.assertEqual(ends[2], ends[0])

    def test_a_new_value_that_may_be_of_two_constants_is_named(self):
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        self.write("joint.txt", DESCRIBED_MEAN.split(" {+descriptors")[0].replace("[counted, next,", "[next, counted,") + "\n")
        write_tensors(self.path("init.safetensors"), {
            **{name: ("F32", [8], draw(8, 1.0, 3)) for name in ("a", "scale", "running_mean")},
            "tracked": ("I64", [], struct.pack("<q", 0)), "turn#complex": ("F32", [8, 2], draw(16, 1.0, 5))})
        done = subprocess.run([self.strata, "train", "config.toml", "--program", "joint.txt", "--init",
                               "init.safetensors"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("output 0, next, may be the new value of scale or of running_mean, which have its type: scale is taken",
                      done.stderr)

    def test_tokens_are_numbers_of_rows_of_other_data(self):
        self.write("joint.txt", FEATURES)
        self.write("config.toml", LOOP.format(vocab=8, seq=4))
        rows = draw(24, 1.0, 7)
        write_tensors(self.path("init.safetensors"), {
            "a": ("F32", [3], draw(3, 1.0, 3)), "features": ("F32", [8, 3], rows),
            "classes": ("I64", [8], struct.pack("<8q", *range(8)))})
        order = [row % 8 for row in range(6 * 2 * 5)]
        write_tensors(self.path("tokens.safetensors"),
                      {"tokens": ("I64", [6, 2, 5], struct.pack(f"<{len(order)}q", *order))})
        self.printed("train", "config.toml", "--program", "joint.txt", "--init", "init.safetensors", "--tokens",
                     "tokens.safetensors", "--metrics", "m.jsonl")
        a, features = struct.unpack("<3f", draw(3, 1.0, 3)), struct.unpack("<24f", rows)
        first = [row for number in range(2) for row in order[5 * number:5 * number + 4]]
        loss = sum((sum(a[i] * features[3 * row + i] for i in range(3)) - row)**2 for row in first)
        self.assertAlmostEqual(self.losses("m.jsonl")[0], loss, delta=1e-4)


if __name__ == "__main__":
    OwnModelsTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
