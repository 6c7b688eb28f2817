// What the file holds, and what is looked at: the state is the page's fragment, so every view has a link.

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

/** What to draw again when the theme or the size changes; emptied by each render. */
let redraws = [];
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

/**
 * Pages beside the overview and the passes: key → {label, shows(), render()}. `shows` tells whether this report has
 * anything for it, `render` gives its element or a promise of one. A file adds its page with `views.set`, below.
 */
const views = new Map();

const state = {view: "overview", ref: "", tab: "graph", node: "", all: false, filter: ""};

function readHash() {
  const words = decodeURIComponent(location.hash.slice(1)).split("&");
  Object.assign(state, {view: "overview", ref: "", tab: "graph", node: "", all: false});
  if (!words[0]) return;
  state.view = words[0] === "overview" || views.has(words[0]) ? words[0] : "subject";
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
  if (s.view !== "subject") return `#${s.view}`;
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
