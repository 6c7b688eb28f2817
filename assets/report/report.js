"use strict";
// The report's page. It draws what the C++ side computed: passes, differences and scenes come as compressed JSON in
// script elements of this file. Nothing is fetched, and no text of a log ever becomes markup: text goes through
// textContent or onto a canvas.
(() => {
// --- Small tools ------------------------------------------------------------------------------------------------------

/** Makes an element: h("td", {class: "number"}, "12"). Functions become listeners. */
function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
function svg(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
const MINUS = "\u2212";
const number = (value) => value.toLocaleString("en-US").replace("-", MINUS);
const signed = (value) => (value > 0 ? "+" : "") + number(value);
const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many || one + "s"}`;
const time = (ms) => ms <= 0 ? "–" : ms < 1 ? `${(ms * 1000).toFixed(0)} µs` : ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(1)} s`;
/** Names of a log may hold control and direction characters, which must not disturb the line they stand in. */
const plain = (text) => text.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
/** "aten.mm.default" is drawn as "mm". */
function shortOp(op) {
  const parts = op.split(".");
  if (parts.length > 1 && /^(default|Tensor|Scalar|int|dim|self|Tensor_Scalar|dim_IntList)$/.test(parts[parts.length - 1])) parts.pop();
  const name = parts.length > 1 && /^(aten|prims|prim|_c10d_functional|torch|_operator|higher_order|ops|runtime)$/.test(parts[0]) ? parts.slice(1).join(".") : parts.join(".");
  return name || op;
}
/** "bf16[256, 64][64, 1]cpu" is drawn as "bf16 [256, 64]". */
function shortType(type) {
  const match = /^([A-Za-z0-9]+)(\[[^\]]*\])/.exec(type);
  return match ? `${match[1]} ${match[2]}` : type;
}

async function inflate(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const STATUS = ["same", "added", "removed", "changed", "derived", "moved"];
const SIGN = {added: "+", removed: MINUS, changed: "~", moved: "\u21b7", derived: "~"};
const PHASE = ["", "forward", "loss", "backward", "optimizer"];
const SAME = 0, ADDED = 1, REMOVED = 2, CHANGED = 3, DERIVED = 4, MOVED = 5;

/** Counts are [added, removed, changed, moved, derived]; zeros are left out. */
function badges(counts) {
  const parts = ["added", "removed", "changed", "moved", "derived"].map((status, i) => counts[i]
    ? h("span", {class: status, title: `${counts[i]} ${status}`}, SIGN[status] + number(counts[i])) : null);
  return h("span", {class: "badges"}, parts);
}
const chip = (status) => h("span", {class: `chip ${status}`}, status === "same" ? "unchanged" : `${SIGN[status]} ${status}`);

// --- Data -------------------------------------------------------------------------------------------------------------

const details = new Map();

/** One scene with what belongs to its nodes; made once, kept. */
class Detail {
  constructor(data) {
    Object.assign(this, data);
    const n = this.name.length;
    this.count = n;
    this.fieldsOf = new Map(this.fields.map(([node, ...fields]) => [node, fields]));
    this.viaOf = new Map(this.via.map(([node, how, confidence]) => [node, [how, confidence]]));
    this.linesOf = new Map(this.lines.map(([node, before, after]) => [node, [before, after]]));
    this.inputs = Array.from({length: n}, () => []);
    this.outputs = Array.from({length: n}, () => []);
    for (let i = 0; i < this.edges.length; i += 3) {
      const [from, to, status] = [this.edges[i], this.edges[i + 1], this.edges[i + 2]];
      this.inputs[to].push([from, status]);
      this.outputs[from].push([to, status]);
    }
    this.byName = new Map();
    for (let i = n - 1; i >= 0; i--) this.byName.set(this.str(this.name[i]), i);
    this.changes = [];
    for (let i = 0; i < n; i++) if (this.status[i] !== SAME) this.changes.push(i);
    // Node numbers are in program order, so a subtree sorted is its barcode.
    for (const c of this.clusters) c.nodes = this.order.slice(c.range[0], c.range[1]).sort((a, b) => a - b);
    this.children = this.clusters.map(() => []);
    this.clusters.forEach((c, i) => { if (c.parent >= 0) this.children[c.parent].push(i); });
  }
  str(index) { return index < 0 ? "" : this.text[index]; }
  nodeName(i) { return plain(this.str(this.name[i])); }
  opOf(i) { return plain(this.str(this.op[i])); }
  typeOf(i) { return plain(this.str(this.type[i])); }
  moduleOf(i) { return plain(this.clusters[this.cluster[i]].path); }
  /** "view → reshape" when the operator changed. */
  opLabel(i) {
    const target = (this.fieldsOf.get(i) || []).find(([path]) => this.str(path) === "target");
    if (target && target[1] >= 0 && target[2] >= 0) return `${shortOp(plain(this.str(target[1])))} → ${shortOp(plain(this.str(target[2])))}`;
    return shortOp(this.opOf(i));
  }
}
async function loadDetail(index) {
  if (index < 0) return null;
  if (!details.has(index)) {
    details.set(index, inflate(`data-${index}`).then((data) => data ? new Detail(data) : null));
  }
  return details.get(index);
}

let report = null;
/** Everything that can be looked at: passes, and graphs that no pass shows. */
const subjects = [];

function collectSubjects() {
  for (const run of report.runs) {
    for (const pass of run.passes) subjects.push({run, pass, name: pass.name, graph: pass.graph, ref: pass.ref, detail: pass.detail, counts: pass.counts});
    for (const graph of run.graphs) {
      if (graph.detail >= 0) subjects.push({run, pass: null, name: graph.name, graph: graph.name, ref: graph.ref, detail: graph.detail, counts: [0, 0, 0, 0, 0], nodes: graph.last.nodes});
    }
  }
}

// --- State: all of it in the fragment ---------------------------------------------------------------------------------

const state = {view: "overview", ref: "", tab: "graph", node: "", all: false, filter: ""};

function readHash() {
  const words = decodeURIComponent(location.hash.slice(1)).split("&");
  Object.assign(state, {view: "overview", ref: "", tab: "graph", node: "", all: false});
  if (!words[0]) return;
  state.view = words[0] === "overview" ? "overview" : "subject";
  state.ref = words[0];
  for (const word of words.slice(1)) {
    const at = word.indexOf("=");
    const [key, value] = [word.slice(0, at), word.slice(at + 1)];
    if (key === "tab" && ["graph", "table", "text", "patterns"].includes(value)) state.tab = value;
    if (key === "node") state.node = value;
    if (key === "all") state.all = true;
  }
}
function hashOf(s) {
  if (s.view === "overview") return "#overview";
  let hash = s.ref;
  if (s.tab !== "graph") hash += `&tab=${s.tab}`;
  if (s.all) hash += "&all=1";
  if (s.node) hash += `&node=${s.node}`;
  return "#" + encodeURIComponent(hash).replace(/%3D/g, "=").replace(/%26/g, "&").replace(/%2C/g, ",");
}
/** A new page of the history, unless only the selection moved. */
function go(change, replace = false) {
  Object.assign(state, change);
  const hash = hashOf(state);
  if (hash !== location.hash) {
    if (replace) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
  }
  render();
}
/** The subject a selector names; selectors may leave out parts, as REFs may. */
function findSubject(ref) {
  const wanted = ref.split(",").map((part) => part.replace(/:(before|after)$/, ""));
  const fits = (subject) => wanted.every((part) => part === "" || subject.ref.split(",").includes(part) || part === `pass=${subject.pass ? subject.pass.name : ""}`);
  return subjects.find((subject) => subject.ref === ref) || subjects.find((subject) => subject.detail >= 0 && fits(subject)) || subjects.find(fits) || subjects[0];
}

// --- Theme ------------------------------------------------------------------------------------------------------------

function setTheme(theme, keep) {
  document.documentElement.dataset.theme = theme;
  if (keep) { try { localStorage.setItem("strata-theme", theme); } catch { /* private windows have no storage */ } }
  for (const button of document.querySelectorAll("[data-theme-button]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeButton === theme));
  }
  colors = readColors();
}
function initialTheme() {
  let kept = null;
  try { kept = localStorage.getItem("strata-theme"); } catch { /* as above */ }
  return kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["bg", "surface", "well", "well-2", "fold", "rule", "rule-2", "ink", "ink-2", "ink-3", "ink-4", "edge", "tick", "tick-2", "accent", "accent-fill", "halo",
    "added", "added-text", "added-fill", "removed", "removed-text", "removed-fill", "changed", "changed-text", "changed-fill", "moved", "moved-text", "moved-fill", "sans", "mono"];
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}

// --- Barcode: one tick per node in program order ----------------------------------------------------------------------

/** Fits a canvas to its box; returns a context in CSS pixels, or null while it is not shown. */
function prepare(canvas) {
  const box = canvas.getBoundingClientRect();
  if (box.width < 1 || box.height < 1) return null;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {context, width: box.width, height: box.height};
}
const TICK_COLOR = {1: "added", 2: "removed", 3: "changed", 5: "moved"};

/** Added stands above the middle line, removed below, changed across; unchanged are short and pale. */
function drawBarcode(c, x, y, width, height, nodes, status) {
  if (nodes.length === 0) return;
  const step = width / nodes.length, thick = Math.max(1, Math.min(3, step * 0.7)), middle = y + height / 2;
  // Many unchanged ticks on one pixel are one tick.
  c.fillStyle = colors.tick;
  let last = -2;
  for (let i = 0; i < nodes.length; i++) {
    if (status[nodes[i]] !== SAME) continue;
    const at = Math.floor(x + i * step);
    if (at - last < 1) continue;
    last = at;
    c.fillRect(at, middle - height * 0.16, Math.min(thick, 1.5), height * 0.32);
  }
  for (const wanted of [DERIVED, MOVED, CHANGED, REMOVED, ADDED]) {
    c.fillStyle = wanted === DERIVED ? colors["tick-2"] : colors[TICK_COLOR[wanted]];
    for (let i = 0; i < nodes.length; i++) {
      if (status[nodes[i]] !== wanted) continue;
      const at = x + i * step;
      if (wanted === ADDED) c.fillRect(at, y, thick, height / 2);
      else if (wanted === REMOVED) c.fillRect(at, middle, thick, height / 2);
      else if (wanted === CHANGED) c.fillRect(at, y, thick, height);
      else if (wanted === DERIVED) c.fillRect(at, middle - height * 0.25, thick, height * 0.5);
      else { c.fillRect(at, y + 1, thick, 2); c.fillRect(at, y + height - 3, thick, 2); c.fillRect(at, y + 1, Math.min(1, thick), height - 3); }
    }
  }
}

// --- Overview ---------------------------------------------------------------------------------------------------------

const card = (title, value, note) => h("div", {class: "card"}, h("span", {}, title), h("b", {class: "cut", title: value}, value), h("span", {class: "cut", title: note}, note));

function overview() {
  const page = h("div", {class: "overview"}, h("h1", {}, plain(report.title)));
  for (const run of report.runs) page.append(...overviewOf(run));
  if (report.left_out.length) {
    page.append(h("section", {}, h("h2", {}, "Left out"), h("div", {class: "box"}, h("p", {}, "This report reached its size limit. Their graphs are in the trace, not here:"), h("ul", {}, report.left_out.map((title) => h("li", {}, plain(title)))))));
  }
  page.append(h("section", {}, h("h2", {}, "Words"), glossary()));
  return page;
}

function overviewOf(run) {
  const changed = run.passes.filter((pass) => pass.detail >= 0).length;
  const failed = run.passes.filter((pass) => pass.status === "failed").length;
  const total = run.passes.reduce((sum, pass) => sum + pass.ms, 0);
  const cards = [card(run.kind === "import" ? "Imported log" : `${run.kind} run ${run.id}`, run.world > 1 || run.kind === "import" ? `rank ${run.rank}` : run.status, plain(run.source || run.command))];
  cards.push(card("Passes", number(run.passes.length), failed ? `${failed} failed` : `${changed} changed something${total > 0 ? `, ${time(total)}` : ""}`));
  for (const name of new Set(run.passes.map((pass) => pass.graph))) {
    const passes = run.passes.filter((pass) => pass.graph === name);
    const [before, after] = [passes[0].before.nodes, passes[passes.length - 1].after.nodes];
    cards.push(card(`Nodes of ${plain(name)}`, before === after ? number(after) : `${number(before)} → ${number(after)}`, before === after ? "as many as before" : `${signed(after - before)} by ${plural(passes.length, "pass", "passes")}`));
  }
  if (run.steps.length) {
    const last = run.steps[run.steps.length - 1];
    cards.push(card("Loss", `${run.steps[0][1].toFixed(4)} → ${last[1].toFixed(4)}`, `${plural(run.steps.length, "step")}, ${time(run.steps.reduce((sum, s) => sum + s[3], 0) / run.steps.length)} each`));
  }
  const parts = [];
  if (report.runs.length > 1) parts.push(h("section", {}, h("h2", {}, `Run ${run.id}, rank ${run.rank}`)));
  parts.push(h("div", {class: "cards"}, cards));
  if (run.passes.length) parts.push(h("section", {}, h("h2", {}, "Pass timeline"), timeline(run)));
  if (run.steps.length) parts.push(h("section", {}, h("h2", {}, "What ran"), h("div", {class: "box"}, lossChart(run), executed(run))));
  const others = run.graphs.filter((graph) => graph.detail >= 0);
  if (others.length) parts.push(h("section", {}, h("h2", {}, run.passes.length ? "Other graphs" : "Graphs"), graphTable(others)));
  if (run.artifacts.length) parts.push(h("section", {}, h("h2", {}, "Artifacts"), artifacts(run)));
  return parts;
}

const changedOrFailed = (run) => run.passes.filter((pass) => pass.detail >= 0 || pass.status === "failed");

function timeline(run) {
  const timed = run.passes.some((pass) => pass.ms > 0);
  const box = h("div", {class: timed ? "timeline" : "timeline untimed", role: "table", "aria-label": "Pass timeline"});
  if (changedOrFailed(run).length) box.append(h("div", {class: "row head"}, h("span", {class: "number"}, "#"), h("span", {}, "pass"), h("span", {}, "nodes in program order"),
    ...["+", MINUS, "~", "\u21b7", "derived"].map((sign) => h("span", {class: "number one"}, sign)), h("span", {class: "number one"}, "nodes"), timed ? h("span", {class: "number one"}, "time") : null));
  let quiet = [];
  const flush = () => {
    if (quiet.length) box.append(h("div", {class: "row fold"}, h("span", {class: "cut"}, `… ${plural(quiet.length, "pass", "passes")} without change: ${quiet.map((pass) => plain(pass.name)).join(", ")}`)));
    quiet = [];
  };
  for (const pass of run.passes) {
    if (pass.detail < 0 && pass.status !== "failed") { quiet.push(pass); continue; }
    flush();
    const canvas = h("canvas", {"aria-hidden": "true"});
    const several = new Set(run.passes.map((p) => p.graph)).size > 1;
    const note = [pass.status === "failed" ? `failed: ${pass.error}` : "", several ? pass.graph : "", pass.options].filter(Boolean).join(" · ");
    const counts = ["added", "removed", "changed", "moved", "derived"].map((status, i) =>
      h("span", {class: `number one ${status}`, title: status}, pass.counts[i] ? SIGN[status] + number(pass.counts[i]) : "·"));
    box.append(h("button", {class: `row ${pass.status}`, click: () => go({view: "subject", ref: pass.ref, tab: "graph", node: "", all: false})},
      h("span", {class: "number quiet"}, String(pass.index)), h("span", {}, h("div", {class: "name cut", title: plain(pass.name)}, plain(pass.name)), note ? h("div", {class: "small quiet cut", title: plain(note)}, plain(note)) : null),
      canvas, h("span", {class: "together"}, badges(pass.counts)), ...counts,
      h("span", {class: "number one"}, pass.after.nodes === pass.before.nodes ? "·" : signed(pass.after.nodes - pass.before.nodes)), timed ? h("span", {class: "number one quiet"}, time(pass.ms)) : null));
    loadDetail(pass.detail).then((detail) => {
      if (!detail) return;
      const draw = () => {
        const box = prepare(canvas);
        if (box) drawBarcode(box.context, 0, 0, box.width, box.height, detail.clusters[0].nodes, detail.status);
      };
      redraws.push(draw);
      draw();
    });
  }
  flush();
  return box;
}
/** What to draw again when the theme or the size changes; emptied by each render. */
let redraws = [];

function lossChart(run) {
  const [width, height, left, right, top, bottom] = [900, 180, 56, 12, 12, 24];
  const losses = run.steps.map((step) => step[1]).filter((loss) => loss !== null);
  const low = Math.min(...losses), high = Math.max(...losses), span = high - low || 1;
  const x = (i) => left + (width - left - right) * (run.steps.length === 1 ? 0.5 : i / (run.steps.length - 1));
  const y = (loss) => top + (height - top - bottom) * (high - loss) / span;
  const chart = svg("svg", {class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Loss per step, from ${losses[0]} to ${losses[losses.length - 1]}`});
  for (const loss of [high, (high + low) / 2, low]) {
    chart.append(svg("line", {class: "grid", x1: left, x2: width - right, y1: y(loss), y2: y(loss)}), svg("text", {x: left - 8, y: y(loss) + 4, "text-anchor": "end"}, loss.toFixed(3)));
  }
  chart.append(svg("polyline", {class: "line", points: run.steps.map((step, i) => `${x(i).toFixed(1)},${y(step[1]).toFixed(1)}`).join(" ")}));
  if (run.steps.length <= 60) run.steps.forEach((step, i) => chart.append(svg("circle", {cx: x(i), cy: y(step[1]), r: 2.5}, svg("title", {}, `step ${step[0]}: loss ${step[1]}, gradient norm ${step[2]}`))));
  chart.append(svg("text", {x: left, y: height - 6}, `step ${run.steps[0][0]}`), svg("text", {x: width - right, y: height - 6, "text-anchor": "end"}, `step ${run.steps[run.steps.length - 1][0]}`));
  return chart;
}
function executed(run) {
  return h("table", {}, h("caption", {}, "Each step executed a plan of this graph; the fingerprints are equal."),
    h("thead", {}, h("tr", {}, h("th", {}, "graph"), h("th", {}, "steps"), h("th", {}, "fingerprint"), h("th", {}, "last changed by"))),
    h("tbody", {}, run.executed.map((range) => {
      const pass = run.passes.find((p) => p.ref === range.ref);
      return h("tr", {}, h("td", {}, plain(range.graph)), h("td", {}, `${range.first}–${range.last}`), h("td", {class: "mono"}, range.fingerprint),
        h("td", {}, pass ? h("a", {href: hashOf({view: "subject", ref: pass.ref, tab: "graph", node: "", all: false})}, `#${pass.index} ${plain(pass.name)}`) : "as traced"));
    })));
}
function graphTable(graphs) {
  return h("div", {class: "box"}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "graph"), h("th", {class: "number"}, "nodes"), h("th", {}, "fingerprint"))),
    h("tbody", {}, graphs.map((graph) => h("tr", {}, h("td", {}, h("a", {href: hashOf({view: "subject", ref: graph.ref, tab: "graph", node: "", all: false})}, plain(graph.name))),
      h("td", {class: "number"}, number(graph.last.nodes)), h("td", {class: "mono"}, graph.last.fingerprint))))));
}
function artifacts(run) {
  const kinds = new Map();
  for (const [name, kind, bytes] of run.artifacts) {
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push([name, bytes]);
  }
  return h("div", {class: "box"}, h("p", {class: "quiet"}, "What the log holds besides graphs; the trace keeps their content."), [...kinds].map(([kind, list]) =>
    h("details", {}, h("summary", {}, `${plain(kind)} (${list.length})`), h("ul", {}, list.slice(0, 200).map(([name, bytes]) => h("li", {}, `${plain(name)}, ${plural(bytes, "byte")}`)), list.length > 200 ? h("li", {}, `and ${list.length - 200} more`) : null))));
}
function glossary() {
  const words = [
    ["added, removed", "A node that only one of the two graphs has. The JSON of strata diff calls them inserted and deleted."],
    ["changed", "The same node with a difference of its own: operator, argument, operand, type, module or phase."],
    ["derived", "The same node whose only differences are consequences of other changes. Grey, and counted apart."],
    ["moved", "The same node at a place in the order that added and removed nodes do not explain."],
    ["barcode", "One tick per node in program order: added above the line, removed below, changed across."],
    ["fingerprint", "128 bits over what a graph computes: order, operators, arguments and types, not names."],
  ];
  return h("div", {class: "box"}, h("dl", {class: "glossary"}, words.flatMap(([word, meaning]) => [h("dt", {}, word), h("dd", {}, meaning)])));
}

