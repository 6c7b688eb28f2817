// Elements that several pages use: cards, sections, tables.

import { dotted, h } from "./dom.js";
import { number } from "./format.js";
import { ceil, floor, max, min } from "./math.js";

export const card = (title, value, words) =>
  h("div.card", h("div.quiet.small", title), h("div.value", value), h("div.quiet.small", words));
/** Rows of about as many cards, as wide as the page. */
export function cards(entries) {
  const list = entries.filter(Boolean),
    box = h("div.cards", list),
    least = innerWidth < 900 ? 160 : 240,
    fit = max(1, floor((min(innerWidth, 1312) - 48) / least));
  box.style.setProperty("--columns", ceil(list.length / ceil(list.length / fit)));
  return box;
}
export const section = (title, words, ...content) =>
  h("section", h("div.section", h("h2", title), words && h("span.quiet.small", words)), ...content);
export const boxed = (title, words, ...content) =>
  section(title, words, h("div.box.pad", ...content));
const KINDS = { "?": "optional", "#": "number", "=": "mono", "~": "wrap" };
/**
 * Heads begin with marks of their columns: no room on a phone, numbers, code, breaks anywhere.
 * Cells are whatever stands in them, or made by `td`.
 */
export function table(heads, rows, caption) {
  const kinds = heads.map((head) => /^[?#=~]*/.exec(head)[0].split("").map((mark) => KINDS[mark]));
  const cells = (row) =>
    row.map((cell, i) => {
      const box = cell && cell.tagName === "TD" ? cell : td(cell);
      box.classList.add(...kinds[i]);
      return box;
    });
  const columns = heads.map((head, i) =>
    columnHead(head.replace(/^[?#=~]*/, ""), {
      class: kinds[i].filter((kind) => kind !== "mono").join(" "),
    })
  );
  const box = grid("table", {}, columns, rows.map((row) => h("tr", cells(row))));
  if (caption) box.prepend(h("caption", caption));
  return box;
}
/** A table of a kind of its own. */
export const grid = (tag, props, heads, rows) =>
  h(tag, props, h("thead", h("tr", heads)), h("tbody", rows));
export const columnHead = (words, props) => h("th", { scope: "col", ...props }, words);
export const rowHead = (words) => h("th", { scope: "row" }, words);
/** "and 12 more", for a list of which `shown` are shown; nothing for a shorter one. */
export const andMore = (list, shown, words = "more") =>
  list.length > shown ? h("p.quiet", `and ${number(list.length - shown)} ${words}`) : "";
export const td = (content, kind) => h("td", { class: kind }, dotted(content));

export const pageHead = (title, words) =>
  h("div.hero", h("h1", title), h("span.quiet.small", dotted(words)));
const MAX_ROWS = 400;
/** Appends the rows of a list as they are asked for; long lists would stall the page. */
export function inPortions(list, box, add, words) {
  let at = 0;
  const more = h("button.more-rows", { click: () => next() });
  const next = () => {
    add(list.slice(at, at + MAX_ROWS));
    at += MAX_ROWS;
    more.textContent = `Show ${number(min(MAX_ROWS, list.length - at))} more of ${
      number(list.length - at)
    } ${words}`;
    more.hidden = at >= list.length;
  };
  box.append(more);
  next();
}
export const nothing = (...what) => h("div.empty", ...what);
