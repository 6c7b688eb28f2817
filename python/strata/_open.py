"""The recordings that are open, and what fails inside one."""

import functools

opened = []  # the innermost last


class RecordingWarning(UserWarning):
    """Something could not be recorded; the program goes on."""


def runs():
    """Those open now: while they are gone through, a thread may open or close one."""
    return tuple(opened)


def current():
    """The run that records now, or None."""
    return opened[-1] if opened else None


class _Guard:
    """`with guard("what"):` what fails inside is a warning. One object for all uses."""

    __slots__ = ("_what",)

    def __init__(self, what):
        self._what = what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None or not issubclass(kind, Exception):
            return False
        run = current()
        if run is not None:
            run.warn(self._what, f"not recorded: {self._what}: {kind.__name__}")
        return True


@functools.lru_cache(maxsize=None)
def guard(what):
    return _Guard(what)