// --- Graph ------------------------------------------------------------------------------------------------------------

// Measures of the design language, in pixels at zoom 1.
const NODE_W = 148, NODE_H = 38, GAP_X = 14, GAP_Y = 34, GUTTER = 44, PAD = 12, HEAD = 28, SLAB = 46, THIN = 30, ROW_GAP = 20, FOLD_H = 24, MARGIN = 22;
/** Nodes show operator and type from this zoom on. */
const TWO_LINES = 0.66;
const LANE_TWO = 2 * NODE_W + GAP_X + 2 * MARGIN, LANE_ONE = 4 * NODE_W + 3 * GAP_X + 2 * MARGIN;

class GraphView {
  constructor(detail, onSelect) {
    this.detail = detail;
    this.onSelect = onSelect;
    this.canvas = h("canvas", {tabindex: "0", role: "img", "aria-label": "Graph of the pass. The table tab lists the same nodes."});
    this.stage = h("div", {class: "stage"}, this.canvas);
    this.zoomLabel = h("span", {class: "quiet"}, "100%");
    this.open = new Set([0]);
    this.all = detail.changes.length === 0;
    this.selected = -1;
    this.hover = -1;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.openFirst();
    this.listen();
    new ResizeObserver(() => { if (!this.fitted) this.fit(); else this.draw(); }).observe(this.stage);
  }

