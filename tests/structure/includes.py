"""Which source file may include what. The table is the one of docs/architecture.md.

`violations(root)` lists every include line that points in another direction, as `file:line: what`.
"""

import os
import re

# Folder -> folders that it may include, besides itself. The longest matching folder decides: a row stands for
# the folder and for those below it that have no row of their own.
BASE = {"base"}
IR = BASE | {"ir"}
TEXT = {"ir/text", "ir/fx"}
DIFF_BELOW = {"diff/graph", "diff/model", "diff/match", "diff/compare", "diff/pattern"}
DIFF = DIFF_BELOW | {"diff", "diff/code", "diff/history", "diff/output", "diff/patch", "diff/policy", "diff/ranks"}
PASSES = {
    "passes", "passes/budget", "passes/core", "passes/cleanup", "passes/comm", "passes/compile", "passes/memory",
    "passes/placement", "passes/placement/auto", "passes/placement/costs", "passes/placement/lowering",
    "passes/pipeline/schedule", "passes/pipeline", "passes/expert",
    "passes/flex", "passes/regions", "passes/simulate",
}
PROVE_BELOW = {"prove/evaluation", "prove/ops", "prove/values"}
PLAN = {"runtime/plan", "runtime/plan/device", "runtime/plan/memory"}
TRAIN_BELOW = PLAN | {
    "runtime/config", "runtime/codegen", "runtime/comm", "runtime/aten", "runtime/files", "runtime/flex", "runtime/offload", "runtime/trace",
    "runtime/models", "runtime/ranks", "runtime/exec", "runtime/exec/step", "runtime/exec/boxed", "runtime/exec/static",
    "runtime/ranks/processes", "runtime/train/data", "runtime/train/files",
}
RUNTIME = TRAIN_BELOW | {"runtime/train", "runtime/train/pipeline", "runtime/train/programs"}
LOGS = {"tlparse-export/torch_trace/read", "tlparse-export/torch_trace/import", "tlparse-export/torch_trace/export"}
EXPORT = LOGS | {"tlparse-export/exchange", "tlparse-export/report", "tlparse-export/review"}
RENDER = {"cli/render", "cli/render/memory", "cli/render/schedule"}

