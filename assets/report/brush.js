// What all parts of a drawn scene share: the look, text and strokes. The same calls draw on a
// canvas, a picture and an SVG file.

import { abs, max, min, round } from "./math.js";
import { ADDED, REMOVED } from "./status.js";
import { colors } from "./theme.js";

/**
 * Zooms from which on nodes show two lines, their inputs from elsewhere and arrow heads; from which
 * on there are lines and boxes; and, between the two, labels.
 */
export const TWO_LINES = 0.78, BOXES = 0.2;
const LABELS = 0.4;

const cuts = new Map();
/** The text, with an ellipsis if it is wider. Measuring is slow, so results are kept. */
function cutText(c, text, width) {
  const key = `${c.font}\n${round(width)}\n${text}`;
  let cut = cuts.get(key);
  if (cut !== undefined) return cut;
  cut = text;
  if (c.measureText(text).width > width) {
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
      else high = middle - 1;
    }
    cut = low > 0 ? text.slice(0, low).replace(/[\s,·]+$/, "") + "…" : "";
  }
  if (cuts.size > 20000) cuts.clear();
  cuts.set(key, cut);
  return cut;
}

export class Brush {
  /**
   * look: {scale, side, selected, cursor, hover, hits, lit, overlay, valueLabels}. `side` is
   * "union", "before" or "after"; `cursor` the slab that keys act on; `lit` a set of nodes beside
   * which all others are dimmed.
   */
  constructor(c, layout, look) {
    Object.assign(this, { c, layout, d: layout.detail }, look);
    this.two = this.scale >= TWO_LINES;
    this.labels = this.scale >= LABELS;
    this.lines = this.scale >= BOXES;
  }
  /** Words on a line, on a ground of their own. */
  sticker(words, x, y, half, room) {
    const { c } = this,
      shown = room === undefined ? words : cutText(c, words, room),
      width = c.measureText(shown).width;
    c.fillStyle = colors.surface;
    c.fillRect(x - width / 2 - 4, y - half, width + 8, 2 * half);
    this.text(shown, x - width / 2, y, colors["ink-2"]);
  }
  isGhost(node) {
    return this.isGone(this.d.status[node]);
  }
  isGone(status) {
    return status === (this.side === "before" ? ADDED : this.side === "after" ? REMOVED : -1);
  }
  /** Text is never smaller than 9 px on screen; further out it keeps the size of a label. */
  font(weight, size, family = "sans") {
    const onScreen = this.two ? max(size * this.scale, 9) : max(9, min(11, size));
    this.c.font = `${weight} ${+(onScreen / this.scale).toFixed(2)}px ${colors[family]}`;
  }
  text(text, x, y, color, width) {
    const shown = width === undefined ? text : cutText(this.c, text, width);
    this.c.fillStyle = color;
    this.c.textBaseline = "middle";
    if (shown) this.c.fillText(shown, x, y);
    return shown ? this.c.measureText(shown).width : 0;
  }
  lineColor(status, near) {
    return status === ADDED
      ? colors.added
      : status === REMOVED
      ? colors.removed
      : near
      ? colors.ink
      : colors.edge;
  }
  isLit(box) {
    return !this.lit || box.members.some((node) => this.lit.has(node));
  }
  pen(color, width = 1, dash = []) {
    this.c.strokeStyle = color;
    this.c.lineWidth = width;
    this.c.setLineDash(dash);
  }
  rounded(x, y, width, height, radius) {
    this.c.beginPath();
    this.c.roundRect(
      x,
      y,
      max(0, width),
      max(0, height),
      min(radius, width / 2, height / 2),
    );
  }
  line(points, radius = 0) {
    const { c } = this, half = (p, q) => (abs(p[0] - q[0]) + abs(p[1] - q[1])) / 2;
    c.beginPath();
    c.moveTo(...points[0]);
    for (let i = 1; i + 1 < points.length; i++) {
      c.arcTo(
        ...points[i],
        ...points[i + 1],
        min(radius, half(points[i], points[i - 1]), half(points[i + 1], points[i])),
      );
    }
    c.lineTo(...points[points.length - 1]);
    c.stroke();
  }
  head(x, y, up) {
    const back = up ? 7 : -7;
    this.area([x, y], [x - 3, y + back], [x + 3, y + back]);
  }
  area(first, ...others) {
    this.c.beginPath();
    this.c.moveTo(...first);
    for (const point of others) this.c.lineTo(...point);
    this.c.fill();
  }
}