  /** Opens the way to the first change, and more changes while they fit on a few screens. */
  openFirst() {
    const d = this.detail;
    const openPath = (cluster) => { for (let c = cluster; c >= 0; c = d.clusters[c].parent) this.open.add(c); };
    if (d.changes.length) {
      openPath(d.cluster[d.changes[0]]);
      if (d.clusters[0].counts[0] <= 60) for (const node of d.changes) openPath(d.cluster[node]);
    } else if (d.count <= 60) {
      d.clusters.forEach((c, i) => this.open.add(i));
    }
    // A slab with nothing but one slab inside says nothing while that is closed.
    for (let c = 0; d.children[c].length === 1 && d.clusters[c].blocks.length === 1; c = d.children[c][0]) this.open.add(d.children[c][0]);
    this.layout();
  }

  blocksOf(cluster) {
    const c = this.detail.clusters[cluster];
    return !this.all && c.folded ? c.folded : c.blocks;
  }

  /** Boxes in world pixels: slabs, nodes, folds; rows of slabs and nodes stacked from the top. */
  layout() {
    this.slabs = [];
    this.boxes = [];
    this.flows = [];
    this.boxOf = new Map();
    let depth = 0;
    for (const c of this.open) {
      let level = 1;
      for (let p = c; p >= 0; p = this.detail.clusters[p].parent) level++;
      depth = Math.max(depth, level);
    }
    const inner = this.detail.two_lanes ? 2 * LANE_TWO + GUTTER : LANE_ONE;
    this.width = inner + 2 * PAD * Math.max(1, depth);
    this.height = this.place(0, 0, 0, this.width, 0);
  }

