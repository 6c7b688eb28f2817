// Elements of the page. No text of a log ever becomes markup: it goes through textContent or onto a
// canvas.

/** A text of a log as it may stand in a page: nothing that hides or turns what is beside it. */
export const visible = (text) =>
  String(text).replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    "\ufffd",
  );
/** The same in one line, for canvases, copies and names. */
export const plain = (text) => visible(text).replace(/[\t\n]/g, "\ufffd");

/**
 * Makes an element: h("td.number", 12), h("a.cut", {href, title}, words). Functions become
 * listeners; `label` is for those who listen. All texts are made visible here, so nothing else of
 * the page has to.
 */
export const h = (tag, ...content) =>
  make(document.createElement(tag.split(".")[0]), tag.split(".").slice(1), content);
export const svg = (tag, ...content) =>
  make(document.createElementNS("http://www.w3.org/2000/svg", tag), [], content);
function make(element, classes, [first, ...children]) {
  const hasProps = first && Object.getPrototypeOf(first) === Object.prototype,
    isThere = (value) => value !== undefined && value !== null && value !== false,
    clean = (value) => typeof value === "string" ? visible(value) : value;
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of hasProps ? Object.entries(first) : []) {
    if (typeof value === "function") hear(element, key, value);
    else if (isThere(value)) {
      element.setAttribute(
        key === "label" ? "aria-label" : key,
        value === true ? "" : key === "value" ? value : clean(value),
      );
    }
  }
  element.append(
    ...[hasProps ? null : first, ...children].flat(Infinity).filter(isThere).map(clean),
  );
  return element;
}
/**
 * A text that may break behind the dots of its names and in long names behind a line, but not
 * before a number, and in what has no such place after 24 characters; other things as they are.
 */
export const dotted = (text) => {
  if (typeof text !== "string") return text;
  const parts = text.split(/(\w{11,})/).flatMap((part, i) =>
    part.split(i % 2 ? /(?<=_)(?!\d+\b)/ : /(?<=[./])(?!\d)/)
  ).filter(Boolean);
  return parts.flatMap((part) => part.length > 24 ? part.match(/ *[^ ]{1,24} *| +/gu) : part)
    .flatMap((part, i) => i ? [h("wbr"), part] : part);
};
export const link = (href, ...words) => h("a", { href }, words.map(dotted));
export const button = (click, ...words) => h("button", { click }, ...words);
export const hear = (target, type, act, options) => target.addEventListener(type, act, options);
export const rectOf = (element) => element.getBoundingClientRect();
export const $ = (selector, of = document) => of.querySelector(selector);
export const $$ = (selector, of = document) => [...of.querySelectorAll(selector)];
/** 1 or -1 where the key steps forth or back, which is then done with the event; else 0. */
export function stepOf(event, back, forth) {
  const step = { [back]: -1, [forth]: 1 }[event.key] || 0;
  if (step) event.preventDefault();
  return step;
}
/** The words that there are. */
export const joined = (list, between = ", ") => list.filter(Boolean).join(between);

/** Shows a message in the footer, which screen readers speak. */
export const say = (text) => {
  $("[role=status]").textContent = text;
};

export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages from a file may lack the clipboard; a selection can always be copied.
    const area = h("textarea.away", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`${what} copied`);
}
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  say(`${name} saved`);
}
