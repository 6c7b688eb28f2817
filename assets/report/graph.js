// A scene on a canvas: places, camera, pointer.

// Measures of the design language, in pixels at zoom 1.
const NODE_W = 148, NODE_H = 38, GAP_X = 14, GAP_Y = 34, GUTTER = 44, PAD = 12, HEAD = 28, SLAB = 46, THIN = 30, ROW_GAP = 20, FOLD_H = 24, MARGIN = 22;
/** Nodes show operator and type from this zoom on. */
const TWO_LINES = 0.66;
const LANE_TWO = 2 * NODE_W + GAP_X + 2 * MARGIN, LANE_ONE = 4 * NODE_W + 3 * GAP_X + 2 * MARGIN;

class GraphView extends ScenePainter {
  constructor(detail, onSelect) {
    super();
    this.detail = detail;
    this.onSelect = onSelect;
    this.canvas = h("canvas", {tabindex: "0", role: "img", "aria-label": "Graph of the pass. The table tab lists the same nodes."});
    this.stage = h("div", {class: "stage"}, this.canvas);
    this.zoomLabel = h("span", {class: "quiet"}, "100%");
    this.open = new Set([0]);
    this.all = detail.changes.length === 0;
    this.selected = -1;
    this.hover = -1;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.openFirst();
    this.listen();
    new ResizeObserver(() => { if (!this.fitted) this.fit(); else this.draw(); }).observe(this.stage);
  }

  /** Opens the way to the first change, and more changes while they fit on a few screens. */
  openFirst() {
    const d = this.detail;
    const openPath = (cluster) => { for (let c = cluster; c >= 0; c = d.clusters[c].parent) this.open.add(c); };
    if (d.changes.length) {
      openPath(d.cluster[d.changes[0]]);
      if (d.clusters[0].counts[0] <= 60) for (const node of d.changes) openPath(d.cluster[node]);
    } else if (d.count <= 60) {
      d.clusters.forEach((c, i) => this.open.add(i));
    }
    // A slab with nothing but one slab inside says nothing while that is closed.
    for (let c = 0; d.children[c].length === 1 && d.clusters[c].blocks.length === 1; c = d.children[c][0]) this.open.add(d.children[c][0]);
    this.layout();
  }

  blocksOf(cluster) {
    const c = this.detail.clusters[cluster];
    return !this.all && c.folded ? c.folded : c.blocks;
  }

  /** Boxes in world pixels: slabs, nodes, folds; rows of slabs and nodes stacked from the top. */
  layout() {
    this.slabs = [];
    this.boxes = [];
    this.flows = [];
    this.boxOf = new Map();
    let depth = 0;
    for (const c of this.open) {
      let level = 1;
      for (let p = c; p >= 0; p = this.detail.clusters[p].parent) level++;
      depth = Math.max(depth, level);
    }
    const inner = this.detail.two_lanes ? 2 * LANE_TWO + GUTTER : LANE_ONE;
    this.width = inner + 2 * PAD * Math.max(1, depth);
    this.height = this.place(0, 0, 0, this.width, 0);
  }

  place(cluster, x, y, width, depth) {
    const c = this.detail.clusters[cluster];
    const differs = c.counts[1] + c.counts[2] + c.counts[3] + c.counts[4] + c.counts[5] > 0;
    const slab = {cluster, x, y, width, depth, open: this.open.has(cluster), differs};
    this.slabs.push(slab);
    if (!slab.open) {
      slab.height = differs ? SLAB : THIN;
      return slab.height + (c.repeats ? 10 : 0);
    }
    let at = y + HEAD + (cluster === 0 ? -8 : 4);
    const blocks = this.blocksOf(cluster);
    let previous = false;
    const gap = () => {
      if (previous) { this.flows.push({x: x + PAD, y: at, width: width - 2 * PAD, height: ROW_GAP}); at += ROW_GAP; }
      previous = true;
    };
    for (const block of blocks) {
      if (block.clusters) {
        for (const row of this.rowsOf(block.clusters)) {
          gap();
          const each = (width - 2 * PAD - (row.length - 1) * GAP_X) / row.length;
          let tallest = 0;
          row.forEach((child, i) => { tallest = Math.max(tallest, this.place(child, x + PAD + i * (each + GAP_X), at, each, depth + 1)); });
          at += tallest;
        }
      } else {
        gap();
        at += this.placeNodes(block, cluster, x + PAD, at + 12, width - 2 * PAD) + 24;
      }
    }
    slab.height = at - y + PAD;
    return slab.height;
  }

  /** Closed independent neighbours share a row; an open slab has one of its own. */
  rowsOf(clusters) {
    const rows = [];
    for (const child of clusters) {
      const row = rows[rows.length - 1];
      if (row && row.length < 3 && this.detail.clusters[child].joins && !this.open.has(child) && row.every((c) => !this.open.has(c))) row.push(child);
      else rows.push([child]);
    }
    return rows;
  }

  placeNodes(block, cluster, x, y, width) {
    const two = this.detail.two_lanes, middle = x + width / 2;
    const laneWidth = two ? LANE_TWO : LANE_ONE;
    const lane = [two ? middle - GUTTER / 2 - laneWidth / 2 : middle, middle + GUTTER / 2 + laneWidth / 2];
    const p = block.places;
    for (let i = 0; i < p.length; i += 6) {
      const [node, fold, backward, row, column, columns] = p.slice(i, i + 6);
      const centre = lane[backward] + (column - (columns - 1) / 2) * (NODE_W + GAP_X);
      const height = node >= 0 ? NODE_H : FOLD_H;
      const top = y + row * (NODE_H + GAP_Y) + (NODE_H - height) / 2;
      const members = node >= 0 ? [node] : block.folds[fold];
      const box = {node, members, block, cluster, backward, row, x: centre - NODE_W / 2, y: top, width: NODE_W, height, laneLeft: lane[backward] - laneWidth / 2, laneRight: lane[backward] + laneWidth / 2};
      this.boxes.push(box);
      for (const member of members) this.boxOf.set(member, box);
    }
    return block.rows * (NODE_H + GAP_Y) - GAP_Y;
  }

