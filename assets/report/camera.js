// Where a stage looks at a scene.

import { max, min } from "./math.js";

const MIN_SCALE = 0.02, MAX_SCALE = 3;

/** `x`, `y`: where on the stage the scene begins. A stage is {width, room, height}. */
export class Camera {
  constructor(x = 0, y = 0, scale = 1) {
    Object.assign(this, { x, y, scale });
  }
  copy() {
    return new Camera(this.x, this.y, this.scale);
  }
  /** A point of the stage, in the scene. */
  toScene(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }
  /** The corner of a box or slab, on the stage. */
  toStage({ x, y }) {
    return [this.x + x * this.scale, this.y + y * this.scale];
  }
  /** Zooms; the point of the stage stays where it is. */
  zoom(factor, x, y) {
    const scale = min(MAX_SCALE, max(MIN_SCALE, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
  }
  fit({ room, height }, left, top, right, bottom) {
    this.scale = max(
      MIN_SCALE,
      min(1, (room - 32) / (right - left), (height - 32) / (bottom - top)),
    );
    this.x = room / 2 - (left + right) / 2 * this.scale;
    this.y = min(16, height / 2 - (top + bottom) / 2 * this.scale);
  }
  /** Fits the width of a scene, readable. */
  fitWidth({ width, room }, sceneWidth, isSide) {
    const narrow = width < 560, least = !narrow ? 0.5 : isSide ? 0.3 : 0.45;
    this.scale = min(1, max(least, (room - (narrow ? 16 : 32)) / sceneWidth));
    this.x = max(narrow ? 8 : 16, (room - sceneWidth * this.scale) / 2);
    this.y = 16;
  }
  /** Brings a box to the middle; empty space beside the scene stays out of sight. */
  center({ room, height }, sceneWidth, box) {
    const spare = room - sceneWidth * this.scale;
    this.x = spare > 0
      ? spare / 2
      : min(16, max(spare - 16, room / 2 - (box.x + box.width / 2) * this.scale));
    this.y = min(16, height / 2 - (box.y + box.height / 2) * this.scale);
  }
  /** As links have it: the middle of the stage, and the zoom. */
  toLink({ width, height }) {
    return [...this.toScene(width / 2, height / 2), this.scale]
      .map((v, i) => +v.toFixed(i < 2 ? 0 : 3)).join(",");
  }
  /** False for a text that is not a camera. */
  setLink({ width, height }, text) {
    const [x, y, scale] = text.split(",").map(Number);
    if (!(scale > 0)) return false;
    Object.assign(this, { x: width / 2 - x * scale, y: height / 2 - y * scale, scale });
    return true;
  }
}