ALLOWED = {
    "base": set(),
    "ir": BASE,
    "ir/text": IR,
    "ir/infer": IR,
    "ir/fx": IR | {"ir/infer"},
    "include": set(),
    "store/database": IR,
    "store": IR | {"store/database"},
    "diff/graph": IR,
    "diff/code": IR | {"diff/graph"},
    "diff/model": IR | {"diff/graph"},
    "diff/match": IR | {"diff/graph", "diff/model"},
    "diff/compare": IR | {"diff/graph", "diff/model", "diff/match"},
    "diff/pattern": IR | {"diff/graph", "diff/model", "diff/match"},
    "diff/policy": IR | {"diff/graph", "diff/model"},
    "diff/output": IR | {"diff/graph", "diff/model", "diff/policy"},
    "diff/patch": IR | {"ir/text", "diff/graph", "diff/model"},
    "diff": IR | DIFF_BELOW,
    "diff/history": IR | DIFF_BELOW | {"diff", "diff/code"},
    "diff/ranks": IR | {"diff/graph", "diff/history"},
    "passes/budget": IR | {
        "passes/core", "passes/memory", "passes/placement", "passes/placement/costs", "passes/simulate",
    },
    "passes/core": IR | {"ir/text"},
    "passes/cleanup": IR | {"passes/core"},
    "passes/comm": IR | {"passes/core", "passes/memory", "passes/placement", "passes/simulate"},
    "passes/compile": IR | {"ir/text", "passes/core"},
    "passes/expert": IR | {"passes/core", "passes/memory", "passes/placement", "passes/simulate"},
    "passes/flex": IR | {"ir/fx", "passes/core"},
    "passes/memory": IR | {"passes/core"},
    "passes/regions": IR | {"passes/compile", "passes/core", "passes/memory"},
    "passes/pipeline": IR | {
        "passes/budget", "passes/comm", "passes/core", "passes/pipeline/schedule", "passes/placement",
    },
    "passes/pipeline/schedule": IR,
    "passes/placement": IR | {"ir/text", "passes/core", "passes/placement/rules"},
    "passes/placement/lowering": IR | {"passes/core", "passes/placement", "passes/placement/rules"},
    "passes/placement/costs": IR | {"passes/core", "passes/memory", "passes/placement", "passes/placement/rules"},
    "passes/placement/auto": IR | {
        "passes/memory", "passes/placement", "passes/placement/costs", "passes/placement/rules",
        "passes/placement/solver",
    },
    "passes/placement/solver": set(),
    "passes/placement/rules": IR | {"passes/flex"},
    "passes/simulate": IR | {"passes/core", "passes/memory", "passes/placement", "passes/placement/costs"},
    "passes": IR | PASSES,
    "prove/values": IR,
    "prove/ops": IR | {"prove/values"},
    "prove/evaluation": IR | {"passes/pipeline", "passes/placement", "prove/ops", "prove/values"},
    "prove": IR | PROVE_BELOW | {
        "ir/text", "passes/core", "passes/expert", "passes/pipeline", "passes/placement", "passes/placement/rules",
    },
    "runtime/config": IR | {"passes/flex", "passes/memory", "passes/pipeline/schedule", "passes/placement"},
    "runtime/plan": IR | {"passes/core", "passes/compile", "passes/flex", "passes/memory"},
    "runtime/plan/memory": IR | {"passes/compile", "runtime/plan"},
    "runtime/plan/device": IR | {"passes/compile", "passes/flex", "runtime/plan"},
    "runtime/codegen": IR | {"passes/compile", "passes/flex", "runtime/plan"},
    "runtime/comm": IR,
    "runtime/cuda": IR | {"runtime/codegen", "runtime/comm"} | PLAN,
    "runtime/aten": IR,
    "runtime/files": IR | {"runtime/aten", "runtime/plan"},
    "runtime/trace": IR | {"passes/flex", "runtime/aten"} | PLAN,
    "runtime/flex": IR | {"passes/flex", "runtime/aten", "runtime/exec/boxed"} | PLAN,
    "runtime/offload": IR,
    "runtime/models": IR | PLAN | {
        "include", "passes/core", "passes/flex", "runtime/aten", "runtime/config", "runtime/flex", "runtime/trace",
    },
    "runtime/exec/step": IR | {"runtime/aten", "runtime/trace"} | PLAN,
    "runtime/exec/boxed": IR | {"runtime/aten", "runtime/trace", "runtime/exec/step"} | PLAN,
    "runtime/exec/static": IR | PLAN | {
        "passes/compile", "passes/flex", "passes/memory", "runtime/aten", "runtime/codegen", "runtime/offload",
        "runtime/trace", "runtime/exec/step",
    },
    "runtime/exec": IR | PASSES | PLAN | {
        "runtime/aten", "runtime/codegen", "runtime/files", "runtime/trace",
        "runtime/exec/step", "runtime/exec/boxed", "runtime/exec/static", "runtime/flex", "runtime/offload", "runtime/ranks",
    },
    "runtime/ranks/processes": IR | PLAN | {"runtime/aten", "runtime/comm", "runtime/exec/step", "runtime/ranks"},
    "runtime/ranks": IR | PLAN | {
        "passes/placement", "passes/placement/costs", "runtime/aten", "runtime/comm", "runtime/exec/step",
    },
    "runtime/control": IR | PASSES | RUNTIME,
    "runtime/train/data": IR | {"runtime/config", "runtime/files"},
    "runtime/train/files": IR | {"runtime/config", "runtime/files"},
    "runtime/train/programs": IR | {"ir/text"} | PASSES | TRAIN_BELOW,
    "runtime/train/pipeline": IR | PASSES | TRAIN_BELOW | {"runtime/train/programs"},
    "runtime/train": IR | {"ir/text"} | PASSES | RUNTIME,
    "scene": IR | {"store"} | DIFF,
    "tlparse-export/torch_trace/read": IR | {"ir/fx", "store", "store/database"},
    "tlparse-export/torch_trace/import": IR | {"ir/fx", "store", "diff", "tlparse-export/torch_trace/read"},
    "tlparse-export/torch_trace/export": IR | {"ir/fx", "store", "tlparse-export/torch_trace/read"},
    "tlparse-export/exchange": IR | TEXT | DIFF | {
        "store", "tlparse-export/torch_trace/import", "tlparse-export/torch_trace/read",
    },
    "tlparse-export/report": IR | TEXT | DIFF | {
        "store", "scene", "runtime/codegen", "tlparse-export/torch_trace/export", "tlparse-export/torch_trace/read",
    },
    "tlparse-export/review": IR | TEXT | {"store", "scene"} | DIFF,
    "refs/history": IR | DIFF | LOGS | {"ir/fx", "store", "scene"},
    "refs/recording": IR | {"store", "passes", "passes/core"},
    "refs": IR | TEXT | DIFF | LOGS | {
        "store", "scene", "passes/pipeline/schedule", "refs/history", "tlparse-export/exchange",
    },
    "viewer/compare": IR | TEXT | DIFF | {
        "store", "scene", "refs", "refs/history", "passes/budget", "passes/pipeline/schedule", "passes/simulate",
        "runtime/codegen", "tlparse-export/report",
    },
    "viewer/model": IR | TEXT | {"scene", "refs", "refs/recording", "diff/policy", "viewer/compare"},
    "viewer/ui": BASE | {"scene", "viewer/compare", "viewer/model"},
    "viewer/panes": BASE | {"scene", "diff/history", "viewer/compare", "viewer/model", "viewer/ui"},
    "viewer": BASE | {"scene", "viewer/compare", "viewer/model", "viewer/ui", "viewer/panes"},
    "cli/core": BASE | {"passes/core", "runtime/aten", "runtime/exec"},
    "cli/prove": IR | DIFF | PASSES | RUNTIME | {"store", "refs", "refs/recording", "prove", "cli/core", "cli/render"},
    "cli/passes": IR | TEXT | PASSES | RUNTIME | RENDER | {"store", "refs", "refs/recording", "cli/core", "cli/prove"},
    "cli/traces": IR | TEXT | DIFF | EXPORT | RENDER | {
        "store", "refs", "passes/pipeline/schedule", "runtime/train/programs", "cli/core", "cli/passes",
    },
    "cli/train": IR | TEXT | PASSES | RUNTIME | {
        "store", "refs", "refs/recording", "runtime/control", "cli/core", "cli/prove",
    },
    "cli": BASE | {"runtime/aten", "cli/core", "cli/passes", "cli/prove"},
    "cli/render/memory": IR | {"scene", "passes/budget", "passes/memory", "cli/render"},
    "cli/render/schedule": IR | {"passes/core", "passes/memory", "passes/pipeline/schedule", "passes/simulate", "cli/render"},
    "cli/render": IR | TEXT | {
        "store", "scene", "prove", "passes/budget", "passes/core", "passes/memory", "passes/pipeline/schedule",
        "passes/simulate",
    } | DIFF | EXPORT,
    "bench": IR | TEXT | {"store", "scene", "refs", "prove", "cli/core", "cli/prove"} | DIFF | PASSES | RUNTIME | EXPORT,
}