  place(cluster, x, y, width, depth) {
    const c = this.detail.clusters[cluster];
    const differs = c.counts[1] + c.counts[2] + c.counts[3] + c.counts[4] + c.counts[5] > 0;
    const slab = {cluster, x, y, width, depth, open: this.open.has(cluster), differs};
    this.slabs.push(slab);
    if (!slab.open) {
      slab.height = differs ? SLAB : THIN;
      return slab.height + (c.repeats ? 10 : 0);
    }
    let at = y + HEAD + (cluster === 0 ? -8 : 4);
    const blocks = this.blocksOf(cluster);
    let previous = false;
    const gap = () => {
      if (previous) { this.flows.push({x: x + PAD, y: at, width: width - 2 * PAD, height: ROW_GAP}); at += ROW_GAP; }
      previous = true;
    };
    for (const block of blocks) {
      if (block.clusters) {
        for (const row of this.rowsOf(block.clusters)) {
          gap();
          const each = (width - 2 * PAD - (row.length - 1) * GAP_X) / row.length;
          let tallest = 0;
          row.forEach((child, i) => { tallest = Math.max(tallest, this.place(child, x + PAD + i * (each + GAP_X), at, each, depth + 1)); });
          at += tallest;
        }
      } else {
        gap();
        at += this.placeNodes(block, cluster, x + PAD, at + 12, width - 2 * PAD) + 24;
      }
    }
    slab.height = at - y + PAD;
    return slab.height;
  }

  /** Closed independent neighbours share a row; an open slab has one of its own. */
  rowsOf(clusters) {
    const rows = [];
    for (const child of clusters) {
      const row = rows[rows.length - 1];
      if (row && row.length < 3 && this.detail.clusters[child].joins && !this.open.has(child) && row.every((c) => !this.open.has(c))) row.push(child);
      else rows.push([child]);
    }
    return rows;
  }

  placeNodes(block, cluster, x, y, width) {
    const two = this.detail.two_lanes, middle = x + width / 2;
    const laneWidth = two ? LANE_TWO : LANE_ONE;
    const lane = [two ? middle - GUTTER / 2 - laneWidth / 2 : middle, middle + GUTTER / 2 + laneWidth / 2];
    const p = block.places;
    for (let i = 0; i < p.length; i += 6) {
      const [node, fold, backward, row, column, columns] = p.slice(i, i + 6);
      const centre = lane[backward] + (column - (columns - 1) / 2) * (NODE_W + GAP_X);
      const height = node >= 0 ? NODE_H : FOLD_H;
      const top = y + row * (NODE_H + GAP_Y) + (NODE_H - height) / 2;
      const members = node >= 0 ? [node] : block.folds[fold];
      const box = {node, members, block, cluster, backward, row, x: centre - NODE_W / 2, y: top, width: NODE_W, height, laneLeft: lane[backward] - laneWidth / 2, laneRight: lane[backward] + laneWidth / 2};
      this.boxes.push(box);
      for (const member of members) this.boxOf.set(member, box);
    }
    return block.rows * (NODE_H + GAP_Y) - GAP_Y;
  }

  // Camera

  fit() {
    const box = this.stage.getBoundingClientRect();
    if (box.width < 10) return;
    this.fitted = true;
    this.fitWidth();
    this.y = 16;
    const first = this.selected >= 0 ? this.selected : this.detail.changes[0];
    if (first !== undefined && this.boxOf.has(first)) this.center(first);
    else this.draw();
  }
  /** As large as the width allows, but readable; what is wider begins at the left. */
  fitWidth() {
    const width = this.stage.getBoundingClientRect().width;
    this.scale = Math.min(1, Math.max(0.5, (width - 48) / this.width));
    this.x = Math.max(24, (width - this.width * this.scale) / 2);
  }
  fitAll() {
    const box = this.stage.getBoundingClientRect();
    this.scale = Math.min(1, (box.width - 48) / this.width, (box.height - 32) / this.height);
    this.x = (box.width - this.width * this.scale) / 2;
    this.y = 16;
    this.draw();
  }
  center(node) {
    const box = this.boxOf.get(node), stage = this.stage.getBoundingClientRect();
    if (!box) return;
    const room = stage.width - this.width * this.scale;
    // Nothing is gained by showing what is beside the graph.
    if (room < 48) this.x = Math.min(24, Math.max(room - 24, stage.width / 2 - (box.x + box.width / 2) * this.scale));
    this.y = Math.min(16, stage.height / 2 - (box.y + box.height / 2) * this.scale);
    this.draw();
  }
  zoom(factor, cx, cy) {
    const stage = this.stage.getBoundingClientRect();
    cx ??= stage.width / 2;
    cy ??= stage.height / 2;
    const scale = Math.min(4, Math.max(0.05, this.scale * factor));
    this.x = cx - (cx - this.x) * scale / this.scale;
    this.y = cy - (cy - this.y) * scale / this.scale;
    this.scale = scale;
    this.draw();
  }

  // Selection

