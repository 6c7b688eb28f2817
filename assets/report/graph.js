// An interactive scene: one canvas, or two with the same camera; selection, folds, minimap.

import { prepare } from "./barcode.js";
import { h, joined, plain, rectOf } from "./dom.js";
import { number, plural } from "./format.js";
import { listenToMinimap, PanePointers } from "./graph_pointer.js";
import { HEAD, SceneLayout } from "./layout.js";
import { abs, max, min, round } from "./math.js";
import { BOXES, TWO_LINES } from "./brush.js";
import { paintScene } from "./paint.js";
import { EDGE_LABELS, note, state } from "./route.js";
import { ADDED, CHANGED, DERIVED, MOVED, REMOVED, SAME, STATUS, statusWord } from "./status.js";
import { colors } from "./theme.js";

const MIN_SCALE = 0.02, MAX_SCALE = 3;
export class GraphView {
  /** `on`: {select(node), changed()}: a node was chosen; open slabs or folds changed. */
  constructor(detail, mode, on) {
    Object.assign(this, {
      detail,
      mode,
      on,
      open: new Set([0]),
      unfolded: new Set(),
      hidden: new Set(),
      only: null,
      hops: 1,
      selected: -1,
      last: -1,
      cursor: -1,
      hover: null,
      hits: null,
      lit: null,
      overlay: null,
      cam: { x: 0, y: 0, scale: 1 },
      sync: true,
      done: [],
      undone: [],
      fitted: false,
      before: false,
    });
    this.panes = (mode === "side" ? ["before", "after"] : [mode === "blink" ? "blink" : "union"])
      .map((side) => this.pane(side));
    this.mini = h("canvas.mini", { "aria-hidden": "true" });
    this.element = h(
      `div.panes.${mode}`,
      this.panes.map((pane) => pane.element),
      mode === "side" ? null : this.mini,
    );
    this.zoomLabel = h(
      "button",
      { title: "To 100 %", click: () => this.zoom(1 / this.scale) },
      "100%",
    );
    this.countLabel = h("span.quiet.small.optional");
    for (const pane of this.panes) new PanePointers(this, pane);
    listenToMinimap(this);
    new ResizeObserver(() => {
      if (this.fitted) this.draw();
      else this.home();
    }).observe(this.panes[0].stage);
    // Tests read the positions from the scene, since a canvas has only pixels.
    this.element.view = this;
  }
  /** The current camera. Two sides share one, or each has its own. */
  get x() {
    return this.cam.x;
  }
  set x(x) {
    this.cam.x = x;
  }
  get y() {
    return this.cam.y;
  }
  set y(y) {
    this.cam.y = y;
  }
  get scale() {
    return this.cam.scale;
  }
  set scale(scale) {
    this.cam.scale = scale;
  }
  toggleSync() {
    if (this.panes.length < 2) return "Side by side only";
    this.sync = !this.sync;
    for (const pane of this.panes) pane.cam = this.sync ? this.cam : { ...this.cam };
    this.cam = this.panes[0].cam;
    this.draw();
    return this.sync ? "Both sides move together" : "Each side moves alone";
  }
  pane(side) {
    const canvas = h("canvas.graph", {
      tabindex: "0",
      role: "application",
      label: `Graph${
        side === "before" || side === "after" ? `, ${side}` : ""
      }. The table has the same nodes. Arrow keys walk, Enter opens.`,
    });
    const stage = h("div.stage", canvas);
    const removed = this.detail.counts[1], added = this.detail.counts[0], total = this.detail.count;
    const words = {
      before: ["Before", plural(total - added, "node")],
      after: ["After", plural(total - removed, "node")],
      blink: ["After", "hold b for before"],
    }[side];
    const caption = words && h("div.caption", h("b", words[0]), h("span.quiet", words[1]));
    return { side, canvas, stage, caption, cam: this.cam, element: h("div.pane", caption, stage) };
  }

  // --- Open slabs ---

