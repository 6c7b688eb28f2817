// Small tools: elements, numbers, names, statuses. No text of a log ever becomes markup: it goes through textContent
// or onto a canvas. All files of this folder are one script, in the order of tlparse-export/report/CMakeLists.txt.

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
