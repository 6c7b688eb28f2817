"""What passes are given and return, and how it is named; foreign objects are not trusted."""

import functools


def flat(things):
    """A result or arguments, one level deep: tuples, lists, PassResult."""
    if isinstance(things, (tuple, list)):
        return list(things)[:16]
    module = getattr(type(things), "graph_module", None)
    if module is not None or type(things).__name__ == "PassResult":
        return [getattr(things, "graph_module", None)]
    return [things]


def class_name(owner):
    try:
        name = owner._get_name() if owner is not None else "graph"
    except Exception:
        return "graph"
    return name if isinstance(name, str) and name.isidentifier() else "graph"


def innermost(fn):
    for _ in range(20):
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif hasattr(fn, "__func__"):
            fn = fn.__func__
        else:
            break
    return fn if hasattr(fn, "__code__") else getattr(type(fn), "__call__", fn)


def describe(error):
    """`ValueError: text` without trusting the exception's `__str__`."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be read)"
    return f"{type(error).__name__}: {text}"[:4096].encode("utf-8", "replace").decode()


def name_of(fn):
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__name__", None) or type(inner).__name__
    return name if isinstance(name, str) else "pass"
