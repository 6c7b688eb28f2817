// How slabs, the flows between them and the lines past them are drawn.

import { drawBarcode } from "./barcode.js";
import { plain } from "./dom.js";
import { number, plural } from "./format.js";
import { HEAD, THIN } from "./measures.js";
import { abs, max, min } from "./math.js";
import { ADDED, BADGES, SIGN } from "./status.js";
import { colors, heat } from "./theme.js";

export function paintSlab(brush, slab) {
  if (slab.cluster === 0) return;
  body(brush, slab);
  if (!brush.lines) return;
  const tall = slab.height > THIN && !slab.open,
    middle = slab.y + (slab.open ? HEAD / 2 + 2 : tall ? 15 : THIN / 2),
    { textEnd, badgesBegin } = head(brush, slab, middle);
  if (slab.open) return;
  const left = tall ? slab.x + 12 : max(slab.x + slab.width * 0.42, textEnd + 16),
    right = tall ? slab.x + slab.width - 12 : badgesBegin - 8;
  if (right - left < 60) return;
  const y = slab.y + (tall ? 27 : 9), height = tall ? 14 : 12;
  if (brush.overlay && tall) overlayBar(brush, slab, left, y, right - left, height);
  else barcode(brush, slab, left, y, right - left, height);
}
/** How many equal slabs this one stands for; 0 for a slab of its own. */
function repeatsOf(brush, { run, cluster }) {
  return run ? run.length : brush.d.clusters[cluster].repeats;
}
function body(brush, slab) {
  const { c } = brush, cards = slab.open || !repeatsOf(brush, slab) ? 0 : 2;
  brush.pen(brush.hover === slab || brush.cursor === slab.cluster ? colors["ink-2"] : colors.rule);
  // The slab, and behind it the edges of equal ones.
  for (let i = cards; i >= 0; i--) {
    c.fillStyle = i > 0 ? colors.surface : fillOf(brush, slab);
    brush.rounded(slab.x + 5 * i, slab.y + 5 * i, slab.width - 10 * i, slab.height, 6);
    c.fill();
    c.stroke();
  }
}
function fillOf(brush, slab) {
  if (slab.open) return slab.depth % 2 ? colors.well : colors["well-2"];
  return slab.differs || brush.d.changes.length === 0 ? colors.surface : colors.fold;
}
/** The triangle, the name, the size and the counts of a slab; returns the room between them. */
function head(brush, slab, middle) {
  const { c, d } = brush,
    { counts } = d.clusters[slab.cluster],
    times = slab.run ? slab.run.length : 1;
  triangle(brush, slab.x + 13, middle, slab.open);
  const badgesBegin = badges(
    brush,
    counts.map((count) => count * times),
    slab.x + slab.width - 10,
    middle,
  );
  brush.font(slab.differs ? 600 : 400, 12);
  const ink = slab.differs || slab.open ? colors.ink : colors["ink-2"],
    room = badgesBegin - slab.x - 30,
    begin = slab.x + 30 + brush.text(nameOf(brush, slab), slab.x + 22, middle, ink, room);
  brush.font(400, 11);
  const size = brush.overlay
      ? brush.overlay.ofCluster(slab.cluster)
      : plural(counts[0] * times, "node"),
    width = c.measureText(size).width;
  if (size && width < badgesBegin - 8 - begin) brush.text(size, begin, middle, colors["ink-3"]);
  return { textEnd: begin + width, badgesBegin };
}
function nameOf(brush, slab) {
  const { clusters } = brush.d, { label } = clusters[slab.cluster], times = repeatsOf(brush, slab);
  const last = slab.run && clusters[slab.run[times - 1]].label,
    name = slab.run ? `{${label}..${last}}` : label;
  return plain(times ? `${name} ×${times} equal` : name);
}
/** The nodes of a closed slab, forward and backward apart; of equal slabs those of the first. */
function barcode(brush, slab, x, y, width, height) {
  const { c, d } = brush,
    cluster = d.clusters[slab.cluster],
    one = slab.run || !cluster.repeats ? slab.cluster : cluster.children[0],
    nodes = d.nodesOf(one);
  if (!d.twoLanes) {
    drawBarcode(c, x, y, width, height, nodes, d.status);
    return;
  }
  const half = (width - 16) / 2,
    lanes = d.clusters[one].halves ||= [
      nodes.filter((i) => !d.backward[i]),
      nodes.filter((i) => d.backward[i]).reverse(),
    ];
  drawBarcode(c, x, y, half, height, lanes[0], d.status);
  drawBarcode(c, x + half + 16, y, half, height, lanes[1], d.status);
  c.fillStyle = colors["rule-2"];
  c.fillRect(x + half + 7.5, y, 1, height);
}
/** The slab's share of the whole, as a bar. */
function overlayBar(brush, slab, x, y, width, height) {
  const share = brush.overlay.shareOf(slab.cluster);
  if (share === null) return;
  brush.c.fillStyle = colors.well;
  brush.c.fillRect(x, y + 2, width, height - 4);
  brush.c.fillStyle = heat(share).fill;
  brush.c.fillRect(x, y + 2, max(1, width * share), height - 4);
}
/** Right aligned at `right`; returns where they begin. */
function badges(brush, counts, right, y) {
  const [, added, removed, changed, moved, derived] = counts;
  [added, removed, changed, moved, derived].map((count, i) => [BADGES[i], count]).filter((
    [, count],
  ) => count).reverse().forEach(([status, count]) => {
    brush.font(status === "derived" ? 400 : 600, 11);
    const text = SIGN[status] + number(count);
    right -= brush.c.measureText(text).width;
    brush.text(text, right, y, status === "derived" ? colors["ink-3"] : colors[`${status}-text`]);
    right -= 8;
  });
  return right;
}
export function paintFlow(brush, { x, y, width, height, forward, backward }) {
  const { c } = brush;
  brush.pen(c.fillStyle = colors.edge, 1.5);
  const arrow = (at, up) => {
    const [from, to] = up ? [y + height - 3, y + 3] : [y + 3, y + height - 3];
    brush.line([[at, from], [at, to + (up ? 6 : -6)]]);
    brush.head(at, to, up);
  };
  if (!brush.d.twoLanes) arrow(x + width / 2, false);
  else {
    if (forward) arrow(x + width / 4, false);
    if (backward) arrow(x + width * 3 / 4, true);
  }
}
export const skipBounds = ({ rail, from, to }) => ({
  x: rail - 20,
  y: min(from, to),
  width: 40,
  height: abs(from - to),
});
export function paintSkip(brush, { x, rail, from, to, status }) {
  if (brush.isGone(status)) return;
  const { c } = brush, inward = rail < x ? 1 : -1;
  brush.pen(c.fillStyle = brush.lineColor(status), status === ADDED ? 2 : 1);
  brush.line([[x, from], [rail, from], [rail, to], [x - inward * 3, to]], 4);
  brush.area([x, to], [x - inward * 5, to - 3], [x - inward * 5, to + 3]);
}
function triangle(brush, x, y, down) {
  brush.c.fillStyle = colors["ink-2"];
  brush.area(
    ...down
      ? [[x - 4, y - 2.5], [x + 4, y - 2.5], [x, y + 3.5]]
      : [[x - 2.5, y - 4], [x - 2.5, y + 4], [x + 3.5, y]],
  );
}
