"""Passes that are recorded where they are called: `watch`, `watch_list`."""

import functools

from strata._open import current
from strata._things import name_of


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
