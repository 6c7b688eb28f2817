"""What `strata.record` costs: the share of a compilation of torch.compile that the recorder takes.

    python bench/record_overhead.py [LAYERS]      # 29 layers: a joint graph of 7,000 nodes; needs PyTorch

Compiles forward and backward of a transformer twice, in a process each, without and with a recording, caches off. The share
is the processor time inside the recorder by the time that the recorded compilation took, with Inductor's compilers. Not in
it are the wraps of torch.fx, 1 µs for each node that is made, copied or replaced.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))


def compile_once(layers, trace):
    import torch
    from torch import nn

    torch.set_num_threads(1)

    class Block(nn.Module):

        def __init__(self, dim=64, heads=4):
            super().__init__()
            self.heads = heads
            self.norms = nn.ModuleList(nn.RMSNorm(dim) for _ in range(2))
            self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
            self.w1, self.w3 = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(dim, 4 * dim, bias=False)
            self.w2 = nn.Linear(4 * dim, dim, bias=False)

        def forward(self, x, freqs):
            y = self.norms[0](x)
            q, k, v = (w(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
            q, k = ((z * freqs.cos() + torch.cat((-z[..., 8:], z[..., :8]), -1) * freqs.sin()) for z in (q, k))
            scores = (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v
            x = x + self.wo(scores.transpose(1, 2).flatten(2))
            y = self.norms[1](x)
            return x + self.w2(nn.functional.silu(self.w1(y)) * self.w3(y))

    class Model(nn.Module):

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(100, 64)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.head = nn.Linear(64, 100)

        def forward(self, tokens, freqs):
            x = self.embedding(tokens[:, :-1])
            for block in self.blocks:
                x = block(x, freqs)
            return nn.functional.cross_entropy(self.head(x).flatten(0, 1), tokens[:, 1:].flatten())

    import torch._inductor.compile_fx  # noqa: F401  # imports do not count

    import strata
    from strata import _run

    model, tokens, freqs = Model(), torch.randint(100, (2, 17)), torch.randn(16, 16)
    spent = [0.0, 0]  # seconds, depth

    def timed(owner, name):
        inner = getattr(owner, name)

        def call(*args, **kwargs):
            if spent[1]:
                return inner(*args, **kwargs)
            spent[1] = 1
            start = time.thread_time()
            try:
                return inner(*args, **kwargs)
            finally:
                spent[0] += time.thread_time() - start
                spent[1] = 0

        setattr(owner, name, call)

    for name in ("begin", "finish", "keep_text", "see", "note_replacement"):
        timed(_run.Run, name)
    compiled = torch.compile(model, backend=strata.backend("inductor"))
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    start = time.perf_counter()
    if trace:
        run = strata.record(trace, keep=True)
        run.__enter__()
    else:
        torch.compiler.config.force_disable_caches = True
    compiled(tokens, freqs).backward()
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_utime - usage
    result = {"seconds": seconds, "user": usage, "recorder": spent[0]}
    if trace:
        result["bytes"] = sum(os.path.getsize(os.path.join(run.folder, name)) for name in os.listdir(run.folder))
        result["passes"] = run.passes
        run.__exit__(None, None, None)
    print(json.dumps(result))


def main():
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else 29
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "run.strata")
        for path in ("", trace):
            done = subprocess.run([sys.executable, "-B", "-W", "ignore", __file__, "--one", str(layers), path],
                                  stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(f"{'with' if path else 'without'} a recording: {found['seconds']:.1f} s, {found['user']:.1f} s of the processor")
        print(f"{found['passes']} passes, {found['bytes'] / 1e6:.2f} MB; the recorder took {found['recorder'] * 1e3:.0f} ms: "
              f"{100 * found['recorder'] / found['seconds']:.2f} % of the compilation, "
              f"{100 * found['recorder'] / found['user']:.2f} % of the processor time of its process")
        program = os.environ.get("STRATA_BIN", "strata")
        listed = subprocess.run([program, "ls", trace, "--json"], stdout=subprocess.PIPE, text=True, check=False)
        if listed.returncode == 0:
            graphs = [(graph["name"], graph["nodes"]) for run in json.loads(listed.stdout)["runs"] for graph in run["graphs"]]
            print("nodes: " + ", ".join(f"{name} {nodes}" for name, nodes in graphs))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        compile_once(int(sys.argv[2]), sys.argv[3])
    else:
        main()
