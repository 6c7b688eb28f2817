// One pass or graph: rail, tabs, tables, text, patterns.

let graphView = null, currentDetail = null, currentSubject = null;

function rail(subject) {
  const box = h("div", {class: "rail", role: "navigation", "aria-label": "Passes"});
  let graph = null;
  const several = new Set(subject.run.passes.map((pass) => pass.graph)).size > 1;
  for (const other of subjects.filter((s) => s.run === subject.run)) {
    const heading = other.pass ? (several ? `graph ${plain(other.graph)}` : "") : "other graphs";
    if (heading && heading !== graph) box.append(h("div", {class: "graph-name"}, heading));
    graph = heading || graph;
    const quiet = other.detail < 0;
    box.append(h("button", {"aria-current": String(other === subject), class: quiet ? "quiet-row" : "", click: () => go({view: "subject", ref: other.ref, node: "", all: false})},
      h("span", {class: "number quiet"}, other.pass ? String(other.pass.index) : ""), h("span", {class: "cut", title: plain(other.name)}, plain(other.name)),
      h("span", {class: "quiet small"}, other.pass ? (other.pass.status === "failed" ? "failed" : other.pass.ms > 0 ? time(other.pass.ms) : "") : number(other.nodes)), quiet ? null : badges(other.counts)));
  }
  return box;
}

function passView(subject) {
  const detail = currentDetail;
  const work = h("div", {class: "work"});
  const page = h("div", {class: "pass"}, rail(subject), work);
  const counts = detail ? [1, 2, 3, 5, 4].map((status) => detail.status.reduce((sum, s) => sum + (s === status), 0)) : subject.counts;
  work.append(h("div", {class: "pass-head"}, subject.pass ? h("span", {class: "quiet"}, `#${subject.pass.index}`) : null, h("h1", {class: "cut"}, plain(subject.name)),
    subject.pass ? badges(counts) : h("span", {class: "quiet"}, plural(subject.nodes, "node")), h("span", {class: "spacer"}),
    h("button", {click: copyLink, title: "Copy a link to what is shown"}, "Copy link ", h("kbd", {}, "y"))));
  if (!detail) {
    work.append(h("div", {class: "empty"}, subject.pass && subject.pass.status === "failed"
      ? h("div", {}, h("p", {}, `This pass failed: ${plain(subject.pass.error)}`), subject.pass.reproduce ? h("pre", {}, plain(subject.pass.reproduce)) : null)
      : subject.detail >= 0 ? "The graphs of this pass were left out of the report to keep it small; the trace has them." : "This pass changed nothing."));
    return page;
  }
  const tabs = [["graph", "Graph", 0], ["table", "Table", detail.changes.length || detail.count], ["text", "Text", 0], ["patterns", "Patterns", detail.patterns.length]];
  work.append(h("nav", {class: "tabs", role: "tablist"}, tabs.map(([key, label, count]) =>
    h("button", {role: "tab", "aria-selected": String(state.tab === key), click: () => go({tab: key})}, label, count ? h("span", {class: "quiet"}, ` ${number(count)}`) : null))));
  if (state.tab === "graph") graphTab(work, detail);
  else {
    graphView = null;
    const sheet = h("div", {class: "sheet"});
    work.append(sheet);
    if (state.tab === "table") tableTab(sheet, detail);
    if (state.tab === "text") textTab(sheet, detail);
    if (state.tab === "patterns") patternsTab(sheet, detail);
  }
  page.append(inspector(detail));
  return page;
}