  /** Shows a node: opens its slabs, unfolds if it is folded, and brings it to the middle. */
  reveal(node) {
    for (let c = this.detail.cluster[node]; c >= 0; c = this.detail.clusters[c].parent) this.open.add(c);
    this.layout();
    if (!this.boxOf.has(node) || this.boxOf.get(node).node < 0) {
      this.all = true;
      this.layout();
      this.onUnfold();
    }
    this.selected = node;
    if (this.scale < TWO_LINES || this.width * this.scale > this.stage.getBoundingClientRect().width) this.fitWidth();
    this.center(node);
  }
  select(node) {
    this.selected = node;
    this.onSelect(node);
    this.draw();
  }
  toggle(slab) {
    // The slab's corner stays where it is.
    const before = slab.y;
    if (this.open.has(slab.cluster)) this.open.delete(slab.cluster);
    else this.open.add(slab.cluster);
    const old = this.width;
    this.layout();
    const again = this.slabs.find((other) => other.cluster === slab.cluster);
    if (again) this.y += (before - again.y) * this.scale;
    this.x += (old - this.width) * this.scale / 2;
    this.draw();
  }

  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.x) / this.scale, y = (event.clientY - box.top - this.y) / this.scale;
    const inside = (b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height;
    const node = this.boxes.find(inside);
    if (node) return {box: node};
    for (let i = this.slabs.length - 1; i > 0; i--) {
      const slab = this.slabs[i];
      if (inside(slab) && (!slab.open || y <= slab.y + HEAD)) return {slab};
    }
    return {};
  }

  listen() {
    const pointers = new Map();
    let moved = 0, pinch = 0;
    this.canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      this.canvas.setPointerCapture(event.pointerId);
      moved = 0;
      pinch = 0;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) {
        const {box, slab} = this.hit(event);
        const hover = box && box.node >= 0 ? box.node : -1;
        this.canvas.style.cursor = box || slab ? "pointer" : "default";
        if (hover !== this.hover) { this.hover = hover; this.draw(); }
        return;
      }
      if (pointers.size === 2) {
        pointers.set(event.pointerId, event);
        const [a, b] = [...pointers.values()];
        const distance = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), box = this.canvas.getBoundingClientRect();
        if (pinch) this.zoom(distance / pinch, (a.clientX + b.clientX) / 2 - box.left, (a.clientY + b.clientY) / 2 - box.top);
        pinch = distance;
        moved = 10;
        return;
      }
      this.x += event.clientX - last.clientX;
      this.y += event.clientY - last.clientY;
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      pointers.set(event.pointerId, event);
      this.draw();
    });
    const up = (event) => {
      const was = pointers.delete(event.pointerId);
      if (!was || moved > 4 || event.type === "pointercancel") return;
      const {box, slab} = this.hit(event);
      if (box && box.node >= 0) this.select(box.node);
      else if (box) { this.all = true; this.layout(); this.draw(); this.onUnfold(); }
      else if (slab) this.toggle(slab);
      else this.select(-1);
    };
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY * 0.004), event.clientX - box.left, event.clientY - box.top);
      else { this.x -= event.shiftKey ? event.deltaY : event.deltaX; this.y -= event.shiftKey ? 0 : event.deltaY; this.draw(); }
    }, {passive: false});
  }

  // Drawing

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }

  paint() {
    const box = prepare(this.canvas);
    if (!box) return;
    const c = box.context;
    c.save();
    c.translate(this.x, this.y);
    c.scale(this.scale, this.scale);
    this.view = {left: -this.x / this.scale, top: -this.y / this.scale, right: (box.width - this.x) / this.scale, bottom: (box.height - this.y) / this.scale};
    const shows = (b) => b.x < this.view.right && b.x + b.width > this.view.left && b.y < this.view.bottom && b.y + (b.height || 0) + 12 > this.view.top;
    for (const slab of this.slabs) if (shows(slab)) this.paintSlab(c, slab);
    if (this.scale >= 0.2) {
      for (const flow of this.flows) if (shows(flow)) this.paintFlow(c, flow);
      this.paintEdges(c, shows);
    }
    for (const node of this.boxes) if (shows(node)) this.paintBox(c, node);
    if (this.scale >= TWO_LINES) for (const [node, stubs] of this.stubs) this.paintStub(c, node, stubs);
    c.restore();
    this.zoomLabel.textContent = `${Math.round(this.scale * 100)}%`;
  }

  /** Text is never smaller than 9 px on screen; far out it keeps the size of a label. */
  font(c, weight, size, family = "sans") {
    const onScreen = this.scale >= TWO_LINES ? Math.max(size * this.scale, 9) : Math.max(9, size * 0.85);
    c.font = `${weight} ${onScreen / this.scale}px ${colors[family]}`;
  }
  static cut(c, text, width) {
    if (c.measureText(text).width <= width) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
      else high = middle - 1;
    }
    return low > 0 ? text.slice(0, low) + "…" : "";
  }

  paintSlab(c, slab) {
    const cluster = this.detail.clusters[slab.cluster];
    if (slab.cluster === 0) return;
    c.lineWidth = 1;
    c.strokeStyle = colors.rule;
    if (slab.open) {
      c.fillStyle = slab.depth % 2 ? colors.well : colors["well-2"];
      round(c, slab.x, slab.y, slab.width, slab.height, 6);
      c.fill();
      c.stroke();
    } else {
      for (let i = cluster.repeats ? 2 : 0; i > 0; i--) {
        c.fillStyle = colors.surface;
        round(c, slab.x + 5 * i, slab.y + 5 * i, slab.width - 10 * i, slab.height, 6);
        c.fill();
        c.stroke();
      }
      c.fillStyle = slab.differs || this.detail.changes.length === 0 ? colors.surface : colors.fold;
      round(c, slab.x, slab.y, slab.width, slab.height, 6);
      c.fill();
      c.stroke();
    }
    if (this.scale < 0.2) return;
    const middle = slab.y + (slab.open ? HEAD / 2 + 2 : slab.differs ? 15 : THIN / 2);
    c.fillStyle = colors["ink-2"];
    c.beginPath();
    const tx = slab.x + 13;
    if (slab.open) { c.moveTo(tx - 4, middle - 2.5); c.lineTo(tx + 4, middle - 2.5); c.lineTo(tx, middle + 3.5); }
    else { c.moveTo(tx - 2.5, middle - 4); c.lineTo(tx - 2.5, middle + 4); c.lineTo(tx + 3.5, middle); }
    c.fill();
    c.textBaseline = "middle";
    const right = this.paintBadges(c, cluster.counts, slab.x + slab.width - 10, middle);
    this.font(c, slab.differs ? 600 : 400, 12);
    c.fillStyle = slab.differs || slab.open ? colors.ink : colors["ink-3"];
    const label = GraphView.cut(c, plain(cluster.repeats ? `${cluster.label} ×${cluster.repeats} equal` : cluster.label), right - slab.x - 30);
    c.fillText(label, slab.x + 22, middle);
    const after = slab.x + 22 + c.measureText(label).width + 8;
    this.font(c, 400, 11);
    c.fillStyle = colors["ink-3"];
    const note = plural(cluster.counts[0], "node");
    if (after + c.measureText(note).width < right - 8) c.fillText(note, after, middle);
    if (!slab.open && slab.differs) {
      const nodes = cluster.nodes, status = this.detail.status, backward = this.detail.backward, y = slab.y + 27;
      if (this.detail.two_lanes) {
        const half = (slab.width - 44) / 2;
        drawBarcode(c, slab.x + 12, y, half, 14, nodes.filter((i) => !backward[i]), status);
        drawBarcode(c, slab.x + slab.width - 12 - half, y, half, 14, nodes.filter((i) => backward[i]).reverse(), status);
      } else {
        drawBarcode(c, slab.x + 12, y, slab.width - 24, 14, nodes, status);
      }
    }
  }

  /** Right aligned at `right`; returns where they begin. */
  paintBadges(c, counts, right, y) {
    const [, added, removed, changed, moved, derived] = counts;
    const parts = [["added", added], ["removed", removed], ["changed", changed], ["moved", moved], ["derived", derived]].filter(([, count]) => count).reverse();
    for (const [status, count] of parts) {
      this.font(c, status === "derived" ? 400 : 600, 11);
      const text = SIGN[status] + number(count);
      right -= c.measureText(text).width;
      c.fillStyle = status === "derived" ? colors["ink-3"] : colors[`${status}-text`];
      c.fillText(text, right, y);
      right -= 8;
    }
    return right;
  }

  paintFlow(c, flow) {
    c.strokeStyle = c.fillStyle = colors.edge;
    c.lineWidth = 1.5;
    const arrow = (x, up) => {
      const [from, to] = up ? [flow.y + flow.height - 3, flow.y + 3] : [flow.y + 3, flow.y + flow.height - 3];
      c.beginPath();
      c.moveTo(x, from);
      c.lineTo(x, to + (up ? 6 : -6));
      c.stroke();
      head(c, x, to, up);
    };
    if (this.detail.two_lanes) { arrow(flow.x + flow.width / 4, false); arrow(flow.x + flow.width * 3 / 4, true); }
    else arrow(flow.x + flow.width / 2, false);
  }

  paintEdges(c, shows) {
    const d = this.detail, tracks = new Map();
    this.stubs = [];
    for (const box of this.boxes) {
      if (!shows(box)) continue;
      const stubs = [], drawn = new Set();
      for (const member of box.members) {
        for (const [from, status] of d.inputs[member]) {
          const source = this.boxOf.get(from);
          if (source === box) continue;
          if (source && source.block === box.block) {
            // Several values between a fold and another box are one line.
            const once = source.members.length > 1 || box.members.length > 1;
            if (once && drawn.has(source)) continue;
            drawn.add(source);
            this.paintEdge(c, source, box, status, tracks);
          } else if (box.node >= 0) stubs.push([from, status]);
        }
      }
      if (stubs.length && this.scale >= TWO_LINES) this.stubs.push([box, stubs]);
    }
  }

  /** Orthogonal, leaving in the direction of the lane. Longer than one row: along the lane's edge, past the boxes. */
  paintEdge(c, a, b, status, tracks) {
    const near = [a.node, b.node].some((node) => node >= 0 && (node === this.selected || node === this.hover));
    c.strokeStyle = c.fillStyle = status === ADDED ? colors.added : status === REMOVED ? colors.removed : near ? colors.ink : colors.edge;
    c.lineWidth = status === ADDED ? 2 : status === REMOVED || near ? 1.5 : 1;
    c.setLineDash(status === REMOVED ? [4, 3] : []);
    const out = a.backward ? a.y : a.y + a.height, into = b.backward ? b.y + b.height : b.y;
    const sign = a.backward ? -1 : 1, port = (box, other) => box.x + box.width / 2 + Math.max(-24, Math.min(24, (other.x - box.x) / 12));
    const ax = port(a, b), bx = port(b, a), points = [[ax, out]];
    if (a.backward === b.backward && Math.abs(a.row - b.row) === 1 && (into - out) * sign > 0) {
      // Nearer to the source: the names of stubs stand at the target.
      const middle = out + (into - out) * (ax < bx ? 0.26 : 0.38);
      if (Math.abs(ax - bx) > 1) points.push([ax, middle], [bx, middle]);
    } else {
      const cross = a.backward !== b.backward;
      const key = cross ? a.block : a.block.places, track = tracks.get(key) || 0;
      tracks.set(key, track + 1);
      const offset = 4 + (track % 4) * 4.5;
      const side = cross ? (a.backward ? a.laneLeft - offset : a.laneRight + offset) : a.backward ? a.laneRight - MARGIN + 2 + offset : a.laneLeft + MARGIN - 2 - offset;
      const leave = out + sign * (6 + (track % 4) * 2.5), enter = into - (b.backward ? -1 : 1) * (18 + (track % 4) * 2.5);
      points.push([ax, leave], [side, leave], [side, enter], [bx, enter]);
    }
    points.push([bx, into + (b.backward ? 7 : -7)]);
    polyline(c, points, 5);
    c.setLineDash([]);
    head(c, bx, into, b.backward);
  }

  /** An input from elsewhere: a short arrow with the source's name; changed ones first. */
  paintStub(c, box, stubs) {
    stubs.sort((p, q) => (q[1] !== SAME) - (p[1] !== SAME));
    const [from, status] = stubs[0];
    const up = box.backward, x = box.x + 10, edge = up ? box.y + box.height : box.y;
    c.strokeStyle = c.fillStyle = status === ADDED ? colors.added : status === REMOVED ? colors.removed : colors.edge;
    c.lineWidth = status === ADDED ? 2 : 1;
    c.setLineDash(status === REMOVED ? [3, 2] : []);
    c.beginPath();
    c.moveTo(x, edge + (up ? 11 : -11));
    c.lineTo(x, edge + (up ? 6 : -6));
    c.stroke();
    c.setLineDash([]);
    head(c, x, edge, up);
    this.font(c, 400, 10, "mono");
    c.fillStyle = status === ADDED ? colors["added-text"] : status === REMOVED ? colors["removed-text"] : colors["ink-3"];
    c.textBaseline = "middle";
    const more = stubs.length > 1 ? ` +${stubs.length - 1}` : "";
    c.fillText(GraphView.cut(c, this.detail.nodeName(from), box.width - 44 - c.measureText(more).width) + more, x + 7, edge + (up ? 9 : -9));
  }

  paintBox(c, box) {
    if (box.node < 0) {
      c.fillStyle = colors.fold;
      round(c, box.x, box.y, box.width, box.height, 4);
      c.fill();
      if (this.scale < 0.4) return;
      this.font(c, 400, 11);
      c.fillStyle = colors["ink-3"];
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText(GraphView.cut(c, `… ${number(box.members.length)} unchanged nodes`, box.width - 12), box.x + box.width / 2, box.y + box.height / 2);
      c.textAlign = "left";
      return;
    }
    const d = this.detail, node = box.node, status = STATUS[d.status[node]];
    const {x, y, width, height} = box;
    if (node === this.selected) {
      c.strokeStyle = colors.halo;
      c.lineWidth = 6;
      round(c, x - 4, y - 4, width + 8, height + 8, 7);
      c.stroke();
      c.strokeStyle = colors.ink;
      c.lineWidth = 2;
      round(c, x - 1.5, y - 1.5, width + 3, height + 3, 5);
      c.stroke();
    } else if (node === this.hover) {
      c.strokeStyle = colors["ink-2"];
      c.lineWidth = 1;
      round(c, x - 2, y - 2, width + 4, height + 4, 5);
      c.stroke();
    }
    round(c, x, y, width, height, 4);
    c.fillStyle = colors[`${status}-fill`] || colors.surface;
    c.fill();
    if (status === "removed" && this.scale >= 0.2) hatch(c, x, y, width, height);
    c.strokeStyle = status === "same" || status === "derived" ? colors.edge : colors[status];
    c.lineWidth = status === "added" ? 2 : status === "same" || status === "derived" ? 1 : 1.5;
    c.setLineDash(this.scale < 0.4 ? [] : status === "removed" ? [5, 3] : status === "moved" ? [1.5, 2.5] : []);
    round(c, x, y, width, height, 4);
    c.stroke();
    c.setLineDash([]);
    if ((status === "changed" || status === "derived") && this.scale >= 0.2) {
      c.lineWidth = 1;
      round(c, x + 3, y + 3, width - 6, height - 6, 3);
      c.stroke();
    }
    if (this.scale < 0.4) return;
    let left = x + 10;
    if (status !== "same" && this.scale >= TWO_LINES) {
      sign(c, x + 8, y + 6, status);
      left = x + 26;
    }
    const compute = !/^(view|_unsafe_view|reshape|t|transpose|permute|detach|alias|expand|slice|select|squeeze|unsqueeze|getitem|input|output|split|as_strided)\b/.test(shortOp(d.opOf(node)));
    c.textBaseline = "middle";
    const two = this.scale >= TWO_LINES;
    this.font(c, status !== "same" || compute ? 600 : 400, 12);
    c.fillStyle = status === "removed" ? colors["ink-2"] : colors.ink;
    const label = GraphView.cut(c, d.opLabel(node), x + width - 8 - left);
    c.fillText(label, left, two ? y + 13 : y + height / 2);
    if (!two) return;
    const end = left + c.measureText(label).width + 8;
    this.font(c, 400, 10, "mono");
    c.fillStyle = colors["ink-3"];
    const name = d.nodeName(node), nameWidth = c.measureText(name).width;
    // Dropped, not shortened, where there is no room.
    if (x + width - 8 - nameWidth >= end) c.fillText(name, x + width - 8 - nameWidth, y + 13);
    this.font(c, 400, 10.5, "mono");
    c.fillStyle = colors["ink-2"];
    c.fillText(GraphView.cut(c, shortType(d.typeOf(node)) || "–", width - 20), x + 10, y + 27.5);
  }
}