  // Camera

  fit() {
    const box = this.stage.getBoundingClientRect();
    if (box.width < 10) return;
    this.fitted = true;
    this.fitWidth();
    this.y = 16;
    const first = this.selected >= 0 ? this.selected : this.detail.changes[0];
    if (first !== undefined && this.boxOf.has(first)) this.center(first);
    else this.draw();
  }
  /** As large as the width allows, but readable; what is wider begins at the left. */
  fitWidth() {
    const width = this.stage.getBoundingClientRect().width;
    this.scale = Math.min(1, Math.max(0.5, (width - 48) / this.width));
    this.x = Math.max(24, (width - this.width * this.scale) / 2);
  }
  fitAll() {
    const box = this.stage.getBoundingClientRect();
    this.scale = Math.min(1, (box.width - 48) / this.width, (box.height - 32) / this.height);
    this.x = (box.width - this.width * this.scale) / 2;
    this.y = 16;
    this.draw();
  }
  center(node) {
    const box = this.boxOf.get(node), stage = this.stage.getBoundingClientRect();
    if (!box) return;
    const room = stage.width - this.width * this.scale;
    // Nothing is gained by showing what is beside the graph.
    if (room < 48) this.x = Math.min(24, Math.max(room - 24, stage.width / 2 - (box.x + box.width / 2) * this.scale));
    this.y = Math.min(16, stage.height / 2 - (box.y + box.height / 2) * this.scale);
    this.draw();
  }
  zoom(factor, cx, cy) {
    const stage = this.stage.getBoundingClientRect();
    cx ??= stage.width / 2;
    cy ??= stage.height / 2;
    const scale = Math.min(4, Math.max(0.05, this.scale * factor));
    this.x = cx - (cx - this.x) * scale / this.scale;
    this.y = cy - (cy - this.y) * scale / this.scale;
    this.scale = scale;
    this.draw();
  }

  // Selection

  /** Shows a node: opens its slabs, unfolds if it is folded, and brings it to the middle. */
  reveal(node) {
    for (let c = this.detail.cluster[node]; c >= 0; c = this.detail.clusters[c].parent) this.open.add(c);
    this.layout();
    if (!this.boxOf.has(node) || this.boxOf.get(node).node < 0) {
      this.all = true;
      this.layout();
      this.onUnfold();
    }
    this.selected = node;
    if (this.scale < TWO_LINES || this.width * this.scale > this.stage.getBoundingClientRect().width) this.fitWidth();
    this.center(node);
  }
  select(node) {
    this.selected = node;
    this.onSelect(node);
    this.draw();
  }
  toggle(slab) {
    // The slab's corner stays where it is.
    const before = slab.y;
    if (this.open.has(slab.cluster)) this.open.delete(slab.cluster);
    else this.open.add(slab.cluster);
    const old = this.width;
    this.layout();
    const again = this.slabs.find((other) => other.cluster === slab.cluster);
    if (again) this.y += (before - again.y) * this.scale;
    this.x += (old - this.width) * this.scale / 2;
    this.draw();
  }

  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.x) / this.scale, y = (event.clientY - box.top - this.y) / this.scale;
    const inside = (b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height;
    const node = this.boxes.find(inside);
    if (node) return {box: node};
    for (let i = this.slabs.length - 1; i > 0; i--) {
      const slab = this.slabs[i];
      if (inside(slab) && (!slab.open || y <= slab.y + HEAD)) return {slab};
    }
    return {};
  }

  listen() {
    const pointers = new Map();
    let moved = 0, pinch = 0;
    this.canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      this.canvas.setPointerCapture(event.pointerId);
      moved = 0;
      pinch = 0;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) {
        const {box, slab} = this.hit(event);
        const hover = box && box.node >= 0 ? box.node : -1;
        this.canvas.style.cursor = box || slab ? "pointer" : "default";
        if (hover !== this.hover) { this.hover = hover; this.draw(); }
        return;
      }
      if (pointers.size === 2) {
        pointers.set(event.pointerId, event);
        const [a, b] = [...pointers.values()];
        const distance = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), box = this.canvas.getBoundingClientRect();
        if (pinch) this.zoom(distance / pinch, (a.clientX + b.clientX) / 2 - box.left, (a.clientY + b.clientY) / 2 - box.top);
        pinch = distance;
        moved = 10;
        return;
      }
      this.x += event.clientX - last.clientX;
      this.y += event.clientY - last.clientY;
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      pointers.set(event.pointerId, event);
      this.draw();
    });
    const up = (event) => {
      const was = pointers.delete(event.pointerId);
      if (!was || moved > 4 || event.type === "pointercancel") return;
      const {box, slab} = this.hit(event);
      if (box && box.node >= 0) this.select(box.node);
      else if (box) { this.all = true; this.layout(); this.draw(); this.onUnfold(); }
      else if (slab) this.toggle(slab);
      else this.select(-1);
    };
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY * 0.004), event.clientX - box.left, event.clientY - box.top);
      else { this.x -= event.shiftKey ? event.deltaY : event.deltaX; this.y -= event.shiftKey ? 0 : event.deltaY; this.draw(); }
    }, {passive: false});
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }
}
