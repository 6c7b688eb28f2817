// The barcode: one tick per node in program order.

/** Fits a canvas to its box; returns a context in CSS pixels, or null while it is not shown. */
function prepare(canvas) {
  const box = canvas.getBoundingClientRect();
  if (box.width < 1 || box.height < 1) return null;
  const ratio = window.devicePixelRatio || 1, width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, box.width, box.height);
  return {context, width: box.width, height: box.height};
}

/** Added stands above the middle line, removed below, changed across; unchanged are short and pale. */
function drawBarcode(c, x, y, width, height, nodes, status) {
  if (nodes.length === 0) return;
  const step = Math.min(4, width / nodes.length), thick = Math.max(1, step * 0.7), middle = y + height / 2;
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
    c.fillStyle = wanted === DERIVED ? colors["tick-2"] : colors[STATUS[wanted]];
    last = -2;
    for (let i = 0; i < nodes.length; i++) {
      if (status[nodes[i]] !== wanted) continue;
      const at = x + i * step;
      if (at - last < 0.5) continue;
      last = at;
      if (wanted === ADDED) c.fillRect(at, y, thick, height / 2);
      else if (wanted === REMOVED) c.fillRect(at, middle, thick, height / 2);
      else if (wanted === CHANGED) c.fillRect(at, y, thick, height);
      else if (wanted === DERIVED) c.fillRect(at, middle - height * 0.25, thick, height * 0.5);
      else { c.fillRect(at - 0.5, y + 1, thick + 1, 2); c.fillRect(at - 0.5, y + height - 3, thick + 1, 2); c.fillRect(at, y + 1, 1, height - 3); }
    }
  }
}
/** A canvas with the barcode of a scene, drawn when the scene is there and again when the size changes. */
function barcodeOf(detailIndex, label) {
  const canvas = h("canvas", {role: "img", "aria-label": label});
  loadDetail(detailIndex).then((detail) => {
    if (!detail) return;
    const draw = () => {
      const box = prepare(canvas);
      if (box) drawBarcode(box.context, 0, 0, box.width, box.height, detail.nodesOf(0), detail.status);
    };
    redraws.push(draw);
    draw();
  });
  return canvas;
}
