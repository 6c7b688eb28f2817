// The state of the page. All of it is in the fragment, so every view has a link, and the browser's
// buttons go back and forth. The fragment begins with a view's name or with the selector of a REF:
// #run=1,graph=step,pass=3&tab=table.

import { current } from "./current.js";
import { OVERLAYS } from "./overlay.js";
import { report, subjects } from "./store.js";

/**
 * Pages of the header: key → {label, shows(), render()}. `shows`: whether this report has
 * content for it; `render` gives its element or a promise of one. A file adds its page with
 * `views.set`, at its top level.
 */
export const views = new Map();

export const TABS = ["graph", "table", "text", "patterns", "costs"];
/** What stands on edges of the graph: nothing, or what an overlay writes; the last two if known. */
export const EDGE_LABELS = ["", "shape", "dtype", "bytes", "placement", "communication"];
const MODES = ["unified", "side", "blink"];
/**
 * Defaults are not in the fragment; `from` is the REF of the graph that `ref` is compared with,
 * where that is not the one before a pass.
 */
const DEFAULTS = {
  view: "overview",
  ref: "",
  from: "",
  run: "",
  graph: "",
  tab: "graph",
  mode: "unified",
  node: "",
  hops: "1",
  overlay: "",
  labels: "",
  sort: "",
  spelling: "native",
  open: "",
  filter: "",
  cam: "",
};
const KEYS = Object.keys(DEFAULTS).slice(2);
export const state = { ...DEFAULTS };

export function readHash(hash) {
  let text = hash.slice(1);
  const [head, ...words] = text.split("&");
  const decode = (word) => {
    try {
      return decodeURIComponent(word);
    } catch {
      return word;
    }
  };
  Object.assign(state, DEFAULTS);
  text = decode(head);
  state.view = text === "" ? "overview" : views.has(text) || text === "overview" ? text : "subject";
  if (state.view === "subject") state.ref = text;
  for (const word of words) {
    const at = word.indexOf("="), key = word.slice(0, at), value = decode(word.slice(at + 1));
    if (KEYS.includes(key)) state[key] = value;
  }
  if (!TABS.includes(state.tab)) state.tab = DEFAULTS.tab;
  if (!MODES.includes(state.mode)) state.mode = DEFAULTS.mode;
  if (!/^[0-3]$|^all$/.test(state.hops)) state.hops = DEFAULTS.hops;
  if (!Object.hasOwn(OVERLAYS, state.overlay)) state.overlay = DEFAULTS.overlay;
  if (!EDGE_LABELS.includes(state.labels)) state.labels = DEFAULTS.labels;
  if (state.spelling !== "fx") state.spelling = DEFAULTS.spelling;
}
/** The fragment of a state; keys that it leaves out have their defaults. */
export function hashOf(wanted) {
  const s = { ...DEFAULTS, ...wanted };
  const encode = (word) =>
    encodeURIComponent(word).replace(
      /%(3D|2C|3A|2F|7B|7D|20)/g,
      (code) => code === "%20" ? "+" : decodeURIComponent(code),
    ).replace(/\+/g, "%20");
  const words = [s.view === "subject" ? encode(s.ref) : s.view];
  for (const key of KEYS) {
    if (s[key] !== DEFAULTS[key] && !(s.view === "subject" && (key === "run" || key === "graph"))) {
      words.push(`${key}=${encode(s[key])}`);
    }
  }
  return "#" + words.join("&");
}
export const refOf = (subject) => ({ ref: subject.ref, from: subject.base || "" });
export const linkTo = (subject, more) => hashOf({ view: "subject", ...refOf(subject), ...more });

let draw = async () => {};
/**
 * Registers the function that shows the state: app.js knows the views, which navigate through this
 * file.
 */
export function renderWith(render) {
  draw = render;
}
export const render = () => draw();
let soon = 0;
export function renderSoon() {
  clearTimeout(soon);
  soon = setTimeout(render, 120);
}

/** Writes the state into the address; a fragment alone would be one of the page around a frame. */
function write(how) {
  const hash = hashOf(state);
  if (hash !== location.hash) history[how](null, "", location.href.split("#")[0] + hash);
}
/** A new page of the history. */
export function go(change) {
  Object.assign(state, change);
  write("pushState");
  return render();
}
/** Small moves (selection, folds) belong to the page they happen on. */
export function note(change) {
  Object.assign(state, change);
  write("replaceState");
}
/** Goes to another pass or graph; all choices stay, except the node. */
export const goTo = (subject, more) =>
  go({ view: "subject", ...refOf(subject), node: "", cam: "", ...more });

/** The subject a selector names; selectors may leave out parts, as REFs may. */
export function findSubject(ref, from = "") {
  const wanted = ref.split(",").map((part) => part.replace(/:(before|after)$/, "")).filter(Boolean);
  const fits = (subject) =>
    wanted.every((part) =>
      subject.ref.split(",").includes(part) ||
      (subject.pass && part === `pass=${subject.pass.name}`) || part === `rank=${subject.run.rank}`
    );
  return subjects.find((subject) => subject.ref === ref && (subject.base || "") === from) ||
    subjects.find((subject) => subject.detail >= 0 && fits(subject)) || subjects.find(fits) ||
    subjects[0];
}
/** The run that overview, memory and similar pages show. */
export function currentRun() {
  if (state.view === "subject" && current.subject) return current.subject.run;
  return report.runs.find((run) => String(run.id) === state.run) || report.runs[0];
}
