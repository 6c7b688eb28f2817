"""The functions of PyTorch that are wrapped while a recording is open, each by attribute, none by version.

No configuration field is touched, so cache keys stay what they are. Wraps are removed when the last recording closes.
"""

import functools
import sys

from strata._lineage import Watch
from strata._open import current, guard
from strata._things import name_of
from strata._watch import watch_list

# What a graph is called that is first seen in a subsystem of Inductor.
_SUBSYSTEMS = {"pre_grad_passes": "pre_grad", "joint_graph_passes": "joint", "post_grad_passes": "post_grad"}

_installed = []  # the one set of wraps of the process


class Hooks:
    def __init__(self, torch, cache):
        self._torch = torch
        self._cache = cache
        self._wraps = []
        self._watch = None
        self._patch = None
        self._modules = 0  # how many were loaded when the last of them were wrapped
        self._kernels = {}  # {name of a C++ kernel: {FX node}}, until the code that defines it is written

    def install(self):
        """Installs the wraps, unless an outer recording has."""
        _installed.append(self)
        if len(_installed) > 1:
            return
        self._watch = Watch(self._torch)
        self._watch.install()
        for install in (self._observer, self._partitioners, self._pass_managers, self._pass_base, self._caches):
            with guard(install.__name__.strip("_")):
                install()
        self.catch_up()

    def catch_up(self):
        """Wraps what was imported, or configured, since the recording began: `torch.compile` imports its backend late."""
        active = _installed[0] if _installed else self
        if active is not self:
            active.catch_up()
            return
        with guard("own_partitioner"):
            self._own_partitioner()
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        for install in (self._names_of_partitioners, self._export, self._graph_trainers, self._generated_code,
                        self._cpp_kernels):
            with guard(install.__name__.strip("_")):
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
        if original is None or self._has_wrapped(owner, name):
            return
        for *_, replaced, wrapper in self._wraps:
            if original is wrapper:  # imported by name from where it is wrapped
                self._wraps.append((owner, name, replaced, wrapper))
                return
        wrapper = functools.wraps(original)(make(original))
        setattr(owner, name, wrapper)
        self._wraps.append((owner, name, original, wrapper))

    def _has_wrapped(self, owner, name):
        return any(owner is wrapped and name == known for wrapped, known, *_ in self._wraps)

    # Inductor and everything else that runs its passes under GraphTransformObserver.

    def _observer(self):
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver

        steps = []  # of observers that are entered by themselves

        def subsystem(observer):
            return _SUBSYSTEMS.get(getattr(observer, "subsystem", None))

        def pass_name(observer):
            return observer.passname if isinstance(observer.passname, str) else "pass"

        def wrap_apply(original):
            def apply(observer, pass_fn, *args, **kwargs):
                run = current()
                if run is None:
                    return original(observer, pass_fn, *args, **kwargs)
                name, label = pass_name(observer), name_of(pass_fn)
                if label not in (name, "<lambda>", "function", "partial"):
                    # One name of Inductor's stands for two passes: the callable distinguishes them.
                    name = f"{name}:{label}"
                return run.call(name, lambda: original(observer, pass_fn, *args, **kwargs), (), {},
                                graphs=(observer.gm,), graph_name=subsystem(observer), key=observer, source=pass_fn)

            return apply

        def wrap_enter(original):
            def enter(observer):
                result = original(observer)
                run = current()
                if run is not None:
                    step = run.begin(pass_name(observer), None, (observer.gm,), graph_name=subsystem(observer),
                                     key=observer)
                    if step is not None:
                        steps.append((observer, run, step))
                return result

            return enter

        def wrap_exit(original):
            def leave(observer, kind, error, trace):
                for at in reversed(range(len(steps))):
                    if steps[at][0] is observer:
                        _, run, step = steps.pop(at)
                        run.finish(step, (), error)
                        break
                return original(observer, kind, error, trace)

            return leave

        for method in ("apply_gm_pass", "apply_graph_pass"):
            self._wrap(GraphTransformObserver, method, wrap_apply)
        self._wrap(GraphTransformObserver, "__enter__", wrap_enter)
        self._wrap(GraphTransformObserver, "__exit__", wrap_exit)

    def _partitioners(self):
        import torch._functorch.partitioners as partitioners

        self._wrap_partitioners(partitioners)

    def _names_of_partitioners(self):
        module = sys.modules.get("torch._inductor.compile_fx")
        if module is not None:
            self._wrap_partitioners(module)

    def _wrap_partitioners(self, module):
        def wrap(original):
            def partition(*args, **kwargs):
                run = current()
                if run is None:
                    return original(*args, **kwargs)
                return run.call(original.__name__, original, args, kwargs, graph_name="joint")

            return partition

        for name in ("min_cut_rematerialization_partition", "default_partition"):
            self._wrap(module, name, wrap)

    def _own_partitioner(self):
        """A partitioner of the configuration is an object with a uuid, which stays as it is."""
        config = sys.modules.get("torch._inductor.config")
        own = getattr(config, "custom_partitioner_fn", None)
        if own is not None:
            name = type(own).__name__

            def wrap_own(original):
                def partition(partitioner, *args, **kwargs):
                    run = current()
                    if run is None:
                        return original(partitioner, *args, **kwargs)
                    return run.call(f"{name}:partition", functools.partial(original, partitioner), args, kwargs,
                                    graph_name="joint")

                return partition

            self._wrap(type(own), "__call__", wrap_own)

    # Pass managers of torch.fx.

    def _pass_managers(self):
        """Passes are exchanged for the duration of a call, after the constraints, which compare objects, are solved."""
        from torch.fx.passes import pass_manager as older
        from torch.fx.passes.infra.pass_manager import PassManager

        def wrap_with(solve):
            def wrap(original):
                def call(manager, source, *args, **kwargs):
                    run = current()
                    if run is None:
                        return original(manager, source, *args, **kwargs)
                    if not manager._validated:
                        solve(manager)
                    passes = manager.passes
                    manager.passes = [_Recorded(run, name_of(item), item) for item in passes]
                    try:
                        return original(manager, source, *args, **kwargs)
                    finally:
                        manager.passes = passes

                return call

            return wrap

        self._wrap(PassManager, "__call__", wrap_with(lambda manager: manager.solve_constraints()))
        self._wrap(older.PassManager, "__call__", wrap_with(lambda manager: manager.validate()))

    def _pass_base(self):
        """A pass of torch.fx that is called by itself; those of torch.export are such passes."""
        from torch.fx.passes.infra.pass_base import PassBase

        def wrap(original):
            def call(fx_pass, *args, **kwargs):
                run = current()
                if run is None:
                    return original(fx_pass, *args, **kwargs)
                return run.call(type(fx_pass).__name__, functools.partial(original, fx_pass), args, kwargs, key=fx_pass,
                                source=getattr(fx_pass, "call", None))

            return call

        self._wrap(PassBase, "__call__", wrap)

    def _export(self):
        export = sys.modules.get("torch.export.exported_program")
        if export is None:
            return

        def wrap(original):
            def run_decompositions(program, *args, **kwargs):
                run = current()
                if run is None:
                    return original(program, *args, **kwargs)
                return run.call("run_decompositions", original, (program, *args), kwargs, graph_name="export")

            return run_decompositions

        self._wrap(export.ExportedProgram, "run_decompositions", wrap)

    # Runners that are part of no PyTorch.

    def _graph_trainers(self):
        """`apply_graph_passes(gm, example_inputs, passes, …)` of torchtitan, in every loaded module that has it."""
        def wrap(original):
            def apply_graph_passes(gm, example_inputs, passes, *args, **kwargs):
                if current() is not None:
                    with guard("list of passes"):
                        passes = watch_list(passes)
                return original(gm, example_inputs, passes, *args, **kwargs)

            return apply_graph_passes

        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "torchtitan" and "apply_graph_passes" in getattr(module, "__dict__", ()):
                self._wrap(module, "apply_graph_passes", wrap)

    # What Inductor wrote for a graph: its comments state which nodes a kernel computes.

    def _generated_code(self):
        graph = sys.modules.get("torch._inductor.graph")
        lowering = getattr(graph, "GraphLowering", None)
        name = "save_output_code"  # None, or what the program put there
        if lowering is None or name not in lowering.__dict__ or self._has_wrapped(lowering, name):
            return
        original, call = lowering.__dict__[name], getattr(lowering, name)

        def save_output_code(code):
            run = current()
            if run is not None:
                with guard("code"):
                    run.keep_text("inductor_output_code", _with_nodes(code, self._kernels))
                self._kernels.clear()
            return call(code) if call is not None else None

        wrapper = staticmethod(save_output_code)
        setattr(lowering, name, wrapper)
        self._wraps.append((lowering, name, original, wrapper))

    def _cpp_kernels(self):
        """The nodes of a C++ kernel: Inductor writes them above Triton kernels alone."""
        scheduling = getattr(sys.modules.get("torch._inductor.codegen.cpp"), "CppScheduling", None)
        if scheduling is None:
            return

        def wrap(original):
            def define_kernel(scheduling, src_code, nodes, *args, **kwargs):
                name = original(scheduling, src_code, nodes, *args, **kwargs)
                if current() is not None:
                    with guard("kernel"):
                        origins = [origin for item in nodes for origin in item.node.get_origins()]
                        self._kernels.setdefault(name, {}).update(dict.fromkeys(origins))
                return name

            return define_kernel

        self._wrap(scheduling, "define_kernel", wrap)

    def _caches(self):
        """Nothing is read from a cache and nothing is written while every pass is to be seen."""
        if self._cache != "off":
            return
        config = getattr(self._torch.compiler, "config", None)
        if config is not None and hasattr(config, "force_disable_caches"):
            self._patch = config.patch(force_disable_caches=True)
            self._patch.__enter__()


def _with_nodes(code, kernels):
    """Generated code, with the nodes of C++ kernels in comments above them, as they are above Triton kernels."""
    lines = []
    for line in code.split("\n"):
        name, mark, _ = line.partition(" = async_compile.cpp")
        if mark and not (lines and lines[-1].startswith("#")):
            lines += [f"#   %{node.name} : [num_users={len(node.users)}] = call_function[target={node.target}]"
                      for node in kernels.get(name, ()) if node.op == "call_function"]
        lines.append(line)
    return "\n".join(lines)


class _Recorded:
    """A pass of a PassManager, recorded. Has its name: the manager writes it into messages."""

    def __init__(self, run, name, pass_fn):
        self._run, self.__name__, self._pass = run, name, pass_fn

    def __call__(self, *args, **kwargs):
        # A PassBase is also recorded where it is called: it is its own key.
        return self._run.call(self.__name__, self._pass, args, kwargs, key=self._pass)
