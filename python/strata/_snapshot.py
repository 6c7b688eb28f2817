"""Snapshots of a graph: the nodes that differ from its last snapshot, and where each comes from."""

import weakref
from operator import is_ as _is

from strata import _text
from strata._lineage import original, resolve

_MAX_BODIES = 64
_MAX_LOCATIONS = 10_000


class GraphState:
    """A graph of the exchange file: what its last snapshot wrote. Holds no node."""

    __slots__ = ("number", "name", "order", "ids", "infos", "last_pass", "class_name")

    def __init__(self, number, name):
        self.number, self.name = number, name
        self.order = None  # [(path, [id, …])]
        self.ids = frozenset()
        self.infos = ()  # weak: they hold nodes
        self.last_pass = ""
        self.class_name = ""


class Snapshots:
    """Takes snapshots into an exchange file. `warn(kind, text)`; `info_of(node)` gives the Info of a node."""

    def __init__(self, torch, warn, exchange, info_of, attribute=None):
        self._torch = torch
        self._attribute = attribute  # of nodes that has their Infos, if one has
        self._warn = warn
        self._info_of = info_of
        self._exchange = exchange
        self._writer = _text.Writer(torch)
        self._locations = {}
        self._next_id = 0
        self._next_graph = 0
        self._states = weakref.WeakKeyDictionary()
        self._graph_module = torch.fx.GraphModule

    def state(self, graph):
        return self._states.get(graph)

    def graphs(self):
        return list(self._states.keys())

    def add(self, graph, name, parent=None):
        """The state of a new graph; `parent`: the state that its first snapshot continues."""
        self._next_graph += 1
        state = GraphState(self._next_graph, name)
        record = {"r": "graph", "g": state.number, "name": name}
        if parent is not None and parent.order is not None:
            record["from"] = parent.number
            state.order, state.ids, state.class_name = parent.order, parent.ids, parent.class_name
        self._exchange.write(record)
        self._states[graph] = state
        return state

    def continued(self, graph):
        """The state of the graph that `graph`, which has none, is a complete copy of; it is the state of `graph` now."""
        nodes = list(graph.nodes)
        sources = [original(self._info_of(node)) for node in nodes if node.op != "output"]
        if not sources or None in sources or any(self._info_of(node).id for node in nodes):
            return None
        ids = [source.id for source in sources]
        for old, state in list(self._states.items()):
            if state.order and state.order[0][1][:-1] == ids and len(nodes) == len(ids) + 1:
                last = self._info_of(next(iter(reversed(old.nodes))))
                for node, source in zip(nodes, [*sources, last]):
                    self._info_of(node).take_over(source)
                return self.move(old, graph)
        return None

    def link_inputs(self, graph, parent):
        """Inputs of a graph that was taken out of `parent`: partitioners make them anew, and share `meta` by object."""
        by_meta = {id(node.meta): node for node in parent.nodes}
        for node in graph.nodes:
            source = by_meta.get(id(node.meta)) if node.op == "placeholder" else None
            info = self._info_of(node)
            if source is not None and not info.id and not info.source:
                info.source, info.same = (self._info_of(source),), source.op == "placeholder"

    def move(self, old, new):
        """A pass replaced the graph of a module: the new one continues its history."""
        state = self._states.pop(old, None)
        if state is not None:
            self._states[new] = state
        return state

    def link_inputs_by_place(self, graph, old):
        """Inputs of a module that a pass made anew: callers give it what they gave the old one, in that order."""
        inputs = [[node for node in each.nodes if node.op == "placeholder"] for each in (graph, old)]
        infos = [self._info_of(node) for node in inputs[0]]
        if len(infos) == len(inputs[1]) and not any(info.id or info.source for info in infos):
            for info, node in zip(infos, inputs[1]):
                info.source, info.same = (self._info_of(node),), True

    # One snapshot.

    def take(self, state, graph, owner, number, when, replacements=(), heading=()):
        """Writes the snapshot of `graph`, after the records `heading`, if it differs from the last one; True if so."""
        bodies = list(self._bodies(graph, owner))
        if state.order is not None and self._is_unchanged(state, bodies, owner):
            return False
        infos = [(path, [(node, self._info_of(node)) for node in list(body.nodes)]) for path, body in bodies]
        edges = self._identify(infos, state, when)
        pending, changed = [], []
        self._compare(infos, changed, pending)
        order = [(path, [info.id for _, info in nodes]) for path, nodes in infos]
        is_first = state.order is None
        known = state.ids
        self._add_foreign(infos, known, changed)
        class_name = self._class_name(owner) or state.class_name
        if not is_first and not changed and order == state.order and class_name == state.class_name:
            return False
        snap = {"r": "snap", "g": state.number, "p": number, "when": when,
                "nodes": [[info.id, info.kind, info.text, info.comment, *([info.alias] if info.alias else [])]
                          for info in changed],
                "bodies": [[path, _ranges(ids)] for path, ids in order]}
        if class_name != state.class_name:
            snap["class"] = class_name
        state.order, state.class_name = order, class_name
        state.ids = frozenset(id for _, ids in order for id in ids)
        records = [*heading, *pending, snap]
        if number and not is_first:
            records += self._edges(infos, known, state.ids, edges, replacements, number)
        self._exchange.write(*records)
        for found in state.infos:
            info = found()
            if info is not None and info.id not in state.ids:
                info.leave()
        state.infos = [weakref.ref(info) for _, nodes in infos for _, info in nodes]
        return True

    def _is_unchanged(self, state, bodies, owner):
        """Whether each node is the object of the last snapshot, with the same fields. Most passes change nothing."""
        if len(bodies) != len(state.order) or (self._class_name(owner) or state.class_name) != state.class_name:
            return False
        for (path, body), (old_path, ids) in zip(bodies, state.order):
            if path != old_path or len(body.nodes) != len(ids):
                return False
            at = iter(ids)
            for node in body.nodes:
                info = node.__dict__.get(self._attribute)
                if info is None or info.id != next(at, None) or info.seen is None:
                    return False
                now = _fields(node)
                if len(now) != len(info.seen) or not all(map(_is, now, info.seen)):
                    return False
        return True

    @staticmethod
    def _class_name(owner):
        try:
            name = owner._get_name() if owner is not None else ""
        except Exception:
            return ""
        # Copies of a module are called GraphModule.
        return name if isinstance(name, str) and name.isidentifier() and name != "GraphModule" else ""

    def _bodies(self, graph, owner):
        """(path, graph) of the program and of the modules that its get_attr nodes name."""
        owner = owner if owner is not None else graph.owning_module
        queue, seen, count = [("", graph, owner)], {id(graph)}, 0
        while queue and count < _MAX_BODIES:
            path, body, module = queue.pop(0)
            count += 1
            yield path, body
            if module is None:
                continue
            for node in list(body.nodes):
                if node.op not in ("get_attr", "call_module") or not isinstance(node.target, str):
                    continue
                child = module
                for atom in node.target.split("."):
                    child = getattr(child, atom, None)
                    if child is None:
                        break
                if isinstance(child, self._graph_module) and id(child.graph) not in seen:
                    seen.add(id(child.graph))
                    name = node.target.replace(".", "/")
                    queue.append((f"{path}/{name}" if path else name, child.graph, child))

    # Identity.

    def _identify(self, infos, state, when):
        """Gives every node its id. Returns {id: ("clone" | "create", ids it comes from)} of the new ones."""
        taken, edges, rest, names = set(), {}, [], {}
        for _, nodes in infos:
            for node, info in nodes:
                if info.id and info.id not in taken:
                    taken.add(info.id)
                else:
                    rest.append((node, info))
        for node, info in rest:
            if info.id:  # one object at two places
                info.id = 0
                info.source = ()
            same, sources = resolve(info)
            if not sources and "from_node" in node.meta:
                same, sources = False, self._named_source(node, state.ids, names)
            if same and len(sources) == 1 and sources[0] not in taken:
                info.id = sources[0]
            else:
                if node.op == "output" and not sources:
                    self._keep_output(info, infos, node, state, taken)
                if not info.id:
                    self._next_id += 1
                    info.id = self._next_id
                    if sources:
                        edges[info.id] = ("clone" if same and len(sources) == 1 else "create", sources)
            taken.add(info.id)
            info.source = ()
        return edges

    def _named_source(self, node, known, names):
        """The id of the node that `meta["from_node"]` means, if it is one of `known`: (id,), or ().

        names: {graph: {name: node}}, filled here.
        """
        sources = node.meta["from_node"]
        for _ in range(20):
            if not isinstance(sources, list) or not sources:
                return ()
            said = sources[-1]
            number, name = getattr(said, "graph_id", None), getattr(said, "name", None)
            graph = next((graph for graph in list(self._states.keys()) if id(graph) == number), None)
            if graph is not None:
                if graph not in names:
                    names[graph] = {found.name: found for found in graph.nodes}
                found = names[graph].get(name) if isinstance(name, str) else None
                # Ids of graphs are used again: the operator must be the one, too.
                if found is not None and str(found.target) == getattr(said, "target", None):
                    info = self._info_of(found)
                    if info.id in known:
                        return (info.id,)
            sources = getattr(said, "from_node", None)
        return ()

    @staticmethod
    def _keep_output(info, infos, node, state, taken):
        """The return of a program is the return of the program before: there is one."""
        if state.order and infos[0][1] and infos[0][1][-1][0] is node:
            before = state.order[0][1]
            if before and before[-1] not in taken:
                info.id = before[-1]

    # Fields.

    def _compare(self, infos, changed, pending):
        """Adds to `changed` the Infos whose text differs; names of operands are part of it."""
        renamed = []
        fresh = []
        for _, nodes in infos:
            for node, info in nodes:
                seen, now = info.seen, _fields(node)
                if seen is not None and len(now) == len(seen) and all(map(_is, now, seen)):
                    continue
                if seen is not None and seen[3] != now[3]:
                    renamed.append(node)
                info.seen = now
                fresh.append((node, info))
        if renamed:
            written = {id(node) for node, _ in fresh}
            for node in renamed:
                for user in node.users:
                    if id(user) not in written:
                        written.add(id(user))
                        fresh.append((user, self._info_of(user)))
        for node, info in fresh:
            self._write_node(node, info, changed, pending)

    def _write_node(self, node, info, changed, pending):
        try:
            kind, text, alias = self._writer.node(node)
        except Exception as error:
            self._warn("node", f"cannot write a node: {type(error).__name__}")
            kind, text, alias = "n", f"{_text.name_of(node)} = unknown()", ""
        if len(self._locations) > _MAX_LOCATIONS:
            self._locations.clear()
        note = _text.comment(node.meta, self._locations)
        number = self._exchange.text(note, pending) if note else 0
        if (text, kind, alias, number) == (info.text, info.kind, info.alias, info.comment):
            return
        info.text, info.kind, info.alias, info.comment = text, kind, alias, number
        if info.id:
            changed.append(info)

    def _add_foreign(self, infos, known, changed):
        """Nodes that another graph wrote already are new to this one."""
        written = {id(info) for info in changed}
        for _, nodes in infos:
            for _, info in nodes:
                if info.id not in known and id(info) not in written:
                    changed.append(info)
                    written.add(id(info))

    # Provenance.

    def _edges(self, infos, before, after, edges, replacements, number):
        """The edge records of a pass: from copies, interpretation, replacements; else from users, else from operands."""
        new = [(node, info) for _, nodes in infos for node, info in nodes if info.id not in before]
        if not new:
            return []
        origin = dict(edges)
        ids = {info.id for _, info in new}
        replaced = {}
        for old, by in replacements:
            if old.id and by.id in ids and old.id in before:
                replaced.setdefault(by.id, []).append(old)
        gone = {old.id for olds in replaced.values() for old in olds}
        for id_, olds in replaced.items():
            olds = self._with_absorbed(olds, gone, after)
            if id_ not in origin or origin[id_][0] != "clone":
                origin[id_] = ("create" if any(old in after for old in olds) else "replace", olds)
        for node, info in reversed(new):
            if info.id not in origin:
                self._take_from(info, [self._info_of(user) for user in node.users], origin)
        for node, info in new:
            if info.id not in origin:
                operands = [self._info_of(operand) for operand in node.all_input_nodes]
                ancestors = tuple(dict.fromkeys(
                    source for operand in operands
                    for source in ((operand.id,) if operand.id in before else origin.get(operand.id, ("", ()))[1])))
                if ancestors:
                    origin[info.id] = ("create", ancestors)
        groups = {}
        for _, info in new:
            how, sources = origin.get(info.id, ("create", ()))
            groups.setdefault((how, sources), []).append(info.id)
        return [{"r": "edge", "p": number, "how": how, "new": members, "old": list(sources)}
                for (how, sources), members in groups.items()]

    def _with_absorbed(self, olds, replaced, after):
        """The ids of `olds`, and of their operands, as they were before the pass, that went away with them: the product
        of a sum that became one operator."""
        ids, queue = {}, list(olds)
        while queue:
            info = queue.pop()
            ids[info.id] = None
            if info.id in after or info.seen is None:
                continue
            for operand in _operands(info.seen[0], info.seen[1]):
                found = self._info_of(operand)
                if found.id and found.id not in after and found.id not in replaced and found.id not in ids:
                    queue.append(found)
        return tuple(ids)

    @staticmethod
    def _take_from(info, users, origin):
        ancestors = tuple(dict.fromkeys(source for user in users if user.id in origin for source in origin[user.id][1]))
        if ancestors:
            origin[info.id] = ("create", ancestors)


def _operands(*values):
    """The nodes in arguments as FX holds them."""
    queue = list(values)
    while queue:
        value = queue.pop()
        if isinstance(value, (tuple, list)):
            queue.extend(value)
        elif isinstance(value, dict):
            queue.extend(value.values())
        elif isinstance(value, slice):
            queue.extend((value.start, value.stop, value.step))
        elif hasattr(value, "all_input_nodes"):
            yield value


def _fields(node):
    """What is written of a node, as objects: compared by identity, never by `==`, which is foreign code."""
    meta = node.meta
    custom = meta.get("custom")
    if type(custom) is dict:  # it is usually changed in place
        return (node._args, node._kwargs, node.target, node.name, *meta.values(), *custom, *custom.values())
    return (node._args, node._kwargs, node.target, node.name, *meta.values())


def _ranges(ids):
    """[[first, count], …] of consecutive ids."""
    out = []
    for id_ in ids:
        if out and out[-1][0] + out[-1][1] == id_:
            out[-1][1] += 1
        else:
            out.append([id_, 1])
    return out