function round(c, x, y, width, height, radius) {
  c.beginPath();
  c.roundRect(x, y, Math.max(0, width), Math.max(0, height), Math.min(radius, width / 2, height / 2));
}
function polyline(c, points, radius) {
  c.beginPath();
  c.moveTo(...points[0]);
  for (let i = 1; i + 1 < points.length; i++) c.arcTo(...points[i], ...points[i + 1], Math.min(radius, Math.abs(points[i][0] - points[i - 1][0]) / 2 + Math.abs(points[i][1] - points[i - 1][1]) / 2, Math.abs(points[i + 1][0] - points[i][0]) / 2 + Math.abs(points[i + 1][1] - points[i][1]) / 2));
  c.lineTo(...points[points.length - 1]);
  c.stroke();
}
function head(c, x, y, up) {
  const s = up ? 1 : -1;
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x - 3, y + 7 * s);
  c.lineTo(x + 3, y + 7 * s);
  c.fill();
}
function hatch(c, x, y, width, height) {
  c.save();
  round(c, x, y, width, height, 4);
  c.clip();
  c.strokeStyle = colors.removed;
  c.globalAlpha = 0.25;
  c.lineWidth = 1;
  c.beginPath();
  for (let at = -height; at < width; at += 6) { c.moveTo(x + at, y + height); c.lineTo(x + at + height, y); }
  c.stroke();
  c.restore();
}
/** The badge of a node: strokes, not glyphs, so that a small ~ never reads as a minus. */
function sign(c, x, y, status) {
  const derived = status === "derived";
  round(c, x, y, 13, 13, 3);
  if (derived) { c.strokeStyle = colors["ink-3"]; c.lineWidth = 1; c.stroke(); }
  else { c.fillStyle = colors[`${status}-text`]; c.fill(); }
  c.strokeStyle = derived ? colors["ink-3"] : colors.surface;
  c.lineWidth = 1.6;
  c.beginPath();
  const mx = x + 6.5, my = y + 6.5;
  if (status === "added") { c.moveTo(mx - 3.5, my); c.lineTo(mx + 3.5, my); c.moveTo(mx, my - 3.5); c.lineTo(mx, my + 3.5); }
  else if (status === "removed") { c.moveTo(mx - 3.5, my); c.lineTo(mx + 3.5, my); }
  else if (status === "moved") { c.arc(mx, my + 1.5, 3, Math.PI, 0); c.moveTo(mx + 1, my - 0.5); c.lineTo(mx + 3, my + 2); c.lineTo(mx + 5, my - 0.5); }
  else { c.moveTo(mx - 4, my + 1); c.quadraticCurveTo(mx - 2, my - 4, mx, my); c.quadraticCurveTo(mx + 2, my + 4, mx + 4, my - 1); }
  c.stroke();
}

