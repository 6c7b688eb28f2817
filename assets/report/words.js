// Changes in words: what changed in a node, and where a root cause is.

import { plain } from "./dom.js";
import { past, plural, shortOp } from "./format.js";
import { str } from "./store.js";

export function whatChanged(detail, node) {
  const fields = detail.fields.get(node) || [],
    own = fields.filter((field) => !field[3]),
    shown = own.length ? own : fields;
  // On a phone there is no room for a whole target.
  const side = (path, text) =>
    text < 0 ? "–" : innerWidth < 900 && path === "target" ? shortOp(str(text)) : str(text);
  return shown.slice(0, 3).map(([path, before, after]) =>
    plain(`${str(path)}: ${side(str(path), before)} → ${side(str(path), after)}`)
  ).join("; ") + (shown.length > 3 ? `; and ${shown.length - 3} more` : "");
}
/** "layers.{0..31} equal except layers.7". */
export const whereWords = (cause) => {
  const where = plain(cause.where) || "without module";
  if (cause.places === 1) return where;
  return `${plural(cause.places, "equal place")}: ${where}${
    cause.except && cause.except.length
      ? ` except ${
        cause.except.map(([place, what]) => plain(place) + (what ? ` (${past(what)})` : "")).join(
          ", ",
        )
      }`
      : ""
  }`;
};
