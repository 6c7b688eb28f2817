// Numbers, names and texts in their readable form.

import { plain } from "./dom.js";
import { abs, max } from "./math.js";

export const MINUS = "\u2212";
export const number = (value) => value.toLocaleString("en-US").replace("-", MINUS);
export const plural = (count, one, many) =>
  `${number(count)} ${count === 1 ? one : many || one + "s"}`;
export function time(ms) {
  if (ms < 0) return MINUS + time(-ms);
  if (!ms) return "–";
  if (ms < 1) return `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs`;
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
/** 1536 with ["B", "KiB", …] and 1024: "1.5 KiB". */
function scaled(value, units, step) {
  let size = abs(value), unit = 0;
  for (; size >= step && unit < units.length - 1; unit++) size /= step;
  const digits = unit === 0 ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return `${value < 0 ? MINUS : ""}${size.toFixed(digits)} ${units[unit]}`;
}
export const bytes = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
export const flops = (value) =>
  scaled(value, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], 1000);
/** A difference with its sign; nothing changed is "·". */
export const delta = (value, unit) => value === 0 ? "·" : (value > 0 ? "+" : "") + unit(value);

const OVERLOADS = /^(default|Tensor|Scalar|int|dim|self|Tensor_Scalar|dim_IntList)$/;
const NAMESPACES = /^(aten|prims|prim|_c10d_functional|torch|_operator|higher_order|ops|runtime)$/;
const shortOps = new Map();
/** "aten.mm.default" is drawn as "mm". */
export function shortOp(op) {
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
export function shortType(type) {
  const match = /^(?:[A-Za-z]+\()?([A-Za-z0-9]+)(\[[^\]]*\])/.exec(type);
  return match ? `${match[1]} ${match[2]}` : type;
}
const part = (type, form) => form.exec(type)?.[1] || "";
/** Of "DTensor(f32[64, 64][64, 1]cpu, S(0)R)": "f32", "[64, 64]", "S(0)R". */
export const dtypeOf = (type) => part(type, /^(?:[A-Za-z]+\()?([a-z][a-z0-9]+)\[/);
export const shapeOf = (type) => part(type, /(\[.*?\])/);
export const placementOf = (type) => part(type, /^\w+\(\w+(?:\[[^\]]*\])+[^,]*, (.*)\)$/);

/** The title of a change in the past tense: "insert a" becomes "Added a". */
export function past(title) {
  const change = /^(?:change|replace) (.*) (?:to|by) (.*)$/.exec(title);
  const words = change
    ? `${change[1]} became ${change[2]}`
    : title.replace(/^insert /, "Added ").replace(/^delete /, "Removed ").replace(
      /^change /,
      "Changed ",
    );
  return plain(words.replace(/\b(?:aten|_c10d_functional|prims)\.([\w.]+)/g, (op) => shortOp(op)));
}

/**
 * The native line in FX spelling. C++ sends the lines for which this is wrong (Expected in
 * scene_lines.cc).
 */
export function fxLine(native, type) {
  const at = native.indexOf(" = ");
  if (at < 0) return native;
  if (native.startsWith("placeholder", at + 3)) {
    return `${native.slice(0, at)}${type ? `: "${type}"` : ""}`;
  }
  return `${native.slice(0, at)}${type ? `: "${type}"` : ""} = torch.ops.${native.slice(at + 3)}`;
}

/**
 * A test of a text: a regular expression in either case; an invalid expression stands for its
 * own characters.
 */
export function matcher(text) {
  if (!text) return () => true;
  try {
    const expression = new RegExp(text, "i");
    return (word) => expression.test(word);
  } catch {
    const lower = text.toLowerCase();
    return (word) => word.toLowerCase().includes(lower);
  }
}

/** For each item of x its index in y in a longest common subsequence, or -1. */
export function matching(x, y, isEqual = (a, b) => a === b) {
  const best = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1)),
    out = x.map(() => -1);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      best[i][j] = isEqual(x[i], y[j])
        ? best[i + 1][j + 1] + 1
        : max(best[i + 1][j], best[i][j + 1]);
    }
  }
  for (let i = 0, j = 0; i < x.length && j < y.length;) {
    if (isEqual(x[i], y[j])) out[i++] = j++;
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return out;
}
/** The n-th next of a list, around its end; from before its begin when `at` is not in it. */
export const around = (list, at, n) =>
  (at < 0 && n > 0 ? n - 1 : at + n + (at < 0) + list.length * 99) % list.length;