// --- One subject: rail, tabs, inspector -------------------------------------------------------------------------------

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

function inspector(detail) {
  const box = h("aside", {class: "inspector", "aria-label": "Node"});
  const node = detail.byName.get(state.node);
  if (node === undefined) {
    box.append(h("p", {class: "quiet"}, detail.changes.length ? "Click a node, or press n for the first change of this pass." : "Click a node to see its fields, inputs and outputs."));
    return box;
  }
  const status = STATUS[detail.status[node]];
  box.append(h("h2", {}, detail.opLabel(node)), chip(status), h("div", {class: "mono"}, detail.was[node] >= 0 ? `${plain(detail.str(detail.was[node]))} → ${detail.nodeName(node)}` : detail.nodeName(node)));
  const rows = [];
  const fields = (detail.fieldsOf.get(node) || []).slice().sort((a, b) => a[3] - b[3]);
  for (const [path, before, after, derived] of fields) {
    rows.push(h("tr", {class: derived ? "derived" : "cause"}, h("td", {}, plain(detail.str(path))), h("td", {class: "mono old"}, before < 0 ? "–" : plain(detail.str(before))), h("td", {class: "mono new"}, after < 0 ? "–" : plain(detail.str(after)))));
  }
  const said = new Set(fields.map((field) => detail.str(field[0])));
  const one = (name, value) => { if (value && !said.has(name)) rows.push(h("tr", {}, h("td", {}, name), h("td", {class: "mono", colspan: "2"}, value))); };
  one("operator", said.has("target") ? "" : detail.opOf(node));
  one("type", detail.typeOf(node));
  one("module", detail.moduleOf(node));
  one("phase", PHASE[detail.phase[node]]);
  if (detail.seq[node] >= 0) one("seq", String(detail.seq[node]));
  box.append(h("h3", {}, "Fields"), h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "field"), h("th", {}, "before"), h("th", {}, "after"))), h("tbody", {}, rows)));
  const flow = (title, list) => {
    if (!list.length) return;
    box.append(h("h3", {}, `${title} ${list.length}`));
    for (const [other, edge] of list.slice(0, 30)) {
      const word = edge === ADDED ? "added" : edge === REMOVED ? "removed" : "same";
      box.append(h("button", {class: "flow", click: () => selectNode(other, true)}, h("span", {class: word}, edge === SAME ? "→" : SIGN[word]), h("span", {class: "mono cut"}, detail.nodeName(other)), h("span", {class: "spacer"}), h("span", {class: "mono quiet cut"}, shortType(detail.typeOf(other)))));
    }
    if (list.length > 30) box.append(h("p", {class: "quiet"}, `and ${list.length - 30} more`));
  };
  flow("Inputs", detail.inputs[node]);
  flow("Outputs", detail.outputs[node]);
  const lines = detail.linesOf.get(node);
  if (lines) for (const [word, line] of [["Before", lines[0]], ["After", lines[1]]]) if (line >= 0) box.append(h("h3", {}, word), h("pre", {}, plain(detail.str(line))));
  if (detail.place[node] >= 0) box.append(h("h3", {}, "Source"), h("div", {class: "small mono quiet"}, plain(detail.str(detail.place[node]))), detail.code[node] >= 0 ? h("pre", {}, plain(detail.str(detail.code[node]))) : "");
  const via = detail.viaOf.get(node);
  if (via) {
    const words = {id: "The same StableId on both sides", pin: "Pinned by hand", input: "An input at the same place", cone: "The whole computation above is the same", radius: "The neighbourhood is the same and unique", local: "Next to matched nodes", order: "Between matched nodes in order", name: "Only the name tells"};
    box.append(h("h3", {}, "Match"), h("p", {}, `${words[detail.str(via[0])] || detail.str(via[0])}; ${via[1] < 0.9 ? "likely the same node, " : ""}confidence ${via[1].toFixed(2)}.`));
  }
  return box;
}
function refreshInspector() {
  const old = document.querySelector(".inspector");
  if (old && currentDetail) old.replaceWith(inspector(currentDetail));
  for (const row of document.querySelectorAll("tr[data-node]")) row.setAttribute("aria-selected", String(Number(row.dataset.node) === currentDetail.byName.get(state.node)));
}
function selectNode(node, reveal = false) {
  state.node = currentDetail.str(currentDetail.name[node]);
  history.replaceState(null, "", hashOf(state));
  if (graphView && reveal) graphView.reveal(node);
  else if (graphView) graphView.select(node);
  refreshInspector();
}
function copyLink() {
  const text = location.href;
  if (navigator.clipboard) navigator.clipboard.writeText(text).catch(() => {});
  say("Link copied");
}

// --- Frame ------------------------------------------------------------------------------------------------------------

let app = null, mainBox = null, footer = null, live = null, searchBox = null;
const say = (text) => { live.textContent = text; };

