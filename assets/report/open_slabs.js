// Which slabs of a scene are open: sets of clusters of a detail.

import { DERIVED } from "./status.js";

/** Opens the way to the first change, and more while all of it fits on a few screens. */
export function openFirst(open, detail) {
  const { changes, status, clusters, count } = detail;
  if (changes.length) {
    const first = changes.find((i) => status[i] !== DERIVED) ?? changes[0];
    openAround(open, detail, count <= 60 ? [first, ...changes] : [first]);
  } else if (count <= 60) {
    clusters.forEach((c, i) => open.add(i));
  }
  openOnly(open, detail, 0);
}
/** Opens a slab and all slabs around it. */
export function openTo(open, { clusters }, cluster) {
  for (let c = cluster; c >= 0; c = clusters[c].parent) open.add(c);
}
/** Opens all slabs around each of the nodes. */
export function openAround(open, detail, nodes) {
  for (const node of nodes) openTo(open, detail, detail.cluster[node]);
}
/** Opens a single slab inside a slab: closed, it would be the only content. */
function openOnly(open, { clusters }, cluster) {
  for (let c = cluster; clusters[c].children.length === 1 && clusters[c].blocks.length === 1;) {
    open.add(c = clusters[c].children[0]);
  }
}
/** Closes a slab with all below it, or opens it, with all below it if `below`. */
export function toggleSlab(open, detail, cluster, below) {
  const { clusters } = detail;
  const all = (c, act) => {
    act(c);
    clusters[c].children.forEach((child) => all(child, act));
  };
  if (open.has(cluster)) all(cluster, (c) => open.delete(c));
  else if (below) all(cluster, (c) => open.add(c));
  else {
    open.add(cluster);
    // The first of equal slabs stands for all.
    if (clusters[cluster].repeats) open.add(clusters[cluster].children[0]);
    openOnly(open, detail, cluster);
  }
}
