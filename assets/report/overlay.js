// Overlays colour nodes and slabs by a property: time, values, bytes, FLOPs, data type and others.
// Each value is also shown as text.

import {
  bytes,
  delta,
  dtypeOf,
  flops,
  MINUS,
  number,
  placementOf,
  shapeOf,
  time,
} from "./format.js";
import { abs, max, min } from "./math.js";
import { PHASE, REMOVED } from "./status.js";
import { colors, heat } from "./theme.js";

export const real = (value) => String(+value.toPrecision(4)).replace("-", MINUS);
/**
 * A number of the rows of a map. Rows of nodes whose values were looked at: elements, NaN,
 * infinite, least, greatest, mean.
 */
const statistic = (tell, fits = () => true, rows = "values") => (d) =>
  new Map([...d[rows]].map(([i, row]) => [i, tell(row)]).filter(([, value]) => fits(value)));
const NONE = () => null;
const add = (a, b) => a + b;
const nanoseconds = (ns) => time(ns / 1e6);
/** Of the numbers of a row of `cost`. */
export const COSTS = [["time", nanoseconds], ["bytes moved", bytes], ["peak", bytes]];
export const costWords = (costs) => costs.map((value, i) => delta(value, COSTS[i][1]));
/** How a cost changed, with its sign. */
const change = (at, [label, unit] = COSTS[at]) => ({
  label: `Δ ${label}`,
  unit: (v) => delta(v, unit),
  map: statistic((row) => row[at], Boolean, "cost"),
  join: add,
});
/** The first tag of a node that has the form. */
const tagOf = (d, i, form) => d.tagsOf(i).find((tag) => form.test(tag)) || "";
/** What the automatic placement modelled, as tags of the form say. */
const modelled = (label, form) => ({
  label: `${label}, modelled`,
  unit: (us) => time(us / 1e3),
  map: (d) =>
    new Map(
      [...d.tags.keys()].map((i) => [i, +tagOf(d, i, form).split("=")[1]]).filter(([, us]) => us),
    ),
});
const short = (text) => text.length > 20 ? `${text.slice(0, 19)}…` : text;
/**
 * label, then either `kind` of a node, or `map` of nodes to numbers with their `unit`, and `words`
 * that say more.
 */