function frame() {
  const logo = svg("svg", {width: 22, height: 18, viewBox: "0 0 22 18", "aria-hidden": "true"});
  for (const [x, y, width, color] of [[0, 2, 14, "ink"], [6, 8, 16, "accent"], [0, 14, 18, "ink"]]) logo.append(svg("rect", {x, y, width, height: 2.5, rx: 1, fill: `var(--${color})`}));
  searchBox = h("input", {class: "search", type: "search", placeholder: "Search nodes, ops, modules", "aria-label": "Search nodes, operators, modules (regular expression)",
    input: () => { state.filter = searchBox.value; if (state.view === "subject" && state.tab !== "graph") renderSoon(); }, keydown: (event) => { if (event.key === "Enter") searchNext(event.shiftKey ? -1 : 1); }});
  const select = report.runs.length > 1 ? h("select", {"aria-label": "Run", change: (event) => { const run = report.runs[event.target.value]; const first = subjects.find((s) => s.run === run && s.detail >= 0) || subjects.find((s) => s.run === run); if (first) go({view: "subject", ref: first.ref, node: ""}); }},
    report.runs.map((run, i) => h("option", {value: i}, `Run ${run.id} · rank ${run.rank} · ${plain(run.kind)}`))) : h("span", {class: "quiet cut"}, plain(report.title));
  const theme = (name, label) => h("button", {"data-theme-button": name, "aria-pressed": "false", click: () => { setTheme(name, true); redrawAll(); }}, label);
  mainBox = h("main", {});
  live = h("span", {role: "status", "aria-live": "polite"});
  footer = h("footer", {class: "bottom"});
  app.append(h("header", {class: "top"}, h("div", {class: "brand"}, logo, h("span", {}, "Strata")), select,
    h("nav", {class: "tabs", role: "tablist"}, h("button", {role: "tab", id: "tab-overview", click: () => go({view: "overview", node: ""})}, "Overview"),
      subjects.length ? h("button", {role: "tab", id: "tab-subject", click: () => go({view: "subject", ref: (currentSubject || subjects.find((s) => s.detail >= 0) || subjects[0]).ref})}, subjects.some((s) => s.pass) ? "Passes" : "Graphs") : null),
    h("span", {class: "spacer"}), searchBox, h("span", {class: "segments"}, theme("light", "Light"), theme("dark", "Dark"))), mainBox, footer);
}

function searchNext(direction) {
  if (!currentDetail || !state.filter) return;
  const fits = matcher(state.filter), d = currentDetail, from = d.byName.get(state.node) ?? (direction > 0 ? -1 : d.count);
  for (let k = 1; k <= d.count; k++) {
    const i = (from + direction * k + 2 * d.count) % d.count;
    if (fits(`${d.nodeName(i)} ${d.opOf(i)} ${d.moduleOf(i)} ${d.typeOf(i)}`)) { selectNode(i, true); say(`found ${d.nodeName(i)}`); return; }
  }
  say(`Nothing matches “${state.filter}”`);
}

let renderNumber = 0;
async function render() {
  const mine = ++renderNumber;
  const subject = state.view === "subject" && subjects.length ? findSubject(state.ref) : null;
  const detail = subject ? await loadDetail(subject.detail) : null;
  if (mine !== renderNumber) return;  // a newer state came meanwhile
  redraws = [];
  graphView = null;
  currentSubject = subject || currentSubject;
  currentDetail = detail;
  if (subject) state.ref = subject.ref;
  const scroll = mainBox.scrollTop;
  mainBox.replaceChildren(subject ? passView(subject) : overview());
  if (!subject) mainBox.scrollTop = scroll;
  document.getElementById("tab-overview").setAttribute("aria-selected", String(!subject));
  const tab = document.getElementById("tab-subject");
  if (tab) tab.setAttribute("aria-selected", String(Boolean(subject)));
  const words = subject && detail ? `${plain(subject.name)} · ${plural(detail.count, "node")}${subject.pass ? ` in both graphs · ${plural(detail.changes.length, "difference")}` : ""}` : `${plain(report.title)} · ${plural(report.runs.length, "run")}`;
  footer.replaceChildren(h("span", {class: "cut"}, words), live, h("span", {class: "spacer"}), h("span", {class: "keys"}, "j k passes   n change   1 2 3 4 tabs   / search   ? keys"));
  redrawAll();
  document.documentElement.dataset.ready = String(renderNumber);
}
let soon = 0;
function renderSoon() { clearTimeout(soon); soon = setTimeout(render, 120); }
function redrawAll() {
  for (const draw of redraws) draw();
  if (graphView) graphView.draw();
}

function help() {
  const keys = [["j k", "next, previous pass"], ["J K", "next, previous pass with changes"], ["n N", "next, previous change"], ["1 2 3 4", "graph, table, text, patterns"], ["/", "search; Enter goes to the next match"], ["c", "changed only, or everything"], ["+ − 0", "zoom in, out, to 100 %"], ["f", "fit"], ["y", "copy a link to what is shown"], ["o", "overview"], ["Esc", "clear the selection"]];
  const dialog = h("dialog", {close: () => dialog.remove()}, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, keys.map(([key, meaning]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, meaning))))), h("p", {class: "quiet"}, "Drag to move, Ctrl and wheel to zoom, click a slab to open it."), h("button", {click: () => dialog.close()}, "Close"));
  document.body.append(dialog);
  dialog.showModal();
}
function stepPass(direction, changed) {
  const list = subjects.filter((s) => !changed || s.detail >= 0 || s === currentSubject);
  const at = state.view === "subject" ? list.indexOf(currentSubject) : direction > 0 ? -1 : list.length;
  const next = list[at + direction];
  if (next) go({view: "subject", ref: next.ref, node: "", all: false});
}
function stepChange(direction) {
  if (!currentDetail || !currentDetail.changes.length) return;
  const changes = currentDetail.changes, node = currentDetail.byName.get(state.node);
  let at = changes.indexOf(node);
  if (at < 0) at = direction > 0 ? -1 : changes.length;
  const next = (at + direction + changes.length) % changes.length;
  selectNode(changes[next], true);
  say(`change ${next + 1} of ${changes.length}`);
}
function onKey(event) {
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const actions = {
    j: () => stepPass(1), k: () => stepPass(-1), J: () => stepPass(1, true), K: () => stepPass(-1, true), n: () => stepChange(1), N: () => stepChange(-1),
    "1": () => go({tab: "graph"}), "2": () => go({tab: "table"}), "3": () => go({tab: "text"}), "4": () => go({tab: "patterns"}),
    "/": () => searchBox.focus(), "?": help, y: copyLink, o: () => go({view: "overview", node: ""}),
    f: () => graphView && graphView.fitAll(), "+": () => graphView && graphView.zoom(1.25), "-": () => graphView && graphView.zoom(0.8), "0": () => graphView && graphView.zoom(1 / graphView.scale),
    c: () => { if (graphView) { graphView.all = state.all = !graphView.all; graphView.layout(); go({}, true); } },
    Escape: () => { state.node = ""; if (graphView) graphView.selected = -1; history.replaceState(null, "", hashOf(state)); refreshInspector(); if (graphView) graphView.draw(); },
  };
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
}

async function start() {
  app = document.getElementById("app");
  setTheme(initialTheme(), false);
  report = await inflate("data-main");
  collectSubjects();
  frame();
  setTheme(document.documentElement.dataset.theme, false);
  readHash();
  addEventListener("hashchange", () => { readHash(); render(); });
  addEventListener("popstate", () => { readHash(); render(); });
  addEventListener("resize", redrawAll);
  addEventListener("keydown", onKey);
  await render();
}
start().catch((error) => {
  document.getElementById("app").replaceChildren(h("p", {class: "empty"}, `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`));
});
})();
