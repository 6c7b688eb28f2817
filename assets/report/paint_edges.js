// How lines between nodes are drawn, and the words on them.

import { NODE_H, NODE_W } from "./measures.js";
import { abs, min } from "./math.js";
import { ADDED, RELATIONS, REMOVED } from "./status.js";
import { colors } from "./theme.js";

/** From the selected node to those that are not the same, but belong together. */
export function paintRelations(brush) {
  const { c, d } = brush, here = brush.layout.boxOf.get(brush.selected);
  for (const r of here ? d.relations : []) {
    if (!r.before.includes(brush.selected) && !r.after.includes(brush.selected)) continue;
    for (const other of [...r.before, ...r.after].slice(0, 24)) {
      const there = brush.layout.boxOf.get(other) ||
        brush.layout.slabOf.get(closedSlab(brush, other));
      if (!there || there === here) continue;
      const middle = (b) => [b.x + b.width / 2, b.y + b.height / 2],
        [[x0, y0], [x1, y1]] = [middle(here), middle(there)],
        bend = abs(x1 - x0) < 20 ? here.width * 0.8 : 0;
      brush.pen(colors["ink-2"], 1.5, [2, 3]);
      c.beginPath();
      c.moveTo(x0 + here.width / 2 * Math.sign(x1 - x0 || 1), y0);
      c.bezierCurveTo(
        x0 + bend + (x1 - x0) / 3,
        y0,
        x1 + bend - (x1 - x0) / 3,
        y1,
        x1 - there.width / 2 * Math.sign(x1 - x0 || -1),
        y1,
      );
      c.stroke();
      brush.font(400, 11);
      brush.sticker(RELATIONS[r.kind] || r.kind, (x0 + x1) / 2 + bend * 0.75, (y0 + y1) / 2, 9);
    }
  }
}
/** What flows out of a node, where its lines begin. */
export function paintValueLabel(brush, { node, x, y, width, height, backward }) {
  const words = brush.valueLabels.ofNode(node)?.text;
  if (!words || brush.isGhost(node)) return;
  brush.font(400, 10, "mono");
  brush.sticker(words, x + width / 2, backward ? y - 11 : y + height + 11, 6, width - 16);
}
/** The outermost closed slab that holds a node. */
function closedSlab(brush, node) {
  let found = -1;
  for (
    let cluster = brush.d.cluster[node];
    cluster >= 0;
    cluster = brush.d.clusters[cluster].parent
  ) if (!brush.layout.open.has(cluster)) found = cluster;
  return found;
}
export const edgeBounds = ({ a, b }) => ({
  x: min(a.x, b.x) - 40,
  y: min(a.y, b.y),
  width: abs(a.x - b.x) + NODE_W + 80,
  height: abs(a.y - b.y) + NODE_H,
});
export function paintEdge(brush, { a, b, status, points }) {
  if (brush.isGone(status)) return;
  const { c } = brush, near = [a.node, b.node].some((node) => node >= 0 && node === brush.selected);
  c.globalAlpha = brush.lit && !(brush.isLit(a) && brush.isLit(b)) ? 0.2 : 1;
  brush.pen(
    c.fillStyle = brush.lineColor(status, near),
    status === ADDED ? 2 : status === REMOVED || near ? 1.5 : 1,
    status === REMOVED && brush.labels ? [4, 3] : [],
  );
  brush.line(points, 5);
  const [x, y] = points[points.length - 1];
  brush.head(x, y + (b.backward ? -5 : 5), b.backward);
  c.globalAlpha = 1;
}
/** An input from elsewhere: a short arrow with the source's name; a changed one first. */
export function paintStubs(brush, box) {
  const stubs = box.stubs.filter(([, status]) => !brush.isGone(status));
  if (!stubs.length || brush.isGhost(box.node) || !brush.isLit(box)) return;
  const { c } = brush,
    [from, status] = stubs[0],
    up = box.backward,
    x = box.x + 10,
    edge = up ? box.y + box.height : box.y,
    out = up ? 1 : -1;
  brush.pen(
    c.fillStyle = brush.lineColor(status),
    status === ADDED ? 2 : 1,
    status === REMOVED ? [3, 2] : [],
  );
  brush.line([[x, edge + out * 13], [x, edge + out * 6]]);
  brush.head(x, edge, up);
  brush.font(400, 10, "mono");
  const more = stubs.length > 1 ? ` +${stubs.length - 1}` : "",
    room = min(box.firstPort ?? Infinity, box.x + box.width) - 8 - x - 6 -
      c.measureText(more).width;
  const color = status === ADDED
    ? colors["added-text"]
    : status === REMOVED
    ? colors["removed-text"]
    : colors["ink-3"];
  const width = brush.text(brush.d.nodeName(from), x + 6, edge + out * 9, color, room);
  if (more) brush.text(more, x + 6 + width, edge + out * 9, color);
}
