// An interactive scene: one canvas, or two with the same camera; selection, folds, minimap.

import { prepare } from "./barcode.js";
import { TWO_LINES } from "./brush.js";
import { Camera } from "./camera.js";
import { h, joined, plain, rectOf } from "./dom.js";
import { number, plural } from "./format.js";
import { PanePointers } from "./graph_pointer.js";
import { boxAt } from "./graph_search.js";
import { SceneLayout } from "./layout.js";
import { abs, max, min, round } from "./math.js";
import { Minimap, MINIMAP_WIDTH } from "./minimap.js";
import { openAround, openTo, toggleSlab } from "./open_slabs.js";
import { paintScene } from "./paint.js";
import { state } from "./route.js";
import { statusWord } from "./status.js";

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
      valueLabels: null,
      cam: new Camera(),
      sync: true,
      done: [],
      undone: [],
      fitted: false,
      before: false,
    });
    this.panes = (mode === "side" ? ["before", "after"] : [mode === "blink" ? "blink" : "union"])
      .map((side) => this.pane(side));
    this.minimap = new Minimap(this);
    this.element = h(
      `div.panes.${mode}`,
      this.panes.map((pane) => pane.element),
      mode === "side" ? null : this.minimap.canvas,
    );
    this.zoomLabel = h(
      "button",
      { title: "To 100 %", click: () => this.zoom(1 / this.scale) },
      "100%",
    );
    this.countLabel = h("span.quiet.small.optional");
    for (const pane of this.panes) new PanePointers(this, pane);
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

  openPaths() {
    return [...this.open].filter((c) => c !== 0).map((c) => this.detail.clusters[c].path);
  }
  setOpen(paths) {
    this.open = new Set([0]);
    for (const path of paths) {
      openTo(this.open, this.detail, this.detail.clusterOfPath.get(path) ?? 0);
    }
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
    toggleSlab(this.open, this.detail, cluster, below);
    this.cursor = cluster;
    this.relayout((scene) => scene.slabOf.get(cluster));
  }
  #unfold(box) {
    this.unfolded.add(box.block);
    this.relayout((scene) => scene.slabOf.get(box.cluster));
  }

  // --- Camera ---

  /**
   * Of the stage; `room` is what the minimap leaves free: everything that is brought into view
   * comes there.
   */
  size() {
    const { width, height } = rectOf(this.panes[0].stage);
    return { width, height, room: width - (this.hasMinimap() ? MINIMAP_WIDTH : 0) };
  }
  hasMinimap() {
    return this.mode !== "side" && rectOf(this.panes[0].stage).width > 560;
  }
  /** The camera of the link, or the width, readable, with the selection or first change inside. */
  home() {
    const stage = this.size();
    if (stage.width < 10) return;
    this.fitted = true;
    if (state.cam && this.cam.setLink(stage, state.cam)) {
      this.draw();
      return;
    }
    this.cam.fitWidth(stage, this.scene.width, this.mode === "side");
    const first = this.selected >= 0
      ? this.selected
      : this.detail.changes.find((i) => this.scene.boxOf.has(i));
    if (first !== undefined && this.scene.boxOf.has(first)) this.center(first);
    else this.draw();
  }
  fit(left, top, right, bottom) {
    this.cam.fit(this.size(), left, top, right, bottom);
    this.draw();
  }
  fitAll() {
    this.fit(0, 0, this.scene.width, this.scene.height);
  }
  center(node) {
    const box = this.scene.boxOf.get(node);
    if (!box) return;
    this.cam.center(this.size(), this.scene.width, box);
    this.draw();
  }
  zoom(factor, x, y) {
    const { room, height } = this.size();
    this.cam.zoom(factor, x ?? room / 2, y ?? height / 2);
    this.draw();
  }
  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.draw();
  }
  /** The camera as links have it. */
  camera() {
    return this.cam.toLink(this.size());
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
      slab = near(this.scene.slabs.filter((s) => s.cluster > 0));
    return {
      scale: this.scale,
      life: box && d.life ? d.life[box.node] : -1,
      node: box ? this.cam.toStage(box) : null,
      path: slab ? d.clusters[slab.cluster].path : "",
      slab: slab ? this.cam.toStage(slab) : null,
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
    openAround(this.open, this.detail, [node]);
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

  hit(event, canvas) {
    const { left, top } = rectOf(canvas);
    return boxAt(this.scene, ...this.cam.toScene(event.clientX - left, event.clientY - top));
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
      valueLabels: this.valueLabels,
    };
  }
  paint() {
    if (!this.scene) return;
    for (const pane of this.panes) {
      const box = prepare(pane.canvas);
      if (!box) continue;
      const c = box.context,
        { x, y, scale } = pane.cam,
        [left, top] = pane.cam.toScene(0, 0),
        [right, bottom] = pane.cam.toScene(box.width, box.height);
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
    this.minimap.paint();
  }
}