  /** Opens the way to the first change, and more while all of it fits on a few screens. */
  openFirst() {
    const d = this.detail;
    if (d.changes.length) {
      const first = d.changes.find((i) => d.status[i] !== DERIVED) ?? d.changes[0];
      this.#openTo(d.cluster[first]);
      if (d.count <= 60) { for (const node of d.changes) this.#openTo(d.cluster[node]); }
    } else if (d.count <= 60) {
      d.clusters.forEach((c, i) => this.open.add(i));
    }
    this.#openOnly(0);
  }
  /** Opens a slab and all slabs around it. */
  #openTo(cluster) {
    for (let c = cluster; c >= 0; c = this.detail.clusters[c].parent) this.open.add(c);
  }
  /** Opens a single slab inside a slab: closed, it would be the only content. */
  #openOnly(cluster) {
    const { clusters } = this.detail;
    for (let c = cluster; clusters[c].children.length === 1 && clusters[c].blocks.length === 1;) {
      this.open.add(c = clusters[c].children[0]);
    }
  }
  openPaths() {
    return [...this.open].filter((c) => c !== 0).map((c) => this.detail.clusters[c].path);
  }
  setOpen(paths) {
    this.open = new Set([0]);
    for (const path of paths) this.#openTo(this.detail.clusterOfPath.get(path) ?? 0);
  }
  layout() {
    this.scene = new SceneLayout(this.detail, this);
    this.shape = {
      open: new Set(this.open),
      unfolded: new Set(this.unfolded),
      hidden: new Set(this.hidden),
      only: this.only,
    };
    const shown = this.scene.boxes.reduce((sum, box) => sum + (box.node >= 0), 0);
    this.countLabel.textContent = `${number(shown)} of ${number(this.detail.count)} drawn`;
  }
  /**
   * Lays out again, as a step that can be undone. The box that `find` returns keeps its place on
   * the screen.
   */
  relayout(find) {
    const before = find && this.scene && find(this.scene);
    this.done.push(this.shape);
    this.undone = [];
    this.layout();
    const after = before && find(this.scene);
    if (before && after) {
      this.x += (before.x - after.x) * this.scale;
      this.y += (before.y - after.y) * this.scale;
    }
    this.on.changed();
    this.draw();
  }
  /** Lays out again around the selection. */
  refresh() {
    this.relayout((scene) => scene.boxOf.get(this.selected));
  }
  toggle(cluster, below = false) {
    const d = this.detail, close = this.open.has(cluster);
    const all = (c, act) => {
      act(c);
      d.clusters[c].children.forEach((child) => all(child, act));
    };
    if (close) all(cluster, (c) => this.open.delete(c));
    else if (below) all(cluster, (c) => this.open.add(c));
    else {
      this.open.add(cluster);
      // The first of equal slabs stands for all.
      if (d.clusters[cluster].repeats) this.open.add(d.clusters[cluster].children[0]);
      this.#openOnly(cluster);
    }
    this.cursor = cluster;
    this.relayout((scene) => scene.slabOf.get(cluster));
  }
  /** Every slab, or none. */
  openAll(open) {
    this.open = new Set(open ? this.detail.clusters.keys() : [0]);
    this.refresh();
  }
  /** The slab that keys act on: the last one opened or closed, or the one around the selection. */
  get here() {
    return this.cursor >= 0
      ? this.cursor
      : this.selected >= 0
      ? this.detail.cluster[this.selected]
      : -1;
  }
  toggleHere(below) {
    if (this.here > 0) this.toggle(this.here, below);
  }
  /**
   * Inward: opens the current slab, or goes to its first slab or node. Outward: closes it, or the
   * slab around it. Returns a message.
   */
  step(inward) {
    const { clusters } = this.detail, { slabs, boxes } = this.scene;
    let c = this.here;
    if (inward && c < 0) {
      const closed = slabs.find((slab) => !slab.open && slab.differs) ||
        slabs.find((slab) => !slab.open);
      if (!closed) return "Every slab is open";
      c = closed.cluster;
    } else if (inward && this.open.has(c)) {
      const [child] = clusters[c].children, box = boxes.find((b) => b.cluster === c && b.node >= 0);
      if (child === undefined && box) {
        this.select(box.node);
        this.center(box.node);
        return this.detail.nodeName(box.node);
      }
      c = child ?? c;
    } else if (!inward) {
      if (c < 0) c = [...slabs].reverse().find((slab) => slab.open).cluster;
      while (c > 0 && !this.open.has(c)) c = clusters[c].parent;
      if (c <= 0) return "Every slab around is closed";
    }
    if (this.open.has(c) !== inward) this.toggle(c);
    this.cursor = c;
    this.draw();
    return plain(clusters[c].path);
  }
  #unfold(box) {
    this.unfolded.add(box.block);
    this.relayout((scene) => scene.slabOf.get(box.cluster));
  }
  undo(again) {
    const [from, to] = again ? [this.undone, this.done] : [this.done, this.undone],
      shape = from.pop();
    if (!shape) return again ? "Nothing to redo" : "Nothing to undo";
    to.push(this.shape);
    Object.assign(this, shape);
    this.layout();
    this.on.changed();
    this.draw();
    return again ? "Done again" : "Undone";
  }

  // --- Hidden nodes ---

  hide() {
    if (this.selected < 0) return "Select a node first";
    this.hidden.add(this.selected);
    this.refresh();
    return `${plural(this.hidden.size, "node")} hidden, X shows all`;
  }
  showAll() {
    this.hidden.clear();
    this.only = null;
    this.refresh();
    return "All is shown";
  }
  /** Shows only the selection and its neighbours; each further call adds a step. */
  isolate() {
    if (this.selected < 0) return "Select a node first";
    if (!this.only || this.isolated !== this.selected) {
      Object.assign(this, { only: new Set([this.selected]), isolated: this.selected, reach: 0 });
    }
    this.only = this.#grow(this.only, this.only, ["inputs", "outputs"]);
    this.open = new Set([0]);
    for (const node of this.only) this.#openTo(this.detail.cluster[node]);
    this.refresh();
    return `${plural(this.only.size, "node")} within ${
      plural(++this.reach, "step")
    }, Esc shows all`;
  }
  /** A set of nodes with those next to its edge. */
  #grow(set, edge, directions) {
    const next = new Set(set);
    for (const node of edge) {
      for (const direction of directions) {
        for (const [other] of this.detail[direction](node)) next.add(other);
      }
    }
    return next;
  }
  /** Ends highlighting or isolation; false without either. */
  clear() {
    if (this.lit) {
      this.lit = null;
      this.draw();
      return true;
    }
    if (this.only) {
      this.showAll();
      return true;
    }
    return false;
  }

  // --- Camera ---

  /**
   * Of the stage; `room` is what the minimap leaves free: everything that is brought into view
   * comes there.
   */
  size() {
    const { width, height } = rectOf(this.panes[0].stage);
    return { width, height, room: width - (this.#hasMini() ? 108 : 0) };
  }
  #hasMini() {
    return this.mode !== "side" && rectOf(this.panes[0].stage).width > 560;
  }
  /** Fits the width, readable, with the selection or the first change in the middle. */
  home() {
    const { width, room } = this.size();
    if (width < 10) return;
    this.fitted = true;
    if (state.cam) {
      const [x, y, scale] = state.cam.split(",").map(Number);
      if (scale > 0) {
        Object.assign(this, { scale });
        this.x = width / 2 - x * scale;
        this.y = this.size().height / 2 - y * scale;
        this.draw();
        return;
      }
    }
    const narrow = width < 560;
    this.scale = min(
      1,
      max(
        !narrow ? 0.5 : this.mode === "side" ? 0.3 : 0.45,
        (room - (narrow ? 16 : 32)) / this.scene.width,
      ),
    );
    this.x = max(narrow ? 8 : 16, (room - this.scene.width * this.scale) / 2);
    this.y = 16;
    const first = this.selected >= 0
      ? this.selected
      : this.detail.changes.find((i) => this.scene.boxOf.has(i));
    if (first !== undefined && this.scene.boxOf.has(first)) this.center(first);
    else this.draw();
  }
  fit(left, top, right, bottom) {
    const { room, height } = this.size();
    this.scale = max(
      MIN_SCALE,
      min(1, (room - 32) / (right - left), (height - 32) / (bottom - top)),
    );
    this.x = room / 2 - (left + right) / 2 * this.scale;
    this.y = min(16, height / 2 - (top + bottom) / 2 * this.scale);
    this.draw();
  }
  fitAll() {
    this.fit(0, 0, this.scene.width, this.scene.height);
  }
  /** Fits the selection, or the lit nodes; without both, everything. */
  fitSelection() {
    const boxes = [...this.lit || [this.selected]].map((node) => this.scene.boxOf.get(node)).filter(
        Boolean,
      ),
      ends = (
        key,
        size,
      ) => [min(...boxes.map((b) => b[key])), max(...boxes.map((b) => b[key] + b[size]))],
      [[left, right], [top, bottom]] = [ends("x", "width"), ends("y", "height")];
    if (boxes.length) this.fit(left, top, right, bottom);
    else this.fitAll();
  }
  center(node) {
    const box = this.scene.boxOf.get(node), { room, height } = this.size();
    if (!box) return;
    const spare = room - this.scene.width * this.scale;
    // Empty space beside the graph stays out of sight.
    this.x = spare > 0
      ? spare / 2
      : min(16, max(spare - 16, room / 2 - (box.x + box.width / 2) * this.scale));
    this.y = min(16, height / 2 - (box.y + box.height / 2) * this.scale);
    this.draw();
  }
  zoom(factor, cx, cy) {
    const { room, height } = this.size(),
      scale = min(MAX_SCALE, max(MIN_SCALE, this.scale * factor));
    cx ??= room / 2;
    cy ??= height / 2;
    this.x = cx - (cx - this.x) * scale / this.scale;
    this.y = cy - (cy - this.y) * scale / this.scale;
    this.scale = scale;
    this.draw();
  }
  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.draw();
  }
  /** The camera as links have it: the middle of the stage, and the zoom. */
  camera() {
    const { width, height } = this.size();
    return [(width / 2 - this.x) / this.scale, (height / 2 - this.y) / this.scale, this.scale].map((
      v,
      i,
    ) => +v.toFixed(i < 2 ? 0 : 3)).join(",");
  }

  /** The node and the slab nearest to the middle of the screen, and their places on the screen. */
  anchor() {
    const { room, height } = this.size(),
      d = this.detail,
      distance = (b) =>
        abs(this.x + (b.x + b.width / 2) * this.scale - room / 2) +
        abs(this.y + (b.y + min(b.height, 40) / 2) * this.scale - height / 2);
    const near = (list) =>
      list.reduce((best, b) => !best || distance(b) < distance(best) ? b : best, null);
    const box = near(this.scene.boxes.filter((b) => b.node >= 0)),
      slab = near(this.scene.slabs.filter((s) => s.cluster > 0)),
      at = (b) => [this.x + b.x * this.scale, this.y + b.y * this.scale];
    return {
      scale: this.scale,
      life: box && d.life ? d.life[box.node] : -1,
      node: box ? at(box) : null,
      path: slab ? d.clusters[slab.cluster].path : "",
      slab: slab ? at(slab) : null,
    };
  }
  /** Unchanged nodes stay where they were on the screen. */
  keepCamera({ scale, life, node, path, slab }) {
    const d = this.detail,
      box = node && d.ofLife(life) !== undefined ? this.scene.boxOf.get(d.ofLife(life)) : null,
      other = slab && this.scene.slabOf.get(d.clusterOfPath.get(path));
    if (!box && !other) {
      this.home();
      return;
    }
    const [[x, y], target] = box ? [node, box] : [slab, other];
    Object.assign(this, { scale, fitted: true, x: x - target.x * scale, y: y - target.y * scale });
    this.draw();
  }

  // --- Selection ---

  /** Shows a node: opens its slabs, unfolds if it is folded, and brings it to the middle. */
  reveal(node) {
    const count = this.open.size,
      wasHidden = this.hidden.delete(node) | (this.only && !this.only.has(node));
    if (wasHidden) this.only = null;
    this.#openTo(this.detail.cluster[node]);
    let moved = this.open.size > count || wasHidden;
    if (moved) this.layout();
    const box = this.scene.boxOf.get(node);
    if (box && box.node < 0) {
      this.unfolded.add(box.block);
      this.layout();
      moved = true;
    }
    if (moved) this.on.changed();
    this.setSelected(node);
    if (this.scale < TWO_LINES) {
      this.scale = min(1, max(TWO_LINES, (this.size().room - 32) / this.scene.width));
      this.fitted = true;
    }
    this.center(node);
  }
  setSelected(node) {
    if (node !== this.selected && this.selected >= 0) this.last = this.selected;
    this.selected = node;
    this.cursor = -1;
    this.lit = null;
  }
  select(node) {
    this.setSelected(node);
    this.on.select(node);
    this.draw();
  }
  /**
   * Lights what flows into or out of the selection, a step further with each call; dims the rest.
   */
  light(directions) {
    if (this.selected < 0) return "Select a node first";
    if (!this.lit || this.litBy !== directions[0]) {
      Object.assign(this, { lit: new Set([this.selected]), litBy: directions[0] });
    }
    this.lit = this.#grow(this.lit, this.lit, directions);
    this.draw();
    return `${plural(this.lit.size, "node")} lit`;
  }
  /** Lights a shortest way between the last two selected nodes, in either direction of the flow. */
  path() {
    const [from, to] = [this.last, this.selected];
    if (from < 0 || to < 0) return "Select two nodes, one after the other";
    const search = (start, end) => {
      const via = new Map([[start, -1]]);
      for (const queue = [start]; queue.length && !via.has(end);) {
        const node = queue.shift();
        for (const [other] of this.detail.outputs(node)) {
          if (!via.has(other)) {
            via.set(other, node);
            queue.push(other);
          }
        }
      }
      const way = [];
      for (let node = via.has(end) ? end : -1; node >= 0; node = via.get(node)) way.push(node);
      return way;
    };
    const way = search(from, to).length ? search(from, to) : search(to, from);
    if (!way.length) return "No value flows between the two nodes";
    for (const node of way) this.#openTo(this.detail.cluster[node]);
    this.lit = new Set(way);
    this.relayout((scene) => scene.boxOf.get(to));
    return `A way over ${plural(way.length, "node")}`;
  }
  /** To the nearest node in a direction of the screen; false for other keys than arrows. */
  walkKey(key) {
    const way =
      { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
    if (!way) return false;
    const [dx, dy] = way, from = this.scene.boxOf.get(this.selected);
    let best = from ? null : this.scene.boxes.find((box) => box.node >= 0), least = Infinity;
    for (const box of from ? this.scene.boxes : []) {
      const ox = box.x - from.x,
        oy = box.y - from.y,
        along = ox * dx + oy * dy,
        across = abs(ox * dy) + abs(oy * dx);
      if (box.node < 0 || along <= 1 || along + 2 * across >= least) continue;
      least = along + 2 * across;
      best = box;
    }
    if (best) {
      this.select(best.node);
      this.center(best.node);
    }
    return true;
  }

  hit(event, canvas) {
    const box = rectOf(canvas),
      x = (event.clientX - box.left - this.x) / this.scale,
      y = (event.clientY - box.top - this.y) / this.scale;
    const inside = (b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height;
    for (const group of this.scene.groups) {
      const box = inside(group) && group.boxes.find(inside);
      if (box) return box;
    }
    for (let i = this.scene.slabs.length - 1; i > 0; i--) {
      const slab = this.scene.slabs[i];
      if (inside(slab) && (!slab.open || y <= slab.y + HEAD)) return slab;
    }
    return null;
  }
  /** The full text of a box. */
  tip(target) {
    const d = this.detail;
    if (!target) return "";
    if (!target.block) {
      const c = d.clusters[target.cluster];
      return `${plain(c.path)}\n${plural(c.counts[0], "node")}`;
    }
    if (target.node < 0) {
      return target.members.slice(0, 12).map((node) => d.nodeName(node)).join(", ") +
        (target.members.length > 12 ? ", …" : "");
    }
    return joined([
      d.opOf(target.node),
      d.nodeName(target.node),
      d.typeOf(target.node),
      d.moduleOf(target.node),
      statusWord(d.statusOf(target.node)),
    ], "\n");
  }
  click(target, below) {
    if (!target) this.select(-1);
    else if (target.cluster !== undefined && target.block === undefined) {
      this.toggle(target.cluster, below);
    } else if (target.node >= 0) this.select(target.node);
    else this.#unfold(target);
  }

  // --- Drawing ---

  draw() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }
  /** While b is held: the graph before, instead of both or of the one after. */
  showBefore(before) {
    this.before = before && this.mode !== "side";
    this.draw();
  }
  nextLabels() {
    const labels = EDGE_LABELS[(EDGE_LABELS.indexOf(state.labels) + 1) % EDGE_LABELS.length];
    note({ labels });
    this.draw();
    return labels ? `On the lines: ${labels}` : "Nothing on the lines";
  }
  sideOf({ side }) {
    return this.before ? "before" : side === "blink" ? "after" : side;
  }
  look(pane) {
    return {
      scale: pane.cam.scale,
      side: this.sideOf(pane),
      selected: this.sync || pane.cam === this.cam ? this.selected : -1,
      cursor: this.cursor,
      hover: this.hover,
      hits: this.hits,
      lit: this.lit,
      overlay: this.overlay,
      valueLabels: state.labels,
    };
  }
  paint() {
    if (!this.scene) return;
    for (const pane of this.panes) {
      const box = prepare(pane.canvas);
      if (!box) continue;
      const c = box.context,
        { x, y, scale } = pane.cam,
        left = -x / scale,
        top = -y / scale,
        right = left + box.width / scale,
        bottom = top + box.height / scale;
      c.save();
      c.translate(x, y);
      c.scale(scale, scale);
      paintScene(
        c,
        this.scene,
        this.look(pane),
        (b) =>
          b.x < right && b.x + b.width > left && b.y - 16 < bottom && b.y + b.height + 16 > top,
      );
      c.restore();
      if (pane.side === "blink") {
        pane.caption.firstChild.textContent = this.before ? "Before" : "After";
      }
    }
    this.zoomLabel.textContent = `${round(this.scale * 100)}%`;
    this.mini.hidden = !this.#hasMini();
    if (this.mini.hidden) return;
    this.mini.classList.toggle("faded", this.#headUnderMini());
    this.#paintMini();
  }
  /** Whether the counts at the end of a slab's head lie under the minimap. */
  #headUnderMini() {
    const mini = rectOf(this.mini),
      stage = rectOf(this.panes[0].stage),
      left = (mini.left - stage.left - this.x) / this.scale,
      right = (mini.right - stage.left - this.x) / this.scale,
      top = (mini.top - stage.top - this.y) / this.scale,
      bottom = (mini.bottom - stage.top - this.y) / this.scale;
    return this.scale >= BOXES &&
      this.scene.slabs.some((slab) =>
        slab.cluster > 0 && slab.x + slab.width > left && slab.x + slab.width - 150 < right &&
        slab.y < bottom && slab.y + HEAD > top
      );
  }
  #paintMini() {
    const box = prepare(this.mini), { scene } = this;
    if (!box) return;
    const c = box.context,
      { width, height } = box,
      k = min((width - 12) / scene.width, (height - 12) / scene.height),
      left = (width - scene.width * k) / 2,
      top = min(6, (height - scene.height * k) / 2);
    this.miniFrame = { k, left, top };
    // The scene is drawn once, the frame over it each time.
    if (scene.picture !== colors) {
      scene.picture = colors;
      scene.miniature = this.miniature(this.miniFrame);
    }
    c.drawImage(scene.miniature, 0, 0, width, height);
    const { width: stage, height: tall } = this.size();
    const x0 = max(1, left - this.x / this.scale * k),
      y0 = max(1, top - this.y / this.scale * k);
    c.strokeStyle = colors.accent;
    c.lineWidth = 1.5;
    c.strokeRect(
      x0,
      y0,
      min(width - 1, left + (stage - this.x) / this.scale * k) - x0,
      min(height - 1, top + (tall - this.y) / this.scale * k) - y0,
    );
  }
  miniature({ k, left, top }) {
    const canvas = document.createElement("canvas"),
      c = canvas.getContext("2d"),
      { scene, detail } = this,
      ratio = this.mini.width / rectOf(this.mini).width;
    canvas.width = this.mini.width;
    canvas.height = this.mini.height;
    c.scale(ratio, ratio);
    const fill = (b, color, least = 1) => {
      c.fillStyle = color;
      c.fillRect(
        left + b.x * k,
        top + b.y * k,
        max(1, b.width * k),
        max(least, b.height * k),
      );
    };
    for (const slab of scene.slabs) {
      if (slab.cluster === 0) continue;
      fill(slab, slab.open ? colors["well-2"] : colors.tick);
      if (slab.open || !slab.differs) continue;
      const counts = detail.clusters[slab.cluster].counts;
      [[CHANGED, 3], [REMOVED, 2], [ADDED, 1], [MOVED, 4]].forEach(([status, at], i) => {
        if (counts[at]) {
          fill(
            {
              x: slab.x + slab.width * (0.45 + 0.13 * i),
              y: slab.y,
              width: slab.width * 0.12,
              height: slab.height,
            },
            colors[STATUS[status]],
            1.5,
          );
        }
      });
    }
    for (const b of scene.boxes) {
      const status = b.node < 0 ? SAME : detail.status[b.node];
      fill(
        b,
        status === SAME
          ? colors["tick-2"]
          : status === DERIVED
          ? colors.edge
          : colors[STATUS[status]],
        1.5,
      );
    }
    return canvas;
  }
}