function graphTab(work, detail) {
  graphView = new GraphView(detail, (node) => { state.node = node >= 0 ? detail.str(detail.name[node]) : ""; history.replaceState(null, "", hashOf(state)); refreshInspector(); });
  if (state.all) { graphView.all = true; graphView.layout(); }
  const hasFolds = detail.clusters.some((c) => c.folded);
  const check = h("input", {type: "checkbox", change: (event) => { state.all = !event.target.checked; graphView.all = state.all; history.replaceState(null, "", hashOf(state)); graphView.layout(); graphView.draw(); }});
  check.checked = !graphView.all;
  graphView.onUnfold = () => { state.all = true; check.checked = false; history.replaceState(null, "", hashOf(state)); };
  const all = h("button", {click: () => { detail.clusters.forEach((c, i) => graphView.open.add(i)); graphView.layout(); graphView.draw(); }}, "Open all");
  const none = h("button", {click: () => { graphView.open = new Set([0]); graphView.layout(); graphView.fitAll(); }}, "Close all");
  work.append(h("div", {class: "toolbar"}, hasFolds ? h("label", {}, check, "Changed only + 1 hop") : null, all, none, h("span", {class: "spacer"}),
    graphView.zoomLabel, h("span", {class: "segments"}, h("button", {"aria-label": "Zoom out", click: () => graphView.zoom(1 / 1.25)}, MINUS), h("button", {"aria-label": "Zoom in", click: () => graphView.zoom(1.25)}, "+"), h("button", {click: () => graphView.fitAll()}, "Fit"))));
  work.append(graphView.stage);
  const present = new Set(detail.status);
  const legend = [[ADDED, "added"], [REMOVED, "removed"], [CHANGED, "changed"], [DERIVED, "derived"], [MOVED, "moved"], [SAME, "unchanged"]].filter(([status]) => present.has(status))
    .map(([status, word]) => h("span", {}, h("i", {class: `k-${STATUS[status]}`}), word));
  work.append(h("div", {class: "legend"}, legend, h("span", {class: "spacer"}), h("span", {class: "quiet"}, detail.two_lanes ? "forward runs down on the left, backward up on the right" : "runs down")));
  const node = detail.byName.get(state.node);
  if (node !== undefined) requestAnimationFrame(() => { graphView.fitted = true; graphView.fit(); graphView.reveal(node); });
}

/** Root causes first: what a reader of the table looks for. */
const TABLE_ORDER = {[CHANGED]: 0, [ADDED]: 1, [REMOVED]: 2, [MOVED]: 3, [DERIVED]: 4, [SAME]: 5};
const MAX_ROWS = 400;

