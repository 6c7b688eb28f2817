// The statuses of nodes: words, signs, counts.

import { h, joined } from "./dom.js";
import { MINUS, number } from "./format.js";

export const STATUS = ["same", "added", "removed", "changed", "derived", "moved"];
export const SAME = 0, ADDED = 1, REMOVED = 2, CHANGED = 3, DERIVED = 4, MOVED = 5;
export const SIGN = { added: "+", removed: MINUS, changed: "~", moved: "\u21b7", derived: "~" };
export const PHASE = ["", "forward", "loss", "backward", "optimizer"];
/** The order in which badges and counts stand. */
export const BADGES = ["added", "removed", "changed", "moved", "derived"];
export const countsOf = (detail, nodes) =>
  [ADDED, REMOVED, CHANGED, MOVED, DERIVED].map((status) =>
    nodes.reduce((sum, i) => sum + (detail.status[i] === status), 0)
  );

/** Counts are [added, removed, changed, moved, derived]; zeros are left out. */
export const badges = (counts) =>
  h(
    "span.badges",
    BADGES.map((status, i) =>
      counts[i]
        ? h(
          "span",
          { class: status, title: `${counts[i]} ${status}` },
          SIGN[status] + number(counts[i]),
        )
        : null
    ),
  );
export const badgeText = (counts) =>
  joined(
    BADGES.map((status, i) =>
      counts[i] && `${SIGN[status]}${number(counts[i])}${status === "derived" ? " derived" : ""}`
    ),
    " ",
  );
export const statusWord = (status) => status === "same" ? "unchanged" : status;
export const chip = (status) =>
  h(`span.chip.${status}`, SIGN[status] ? `${SIGN[status]} ${status}` : statusWord(status));

/** What a relation between nodes did, by its kind. */
export const RELATIONS = {
  replace: "replaced",
  clone: "copied",
  merge: "merged",
  became_input: "became an input",
  became_compute: "became a computation",
};
