#!/usr/bin/env python3
"""Collects pairs of graphs from dumped AOT graphs: names that survive a step of the compiler are the truth.

    collect_pairs.py GIT_DIRECTORY OUT [--most N] [--half dev|judge]

Reads a repository of dumps (files '__compiled_fn_3 Joint graph 0.py' per model, as in
thuml/learn_torch.compile) and writes OUT/KIND/CASE/{before,after}.txt. Models are split in two halves by
a hash of their names: one to tune with, one to judge with.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import zlib

STEPS = {
    "forward_post_grad": ("Forward graph", "AFTER POST GRAD"),
    "joint_forward": ("Joint graph", "Forward graph"),
    "joint_backward": ("Joint graph", "Backward graph"),
}
FILE = re.compile(r"(?P<model>.+)/(?P<function>__compiled_fn_\d+) (?P<stage>[A-Za-z ]+?) (?P<number>\d+)\.py$")


def family(model):
    """The model without what it was run as: both devices and both modes are in one half."""
    name = model.rsplit("/", 1)[-1]
    return re.sub(r"_(training|inference)_(cpu|cuda)$", "", name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=60, help="pairs of each kind")
    parser.add_argument("--half", choices=["dev", "judge"], default="dev")
    args = parser.parse_args()
    git = ["git", "-C", args.repository]
    listing = subprocess.run([*git, "ls-tree", "-r", "HEAD"], check=True, capture_output=True, text=True).stdout
    stages = collections.defaultdict(dict)
    for line in listing.splitlines():
        head, path = line.split("\t", 1)
        path = path.strip('"')
        if found := FILE.match(path):
            stages[found["model"], found["function"], found["number"]][found["stage"]] = head.split()[2]
    half = {"dev": 0, "judge": 1}[args.half]
    for kind, (first, second) in STEPS.items():
        cases = [(zlib.crc32(repr(key).encode()), key, blobs) for key, blobs in stages.items()
                 if first in blobs and second in blobs and zlib.crc32(family(key[0]).encode()) % 2 == half]
        for _, key, blobs in sorted(cases)[: args.most]:
            folder = args.out / kind / re.sub(r"\W+", "_", "_".join(key))
            folder.mkdir(parents=True, exist_ok=True)
            for name, stage in ("before", first), ("after", second):
                data = subprocess.run([*git, "cat-file", "blob", blobs[stage]], check=True, capture_output=True)
                (folder / f"{name}.txt").write_bytes(data.stdout)


if __name__ == "__main__":
    main()
