// What the page shows now, and what to update when the theme, the size or the selection changes.

/**
 * Set by app.js before each view; `subject` and `detail` are null on the pages that show no pass.
 */
export const current = { subject: null, detail: null, graphView: null };

const redraws = [], selectionListeners = [];
/** Calls `draw` for as long as this view is shown. */
export function onRedraw(draw) {
  redraws.push(draw);
}
export function redrawAll() {
  for (const draw of redraws) draw();
  if (current.graphView) current.graphView.draw();
}
/** Calls `update` after each selection, for as long as this view is shown. */
export function onSelection(update) {
  selectionListeners.push(update);
}
export function selectionChanged() {
  for (const update of selectionListeners) update();
}
export function showCurrent(subject, detail) {
  redraws.length = selectionListeners.length = 0;
  Object.assign(current, { subject, detail, graphView: null });
}
