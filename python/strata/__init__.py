"""Strata in Python: record the passes of PyTorch programs, look at graphs, and compare them.

    import strata

    with strata.record("run.strata") as run:
        model = my_pass(torch.fx.symbolic_trace(model))

PyTorch is imported when it is used, never before. See docs/python.md.
"""

__version__ = "0.1.0"

# Where a name comes from: imported on first use, so that `import strata` costs nothing.
_NAMES = {
    "record": "strata._recorder",
    "watch": "strata._watch",
    "watch_list": "strata._watch",
    "backend": "strata._recorder",
    "diff": "strata._look",
    "show": "strata._look",
    "report": "strata._look",
    "view": "strata._look",
    "attach_profile": "strata._look",
    "Diff": "strata._look",
    "RecordingWarning": "strata._open",
    "Error": "strata._program",
    "run": "strata._program",
}

__all__ = sorted(_NAMES)


def __getattr__(name):
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'strata' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_NAMES))
