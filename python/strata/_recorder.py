"""Recording of passes: `record`, `backend`."""

from strata._open import current
from strata._run import Run
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
