// Text with numbered lines and coloured words.

import { $, $$, h, visible } from "./dom.js";
import { plural } from "./format.js";
import { state } from "./route.js";

const KEYWORDS = new Set(
  [
    "and as assert async await break class const continue def del elif else except finally",
    "for from if import in is lambda not or pass raise return try while with yield None True",
    "False true false null void int float double auto static struct template using namespace",
  ].join(" ").split(" "),
);
const STRING = String.raw`("""[^]*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')`;
const WORD = String.raw`(\b[A-Za-z_]\w*)`, NUMBER = String.raw`\b\d[\w.]*`;
/** Comment, string, word, number; comments begin as the language says. */
const tokens = (comment) =>
  new RegExp(
    [`(${comment})`, STRING, WORD, NUMBER].join("|"),
    "g",
  );
const TOKENS = {
  python: tokens("#[^\\n]*"),
  cpp: tokens("//[^\\n]*|/\\*[^]*?\\*/"),
  json: tokens("$^"),
};
const SHOWN_LINES = 4000, COLOURED = 400_000;
/** Text with numbered lines; long ones are shown in two steps. */
export function codeView(text, language, all) {
  const lines = visible(text).split("\n"),
    box = h("div.code.box", { tabindex: "0", role: "region", label: "Text" });
  const draw = (count) => {
    const part = lines.slice(0, count).join("\n"), code = h("pre.text");
    code.append(
      ...part.length <= COLOURED && TOKENS[language] ? colour(part, TOKENS[language]) : [part],
    );
    box.replaceChildren(
      h(
        "pre.gutter",
        { "aria-hidden": "true" },
        lines.slice(0, count).map((_, i) => i + 1).join("\n"),
      ),
      code,
    );
    if (count < lines.length) {
      box.append(h("button", {
        click: () => draw(lines.length),
      }, `Show all ${plural(lines.length, "line")}`));
    }
  };
  const wanted = Number(state.open);
  draw(all || wanted > SHOWN_LINES ? lines.length : SHOWN_LINES);
  if (wanted >= 1 && wanted <= lines.length) {
    requestAnimationFrame(() => {
      markLines(box, [wanted]);
      $(".mark", box).scrollIntoView({ block: "center" });
    });
  }
  return box;
}
export const lineHeight = (box) => parseFloat(getComputedStyle(box).lineHeight) || 18;
export function markLines(box, lines) {
  for (const old of $$(".mark", box)) old.remove();
  box.append(...lines.map((line) => {
    const mark = h("div.mark");
    mark.style.top = `${8 + (line - 1) * lineHeight(box)}px`;
    return mark;
  }));
}
function colour(text, tokens) {
  const out = [];
  let from = 0;
  for (const match of text.matchAll(tokens)) {
    const kind = match[1] !== undefined
      ? "comment"
      : match[2] !== undefined
      ? "string"
      : match[3] === undefined
      ? "value"
      : KEYWORDS.has(match[3])
      ? "word"
      : "";
    if (!kind) continue;
    out.push(text.slice(from, match.index), h("span", { class: kind }, match[0]));
    from = match.index + match[0].length;
  }
  return [...out, text.slice(from)];
}
