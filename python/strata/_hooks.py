"""The functions of PyTorch that are wrapped while a recording is open, each by attribute, none by version.

No configuration field is touched, so cache keys stay what they are. Wraps are removed when the last recording closes.
"""

import functools
import sys

from strata._lineage import Watch

# What a graph is called that is first seen in a subsystem of Inductor.
_SUBSYSTEMS = {"pre_grad_passes": "pre_grad", "joint_graph_passes": "joint", "post_grad_passes": "post_grad"}

_installed = []  # the one set of wraps of the process


class Hooks:
    def __init__(self, torch, current, guard, cache):
        self._torch = torch
        self._current = current
        self._guard = guard
        self._cache = cache
        self._wraps = []
        self._watch = None
        self._patch = None

    def install(self):
        """Installs the wraps, unless an outer recording has."""
        _installed.append(self)
        if len(_installed) > 1:
            return
        self._watch = Watch(self._torch, self._current, self._guard)
        self._watch.install()
        for install in (self._observer, self._partitioners, self._pass_manager, self._export, self._caches):
            with self._guard(install.__name__.strip("_")):
                install()

    def remove(self):
        if self in _installed:
            _installed.remove(self)
        owner = _installed[0] if _installed else None
        if owner is not None and self._watch is not None:
            # The outer recording closed first: the inner one keeps the wraps.
            owner._watch, owner._wraps, owner._patch = self._watch, self._wraps, self._patch
            return
        if self._watch is None:
            return
        self._watch.remove()
        for target, name, original, wrapper in reversed(self._wraps):
            if target.__dict__.get(name) is wrapper:
                setattr(target, name, original)
        if self._patch is not None:
            self._patch.__exit__(None, None, None)

    def _wrap(self, owner, name, make):
        original = owner.__dict__.get(name)
        if original is None:
            return
        wrapper = functools.wraps(original)(make(original))
        setattr(owner, name, wrapper)
        self._wraps.append((owner, name, original, wrapper))

    # Inductor and everything else that runs its passes under GraphTransformObserver.

    def _observer(self):
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver

        from strata._things import name_of

        def wrap(original):
            def apply(observer, pass_fn, *args, **kwargs):
                run = self._current()
                if run is None:
                    return original(observer, pass_fn, *args, **kwargs)
                name = observer.passname if isinstance(observer.passname, str) else "pass"
                subsystem = getattr(observer, "subsystem", None)
                label = name_of(pass_fn)
                if label not in (name, "<lambda>", "function", "partial"):
                    # One name of Inductor's stands for two passes: the callable distinguishes them.
                    name = f"{name}:{label}"
                return run.call(name, lambda: original(observer, pass_fn, *args, **kwargs), (), {},
                                graphs=(observer.gm,), graph_name=_SUBSYSTEMS.get(subsystem))

            return apply

        for method in ("apply_gm_pass", "apply_graph_pass"):
            self._wrap(GraphTransformObserver, method, wrap)

    def _partitioners(self):
        modules = [sys.modules.get(name) for name in ("torch._functorch.partitioners", "torch._inductor.compile_fx")]
        if modules[0] is None:
            import torch._functorch.partitioners as partitioners

            modules[0] = partitioners

        def wrap(original):
            def partition(*args, **kwargs):
                run = self._current()
                if run is None:
                    return original(*args, **kwargs)
                return run.call(original.__name__, original, args, kwargs, graph_name="joint")

            return partition

        for module in filter(None, modules):
            for name in ("min_cut_rematerialization_partition", "default_partition"):
                self._wrap(module, name, wrap)

    def _pass_manager(self):
        """Passes are exchanged for the duration of a call, after the constraints, which compare objects, are solved."""
        from torch.fx.passes.infra.pass_manager import PassManager

        from strata._things import name_of

        def wrap(original):
            def call(manager, source, *args, **kwargs):
                run = self._current()
                if run is None:
                    return original(manager, source, *args, **kwargs)
                if not manager._validated:
                    manager.solve_constraints()
                passes = manager.passes
                manager.passes = [_Recorded(run, name_of(item), item) for item in passes]
                try:
                    return original(manager, source, *args, **kwargs)
                finally:
                    manager.passes = passes

            return call

        self._wrap(PassManager, "__call__", wrap)

    def _export(self):
        export = sys.modules.get("torch.export.exported_program")
        if export is None:
            return

        def wrap(original):
            def run_decompositions(program, *args, **kwargs):
                run = self._current()
                if run is None:
                    return original(program, *args, **kwargs)
                return run.call("run_decompositions", original, (program, *args), kwargs, graph_name="export")

            return run_decompositions

        self._wrap(export.ExportedProgram, "run_decompositions", wrap)

    def _caches(self):
        """Nothing is read from a cache and nothing is written while every pass is to be seen."""
        if self._cache != "off":
            return
        config = getattr(self._torch.compiler, "config", None)
        if config is not None and hasattr(config, "force_disable_caches"):
            self._patch = config.patch(force_disable_caches=True)
            self._patch.__enter__()


class _Recorded:
    """A pass of a PassManager, recorded. Has its name: the manager writes it into messages."""

    def __init__(self, run, name, pass_fn):
        self._run, self.__name__, self._pass = run, name, pass_fn

    def __call__(self, *args, **kwargs):
        return self._run.call(self.__name__, self._pass, args, kwargs)
