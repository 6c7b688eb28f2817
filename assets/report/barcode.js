// The barcode: one tick per node in program order.

/** Fits a canvas to its box; returns a context in CSS pixels, or null while it is not shown. */
function prepare(canvas) {
  const box = canvas.getBoundingClientRect();
  if (box.width < 1 || box.height < 1) return null;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {context, width: box.width, height: box.height};
}
const TICK_COLOR = {1: "added", 2: "removed", 3: "changed", 5: "moved"};

/** Added stands above the middle line, removed below, changed across; unchanged are short and pale. */
function drawBarcode(c, x, y, width, height, nodes, status) {
  if (nodes.length === 0) return;
  const step = width / nodes.length, thick = Math.max(1, Math.min(3, step * 0.7)), middle = y + height / 2;
  // Many unchanged ticks on one pixel are one tick.
  c.fillStyle = colors.tick;
  let last = -2;
  for (let i = 0; i < nodes.length; i++) {
    if (status[nodes[i]] !== SAME) continue;
    const at = Math.floor(x + i * step);
    if (at - last < 1) continue;
    last = at;
    c.fillRect(at, middle - height * 0.16, Math.min(thick, 1.5), height * 0.32);
  }
  for (const wanted of [DERIVED, MOVED, CHANGED, REMOVED, ADDED]) {
    c.fillStyle = wanted === DERIVED ? colors["tick-2"] : colors[TICK_COLOR[wanted]];
    for (let i = 0; i < nodes.length; i++) {
      if (status[nodes[i]] !== wanted) continue;
      const at = x + i * step;
      if (wanted === ADDED) c.fillRect(at, y, thick, height / 2);
      else if (wanted === REMOVED) c.fillRect(at, middle, thick, height / 2);
      else if (wanted === CHANGED) c.fillRect(at, y, thick, height);
      else if (wanted === DERIVED) c.fillRect(at, middle - height * 0.25, thick, height * 0.5);
      else { c.fillRect(at, y + 1, thick, 2); c.fillRect(at, y + height - 3, thick, 2); c.fillRect(at, y + 1, Math.min(1, thick), height - 3); }
    }
  }
}
