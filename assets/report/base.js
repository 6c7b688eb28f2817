// Small tools: elements, numbers, names, statuses. No text of a log ever becomes markup: it goes through textContent
// or onto a canvas. All files of this folder are one script, in the order of tlparse-export/report/CMakeLists.txt.

/** A text of a log as it may stand in a page: nothing that hides or turns what is beside it. */
const visible = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, "\ufffd");
/** The same in one line, for canvases, copies and names. */
const plain = (text) => visible(text).replace(/[\t\n]/g, "\ufffd");

/**
 * Makes an element: h("td.number", 12), h("a.cut", {href, title}, words). Functions become listeners; `label` is for those
 * who listen. All texts are made visible here, so nothing else of the page has to.
 */
const h = (tag, ...content) => make(document.createElement(tag.split(".")[0]), tag.split(".").slice(1), content);
const svg = (tag, ...content) => make(document.createElementNS("http://www.w3.org/2000/svg", tag), [], content);
function make(element, classes, [first, ...children]) {
  const hasProps = first && Object.getPrototypeOf(first) === Object.prototype, isThere = (value) => value !== undefined && value !== null && value !== false, clean = (value) => typeof value === "string" ? visible(value) : value;
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of hasProps ? Object.entries(first) : []) {
    if (typeof value === "function") hear(element, key, value);
    else if (isThere(value)) element.setAttribute(key === "label" ? "aria-label" : key, value === true ? "" : key === "value" ? value : clean(value));
  }
  element.append(...[hasProps ? null : first, ...children].flat(Infinity).filter(isThere).map(clean));
  return element;
}
/**
 * A text that may break behind the dots of its names and in long names behind a line, but not before a number, and in what
 * has no such place after 24 characters; other things as they are.
 */
const dotted = (text) => {
  if (typeof text !== "string") return text;
  const parts = text.split(/(\w{11,})/).flatMap((part, i) => part.split(i % 2 ? /(?<=_)(?!\d+\b)/ : /(?<=[./])(?!\d)/)).filter(Boolean);
  return parts.flatMap((part) => part.length > 24 ? part.match(/ *[^ ]{1,24} *| +/gu) : part).flatMap((part, i) => i ? [h("wbr"), part] : part);
};
const link = (href, ...words) => h("a", {href}, words.map(dotted));
const button = (click, ...words) => h("button", {click}, ...words);
const hear = (target, type, act, options) => target.addEventListener(type, act, options);
const rectOf = (element) => element.getBoundingClientRect();
const $ = (selector, of = document) => of.querySelector(selector), $$ = (selector, of = document) => [...of.querySelectorAll(selector)];
/** 1 or -1 where the key steps forth or back, which is then done with the event; else 0. */
function stepOf(event, back, forth) {
  const step = {[back]: -1, [forth]: 1}[event.key] || 0;
  if (step) event.preventDefault();
  return step;
}
/** The words that there are. */
const joined = (list, between = ", ") => list.filter(Boolean).join(between);

// --- Numbers and words ---

