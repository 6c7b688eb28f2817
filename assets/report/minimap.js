// The whole scene as a small picture, with a frame around what the camera shows.

import { prepare } from "./barcode.js";
import { BOXES } from "./brush.js";
import { h, hear, rectOf } from "./dom.js";
import { HEAD } from "./measures.js";
import { max, min } from "./math.js";
import { ADDED, CHANGED, DERIVED, MOVED, REMOVED, SAME, STATUS } from "./status.js";
import { colors } from "./theme.js";

/** What it takes of the stage's width. */
export const MINIMAP_WIDTH = 108;

export class Minimap {
  constructor(view) {
    Object.assign(this, { view, canvas: h("canvas.mini", { "aria-hidden": "true" }) });
    hear(this.canvas, "pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.jump(event);
    });
    hear(this.canvas, "pointermove", (event) => {
      if (event.buttons) this.jump(event);
    });
  }
  /** Moves the camera to where the pointer is. */
  jump(event) {
    const { view } = this,
      { k, left, top } = this.frame,
      box = rectOf(this.canvas),
      { room, height } = view.size();
    view.x = room / 2 - (event.clientX - box.left - left) / k * view.scale;
    view.y = height / 2 - (event.clientY - box.top - top) / k * view.scale;
    view.draw();
  }
  paint() {
    this.canvas.hidden = !this.view.hasMinimap();
    if (this.canvas.hidden) return;
    this.canvas.classList.toggle("faded", this.#coversCounts());
    const box = prepare(this.canvas), { scene } = this.view;
    if (!box) return;
    const { context, width, height } = box,
      k = min((width - 12) / scene.width, (height - 12) / scene.height),
      left = (width - scene.width * k) / 2,
      top = min(6, (height - scene.height * k) / 2);
    this.frame = { k, left, top };
    // The scene is drawn once, the frame over it each time.
    if (scene.picture !== colors) {
      scene.picture = colors;
      scene.miniature = this.#miniature();
    }
    context.drawImage(scene.miniature, 0, 0, width, height);
    this.#paintFrame(box);
  }
  /** Whether the counts at the end of a slab's head lie under the minimap. */
  #coversCounts() {
    const { view } = this,
      mini = rectOf(this.canvas),
      stage = rectOf(view.panes[0].stage),
      [left, top] = view.cam.toScene(mini.left - stage.left, mini.top - stage.top),
      [right, bottom] = view.cam.toScene(mini.right - stage.left, mini.bottom - stage.top);
    return view.scale >= BOXES &&
      view.scene.slabs.some((slab) =>
        slab.cluster > 0 && slab.x + slab.width > left && slab.x + slab.width - 150 < right &&
        slab.y < bottom && slab.y + HEAD > top
      );
  }
  #paintFrame({ context: c, width, height }) {
    const { view } = this,
      { k, left, top } = this.frame,
      stage = view.size(),
      x0 = max(1, left - view.x / view.scale * k),
      y0 = max(1, top - view.y / view.scale * k);
    c.strokeStyle = colors.accent;
    c.lineWidth = 1.5;
    c.strokeRect(
      x0,
      y0,
      min(width - 1, left + (stage.width - view.x) / view.scale * k) - x0,
      min(height - 1, top + (stage.height - view.y) / view.scale * k) - y0,
    );
  }
  #miniature() {
    const canvas = document.createElement("canvas"),
      c = canvas.getContext("2d"),
      { scene, detail } = this.view,
      { k, left, top } = this.frame,
      ratio = this.canvas.width / rectOf(this.canvas).width;
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    c.scale(ratio, ratio);
    const fill = (b, color, least = 1) => {
      c.fillStyle = color;
      c.fillRect(left + b.x * k, top + b.y * k, max(1, b.width * k), max(least, b.height * k));
    };
    for (const slab of scene.slabs) {
      if (slab.cluster === 0) continue;
      fill(slab, slab.open ? colors["well-2"] : colors.tick);
      if (slab.open || !slab.differs) continue;
      const { counts } = detail.clusters[slab.cluster], width = slab.width * 0.12;
      [[CHANGED, 3], [REMOVED, 2], [ADDED, 1], [MOVED, 4]].forEach(([status, at], i) => {
        const x = slab.x + slab.width * (0.45 + 0.13 * i);
        if (counts[at]) fill({ ...slab, x, width }, colors[STATUS[status]], 1.5);
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