function whatChanged(detail, node) {
  const fields = detail.fieldsOf.get(node) || [];
  const own = fields.filter((field) => !field[3]);
  const shown = own.length ? own : fields;
  const more = shown.length > 3 ? `; and ${shown.length - 3} more` : "";
  return shown.slice(0, 3).map(([path, before, after]) => `${detail.str(path)}: ${before < 0 ? "–" : detail.str(before)} → ${after < 0 ? "–" : detail.str(after)}`).map(plain).join("; ") + more;
}
function matcher(text) {
  if (!text) return () => true;
  try {
    const expression = new RegExp(text, "i");
    return (word) => expression.test(word);
  } catch {
    const lower = text.toLowerCase();
    return (word) => word.toLowerCase().includes(lower);
  }
}
function nodesFor(detail, filter) {
  const fits = matcher(filter);
  const pool = detail.changes.length ? detail.changes : Array.from({length: detail.count}, (_, i) => i);
  return pool.filter((i) => fits(`${detail.nodeName(i)} ${detail.opOf(i)} ${detail.moduleOf(i)} ${detail.typeOf(i)}`))
    .sort((a, b) => TABLE_ORDER[detail.status[a]] - TABLE_ORDER[detail.status[b]] || a - b);
}
function tableTab(sheet, detail) {
  const nodes = nodesFor(detail, state.filter);
  if (!nodes.length) { sheet.append(h("div", {class: "empty"}, `Nothing matches “${state.filter}”.`)); return; }
  const body = h("tbody", {});
  const add = (list) => body.append(...list.map((i) => {
    const was = detail.was[i] >= 0 ? `${plain(detail.str(detail.was[i]))} → ` : "";
    return h("tr", {"data-node": i, "aria-selected": String(detail.byName.get(state.node) === i), tabindex: "0", click: () => selectNode(i), keydown: (event) => { if (event.key === "Enter") selectNode(i); }},
      h("td", {}, chip(STATUS[detail.status[i]])), h("td", {class: "mono"}, was + detail.nodeName(i)), h("td", {}, detail.opLabel(i)), h("td", {class: "mono what"}, whatChanged(detail, i) || "–"),
      h("td", {class: "mono"}, shortType(detail.typeOf(i)) || "–"), h("td", {}, detail.moduleOf(i) || "–"), h("td", {}, PHASE[detail.phase[i]] || "–"));
  }));
  add(nodes.slice(0, MAX_ROWS));
  sheet.append(h("table", {}, h("thead", {}, h("tr", {}, ["status", "node", "operator", "what changed", "type", "module", "phase"].map((word) => h("th", {}, word)))), body));
  if (nodes.length > MAX_ROWS) {
    const more = h("button", {click: () => { add(nodes.slice(MAX_ROWS)); more.remove(); }}, `Show ${number(nodes.length - MAX_ROWS)} more`);
    sheet.append(more);
  }
}
/** Marks where two lines part: their common beginning and end stay plain. */
function marked(line, other) {
  let begin = 0, end = 0;
  while (begin < line.length && begin < other.length && line[begin] === other[begin]) begin++;
  while (end < line.length - begin && end < other.length - begin && line[line.length - 1 - end] === other[other.length - 1 - end]) end++;
  return [line.slice(0, begin), h("mark", {}, line.slice(begin, line.length - end)), line.slice(line.length - end)];
}
function textTab(sheet, detail) {
  const box = h("div", {class: "lines"});
  let module = null, shown = 0;
  const fits = matcher(state.filter);
  for (const i of detail.changes) {
    const lines = detail.linesOf.get(i);
    if (!lines || (lines[0] < 0 && lines[1] < 0)) continue;
    const [before, after] = lines.map((line) => plain(detail.str(line)));
    if (before === after || !fits(`${before} ${after} ${detail.moduleOf(i)}`)) continue;
    if (++shown > 2000) break;
    if (detail.moduleOf(i) !== module) { module = detail.moduleOf(i); box.append(h("div", {class: "place"}, module || "without module")); }
    if (before) box.append(h("div", {class: "line minus"}, `${MINUS} `, ...(after ? marked(before, after) : [before])));
    if (after) box.append(h("div", {class: "line plus"}, "+ ", ...(before ? marked(after, before) : [after])));
  }
  sheet.append(shown ? box : h("div", {class: "empty"}, detail.changes.length ? `No line matches “${state.filter}”.` : "Nothing differs. Click a node in the graph to see its line."));
}
function patternsTab(sheet, detail) {
  for (const pattern of detail.patterns) {
    sheet.append(h("div", {class: "pattern"}, h("b", {}, plain(pattern.title)), h("div", {class: "quiet"}, `${plural(pattern.hunks, "equal place")}, ${plural(pattern.nodes, "node")}${pattern.where ? `, in ${plain(pattern.where)}` : ""}`),
      pattern.except.length ? h("div", {}, `except ${pattern.except.map(plain).join(", ")}`) : null));
  }
  for (const [kind, before, after] of detail.relations.slice(0, 200)) {
    const names = (list) => list.slice(0, 12).map((i) => plain(detail.str(i))).join(", ") + (list.length > 12 ? ` and ${list.length - 12} more` : "");
    sheet.append(h("div", {class: "pattern"}, h("b", {}, kind.replace("_", " ")), h("div", {class: "mono"}, `${names(before)} → ${names(after)}`)));
  }
  if (!detail.patterns.length && !detail.relations.length) sheet.append(h("div", {class: "empty"}, "No change repeats, and no node was replaced, copied or merged."));
}
