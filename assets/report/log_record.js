// One record of a log: its payload as text, table or tree.

import { $, $$, button, copyText, dotted, h, link, save, visible } from "./dom.js";
import { expressionPart, PROVENANCE, provenancePart } from "./log_provenance.js";
import { boxed, table } from "./overview.js";
import { bytes, plural } from "./format.js";
import { compileLink, listOf, logLink, readJson } from "./log_data.js";
import { linkTo, state } from "./route.js";
import { nothing } from "./tables.js";
import { stackList, stacksOf, valueTable } from "./log.js";

export async function recordPage(log, record) {
  const compile = log.compiles.get(record.compile || "-"),
    at = compile.records.indexOf(record),
    step = (other, words) =>
      other && h("a.button", { href: logLink(log.run, record.compile || "-", other) }, words);
  const out = [
    h(
      "div.hero",
      h("h1", record.name),
      compileLink(log, compile),
      h("span.quiet.small.mono.wrap", dotted(record.prefix)),
      h("span.spacer"),
      step(compile.records[at - 1], "Record before"),
      step(compile.records[at + 1], "Next record"),
    ),
  ];
  const { stack, user_stack: user, ...rest } = record.data;
  if (Object.keys(rest).length) out.push(h("div.box.pad", valueTable(rest)));
  for (const [words, frames] of [["Stack", stack], ["User stack", user]]) {
    if (listOf(frames).length) out.push(boxed(words, "", stackList(log, frames)));
  }
  out.push(...expressionPart(log, record));
  if (record.ref) {
    out.push(
      h(
        "p",
        link(linkTo(record), `The graph, ${plural(record.nodes, "node")}`),
        " · ",
        link(linkTo(record, { tab: "text", spelling: "fx" }), "as text"),
      ),
    );
  }
  const text = await log.payload(record);
  if (text === null) {
    if (record.bytes >= 0 && !record.ref) {
      out.push(
        nothing(
          `${
            bytes(record.bytes)
          } were left out of this report. The trace has them: strata export T --torch-trace DIR`,
        ),
      );
    }
    return out;
  }
  const file = `${record.name.replace(/[^\w.-]+/g, "_").slice(0, 80) || "record"}.txt`;
  out.push(
    h(
      "div.section",
      h("h2", "Payload"),
      h("span.quiet.small", bytes(record.bytes)),
      h("span.spacer"),
      button(() => copyText(text, "Payload"), "Copy"),
      button(() => save(new Blob([text], { type: "text/plain" }), file), "Save"),
    ),
  );
  if (PROVENANCE.test(record.name)) {
    out.push(...await provenancePart(log, compile, record, readJson(text)));
  }
  const guards = record.kind === "dynamo_guards" ? readJson(text) : null;
  if (Array.isArray(guards)) {
    out.push(
      h(
        "div.box.pad",
        table(
          ["=~guard", "from"],
          guards.map((guard) => [visible(guard && guard.code), stacksOf(log, guard || {})]),
        ),
      ),
    );
  } else out.push(codeView(...shapeOf(record, text)));
  return out;
}

/** [text to show, its language]: JSON is set out, the rest is as it is. */
function shapeOf(record, text) {
  const json = /^\s*[[{]/.test(text) && text.length < 4e6 ? readJson(text) : null;
  if (json) return [JSON.stringify(json, null, 2).replace(/\\n/g, "\n"), "json"];
  const python = /^(\s*(#.*)?\n)*\s*(import |from \w+ import|class |def |@)/.test(text);
  return [
    text,
    /^\s*#include|\bint main\(|extern "C"/m.test(text.slice(0, 20000))
      ? "cpp"
      : python
      ? "python"
      : "text",
  ];
}

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
