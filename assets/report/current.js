// What the page shows now, and what to draw again when the theme or the size changes.

/**
 * Set by app.js before each view; `subject` and `detail` are null on the pages that show no pass.
 */
export const current = { subject: null, detail: null, graphView: null };

const redraws = [];
/** Calls `draw` for as long as this view is shown. */
export function onRedraw(draw) {
  redraws.push(draw);
}
export function redrawAll() {
  for (const draw of redraws) draw();
  if (current.graphView) current.graphView.draw();
}
export function showCurrent(subject, detail) {
  redraws.length = 0;
  Object.assign(current, { subject, detail, graphView: null });
}
