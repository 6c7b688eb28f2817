// Nodes that a graph or its drawing brings together.

import { HEAD } from "./measures.js";
import { abs } from "./math.js";

/** A set of nodes with those next to it, over "inputs", "outputs" or both. */
export function grow(detail, nodes, directions) {
  const next = new Set(nodes);
  for (const node of nodes) {
    for (const direction of directions) {
      for (const [other] of detail[direction](node)) next.add(other);
    }
  }
  return next;
}
/** A shortest way from node to node along the flow; empty without one. */
export function shortestWay(detail, from, to) {
  const via = new Map([[from, -1]]);
  for (const queue = [from]; queue.length && !via.has(to);) {
    const node = queue.shift();
    for (const [other] of detail.outputs(node)) {
      if (!via.has(other)) {
        via.set(other, node);
        queue.push(other);
      }
    }
  }
  const way = [];
  for (let node = via.has(to) ? to : -1; node >= 0; node = via.get(node)) way.push(node);
  return way;
}
/** The nearest node's box in a direction of the screen; undefined without any. */
export function nextBox(boxes, from, [dx, dy]) {
  let best, least = Infinity;
  for (const box of boxes) {
    const ox = box.x - from.x,
      oy = box.y - from.y,
      along = ox * dx + oy * dy,
      across = abs(ox * dy) + abs(oy * dx);
    if (box.node < 0 || along <= 1 || along + 2 * across >= least) continue;
    least = along + 2 * across;
    best = box;
  }
  return best;
}
/** The box at a point of the scene, or the slab whose head or, if it is closed, body is there. */
export function boxAt({ groups, slabs }, x, y) {
  const inside = (b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height;
  for (const group of groups) {
    const box = inside(group) && group.boxes.find(inside);
    if (box) return box;
  }
  for (let i = slabs.length - 1; i > 0; i--) {
    const slab = slabs[i];
    if (inside(slab) && (!slab.open || y <= slab.y + HEAD)) return slab;
  }
  return null;
}
