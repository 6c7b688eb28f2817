// What nodes and slabs are coloured by: measured time and values, bytes, operations, kinds of
// things. Each value is also text.

import { bytes, dtypeOf, flops, MINUS, number, placementOf, time } from "./format.js";
import { PHASE, REMOVED } from "./status.js";
import { colors, heat } from "./theme.js";
import { plain } from "./dom.js";
import { str } from "./store.js";

export const real = (value) => String(+value.toPrecision(4)).replace("-", MINUS);
/**
 * A statistic of nodes whose values were looked at: elements, NaN, infinite, least, greatest, mean.
 */
const statistic = (tell, fits = () => true) => (d) =>
  new Map([...d.values].map(([i, row]) => [i, tell(row)]).filter(([, value]) => fits(value)));
const NONE = () => null;
const tagsOf = (d, i) => d.tags.has(i) ? str(d.tags.get(i)).split("\n").map(plain) : [""];
const short = (text) => text.length > 20 ? `${text.slice(0, 19)}…` : text;
/**
 * label, then either `kind` of a node, or `map` of nodes to numbers with their `unit`, and `words`
 * that say more.
 */
export const OVERLAYS = {
  time: { label: "Time of a step", unit: (ns) => time(ns / 1e6), map: (d) => d.time },
  across: {
    label: "Time across ranks",
    unit: (ns) => time(ns / 1e6),
    map: (d) => new Map([...d.across].map(([i, [least, , most]]) => [i, most - least])),
    words: (d, i) => {
      const row = d.across.get(i);
      return `${row.slice(0, 3).map((ns) => time(ns / 1e6)).join(" · ")}, slowest rank ${row[3]}`;
    },
  },
  bytes: { label: "Memory of outputs", unit: bytes, map: (d) => d.bytes },
  measured: { label: "Memory measured", unit: bytes, map: (d) => d.measured },
  flops: { label: "FLOPs", unit: flops, map: (d) => d.flops },
  least: { label: "Least value", unit: real, map: statistic((row) => row[3]), join: Math.min },
  greatest: {
    label: "Greatest value",
    unit: real,
    map: statistic((row) => row[4]),
    join: Math.max,
  },
  mean: { label: "Mean value", unit: real, map: statistic((row) => row[5]), join: NONE },
  nan: {
    label: "NaN and infinite",
    unit: number,
    map: statistic((row) => row[1] + row[2], Boolean),
  },
  dtype: { label: "Data type", kind: (d, i) => dtypeOf(d.typeOf(i)) },
  placement: { label: "Placement", kind: (d, i) => placementOf(d.typeOf(i)) },
  phase: { label: "Phase", kind: (d, i) => PHASE[d.phase[i]] },
  stream: { label: "Stream", kind: (d, i) => d.stream.has(i) ? `stream ${d.stream.get(i)}` : "" },
  rank: {
    label: "Ranks that have it",
    kind: (d, i) =>
      d.ranks.has(i) ? str(d.ranks.get(i)) : d.status[i] === REMOVED ? "" : "all ranks",
  },
  recompute: {
    label: "Recompute, offload",
    kind: (d, i) => short(tagsOf(d, i).find((tag) => /^[^=]*(recompute|offload)/.test(tag)) || ""),
  },
  tags: { label: "Tags", kind: (d, i) => short(tagsOf(d, i)[0]) },
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

/** {ofNode, ofCluster, shareOf, legend} of a scene, or null. */
export function makeOverlay(d, key) {
  const overlay = OVERLAYS[key];
  if (!overlay) return null;
  if (overlay.kind) {
    const kinds = new Map();
    for (let i = 0; i < d.count; i++) {
      const kind = overlay.kind(d, i);
      if (kind) kinds.set(kind, (kinds.get(kind) || 0) + 1);
    }
    const list = [...kinds].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 8).map((
      [kind],
    ) => kind);
    // The most frequent kind stays plain, so that the others stand out.
    const look = new Map(
      list.map((
        kind,
        i,
      ) => [kind, i === 0 ? {} : heat(1 - (i - 1) / Math.max(1, list.length - 1) * 0.9)]),
    );
    return {
      label: overlay.label,
      ofNode: (i) => {
        const kind = overlay.kind(d, i);
        return { text: kind, ...look.get(kind) };
      },
      ofCluster: (c) => {
        const seen = new Set(d.nodesOf(c).map((i) => list.indexOf(overlay.kind(d, i))));
        return [...seen].filter((k) => k >= 0).sort((a, b) => a - b).slice(0, 3).map((k) => list[k])
          .join(", ");
      },
      shareOf: () => null,
      legend: list.map((kind) => [kind, look.get(kind).fill || colors.surface]),
    };
  }
  const values = overlay.map(d),
    all = Float64Array.from(values.values()).sort(),
    low = all[0],
    high = all[all.length - 1],
    join = overlay.join || ((a, b) => a + b),
    joined = new Map();
  const of = (c) => {
    if (!joined.has(c)) {
      joined.set(
        c,
        d.nodesOf(c).reduce(
          (sum, i) =>
            !values.has(i) ? sum : sum === null ? values.get(i) : join(sum, values.get(i)),
          null,
        ),
      );
    }
    return joined.get(c);
  };
  // Square roots: sizes span many powers of ten, and shares near nothing should differ from
  // nothing. Values of both signs: linear near zero, where half of them are, and logarithmic
  // beyond.
  const half = all.map(Math.abs).sort()[all.length >> 1] || 1,
    bend = (v) => overlay.join ? Math.asinh(v / half) : Math.sqrt(Math.max(0, v)),
    from = overlay.join ? bend(low) : 0,
    span = bend(high) - from || 1;
  const back = (share) => {
    const v = from + share * span;
    return overlay.join ? half * Math.sinh(v) : v * v;
  };
  return {
    label: overlay.label,
    ofNode: (i) =>
      values.has(i)
        ? { text: overlay.unit(values.get(i)), ...heat((bend(values.get(i)) - from) / span) }
        : null,
    ofCluster: (c) => join === NONE || of(c) === null ? "" : overlay.unit(of(c)),
    shareOf: (c) => !overlay.join && of(0) ? (of(c) || 0) / of(0) : null,
    legend: [
      ...[0, 0.5, 1].filter(() => values.size).map((
        share,
      ) => [back(share) ? overlay.unit(back(share)) : "0", heat(share).fill]),
      ...values.size < d.count ? [["no value", colors.surface]] : [],
    ],
  };
}
