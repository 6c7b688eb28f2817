"""Graphs of this process and of files, compared and shown: `diff`, `show`, `report`, `view`; `attach_profile`."""

import contextlib
import html
import json
import os
import tempfile

from strata._program import Error, call
from strata._program import run as run_program

_MAX_FRAME = 2_000_000  # bytes of a report inside a notebook; its server refuses more a second
_MAX_ROWS = 50


def _live_graph(thing):
    """(graph, its module or None) of a GraphModule, Graph or ExportedProgram; None of anything else."""
    graph = getattr(thing, "graph", None)
    if hasattr(thing, "nodes") and hasattr(thing, "owning_module"):
        return thing, thing.owning_module
    if graph is not None and hasattr(graph, "nodes"):
        return graph, getattr(thing, "graph_module", thing)
    return None


def _snapshot(graph, owner, folder, name):
    """A trace with one graph. Does not disturb a recording: what it knows of nodes is kept apart from it."""
    import torch

    from strata import _exchange, _lineage, _snapshot

    def fail(_, text):
        raise Error(text)

    infos = {}

    def info_of(node):
        info = infos.get(node)
        if info is None:
            info = infos[node] = _lineage.Info()
        return info

    source = os.path.join(folder, name + ".d")
    exchange = _exchange.ExchangeFile(source, fail)
    exchange.open(_exchange.head(torch.__version__))
    snapshots = _snapshot.Snapshots(torch, fail, exchange, info_of)
    snapshots.take(snapshots.add(graph, name), graph, owner, 0, "before")
    exchange.close()
    trace = os.path.join(folder, name + ".strata")
    run_program("import", source, "-o", trace)
    return trace


class _Refs(list):
    """REFs; `call` is that of the program, and hides where temporary files were."""

    def __init__(self, refs, prefix):
        super().__init__(refs)
        self._prefix = prefix

    def call(self, *words, ok=(0,)):
        status, text = call(*words, ok=ok)
        return status, text.replace(self._prefix, "")


@contextlib.contextmanager
def _refs(**things):
    """REFs for the program: of graphs of this process, of texts, and of what already is a REF."""
    with tempfile.TemporaryDirectory(prefix="strata-") as folder:
        yield _Refs([_ref(thing, folder, name) for name, thing in things.items()], folder + os.sep)


def _ref(thing, folder, name):
    live = _live_graph(thing)
    if live is not None:
        return _snapshot(*live, folder, name)
    if isinstance(thing, str) and "\n" in thing:
        path = os.path.join(folder, name + ".txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(thing)
        return path
    if isinstance(thing, (str, os.PathLike)):
        return os.fspath(thing)
    raise Error(f"no graph: {type(thing).__name__}: give a GraphModule, a Graph, an ExportedProgram, a text or a REF")


class Diff:
    """Two graphs, compared node by node. The keys of `strata.diff/1` (docs/json.md) are attributes."""

    def __init__(self, content, differs, texts):
        self._content = content
        self._texts = texts
        self.differs = differs  # the exit status of `strata diff`: renamed nodes alone do not count

    @property
    def summary(self):
        return self._content["summary"]

    @property
    def pairs(self):
        return self._content["pairs"]

    @property
    def inserted(self):
        return self._content["inserted"]

    @property
    def deleted(self):
        return self._content["deleted"]

    @property
    def relations(self):
        return self._content["relations"]

    @property
    def patterns(self):
        return self._content["patterns"]

    def to_json(self):
        """The content as `strata diff --json` prints it: a dict."""
        return self._content

    def to_text(self):
        return self._texts["text"]

    def to_markdown(self):
        return self._texts["md"]

    def to_html(self):
        """The report: one self-contained page."""
        return self._texts["html"]

    def to_svg(self):
        return self._texts["svg"]

    def __repr__(self):
        return self.to_text().rstrip("\n")

    def _repr_html_(self):
        """A table that every viewer shows, and the report in a frame where scripts run."""
        return _table(self) + _frame(self.to_html())


def _table(diff):
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in diff.summary.items() if count)
    rows = [(title, where) for title, where in _rows(diff)]
    out = [f"<p>{html.escape(counts or 'empty graphs')}</p>"]
    if rows:
        out.append("<table><thead><tr><th>change</th><th>where</th></tr></thead><tbody>")
        out += [f"<tr><td>{html.escape(title)}</td><td>{html.escape(where)}</td></tr>" for title, where in rows[:_MAX_ROWS]]
        if len(rows) > _MAX_ROWS:
            out.append(f"<tr><td>… {len(rows) - _MAX_ROWS} more</td><td></td></tr>")
        out.append("</tbody></table>")
    return "".join(out)