export const OVERLAYS = {
  time: { label: "Time of a step", unit: nanoseconds, map: (d) => d.time },
  across: {
    label: "Time across ranks",
    unit: nanoseconds,
    map: (d) => new Map([...d.across].map(([i, [least, , most]]) => [i, most - least])),
    words: (d, i) => {
      const row = d.across.get(i);
      return `${row.slice(0, 3).map(nanoseconds).join(" · ")}, slowest rank ${row[3]}`;
    },
  },
  bytes: { label: "Memory of outputs", unit: bytes, map: (d) => d.bytes },
  measured: { label: "Memory measured", unit: bytes, map: (d) => d.measured },
  flops: { label: "FLOPs", unit: flops, map: (d) => d.flops },
  compute: modelled("Computation", /^place\.compute/),
  communication: modelled("Communication", /^place\.communication/),
  dtime: change(0),
  dbytes: change(1),
  dpeak: change(2),
  least: { label: "Least value", unit: real, map: statistic((row) => row[3]), join: min },
  greatest: {
    label: "Greatest value",
    unit: real,
    map: statistic((row) => row[4]),
    join: max,
  },
  mean: { label: "Mean value", unit: real, map: statistic((row) => row[5]), join: NONE },
  nan: {
    label: "NaN and infinite",
    unit: number,
    map: statistic((row) => row[1] + row[2], Boolean),
  },
  shape: { label: "Shape", kind: (d, i) => shapeOf(d.typeOf(i)) },
  dtype: { label: "Data type", kind: (d, i) => dtypeOf(d.typeOf(i)) },
  placement: { label: "Placement", kind: (d, i) => placementOf(d.typeOf(i)) },
  phase: { label: "Phase", kind: (d, i) => PHASE[d.phase[i]] },
  stream: { label: "Stream", kind: (d, i) => d.stream.has(i) ? `stream ${d.stream.get(i)}` : "" },
  rank: {
    label: "Ranks that have it",
    kind: (d, i) => d.ranksOf(i) || (d.status[i] === REMOVED ? "" : "all ranks"),
  },
  stage: {
    label: "Pipeline stage",
    kind: (d, i) => tagOf(d, i, /^stage=/).replace("=", " "),
  },
  recompute: {
    label: "Recompute, offload",
    kind: (d, i) => short(tagOf(d, i, /^[^=]*(recompute|offload)/)),
  },
  tags: { label: "Tags", kind: (d, i) => short(d.tagsOf(i)[0]) },
};
const UNITS = { us: 1e3, ms: 1e6, s: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
/**
 * The test of "bytes>1e6", "time >= 2ms", "dtype=bf16": nodes by what they may be coloured by; null
 * for other words.
 */
export function rangeTest(d, text) {
  const [, key, sign, wanted] = /^(\w+)\s*([<>]=?|=)\s*(\S+)$/.exec(text) || [],
    overlay = Object.hasOwn(OVERLAYS, key) && OVERLAYS[key];
  if (!overlay) return null;
  if (overlay.kind) return (i) => sign === "=" && overlay.kind(d, i) === wanted;
  const [, digits, unit] = /^(.*?\d)([a-zA-Z]*)$/.exec(wanted) || [],
    limit = Number(digits) * (unit ? UNITS[unit] : 1),
    values = overlay.map(d);
  return (i) => {
    const v = values.get(i);
    return v !== undefined && (sign[0] === "<" ? v < limit : sign[0] === ">" && v > limit) ||
      sign.endsWith("=") && v === limit;
  };
}
/** Overlays for which a scene has anything to show. */
export const overlaysOf = (d) =>
  Object.entries(OVERLAYS).filter(([, o]) =>
    o.map
      ? o.map(d).size > 0
      : new Set(Array.from({ length: d.count }, (_, i) => o.kind(d, i))).size > 1
  ).map(([key]) => key);

/** {label, ofNode, ofCluster, shareOf, legend} of a scene, or null. */
export function makeOverlay(d, key) {
  const overlay = OVERLAYS[key];
  if (!overlay) return null;
  return overlay.kind ? kindOverlay(d, overlay) : numberOverlay(d, overlay);
}
/** Nodes by kind: the eight most frequent kinds have a colour. */
function kindOverlay(d, { label, kind }) {
  const counts = new Map();
  for (let i = 0; i < d.count; i++) {
    const word = kind(d, i);
    if (word) counts.set(word, (counts.get(word) || 0) + 1);
  }
  const byCount = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)),
    kinds = byCount.slice(0, 8).map(([word]) => word);
  // The most frequent kind stays plain, so that the others stand out.
  const shareOf = (i) => 1 - (i - 1) / max(1, kinds.length - 1) * 0.9,
    look = new Map(kinds.map((word, i) => [word, i === 0 ? {} : heat(shareOf(i))]));
  return {
    label,
    ofNode(i) {
      const text = kind(d, i);
      return { text, ...look.get(text) };
    },
    ofCluster(c) {
      const present = new Set(d.nodesOf(c).map((i) => kind(d, i)));
      return kinds.filter((word) => present.has(word)).slice(0, 3).join(", ");
    },
    shareOf: () => null,
    legend: kinds.map((word) => [word, look.get(word).fill || colors.surface]),
  };
}
/**
 * The shares of numbers between the least and the greatest, and back. Sizes span many powers of
 * ten, so their shares are square roots. Values of both signs are linear near zero, where half of
 * them are, and logarithmic beyond.
 */
function scaleOf(sorted, signed) {
  const half = sorted.map(abs).sort()[sorted.length >> 1] || 1,
    bend = (v) => signed ? Math.asinh(v / half) : Math.sqrt(max(0, v)),
    unbend = (v) => signed ? half * Math.sinh(v) : v * v,
    from = signed ? bend(sorted[0]) : 0,
    span = bend(sorted[sorted.length - 1]) - from || 1;
  return { share: (v) => (bend(v) - from) / span, valueAt: (share) => unbend(from + share * span) };
}
/** The number of each cluster: the joined numbers of its nodes; null for a cluster without any. */
function clusterNumbers(d, values, join) {
  const known = new Map();
  return (c) => {
    if (!known.has(c)) {
      const own = d.nodesOf(c).filter((i) => values.has(i)).map((i) => values.get(i));
      known.set(c, own.length ? own.reduce((a, b) => join(a, b)) : null);
    }
    return known.get(c);
  };
}
function numberOverlay(d, { label, unit, map, join }) {
  const values = map(d),
    scale = scaleOf(Float64Array.from(values.values()).sort(), Boolean(join)),
    ofCluster = clusterNumbers(d, values, join || add);
  const marks = values.size ? [0, 0.5, 1] : [],
    textAt = (share) => scale.valueAt(share) ? unit(scale.valueAt(share)) : "0";
  return {
    label,
    ofNode: (i) =>
      values.has(i) ? { text: unit(values.get(i)), ...heat(scale.share(values.get(i))) } : null,
    ofCluster: (c) => join === NONE || ofCluster(c) === null ? "" : unit(ofCluster(c)),
    shareOf: (c) => !join && ofCluster(0) ? (ofCluster(c) || 0) / ofCluster(0) : null,
    legend: [
      ...marks.map((share) => [textAt(share), heat(share).fill]),
      ...values.size < d.count ? [["no value", colors.surface]] : [],
    ],
  };
}
