// The barcode: one tick per node in program order.

import { onRedraw } from "./current.js";
import { h, rectOf } from "./dom.js";
import { floor, max, min, round } from "./math.js";
import { ADDED, CHANGED, DERIVED, MOVED, REMOVED, SAME, STATUS } from "./status.js";
import { report } from "./store.js";
import { colors } from "./theme.js";

/** Fits a canvas to its box; returns a context in CSS pixels, or null while it is not shown. */
export function prepare(canvas) {
  const box = rectOf(canvas);
  if (box.width < 1 || box.height < 1) return null;
  const ratio = window.devicePixelRatio || 1,
    width = round(box.width * ratio),
    height = round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, box.width, box.height);
  return { context, width: box.width, height: box.height };
}

/**
 * Added stands above the middle line, removed below, changed across; unchanged are short and pale.
 * `has(i, status)`: whether tick i has the status.
 */
function drawTicks(c, x, y, width, height, count, has) {
  const step = min(4, width / count), thick = max(1, step * 0.7), middle = y + height / 2;
  for (const wanted of [SAME, DERIVED, MOVED, CHANGED, REMOVED, ADDED]) {
    c.fillStyle = wanted === SAME
      ? colors.tick
      : wanted === DERIVED
      ? colors["tick-2"]
      : colors[STATUS[wanted]];
    // Many ticks on one pixel are one tick.
    for (let i = 0, last = -2; i < count; i++) {
      const at = wanted === SAME ? floor(x + i * step) : x + i * step;
      if (at - last < (wanted === SAME ? 1 : 0.5) || !has(i, wanted)) continue;
      last = at;
      if (wanted === SAME) {
        c.fillRect(at, middle - height * 0.16, min(thick, 1.5), height * 0.32);
      } else if (wanted === ADDED) c.fillRect(at, y, thick, height / 2);
      else if (wanted === REMOVED) c.fillRect(at, middle, thick, height / 2);
      else if (wanted === CHANGED) c.fillRect(at, y, thick, height);
      else if (wanted === DERIVED) c.fillRect(at, middle - height * 0.25, thick, height * 0.5);
      else {
        c.fillRect(at - 0.5, y + 1, thick + 1, 2);
        c.fillRect(at - 0.5, y + height - 3, thick + 1, 2);
        c.fillRect(at, y + 1, 1, height - 3);
      }
    }
  }
}
export const drawBarcode = (c, x, y, width, height, nodes, status) =>
  nodes.length &&
  drawTicks(c, x, y, width, height, nodes.length, (i, wanted) => status[nodes[i]] === wanted);
/**
 * A canvas with the barcode of a scene. Its marks are in the data of the overview, so no
 * scene is inflated.
 */
export function barcodeOf(detail, label) {
  const canvas = h("canvas", { role: "img", label: label }), marks = report.barcodes[detail] || "";
  onRedraw(() => {
    const box = prepare(canvas);
    if (box && marks) {
      drawTicks(
        box.context,
        0,
        0,
        box.width,
        box.height,
        marks.length,
        (i, wanted) => (marks.charCodeAt(i) - 48) >> wanted & 1,
      );
    }
  });
  return canvas;
}
