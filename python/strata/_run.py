"""An open recording: the passes that begin and end, the graphs they get and leave, and what goes wrong.

Nothing here raises into the user's program but what the user's own code raises. What goes wrong inside is a warning,
once per kind, and a `drop` record.
"""

import contextlib
import functools
import os
import threading
import time
import warnings

from strata._open import RecordingWarning, guard, opened
from strata._things import class_name, describe, flat, innermost

_lock = threading.RLock()


class Run:
    """An open recording; see `_recorder.record`."""

    def __init__(self, path, *, keep=False, cache="off"):
        self.path = os.fspath(path)
        self.folder = self.path + ".d"
        self.passes = 0
        self.failed = 0
        self.summary = ""
        self._keep = keep
        self._is_child = False
        self._cache = cache
        self._warned = {}
        self._exchange = None
        self._snapshots = None
        self._hooks = None
        self.attribute = None  # of nodes: where this run keeps their Infos
        self._local = threading.local()  # step: the pass in flight; replacements: since it or the last one began
        self._start = time.perf_counter_ns()
        self._exit = contextlib.ExitStack()
        self._names = {}

    # Beginning and end.

    @property
    def is_open(self):
        return self in opened

    def __enter__(self):
        with _lock:
            with guard("start"):
                self._open()
            opened.append(self)
        return self

    def _open(self):
        from strata import _exchange, _hooks

        import torch

        self._torch = torch
        self._head = _exchange.head(torch.__version__)
        self._remove_old_files()
        self._exchange = _exchange.ExchangeFile(self.folder, self.warn)
        self._exchange.open(self._head)
        self._make_snapshots()
        self._hooks = _hooks.Hooks(torch, self._cache)
        self._hooks.install()
        self._exit.callback(self._hooks.remove)

    def _make_snapshots(self):
        from strata import _lineage, _snapshot

        # A child that was forked knows nothing of the ids that its parent gave.
        self.attribute = _lineage.new_attribute()
        self._snapshots = _snapshot.Snapshots(self._torch, self.warn, self._exchange,
                                              functools.partial(_lineage.info_of, attribute=self.attribute),
                                              self.attribute)

    def _remove_old_files(self):
        """Files of an earlier recording of that name; with several ranks, those of this rank."""
        mark = f"-r{self._head['rank']}.jsonl" if self._head["world"] > 1 else ".jsonl"
        with contextlib.suppress(OSError):
            for name in os.listdir(self.folder):
                if name.endswith(mark):
                    os.unlink(os.path.join(self.folder, name))

    def __exit__(self, kind, error, trace):
        with _lock:
            if self in opened:
                opened.remove(self)
            with guard("end"):
                self._close()
        return False

    def _close(self):
        self._exit.close()
        if self._snapshots is not None:
            for graph in self._snapshots.graphs():
                _forget(graph, self.attribute)
        self._local = threading.local()
        exchange = self._exchange
        if exchange is None or exchange.pid != os.getpid():
            return
        drops = [{"r": "drop", "what": what, "count": count} for what, count in self._warned.items()]
        if drops:
            exchange.write(*drops)
        was_on = exchange.is_on
        exchange.close()
        # Of several ranks or processes, the user imports the folder when the last one has ended.
        if was_on and not self._is_child and self._head["world"] == 1:
            self._import(exchange.path)

    def _import(self, path):
        from strata._program import Error, run_with_warnings

        try:
            for text in run_with_warnings("import", self.folder, "-o", self.path):
                if not text.endswith("times)"):  # what was left out, which was warned of when it was
                    self.warn("import", text)
        except (Error, OSError) as error:
            self.warn("import", f"the trace was not made: {error}; strata import {self.folder} -o {self.path}")
            return
        if self._keep:
            return
        with contextlib.suppress(OSError):
            if os.listdir(self.folder) == [os.path.basename(path)]:
                os.unlink(path)
                os.rmdir(self.folder)

    def warn(self, what, text):
        """Warns once per kind, and counts."""
        self._warned[what] = self._warned.get(what, 0) + 1
        if self._warned[what] == 1:
            with contextlib.suppress(Exception):
                # A filter that turns warnings into errors must not end a compile.
                with warnings.catch_warnings():
                    if not _shows_warnings():
                        warnings.simplefilter("default")
                    warnings.warn(f"strata: warning: {text}", RecordingWarning, stacklevel=3)

    def note_replacement(self, old, new):
        replacements = self._replacements()
        if len(replacements) < 1_000_000:
            replacements.append((old, new))

    def _replacements(self):
        """[(old, new)] Infos of what this thread replaced."""
        found = getattr(self._local, "replacements", None)
        if found is None:
            found = self._local.replacements = []
        return found

    # Passes.

    def call(self, name, fn, args, kwargs, *, graphs=None, graph_name=None, key=None, source=None):
        """Calls `fn(*args, **kwargs)` as a pass over the graphs among its arguments and in its result.

        source: the function that the user wrote, if it is not `fn`.
        """
        step = self.begin(name, fn if source is None else source, graphs if graphs is not None else args,
                          graph_name=graph_name, key=key)
        if step is None:
            return fn(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            self.finish(step, (), error)
            raise
        self.finish(step, result, None)
        return result

    def begin(self, name, fn, things, *, graph_name=None, key=None):
        """Begins a pass that `finish` ends. None inside of another pass of the thread: its name belongs to that one.

        key: an object that stands for the pass; what begins inside with the same key is the same pass.
        """
        outer = getattr(self._local, "step", None)
        if outer is not None:
            if key is None or key is not outer.key:
                outer.inner.append(name)
            return None
        step = self._local.step = _Step(name, key)
        with _lock, guard("before"):
            self._begin(step, fn, things, graph_name)
        step.start = time.perf_counter_ns()
        return step

    def finish(self, step, result, error):
        ns = time.perf_counter_ns() - step.start
        self._local.step = None
        # A pass that forked belongs to the parent alone.
        if step.number and step.pid == os.getpid():
            with _lock, guard("after"):
                self._end(step, ns, result, error)

    def keep_text(self, name, text):
        """Adds a text of up to 16 MB to the trace, as an artifact."""
        if isinstance(text, str) and len(text) <= 16_000_000:
            with _lock:
                self._exchange.write({"r": "artifact", "name": name, "content": text.encode("utf-8", "replace").decode()})

    def graph_of(self, thing):
        """(graph, owner) of a GraphModule, Graph or ExportedProgram; None of anything else."""
        fx = self._torch.fx
        if isinstance(thing, fx.GraphModule):
            return thing.graph, thing
        if isinstance(thing, fx.Graph):
            return thing, thing.owning_module
        inner = thing.__dict__.get("_graph_module") if hasattr(thing, "__dict__") else None
        if isinstance(inner, fx.GraphModule):
            return inner.graph, inner
        return None

    def _begin(self, step, fn, things, graph_name):
        self._hooks.catch_up()
        found = next(filter(None, map(self.graph_of, flat(things))), None)
        if found is not None:
            step.graph, step.owner = found
            step.state = self._sync(step, graph_name)
        self.passes += 1
        self._local.replacements = []
        record = self._begin_record(self.passes, step.name, step.state)
        code = getattr(innermost(fn), "__code__", None)
        if code is not None:
            record["file"], record["line"] = code.co_filename, code.co_firstlineno
        self._exchange.write(record)
        step.number = self.passes

    def _begin_record(self, number, name, state):
        record = {"r": "begin", "p": number, "pass": name, "ns": time.perf_counter_ns() - self._start}
        if state is not None:
            record["g"] = state.number
        return record

    def _sync(self, step, graph_name):
        """The state of the graph that a pass gets. What changed since its last pass is a pass of its own."""
        snapshots = self._snapshots
        state = snapshots.state(step.graph) or snapshots.continued(step.graph)
        if state is None:
            state = snapshots.add(step.graph, self._unique(graph_name or class_name(step.owner)))
            snapshots.take(state, step.graph, step.owner, 0, "before")
        else:
            number = self.passes + 1
            name = f"(between {state.last_pass} and {step.name})"
            if snapshots.take(state, step.graph, step.owner, number, "after", self._replacements(),
                              heading=(self._begin_record(number, name, state),)):
                self._exchange.write({"r": "end", "p": number, "ns": 0, "status": "ok"})
                self.passes = number
        state.last_pass = step.name
        return state

    def see(self, thing, graph_name):
        """Takes the first snapshot of a graph outside of a pass."""
        with _lock, guard(graph_name):
            found = self.graph_of(thing)
            if found is not None and self._snapshots.state(found[0]) is None:
                state = self._snapshots.add(found[0], self._unique(graph_name))
                state.last_pass = "the start"
                self._snapshots.take(state, *found, 0, "before")

    def _unique(self, name):
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count - 1}"

    def _end(self, step, ns, result, error):
        changed = False
        when = "after" if error is None else "failed"
        results = [self.graph_of(thing) for thing in flat(result)] if error is None else []
        results = [found for found in results if found is not None]
        fresh = [found for found in results if found[0] is not step.graph]
        if step.state is not None and len(fresh) == 1 and self._snapshots.state(fresh[0][0]) is None:
            # The module or its graph was replaced: the new one continues.
            self._snapshots.move(step.graph, fresh[0][0])
            self._snapshots.link_inputs_by_place(fresh[0][0], step.graph)
            changed = self._take(step, step.state, *fresh[0], when)
        else:
            if step.owner is not None and step.graph is not getattr(step.owner, "graph", step.graph):
                self._snapshots.move(step.graph, step.owner.graph)
                step.graph = step.owner.graph
            if step.state is not None:
                changed = self._take(step, step.state, step.graph, step.owner, when)
            for i, (graph, owner) in enumerate(fresh):
                changed |= self._split(step, graph, owner, i, len(fresh))
        status = "failed" if error is not None else "ok" if changed else "unchanged"
        record = {"r": "end", "p": step.number, "ns": ns, "status": status}
        if error is not None:
            self.failed += 1
            record["error"] = describe(error)
        if step.inner:
            record["inner"] = [str(name) for name in step.inner[:100]]
        self._exchange.write(record)

    def _take(self, step, state, graph, owner, when):
        return self._snapshots.take(state, graph, owner, step.number, when, self._replacements())

    def _split(self, step, graph, owner, index, count):
        """A graph that a pass made from another one: forward and backward of a joint graph."""
        state = self._snapshots.state(graph)
        if step.graph is not None:
            self._snapshots.link_inputs(graph, step.graph)
        if state is None:
            name = class_name(owner)
            if step.name.endswith("partition") and count == 2:
                name = ("forward", "backward")[index]
            state = self._snapshots.add(graph, self._unique(name), step.state)
        state.last_pass = step.name
        return self._take(step, state, graph, owner, "after")


class _Step:
    """A pass in flight."""

    __slots__ = ("number", "name", "key", "graph", "owner", "state", "inner", "start", "pid")

    def __init__(self, name, key):
        self.number, self.name, self.key, self.pid = 0, name, key, os.getpid()
        self.graph = self.owner = self.state = None
        self.inner = []
        self.start = 0


def _shows_warnings():
    return not any(action == "error" for action, *_ in warnings.filters)


def _forget(graph, attribute):
    from strata._lineage import forget

    forget(graph, attribute)


def _after_fork():
    """The child of a fork writes a file of its own."""
    global _lock
    _lock = threading.RLock()
    for run in opened:
        exchange = run._exchange
        if exchange is None or not exchange.is_on:
            continue
        with guard("fork"):
            from strata import _exchange

            if exchange._descriptor >= 0:
                os.close(exchange._descriptor)
            run._is_child = True
            run._head = {**run._head, "pid": os.getpid()}
            run._exchange = _exchange.ExchangeFile(run.folder, run.warn)
            run._exchange.open(run._head)
            run._make_snapshots()
            run._local = threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
