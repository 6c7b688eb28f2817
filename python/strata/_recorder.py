"""Recording of passes: `record`, `watch`, `watch_list`, `backend`."""

import functools

from strata._run import Run, current
from strata._things import name_of


def record(path="run.strata", *, keep=False, cache="off"):
    """Records the passes that run in the `with` block into the trace `path`.

    Recorded are functions under `strata.watch`, pass managers of torch.fx, the passes of Inductor (its own and those of
    its configuration), the partitioner, ExportedProgram.run_decompositions, and `strata.backend`. The process appends to
    an exchange file in `<path>.d/`; at the end of the block `strata import` turns it into the trace.

    keep: leave the exchange file. cache: "off" compiles everything anew while recording, so that every pass runs;
    "keep" uses Inductor's caches as usual, and passes that a cache hit skips are not seen.
    """
    return Run(path, keep=keep, cache=cache)


def watch(fn=None, *, name=None):
    """Makes a pass that is recorded while a recording is open; otherwise it is called as it is.

        @strata.watch
        def fuse(gm: torch.fx.GraphModule): ...

    A pass takes a GraphModule, a Graph or an ExportedProgram among its arguments, and changes it or returns another one.
    """
    if fn is None:
        return functools.partial(watch, name=name)
    label = name or name_of(fn)

    @functools.wraps(fn, updated=())
    def watched(*args, **kwargs):
        run = current()
        if run is None:
            return fn(*args, **kwargs)
        return run.call(label, fn, args, kwargs)

    watched._strata_watched = True
    return watched


def watch_list(passes):
    """A list of passes as `watch` makes each; functions, partials and callable objects keep their names.

    For runners that call `fn(gm, example_inputs)` for each pass of a list, such as the graph trainer of torchtitan.
    """
    return [_watch_one(item) for item in passes]


def _watch_one(item):
    if getattr(item.func if isinstance(item, functools.partial) else item, "_strata_watched", False):
        return item
    if isinstance(item, functools.partial):
        # Runners read the name of a partial at `.func`.
        return functools.partial(watch(item.func), *item.args, **item.keywords)
    watched = watch(item)
    watched.__name__ = name_of(item)
    return watched


def backend(inner="inductor"):
    """A backend of `torch.compile` that records Dynamo's graphs and hands them to `inner` (a name or a function)."""

    def compiler(gm, example_inputs, **options):
        import torch._dynamo

        call = torch._dynamo.lookup_backend(inner) if isinstance(inner, str) else inner
        run = current()
        if run is None:
            return call(gm, example_inputs, **options)
        run.see(gm, "dynamo")
        return call(gm, example_inputs, **options)

    name = inner if isinstance(inner, str) else name_of(inner)
    compiler.__name__ = f"strata_{name}"
    config = getattr(inner, "get_compiler_config", None)
    if config is not None:
        compiler.get_compiler_config = config
    return compiler
