"""Which node comes from which: what five functions of torch.fx see while a recording is open.

Every node is made by Graph.create_node. Graph.node_copy names its source, Interpreter.run_node the node that is being
interpreted, replace_all_uses_with and replace_input_with what replaces what. Names are never evidence.
"""

import itertools
import threading

from strata._open import guard, runs

_numbers = itertools.count(1)


class Info:
    """What is known of a node. Lives as long as the node; not pickled with it."""

    __slots__ = ("id", "same", "source", "seen", "text", "kind", "alias", "comment", "__weakref__")

    def __init__(self):
        self.id = 0          # in the exchange file; 0: in no snapshot yet
        self.same = False    # `source` is the node that this one is a copy of; otherwise its ancestors
        self.source = ()     # Infos
        self.seen = None     # the fields of the node at its last snapshot
        self.text = self.kind = self.alias = None
        self.comment = 0

    def take_over(self, source):
        """Stands for the node of `source` from now on, as that was written last."""
        self.id, self.source = source.id, ()
        self.text, self.kind, self.alias, self.comment = source.text, source.kind, source.alias, source.comment

    def leave(self):
        """The node left its graph, which may keep it alive: names are kept by node."""
        self.seen = self.text = self.kind = self.alias = None

    def __reduce__(self):
        return (_nothing, ())

    def __deepcopy__(self, memo):
        return None

    def __copy__(self):
        return None


def _nothing():
    return None


def new_attribute():
    """The name of the attribute of nodes in which a recording keeps its Infos: several may be open."""
    return f"_strata_{next(_numbers)}"


def info_of(node, attribute):
    info = node.__dict__.get(attribute)
    if type(info) is not Info:
        info = node.__dict__[attribute] = Info()
    return info


def forget(graph, attribute):
    """Removes what a recording left at the nodes of a graph."""
    for node in graph.nodes:
        node.__dict__.pop(attribute, None)


def resolve(info):
    """(is the same node, ids of the nodes that `info` stands for or comes from)."""
    same = True
    for _ in range(10_000):
        if info.id:
            return same, (info.id,)
        if not info.source:
            return same, ()
        same = same and info.same
        if len(info.source) > 1:
            ids = []
            for source in info.source:
                if source.id and source.id not in ids:
                    ids.append(source.id)
            return False, tuple(ids)
        info = info.source[0]
    return False, ()


def original(info):
    """The Info, with an id, of the node that `info` is a copy of; None when it is not a copy."""
    for _ in range(10_000):
        if not info.same or len(info.source) != 1:
            return None
        info = info.source[0]
        if info.id:
            return info
    return None


class Watch:
    """Wraps the functions while it is installed. Each open run keeps what it saw."""

    def __init__(self, torch):
        self._fx = torch.fx
        self._local = threading.local()
        self._wraps = []

    def install(self):
        fx = self._fx
        self._wrap(fx.Graph, "create_node", self._create_node)
        self._wrap(fx.Graph, "node_copy", self._node_copy)
        self._wrap(fx.Node, "replace_all_uses_with", self._replace)
        self._wrap(fx.Node, "replace_input_with", self._replace_input)
        self._wrap(fx.Interpreter, "run_node", self._run_node)

    def remove(self):
        """Puts the functions back. A wrap that another tool put on top is left alone: ours is inert without a run."""
        for owner, name, original, wrapper in reversed(self._wraps):
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)
        self._wraps = []

    def _wrap(self, owner, name, make):
        original = owner.__dict__[name]
        wrapper = make(original)
        wrapper.__name__ = name
        wrapper.__qualname__ = getattr(original, "__qualname__", name)
        wrapper.__doc__ = original.__doc__
        wrapper.__module__ = original.__module__
        wrapper.__wrapped__ = original
        setattr(owner, name, wrapper)
        self._wraps.append((owner, name, original, wrapper))

    def _stack(self):
        stack = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack

    def _create_node(self, original):
        local, stack_of = self._local, self._stack

        def create_node(graph, *args, **kwargs):
            node = original(graph, *args, **kwargs)
            stack = getattr(local, "stack", None)
            if stack:
                source, made = stack[-1]
                if source.graph is not graph:
                    made.append(node)
            return node

        del stack_of
        return create_node

    def _node_copy(self, original):
        def node_copy(graph, node, *args, **kwargs):
            copy = original(graph, node, *args, **kwargs)
            for run in runs():
                with guard("copy"):
                    info = info_of(copy, run.attribute)
                    info.source, info.same = (info_of(node, run.attribute),), True
            return copy

        return node_copy

    def _replace(self, original):
        def replace_all_uses_with(node, replace_with, *args, **kwargs):
            result = original(node, replace_with, *args, **kwargs)
            self._note(node, replace_with)
            return result

        return replace_all_uses_with

    def _replace_input(self, original):
        def replace_input_with(node, old_input, new_input, *args, **kwargs):
            result = original(node, old_input, new_input, *args, **kwargs)
            self._note(old_input, new_input)
            return result

        return replace_input_with

    def _note(self, old, new):
        for run in runs():
            with guard("replace"):
                if isinstance(old, self._fx.Node) and isinstance(new, self._fx.Node):
                    run.note_replacement(info_of(old, run.attribute), info_of(new, run.attribute))

    def _run_node(self, original):
        def run_node(interpreter, n, *args, **kwargs):
            if not runs():
                return original(interpreter, n, *args, **kwargs)
            made = []
            stack = self._stack()
            stack.append((n, made))
            try:
                return original(interpreter, n, *args, **kwargs)
            finally:
                stack.pop()
                for run in runs() if made else ():
                    with guard("interpret"):
                        self._interpreted(run, n, made)

        return run_node

    @staticmethod
    def _interpreted(run, source, made):
        origin = info_of(source, run.attribute)
        same = len(made) == 1 and made[0].op == source.op and made[0].target is source.target
        if len(made) == 1 and made[0].op == source.op and isinstance(source.target, str):
            same = made[0].target == source.target
        for node in made:
            info = info_of(node, run.attribute)
            if not info.source and not info.id:
                info.source, info.same = (origin,), same
