// How nodes and folds are drawn.

import { number, shortType } from "./format.js";
import { max, min } from "./math.js";
import { REMOVED } from "./status.js";
import { colors } from "./theme.js";

/** Operators that compute nothing: drawn in plain weight. */
const VIEWS = new Set(
  [
    "view _unsafe_view reshape t transpose permute detach alias expand slice select squeeze",
    "unsqueeze getitem input output split as_strided wait_tensor",
  ].join(" ").split(" "),
);

/** Statuses that a border and bold text point out. */
const isMarked = (status) => status !== "same" && status !== "derived";

/** A box from far away: its fill, and whether it is selected. */
export function paintMark(brush, { x, y, width, height, node }) {
  const { c } = brush, status = node < 0 ? "same" : brush.d.statusOf(node);
  c.fillStyle = node < 0
    ? colors.fold
    : node === brush.selected || (brush.hits && brush.hits.has(node))
    ? colors.accent
    : status === "same"
    ? colors.tick
    : status === "derived"
    ? colors.edge
    : colors[status];
  c.fillRect(x, y, width, height);
}
export function paintBox(brush, box) {
  const { c } = brush, { x, y, width, height, node } = box;
  c.globalAlpha = brush.isLit(box) ? 1 : 0.25;
  if (node < 0) {
    c.fillStyle = colors.fold;
    brush.rounded(x, y, width, height, 12);
    c.fill();
    if (brush.labels) {
      brush.font(400, 11);
      const count = number(box.members.length),
        kind = box.wanted ? "hidden" : "unchanged",
        words = [`… ${count} ${kind} nodes`, `… ${count} ${kind}`, `… ${count}`].find((t) =>
          c.measureText(t).width <= width - 8
        ) || "…";
      brush.text(
        words,
        x + (width - c.measureText(words).width) / 2,
        y + height / 2 + 0.5,
        colors["ink-3"],
      );
    }
  } else {
    halo(brush, box);
    if (brush.isGhost(node)) ghost(brush, box);
    else paintNode(brush, box);
  }
  c.globalAlpha = 1;
}
function halo(brush, { x, y, width, height, node }) {
  const { c } = brush,
    ring = (offset, line, color) => {
      brush.pen(color, line);
      brush.rounded(x - offset, y - offset, width + 2 * offset, height + 2 * offset, 4 + offset);
      c.stroke();
    };
  if (node === brush.selected) {
    ring(4, 6, colors.halo);
    ring(1, 2, colors.ink);
  } else if (brush.hover && brush.hover.node === node) ring(2, 1, colors["ink-2"]);
  else if (brush.hits && brush.hits.has(node)) ring(2, 2, colors.accent);
}
function ghost(brush, { x, y, width, height, node }) {
  const { c } = brush;
  brush.pen(colors["ink-4"], 1, [1.5, 3]);
  brush.rounded(x + 0.5, y + 0.5, width - 1, height - 1, 4);
  c.stroke();
  if (!brush.labels) return;
  brush.font(400, 11);
  brush.text(
    brush.d.status[node] === REMOVED ? "removed here" : "not here yet",
    x + 10,
    y + height / 2 + 0.5,
    colors["ink-3"],
    width - 16,
  );
}
function paintNode(brush, box) {
  const { x, y, width, height, node } = box, over = brush.overlay && brush.overlay.ofNode(node);
  body(brush, box, over);
  if (!brush.labels) return;
  const status = brush.d.statusOf(node), first = brush.two ? y + 13 : y + height / 2;
  if (status !== "same") sign(brush, x + 8, first - (brush.two ? 7 : 6.5), status);
  const end = operator(brush, box, first, over);
  if (!brush.two) return;
  name(brush, box, first + 0.5, end, over);
  brush.font(400, 10.5, "mono");
  const ink = over && over.ink, value = over && over.text;
  let room = width - 18;
  if (value) {
    const valueWidth = brush.c.measureText(value).width;
    brush.text(value, x + width - 8 - valueWidth, y + 27.5, ink || colors.ink);
    room -= valueWidth + 6;
  }
  const type = shortType(brush.d.typeOf(node)) || "–";
  brush.text(type, x + 10, y + 27.5, ink || colors["ink-2"], room);
}
/** The box of a node: filled by overlay or status, with the status as its border. */
function body(brush, { x, y, width, height, node }, over) {
  const { c } = brush, status = brush.d.statusOf(node), marked = isMarked(status);
  brush.rounded(x, y, width, height, 4);
  c.fillStyle = over && over.fill || !brush.overlay && colors[`${status}-fill`] || colors.surface;
  c.fill();
  if (status === "removed" && brush.lines) hatch(brush, x, y, width, height);
  const color = marked ? colors[status] : status === "derived" ? colors.edge : colors["rule-2"],
    dash = brush.labels && { removed: [5, 3], moved: [1.5, 2.5] }[status] || [];
  brush.pen(color, status === "added" ? 2 : marked ? 1.5 : 1, dash);
  brush.rounded(x, y, width, height, 4);
  c.stroke();
  if ((status === "changed" || status === "derived") && brush.lines) {
    brush.pen(color);
    brush.rounded(x + 3, y + 3, width - 6, height - 6, 3);
    c.stroke();
  }
}
/** Returns where the operator ends. */
function operator(brush, { x, width, node }, y, over) {
  const { c, d } = brush,
    status = d.statusOf(node),
    label = d.opLabel(node),
    left = x + (status === "same" ? 10 : 26),
    room = x + width - 8 - left;
  brush.font(isMarked(status) || !VIEWS.has(/^\w*/.exec(label)[0]) ? 600 : 400, 12);
  // The new operator says more than half of both.
  const shown = c.measureText(label).width > room ? label.replace(/^.*→ /, "") : label,
    ink = over && over.ink || (status === "removed" ? colors["ink-2"] : colors.ink);
  return left + brush.text(shown, left, y, ink, room);
}
/** The name at the right: dropped, not shortened, where there is no room. */
function name(brush, { x, width, node }, y, operatorEnd, over) {
  const { d } = brush, name = d.nodeName(node), room = x + width - 16 - operatorEnd;
  brush.font(400, 10, "mono");
  if (name === d.opLabel(node) || name.length * 5 > room) return;
  const nameWidth = brush.c.measureText(name).width,
    ink = isMarked(d.statusOf(node)) ? colors["ink-2"] : colors["ink-3"];
  if (nameWidth <= room) {
    brush.text(name, x + width - 8 - nameWidth, y, over && over.ink || ink);
  }
}
/** The badge of a node: strokes, not glyphs, so that a small ~ never reads as a minus. */
function sign(brush, x, y, status) {
  const { c } = brush, derived = status === "derived", mx = x + 6.5, my = y + 6.5;
  brush.rounded(x, y, 13, 13, 2);
  brush.pen(colors["ink-3"]);
  if (derived) c.stroke();
  else {
    c.fillStyle = colors[`${status}-text`];
    c.fill();
  }
  brush.pen(derived ? colors["ink-3"] : colors["badge-ink"], 1.6);
  c.beginPath();
  if (status === "added" || status === "removed") {
    c.moveTo(mx - 3.5, my);
    c.lineTo(mx + 3.5, my);
  }
  if (status === "added") {
    c.moveTo(mx, my - 3.5);
    c.lineTo(mx, my + 3.5);
  }
  if (status === "changed" || derived) {
    c.moveTo(mx - 4, my + 1.4);
    c.bezierCurveTo(mx - 2.6, my - 3.6, mx - 0.6, my - 1.6, mx, my);
    c.bezierCurveTo(mx + 0.6, my + 1.6, mx + 2.6, my + 3.6, mx + 4, my - 1.4);
  }
  if (status === "moved") {
    c.arc(mx, my + 1, 3, Math.PI, Math.PI * 1.85);
    c.moveTo(mx + 4.5, my - 1.5);
    c.lineTo(mx + 2.8, my + 1.5);
    c.lineTo(mx, my - 0.5);
  }
  c.stroke();
}
function hatch(brush, x, y, width, height) {
  const { c } = brush;
  brush.pen(colors.hatch);
  c.beginPath();
  // Strokes at 45 degrees, ended at the box: clipping would cost a layer each.
  for (let at = 6; at < width + height; at += 6) {
    c.moveTo(x + max(0, at - height), y + min(height, at));
    c.lineTo(x + min(width, at), y + max(0, at - width));
  }
  c.stroke();
}
