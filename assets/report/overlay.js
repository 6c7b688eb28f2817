// What nodes and slabs are coloured by: measured time, bytes, operations, and kinds of things. Each value is also text.

const OVERLAYS = {
  time: {label: "Time", unit: (ns) => time(ns / 1e6), map: (d) => d.time, missing: "no times were recorded"},
  bytes: {label: "Memory", unit: bytes, map: (d) => d.bytes},
  flops: {label: "FLOPs", unit: flops, map: (d) => d.flops},
  dtype: {label: "Data type", kind: (d, i) => dtypeOf(d.typeOf(i))},
  placement: {label: "Placement", kind: (d, i) => placementOf(d.typeOf(i))},
  phase: {label: "Phase", kind: (d, i) => PHASE[d.phase[i]]},
  stream: {label: "Stream", kind: (d, i) => d.stream.has(i) ? `stream ${d.stream.get(i)}` : ""},
  tags: {label: "Tags", kind: (d, i) => d.tags.has(i) ? plain(str(d.tags.get(i)).split("\n")[0]).slice(0, 20) : ""},
};
/** Overlays for which a scene has anything to show. */
const overlaysOf = (d) => Object.entries(OVERLAYS).filter(([, o]) => o.map ? o.map(d).size > 0 : new Set(Array.from({length: d.count}, (_, i) => o.kind(d, i))).size > 1).map(([key]) => key);

/** {ofNode, ofCluster, shareOf, legend} of a scene, or null. */
function makeOverlay(d, key) {
  const overlay = OVERLAYS[key];
  if (!overlay) return null;
  if (overlay.kind) {
    const kinds = new Map();
    for (let i = 0; i < d.count; i++) { const kind = overlay.kind(d, i); if (kind) kinds.set(kind, (kinds.get(kind) || 0) + 1); }
    const list = [...kinds].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 8).map(([kind]) => kind);
    // The most frequent kind stays plain, so that the others stand out.
    const look = new Map(list.map((kind, i) => [kind, i === 0 ? {} : heat(1 - (i - 1) / Math.max(1, list.length - 1) * 0.9)]));
    return {
      label: overlay.label,
      ofNode: (i) => { const kind = overlay.kind(d, i); return {text: kind, ...look.get(kind)}; },
      ofCluster: (c) => { const seen = new Set(d.nodesOf(c).map((i) => list.indexOf(overlay.kind(d, i)))); return [...seen].filter((k) => k >= 0).sort((a, b) => a - b).slice(0, 3).map((k) => list[k]).join(", "); },
      shareOf: () => null,
      legend: list.map((kind) => [kind, look.get(kind).fill || colors.surface]),
    };
  }
  const values = overlay.map(d), most = Math.max(1, ...values.values()), sums = new Map();
  const sum = (c) => { if (!sums.has(c)) sums.set(c, d.nodesOf(c).reduce((total, i) => total + (values.get(i) || 0), 0)); return sums.get(c); };
  return {
    label: overlay.label,
    // Square roots: sizes span many powers of ten, and shares near nothing should differ from nothing.
    ofNode: (i) => values.has(i) ? {text: overlay.unit(values.get(i)), ...heat(Math.sqrt(values.get(i) / most))} : null,
    ofCluster: (c) => sum(c) ? overlay.unit(sum(c)) : "",
    shareOf: (c) => sum(0) ? sum(c) / sum(0) : null,
    legend: [0, 0.25, 1].map((share) => [share ? overlay.unit(most * share) : "0", heat(Math.sqrt(share)).fill]),
  };
}
