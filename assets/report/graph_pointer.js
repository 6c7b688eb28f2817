// Pointers on the canvases of a graph.

import { hear, rectOf } from "./dom.js";
import { abs } from "./math.js";

/** A drag moves the camera, two pointers zoom, a click selects or opens. */
export class PanePointers {
  constructor(view, pane) {
    Object.assign(this, { view, pane, canvas: pane.canvas, down: new Map(), moved: 0, pinch: 0 });
    this.on("pointerdown", (event) => this.begin(event));
    this.on("pointermove", (event) => this.move(event));
    this.on("pointerup", (event) => this.end(event));
    this.on("pointercancel", (event) => this.down.delete(event.pointerId));
    this.on("wheel", (event) => this.wheel(event), { passive: false });
  }
  /** Each event makes this pane's camera the camera of the view. */
  on(type, act, options) {
    hear(this.canvas, type, (event) => {
      this.view.cam = this.pane.cam;
      act(event);
    }, options);
  }
  begin(event) {
    this.down.set(event.pointerId, event);
    this.canvas.setPointerCapture(event.pointerId);
    this.moved = this.pinch = 0;
  }
  move(event) {
    const last = this.down.get(event.pointerId);
    if (!last) {
      this.hover(event);
      return;
    }
    this.down.set(event.pointerId, event);
    if (this.down.size === 2) {
      this.zoomWithTwo(...this.down.values());
      return;
    }
    const dx = event.clientX - last.clientX, dy = event.clientY - last.clientY;
    this.moved += abs(dx) + abs(dy);
    this.view.pan(dx, dy);
  }
  hover(event) {
    const { view, canvas } = this, target = view.hit(event, canvas);
    canvas.style.cursor = target ? "pointer" : "default";
    if (target === view.hover) return;
    view.hover = target;
    canvas.title = view.tip(target);
    view.draw();
  }
  zoomWithTwo(a, b) {
    const distance = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    if (this.pinch) {
      this.zoom(distance / this.pinch, (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
    }
    this.pinch = distance;
    this.moved = 10;
  }
  end(event) {
    if (this.down.delete(event.pointerId) && this.moved <= 4) {
      this.view.click(this.view.hit(event, this.canvas), event.shiftKey);
    }
  }
  wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(-event.deltaY * 0.004), event.clientX, event.clientY);
    } else if (event.shiftKey) this.view.pan(-event.deltaY, 0);
    else this.view.pan(-event.deltaX, -event.deltaY);
  }
  zoom(factor, clientX, clientY) {
    const box = rectOf(this.canvas);
    this.view.zoom(factor, clientX - box.left, clientY - box.top);
  }
}