def _rows(diff):
    for pattern in diff.patterns:
        yield f"{pattern['title']} ({pattern['hunks']}×)", pattern["where"]
    for pair in diff.pairs:
        fields = [field for field in pair.get("fields", ()) if not field.get("derived")]
        if fields:
            what = "; ".join(f"{f['path']}: {f['before']} → {f['after']}" for f in fields[:4])
            yield what, pair["after"]
    for name in diff.inserted:
        yield "inserted", name
    for name in diff.deleted:
        yield "deleted", name


def _frame(page):
    if len(page) > _MAX_FRAME:
        return "<p>The report is too large for a cell: strata.report(a, b, output='diff.html') writes it.</p>"
    page = page.replace("<html ", '<html data-start="#pass=0" ', 1)  # the graph
    content = page.replace("&", "&amp;").replace('"', "&quot;")
    return (f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="strata diff" '
            'style="width:100%;height:640px;border:0"></iframe>')


def diff(before, after, *, policy=None, meta=False):
    """Compares two graphs: GraphModules, Graphs, ExportedPrograms, FX texts, paths or REFs.

    policy: a file with the allowed changes; then `differs` is False when all differences are allowed. meta: compare
    names, locations and sequence numbers too. Raises strata.Error for what is not a graph.
    """
    options = (["--policy", os.fspath(policy)] if policy is not None else []) + (["--meta"] if meta else [])
    with _refs(before=before, after=after) as refs:
        status, content = refs.call("diff", *refs, "--json", *options, ok=(0, 1))
        texts = {form: refs.call("diff", *refs, "--format", form, *options, ok=(0, 1))[1]
                 for form in ("text", "md", "svg", "html")}
    return Diff(json.loads(content), status == 1, texts)


class Graph:
    """A graph as text."""

    def __init__(self, text, svg):
        self.text, self.svg = text, svg

    def __repr__(self):
        return self.text.rstrip("\n")

    def _repr_html_(self):
        return f"<pre>{html.escape(self.text)}</pre>" if self.svg is None else self.svg


def show(graph, *, format="text"):
    """A graph as text ("text", "fx", "json", "dot"), which a notebook shows as a picture when it is small."""
    with _refs(graph=graph) as refs:
        _, text = refs.call("show", *refs, "--format", format)
        svg = refs.call("show", *refs, "--format", "svg")[1] if format == "text" and len(text) < 50_000 else None
    return Graph(text, svg)


def report(first, second=None, *, output):
    """Writes the report of a trace, a log or a graph, or of two of them; returns the path."""
    things = {"first": first} if second is None else {"first": first, "second": second}
    with _refs(**things) as refs:
        run_program("report", *refs, "-o", output)
    return os.fspath(output)


class View:
    """A window of the desktop viewer. It stays open until `wait` returns, `close` is called, or the process ends."""

    def __init__(self, process, folder):
        self._process, self._folder = process, folder

    def wait(self, timeout=None):
        """Waits until the window is closed. Raises Error with what the viewer says when it cannot open one."""
        import subprocess

        try:
            _, message = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return False
        self._folder.cleanup()
        if self._process.returncode not in (0, -15):
            raise Error(message.decode("utf-8", "replace").strip().removeprefix("strata: error: "))
        return True

    def close(self):
        self._process.terminate()
        self.wait()


def view(first, second=None, *, screenshot=None):
    """Opens the desktop viewer with a graph, a trace or a log, or with two of them compared; returns a View.

    screenshot: write a picture to this file instead, and return when it is written.
    """
    import subprocess

    from strata._program import find_program

    folder = tempfile.TemporaryDirectory(prefix="strata-")
    refs = [_ref(thing, folder.name, name) for thing, name in ((first, "first"), (second, "second"))
            if thing is not None]
    options = ["--screenshot", os.path.abspath(screenshot)] if screenshot is not None else []
    found = View(subprocess.Popen([find_program(), "view", *refs, *options], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE), folder)
    # Without a display it ends at once.
    found.wait(timeout=None if screenshot is not None else 1)
    return found


def attach_profile(run, profile):
    """Stores the times of a torch.profiler in a trace, node by node; returns them as text.

    run: a recording that is closed, or the path of a trace. profile: the profiler, or the path of what
    `export_chrome_trace` wrote, of calls of the graphs that torch.compile made while they were recorded.
    `strata profile`, `strata diff --cost` and the viewer show the times.
    """
    path = getattr(run, "path", None) or os.fspath(run)
    if getattr(run, "is_open", False):
        raise Error(f"the recording is open: {path}: attach the profile after its block")
    with tempfile.TemporaryDirectory(prefix="strata-") as folder:
        if hasattr(profile, "export_chrome_trace"):
            file = os.path.join(folder, "profile.json")
            try:
                profile.export_chrome_trace(file)
            except RuntimeError as error:  # a profiler writes its trace once
                raise Error(f"the profiler gave no trace: {error} Give the path of what it wrote.") from None
        else:
            file = os.fspath(profile)
        return run_program("profile", path, "--chrome", file, "--attach", "--top", "0")
