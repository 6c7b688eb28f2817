// How a scene is drawn: slabs, flows, edges, stubs, nodes. The same calls draw on a canvas, a
// picture and an SVG file.

import { drawBarcode } from "./barcode.js";
import { plain } from "./dom.js";
import { bytes, dtypeOf, number, plural, shortType } from "./format.js";
import { HEAD, NODE_H, NODE_W, THIN } from "./layout.js";
import { abs, max, min, round } from "./math.js";
import { ADDED, BADGES, RELATIONS, REMOVED, SIGN } from "./status.js";
import { colors, heat } from "./theme.js";

/**
 * From this zoom on, nodes show two lines, their inputs from elsewhere and arrow heads; below the
 * next, no labels.
 */
export const TWO_LINES = 0.78, LABELS = 0.4, BOXES = 0.2;
/** Operators that compute nothing: drawn in plain weight. */
const VIEWS = new Set(
  [
    "view _unsafe_view reshape t transpose permute detach alias expand slice select squeeze",
    "unsqueeze getitem input output split as_strided wait_tensor",
  ].join(" ").split(" "),
);

/** Statuses that a border and bold text point out. */
const isMarked = (status) => status !== "same" && status !== "derived";

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

export class ScenePainter {
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
  paint(shows) {
    const slabs = this.layout.slabs.filter(shows),
      groups = this.layout.groups.filter(shows),
      boxes = groups.flatMap((group) => group.boxes.filter(shows));
    for (const slab of slabs) if (slab.open) this.slab(slab);
    if (this.lines) {
      for (const flow of this.layout.flows) if (shows(flow)) this.flow(flow);
      for (const skip of this.layout.skips) {
        if (
          shows({
            x: skip.rail - 20,
            y: min(skip.from, skip.to),
            width: 40,
            height: abs(skip.from - skip.to),
          })
        ) this.skip(skip);
      }
      for (const group of groups) {
        for (const edge of group.edges) if (this.#edgeShows(edge, shows)) this.edge(edge);
      }
    }
    for (const slab of slabs) if (!slab.open) this.slab(slab);
    for (const box of boxes) {
      if (this.lines) this.box(box);
      else this.mark(box);
    }
    if (this.two) {
      for (const box of boxes) {
        if (box.stubs) this.#stub(box);
        if (this.valueLabels && box.feeds && box.node >= 0) this.#valueLabel(box);
      }
    }
    if (this.lines && this.selected >= 0) this.relations();
  }
  /** From the selected node to those that are not the same, but belong together. */
  relations() {
    const { c, d } = this, here = this.layout.boxOf.get(this.selected);
    for (const r of here ? d.relations : []) {
      if (!r.before.includes(this.selected) && !r.after.includes(this.selected)) continue;
      for (const other of [...r.before, ...r.after].slice(0, 24)) {
        const there = this.layout.boxOf.get(other) ||
          this.layout.slabOf.get(this.#closedSlab(other));
        if (!there || there === here) continue;
        const middle = (b) => [b.x + b.width / 2, b.y + b.height / 2],
          [[x0, y0], [x1, y1]] = [middle(here), middle(there)],
          bend = abs(x1 - x0) < 20 ? here.width * 0.8 : 0;
        this.pen(colors["ink-2"], 1.5, [2, 3]);
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
        this.font(400, 11);
        this.#sticker(RELATIONS[r.kind] || r.kind, (x0 + x1) / 2 + bend * 0.75, (y0 + y1) / 2, 9);
      }
    }
  }
  /** Words on a line, on a ground of their own. */
  #sticker(words, x, y, half, room) {
    const { c } = this,
      shown = room === undefined ? words : cutText(c, words, room),
      width = c.measureText(shown).width;
    c.fillStyle = colors.surface;
    c.fillRect(x - width / 2 - 4, y - half, width + 8, 2 * half);
    this.text(shown, x - width / 2, y, colors["ink-2"]);
  }
  /** What flows out of a node, where its lines begin. */
  #valueLabel({ node, x, y, width, height, backward }) {
    const { d } = this,
      type = d.typeOf(node),
      words = {
        dtype: dtypeOf(type),
        shape: (/\[[^\]]*\]/.exec(type) || [""])[0],
        bytes: d.bytes.has(node) ? bytes(d.bytes.get(node)) : "",
      }[this.valueLabels];
    if (!words || this.#isGhost(node)) return;
    this.font(400, 10, "mono");
    this.#sticker(words, x + width / 2, backward ? y - 11 : y + height + 11, 6, width - 16);
  }
  /** The outermost closed slab that holds a node. */
  #closedSlab(node) {
    let found = -1;
    for (
      let cluster = this.d.cluster[node];
      cluster >= 0;
      cluster = this.d.clusters[cluster].parent
    ) if (!this.layout.open.has(cluster)) found = cluster;
    return found;
  }
  /** A box from far away: its fill, and whether it is selected. */
  mark({ x, y, width, height, node }) {
    const { c } = this, status = node < 0 ? "same" : this.d.statusOf(node);
    c.fillStyle = node < 0
      ? colors.fold
      : node === this.selected || (this.hits && this.hits.has(node))
      ? colors.accent
      : status === "same"
      ? colors.tick
      : status === "derived"
      ? colors.edge
      : colors[status];
    c.fillRect(x, y, width, height);
  }
  #isGhost(node) {
    return this.#isGone(this.d.status[node]);
  }
  #isGone(status) {
    return status === (this.side === "before" ? ADDED : this.side === "after" ? REMOVED : -1);
  }
  #edgeShows({ a, b }, shows) {
    return shows({
      x: min(a.x, b.x) - 40,
      y: min(a.y, b.y),
      width: abs(a.x - b.x) + NODE_W + 80,
      height: abs(a.y - b.y) + NODE_H,
    });
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

  // --- Slabs ---

  slab(slab) {
    if (slab.cluster === 0) return;
    this.#slabBody(slab);
    if (!this.lines) return;
    const tall = slab.height > THIN && !slab.open,
      middle = slab.y + (slab.open ? HEAD / 2 + 2 : tall ? 15 : THIN / 2),
      { textEnd, badgesBegin } = this.#slabHead(slab, middle);
    if (slab.open) return;
    const left = tall ? slab.x + 12 : max(slab.x + slab.width * 0.42, textEnd + 16),
      right = tall ? slab.x + slab.width - 12 : badgesBegin - 8;
    if (right - left < 60) return;
    const y = slab.y + (tall ? 27 : 9), height = tall ? 14 : 12;
    if (this.overlay && tall) this.#overlayBar(slab, left, y, right - left, height);
    else this.#slabBarcode(slab, left, y, right - left, height);
  }
  /** How many equal slabs this one stands for; 0 for a slab of its own. */
  #repeatsOf({ run, cluster }) {
    return run ? run.length : this.d.clusters[cluster].repeats;
  }
  #slabBody(slab) {
    const { c } = this, cards = slab.open || !this.#repeatsOf(slab) ? 0 : 2;
    this.pen(this.hover === slab || this.cursor === slab.cluster ? colors["ink-2"] : colors.rule);
    // The slab, and behind it the edges of equal ones.
    for (let i = cards; i >= 0; i--) {
      c.fillStyle = i > 0 ? colors.surface : this.#slabColor(slab);
      this.#rounded(slab.x + 5 * i, slab.y + 5 * i, slab.width - 10 * i, slab.height, 6);
      c.fill();
      c.stroke();
    }
  }
  #slabColor(slab) {
    if (slab.open) return slab.depth % 2 ? colors.well : colors["well-2"];
    return slab.differs || this.d.changes.length === 0 ? colors.surface : colors.fold;
  }
  /** The triangle, the name, the size and the counts of a slab; returns the room between them. */
  #slabHead(slab, middle) {
    const { c, d } = this,
      { counts } = d.clusters[slab.cluster],
      times = slab.run ? slab.run.length : 1;
    this.#triangle(slab.x + 13, middle, slab.open);
    const badgesBegin = this.badges(
      counts.map((count) => count * times),
      slab.x + slab.width - 10,
      middle,
    );
    this.font(slab.differs ? 600 : 400, 12);
    const ink = slab.differs || slab.open ? colors.ink : colors["ink-2"],
      room = badgesBegin - slab.x - 30,
      begin = slab.x + 30 + this.text(this.#slabName(slab), slab.x + 22, middle, ink, room);
    this.font(400, 11);
    const size = this.overlay
        ? this.overlay.ofCluster(slab.cluster)
        : plural(counts[0] * times, "node"),
      width = c.measureText(size).width;
    if (size && width < badgesBegin - 8 - begin) this.text(size, begin, middle, colors["ink-3"]);
    return { textEnd: begin + width, badgesBegin };
  }
  #slabName(slab) {
    const { clusters } = this.d, { label } = clusters[slab.cluster], times = this.#repeatsOf(slab);
    const last = slab.run && clusters[slab.run[times - 1]].label,
      name = slab.run ? `{${label}..${last}}` : label;
    return plain(times ? `${name} ×${times} equal` : name);
  }
  /** The nodes of a closed slab, forward and backward apart; of equal slabs those of the first. */
  #slabBarcode(slab, x, y, width, height) {
    const { c, d } = this,
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
  #overlayBar(slab, x, y, width, height) {
    const share = this.overlay.shareOf(slab.cluster);
    if (share === null) return;
    this.c.fillStyle = colors.well;
    this.c.fillRect(x, y + 2, width, height - 4);
    this.c.fillStyle = heat(share).fill;
    this.c.fillRect(x, y + 2, max(1, width * share), height - 4);
  }
  /** Right aligned at `right`; returns where they begin. */
  badges(counts, right, y) {
    const [, added, removed, changed, moved, derived] = counts;
    [added, removed, changed, moved, derived].map((count, i) => [BADGES[i], count]).filter((
      [, count],
    ) => count).reverse().forEach(([status, count]) => {
      this.font(status === "derived" ? 400 : 600, 11);
      const text = SIGN[status] + number(count);
      right -= this.c.measureText(text).width;
      this.text(text, right, y, status === "derived" ? colors["ink-3"] : colors[`${status}-text`]);
      right -= 8;
    });
    return right;
  }
  flow({ x, y, width, height, forward, backward }) {
    const { c } = this;
    this.pen(c.fillStyle = colors.edge, 1.5);
    const arrow = (at, up) => {
      const [from, to] = up ? [y + height - 3, y + 3] : [y + 3, y + height - 3];
      this.line([[at, from], [at, to + (up ? 6 : -6)]]);
      this.head(at, to, up);
    };
    if (!this.d.twoLanes) arrow(x + width / 2, false);
    else {
      if (forward) arrow(x + width / 4, false);
      if (backward) arrow(x + width * 3 / 4, true);
    }
  }
  skip({ x, rail, from, to, status }) {
    if (this.#isGone(status)) return;
    const { c } = this, inward = rail < x ? 1 : -1;
    this.pen(c.fillStyle = this.#lineColor(status), status === ADDED ? 2 : 1);
    this.line([[x, from], [rail, from], [rail, to], [x - inward * 3, to]], 4);
    this.#area([x, to], [x - inward * 5, to - 3], [x - inward * 5, to + 3]);
  }

  // --- Edges ---

  #lineColor(status, near) {
    return status === ADDED
      ? colors.added
      : status === REMOVED
      ? colors.removed
      : near
      ? colors.ink
      : colors.edge;
  }
  edge({ a, b, status, points }) {
    if (this.#isGone(status)) return;
    const { c } = this, near = [a.node, b.node].some((node) => node >= 0 && node === this.selected);
    c.globalAlpha = this.lit && !(this.#isLit(a) && this.#isLit(b)) ? 0.2 : 1;
    this.pen(
      c.fillStyle = this.#lineColor(status, near),
      status === ADDED ? 2 : status === REMOVED || near ? 1.5 : 1,
      status === REMOVED && this.labels ? [4, 3] : [],
    );
    this.line(points, 5);
    const [x, y] = points[points.length - 1];
    this.head(x, y + (b.backward ? -5 : 5), b.backward);
    c.globalAlpha = 1;
  }
  #isLit(box) {
    return !this.lit || box.members.some((node) => this.lit.has(node));
  }
  /** An input from elsewhere: a short arrow with the source's name; a changed one first. */
  #stub(box) {
    const stubs = box.stubs.filter(([, status]) => !this.#isGone(status));
    if (!stubs.length || this.#isGhost(box.node) || !this.#isLit(box)) return;
    const { c } = this,
      [from, status] = stubs[0],
      up = box.backward,
      x = box.x + 10,
      edge = up ? box.y + box.height : box.y,
      out = up ? 1 : -1;
    this.pen(
      c.fillStyle = this.#lineColor(status),
      status === ADDED ? 2 : 1,
      status === REMOVED ? [3, 2] : [],
    );
    this.line([[x, edge + out * 13], [x, edge + out * 6]]);
    this.head(x, edge, up);
    this.font(400, 10, "mono");
    const more = stubs.length > 1 ? ` +${stubs.length - 1}` : "",
      room = min(box.firstPort ?? Infinity, box.x + box.width) - 8 - x - 6 -
        c.measureText(more).width;
    const color = status === ADDED
      ? colors["added-text"]
      : status === REMOVED
      ? colors["removed-text"]
      : colors["ink-3"];
    const width = this.text(this.d.nodeName(from), x + 6, edge + out * 9, color, room);
    if (more) this.text(more, x + 6 + width, edge + out * 9, color);
  }

  // --- Nodes ---

  box(box) {
    const { c } = this, { x, y, width, height, node } = box;
    c.globalAlpha = this.#isLit(box) ? 1 : 0.25;
    if (node < 0) {
      c.fillStyle = colors.fold;
      this.#rounded(x, y, width, height, 12);
      c.fill();
      if (this.labels) {
        this.font(400, 11);
        const count = number(box.members.length),
          kind = box.wanted ? "hidden" : "unchanged",
          words = [`… ${count} ${kind} nodes`, `… ${count} ${kind}`, `… ${count}`].find((t) =>
            c.measureText(t).width <= width - 8
          ) || "…";
        this.text(
          words,
          x + (width - c.measureText(words).width) / 2,
          y + height / 2 + 0.5,
          colors["ink-3"],
        );
      }
    } else {
      this.halo(box);
      if (this.#isGhost(node)) this.#ghost(box);
      else this.node(box);
    }
    c.globalAlpha = 1;
  }
  halo({ x, y, width, height, node }) {
    const { c } = this,
      ring = (offset, line, color) => {
        this.pen(color, line);
        this.#rounded(x - offset, y - offset, width + 2 * offset, height + 2 * offset, 4 + offset);
        c.stroke();
      };
    if (node === this.selected) {
      ring(4, 6, colors.halo);
      ring(1, 2, colors.ink);
    } else if (this.hover && this.hover.node === node) ring(2, 1, colors["ink-2"]);
    else if (this.hits && this.hits.has(node)) ring(2, 2, colors.accent);
  }
  #ghost({ x, y, width, height, node }) {
    const { c } = this;
    this.pen(colors["ink-4"], 1, [1.5, 3]);
    this.#rounded(x + 0.5, y + 0.5, width - 1, height - 1, 4);
    c.stroke();
    if (!this.labels) return;
    this.font(400, 11);
    this.text(
      this.d.status[node] === REMOVED ? "removed here" : "not here yet",
      x + 10,
      y + height / 2 + 0.5,
      colors["ink-3"],
      width - 16,
    );
  }
  node(box) {
    const { x, y, width, height, node } = box, over = this.overlay && this.overlay.ofNode(node);
    this.#nodeBody(box, over);
    if (!this.labels) return;
    const status = this.d.statusOf(node), first = this.two ? y + 13 : y + height / 2;
    if (status !== "same") this.sign(x + 8, first - (this.two ? 7 : 6.5), status);
    const end = this.#nodeOperator(box, first, over);
    if (!this.two) return;
    this.nodeName(box, first + 0.5, end, over);
    this.font(400, 10.5, "mono");
    const ink = over && over.ink, value = over && over.text;
    let room = width - 18;
    if (value) {
      const valueWidth = this.c.measureText(value).width;
      this.text(value, x + width - 8 - valueWidth, y + 27.5, ink || colors.ink);
      room -= valueWidth + 6;
    }
    const type = shortType(this.d.typeOf(node)) || "–";
    this.text(type, x + 10, y + 27.5, ink || colors["ink-2"], room);
  }
  /** The box of a node: filled by overlay or status, with the status as its border. */
  #nodeBody({ x, y, width, height, node }, over) {
    const { c } = this, status = this.d.statusOf(node), marked = isMarked(status);
    this.#rounded(x, y, width, height, 4);
    c.fillStyle = over && over.fill || !this.overlay && colors[`${status}-fill`] || colors.surface;
    c.fill();
    if (status === "removed" && this.lines) this.hatch(x, y, width, height);
    const color = marked ? colors[status] : status === "derived" ? colors.edge : colors["rule-2"],
      dash = this.labels && { removed: [5, 3], moved: [1.5, 2.5] }[status] || [];
    this.pen(color, status === "added" ? 2 : marked ? 1.5 : 1, dash);
    this.#rounded(x, y, width, height, 4);
    c.stroke();
    if ((status === "changed" || status === "derived") && this.lines) {
      this.pen(color);
      this.#rounded(x + 3, y + 3, width - 6, height - 6, 3);
      c.stroke();
    }
  }
  /** Returns where the operator ends. */
  #nodeOperator({ x, width, node }, y, over) {
    const { c, d } = this,
      status = d.statusOf(node),
      label = d.opLabel(node),
      left = x + (status === "same" ? 10 : 26),
      room = x + width - 8 - left;
    this.font(isMarked(status) || !VIEWS.has(/^\w*/.exec(label)[0]) ? 600 : 400, 12);
    // The new operator says more than half of both.
    const shown = c.measureText(label).width > room ? label.replace(/^.*→ /, "") : label,
      ink = over && over.ink || (status === "removed" ? colors["ink-2"] : colors.ink);
    return left + this.text(shown, left, y, ink, room);
  }
  /** The name at the right: dropped, not shortened, where there is no room. */
  nodeName({ x, width, node }, y, operatorEnd, over) {
    const { d } = this, name = d.nodeName(node), room = x + width - 16 - operatorEnd;
    this.font(400, 10, "mono");
    if (name === d.opLabel(node) || name.length * 5 > room) return;
    const nameWidth = this.c.measureText(name).width,
      ink = isMarked(d.statusOf(node)) ? colors["ink-2"] : colors["ink-3"];
    if (nameWidth <= room) {
      this.text(name, x + width - 8 - nameWidth, y, over && over.ink || ink);
    }
  }
  /** The badge of a node: strokes, not glyphs, so that a small ~ never reads as a minus. */
  sign(x, y, status) {
    const { c } = this, derived = status === "derived", mx = x + 6.5, my = y + 6.5;
    this.#rounded(x, y, 13, 13, 2);
    this.pen(colors["ink-3"]);
    if (derived) c.stroke();
    else {
      c.fillStyle = colors[`${status}-text`];
      c.fill();
    }
    this.pen(derived ? colors["ink-3"] : colors["badge-ink"], 1.6);
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

  // --- Strokes ---

  pen(color, width = 1, dash = []) {
    this.c.strokeStyle = color;
    this.c.lineWidth = width;
    this.c.setLineDash(dash);
  }
  #rounded(x, y, width, height, radius) {
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
    this.#area([x, y], [x - 3, y + back], [x + 3, y + back]);
  }
  #triangle(x, y, down) {
    this.c.fillStyle = colors["ink-2"];
    this.#area(
      ...down
        ? [[x - 4, y - 2.5], [x + 4, y - 2.5], [x, y + 3.5]]
        : [[x - 2.5, y - 4], [x - 2.5, y + 4], [x + 3.5, y]],
    );
  }
  #area(first, ...others) {
    this.c.beginPath();
    this.c.moveTo(...first);
    for (const point of others) this.c.lineTo(...point);
    this.c.fill();
  }
  hatch(x, y, width, height) {
    const { c } = this;
    this.pen(colors.hatch);
    c.beginPath();
    // Strokes at 45 degrees, ended at the box: clipping would cost a layer each.
    for (let at = 6; at < width + height; at += 6) {
      c.moveTo(x + max(0, at - height), y + min(height, at));
      c.lineTo(x + min(width, at), y + max(0, at - width));
    }
    c.stroke();
  }
}