# Headers from outside -> where they may be included (regular expressions over the path of the file).
RESTRICTED = [
    (r"(torch|ATen|c10)/.*", r"(runtime/(?!plan/|codegen/|config/)|include/).*"),
    (r"(cuda.*|nccl\.h)", r"runtime/cuda/.*"),
    (r"(backends/)?imgui.*|GLFW/.*|stb/.*", r"viewer/(?!model/|compare/).*"),
    (r"sqlite3\.h", r"store/.*\.cc"),
    (r"(graphviz/)?(gvc|cgraph)\.h", r"scene/.*\.cc"),
    (r"coin/.*", r"passes/placement/solver/.*\.cc"),
    (r"utf8proc\.h", r"base/unicode\.cc|runtime/train/data/normalize\.cc"),
    # Slow to compile: not in headers.
    (r"simdjson\.h|toml\+\+/.*", r".*\.cc"),
    (r"CLI/.*", r"(cli|bench)/.*"),
]

# Only one file may know these.
SINGLE = r"(graphviz/)?(gvc|cgraph)\.h"

# base and ir have no dependencies but these: the C++ and C libraries, fmt, simdjson, toml++, utf8proc and xxHash.
BASE_EXTERNAL = re.compile(r"[a-z0-9_]+|(sys/[a-z]+|unistd|fcntl|errno|dirent)\.h|fmt/.*|"
                           r"(simdjson|toml\+\+/toml|utf8proc|xxhash)\.h")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<([^>]+)>|"([^"]+)")')


def folder_of(path):
    """The folder of ALLOWED that holds `path`, or None."""
    parts = os.path.dirname(path).split("/")
    for size in range(len(parts), 0, -1):
        folder = "/".join(parts[:size])
        if folder in ALLOWED:
            return folder
    return None


def sources(root):
    """Our source files, as sorted paths relative to `root`; tests may include anything."""
    for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
        for directory, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for file in sorted(files):
                if file.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(directory, file), root)


def include_lines(root, path):
    """(line number, header, is quoted) of each include line."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if match := INCLUDE.match(line):
                yield number, match[1] or match[2], match[2] is not None


def check_line(root, path, header, quoted):
    """What is wrong with `path` including `header`, or None."""
    folder = folder_of(path)
    if quoted:
        if header.startswith("embedded/"):
            return None
        if not os.path.exists(os.path.join(root, header)):
            return f'"{header}" is not a path from the repository root'
        target = folder_of(header)
        if target != folder and target not in ALLOWED[folder]:
            return f'{folder}/ may not include "{header}"'
        return None
    for pattern, where in RESTRICTED:
        if re.fullmatch(pattern, header) and not re.fullmatch(where, path):
            return f"<{header}> may not be included here"
    if folder in ("base", "ir", "ir/infer", "ir/text", "ir/fx") and not BASE_EXTERNAL.fullmatch(header):
        return f"{folder}/ may include the standard library and small libraries, not <{header}>"
    return None


def violations(root):
    found = []
    single_users = {}
    for path in sources(root):
        lines = list(include_lines(root, path))
        for number, header, quoted in lines:
            if problem := check_line(root, path, header, quoted):
                found.append(f"{path}:{number}: {problem}")
            if not quoted and re.fullmatch(SINGLE, header):
                single_users.setdefault(path, number)
        # That a header is first in its .cc file proves that it compiles alone.
        own = path[: -len(".cc")] + ".h"
        if path.endswith(".cc") and os.path.exists(os.path.join(root, own)):
            if not lines or lines[0][1] != own:
                found.append(f'{path}:1: the first include must be "{own}"')
    for path, number in sorted(single_users.items())[1:]:
        found.append(f"{path}:{number}: only one file may include Graphviz, {min(single_users)} does")
    return found