const MINUS = "\u2212";
const number = (value) => value.toLocaleString("en-US").replace("-", MINUS);
const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many || one + "s"}`;
function time(ms) {
  if (!(ms > 0)) return "–";
  if (ms < 1) return `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs`;
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
/** 1536 with ["B", "KiB", …] and 1024: "1.5 KiB". */
function scaled(value, units, step) {
  let size = Math.abs(value), unit = 0;
  for (; size >= step && unit < units.length - 1; unit++) size /= step;
  const digits = unit === 0 ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return `${value < 0 ? MINUS : ""}${size.toFixed(digits)} ${units[unit]}`;
}
const bytes = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const flops = (value) => scaled(value, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], 1000);
/** A difference with its sign; nothing changed is "·". */
const delta = (value, unit) => value === 0 ? "·" : (value > 0 ? "+" : "") + unit(value);

const OVERLOADS = /^(default|Tensor|Scalar|int|dim|self|Tensor_Scalar|dim_IntList)$/;
const NAMESPACES = /^(aten|prims|prim|_c10d_functional|torch|_operator|higher_order|ops|runtime)$/;
const shortOps = new Map();
/** "aten.mm.default" is drawn as "mm". */
function shortOp(op) {
  let name = shortOps.get(op);
  if (name === undefined) {
    const parts = op.split(".");
    if (parts.length > 1 && OVERLOADS.test(parts[parts.length - 1])) parts.pop();
    if (parts.length > 1 && NAMESPACES.test(parts[0])) parts.shift();
    name = parts.join(".") || op;
    shortOps.set(op, name);
  }
  return name;
}
/** "bf16[256, 64][64, 1]cpu" is drawn as "bf16 [256, 64]". */
function shortType(type) {
  const match = /^(?:[A-Za-z]+\()?([A-Za-z0-9]+)(\[[^\]]*\])/.exec(type);
  return match ? `${match[1]} ${match[2]}` : type;
}
const dtypeOf = (type) => (/^(?:[A-Za-z]+\()?([a-z][a-z0-9]+)\[/.exec(type) || ["", ""])[1];
const placementOf = (type) => (/, ((?:R|S\(\d+\)|P\(\w*\))+)\)$/.exec(type) || ["", ""])[1];

/** "insert a" in the words of a report: what happened, in the past. */
function past(title) {
  const change = /^(?:change|replace) (.*) (?:to|by) (.*)$/.exec(title);
  const words = change ? `${change[1]} became ${change[2]}`
    : title.replace(/^insert /, "Added ").replace(/^delete /, "Removed ").replace(/^change /, "Changed ");
  return plain(words.replace(/\b(?:aten|_c10d_functional|prims)\.([\w.]+)/g, (op) => shortOp(op)));
}

/** The native line in FX spelling. C++ sends the lines for which this is wrong (Expected in scene_lines.cc). */
function fxLine(native, type) {
  const at = native.indexOf(" = ");
  if (at < 0) return native;
  if (native.startsWith("placeholder", at + 3)) return `${native.slice(0, at)}${type ? `: "${type}"` : ""}`;
  return `${native.slice(0, at)}${type ? `: "${type}"` : ""} = torch.ops.${native.slice(at + 3)}`;
}

/** A test for a regular expression as people type it; for anything that is none, for the words themselves. */
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

/** Of each of x the place in y that it has in a longest common subsequence, or -1. */
function matching(x, y, isEqual = (a, b) => a === b) {
  const best = Array.from({length: x.length + 1}, () => new Uint16Array(y.length + 1)), out = x.map(() => -1);
  for (let i = x.length - 1; i >= 0; i--) for (let j = y.length - 1; j >= 0; j--) best[i][j] = isEqual(x[i], y[j]) ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  for (let i = 0, j = 0; i < x.length && j < y.length;) {
    if (isEqual(x[i], y[j])) out[i++] = j++;
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return out;
}

// --- Statuses ---

const STATUS = ["same", "added", "removed", "changed", "derived", "moved"];
const SAME = 0, ADDED = 1, REMOVED = 2, CHANGED = 3, DERIVED = 4, MOVED = 5;
const SIGN = {added: "+", removed: MINUS, changed: "~", moved: "\u21b7", derived: "~"};
const PHASE = ["", "forward", "loss", "backward", "optimizer"];
/** The order in which badges and counts stand. */
const BADGES = ["added", "removed", "changed", "moved", "derived"];
const countsOf = (detail, nodes) => [ADDED, REMOVED, CHANGED, MOVED, DERIVED].map((status) => nodes.reduce((sum, i) => sum + (detail.status[i] === status), 0));

/** Counts are [added, removed, changed, moved, derived]; zeros are left out. */
const badges = (counts) => h("span.badges", BADGES.map((status, i) => counts[i]
  ? h("span", {class: status, title: `${counts[i]} ${status}`}, SIGN[status] + number(counts[i])) : null));
const badgeText = (counts) => joined(BADGES.map((status, i) => counts[i] && `${SIGN[status]}${number(counts[i])}${status === "derived" ? " derived" : ""}`), " ");
const statusWord = (status) => status === "same" ? "unchanged" : status;
const chip = (status) => h(`span.chip.${status}`, SIGN[status] ? `${SIGN[status]} ${status}` : statusWord(status));

// --- Copying and saving ---

async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages from a file may lack the clipboard; a selection can always be copied.
    const area = h("textarea.away", {"aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`${what} copied`);
}
function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  say(`${name} saved`);
}
