// How costs changed: of the graphs, then by change, module, pass and node.

import { h } from "./dom.js";
import { boxed, cards, table } from "./elements.js";
import { number, past } from "./format.js";
import { abs } from "./math.js";
import { COSTS, costWords } from "./overlay.js";
import { beforeAfter } from "./overview.js";
import { showNode } from "./selection.js";
import { str } from "./store.js";

const LISTS = ["By change", "By module", "By pass", "By node"];
const HEADS = [...COSTS.map(([label]) => `#Δ ${label}`), "~what", "?~where", "?#places"];

/** Most changed time first, then bytes, then peak. */
const byChange = ([, a], [, b]) => a.reduce((order, x, i) => order || abs(b[i]) - abs(x), 0);
export function costsTab(panel, detail) {
  const [totals, ...lists] = detail.costs,
    rows = lists.map((list) =>
      list.map(([what, where, places, ...costs]) => [
        ...costWords(costs),
        past(str(what)),
        str(where),
        places > 1 && `${number(places)}×`,
      ])
    );
  rows.push(
    [...detail.cost].sort(byChange).slice(0, 200).map(([node, costs]) => [
      ...costWords(costs),
      h("button.link.mono", { click: () => showNode(node) }, detail.nodeName(node)),
      detail.opLabel(node),
      "",
    ]),
  );
  panel.append(h(
    "div.sheet",
    cards(
      totals.map(([before, after], i) =>
        (before || after) && beforeAfter(COSTS[i][0], before, after, COSTS[i][1], "of a step")
      ),
    ),
    rows.map((list, i) => list.length > 0 && boxed(LISTS[i], "", table(HEADS, list))),
  ));
}
