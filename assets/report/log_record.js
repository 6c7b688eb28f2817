// One record of a log: its payload as text, table or tree.

import { codeView } from "./code_view.js";
import { button, copyText, dotted, h, link, save, visible } from "./dom.js";
import { boxed, nothing, table } from "./elements.js";
import { bytes, plural } from "./format.js";
import { compileLink, listOf, logLink, PROVENANCE, readJson } from "./log_data.js";
import { stackList, stacksOf, valueTable } from "./log_parts.js";
import { expressionPart, provenancePart } from "./log_provenance.js";
import { linkTo } from "./route.js";

export async function recordPage(log, record) {
  const compile = log.compiles.get(record.compile || "-"), text = await log.payload(record);
  return [
    recordHead(log, compile, record),
    metaPart(log, record),
    expressionPart(log, record),
    record.ref && h(
      "p",
      link(linkTo(record), `The graph, ${plural(record.nodes, "node")}`),
      " · ",
      link(linkTo(record, { tab: "text", spelling: "fx" }), "as text"),
    ),
    text === null
      ? record.bytes >= 0 && !record.ref && nothing(leftOut(record))
      : await payloadPart(log, compile, record, text),
  ];
}
const leftOut = (record) =>
  `${
    bytes(record.bytes)
  } were left out of this report. The trace has them: strata export T --torch-trace DIR`;
function recordHead(log, compile, record) {
  const at = compile.records.indexOf(record);
  const step = (other, words) =>
    other && h("a.button", { href: logLink(log.run, record.compile || "-", other) }, words);
  return h(
    "div.hero",
    h("h1", record.name),
    compileLink(log, compile),
    h("span.quiet.small.mono.wrap", dotted(record.prefix)),
    h("span.spacer"),
    step(compile.records[at - 1], "Record before"),
    step(compile.records[at + 1], "Next record"),
  );
}
/** The fields of the record beside its payload, and its stacks. */
function metaPart(log, { data: { stack, user_stack: user, ...rest } }) {
  const stackPart = (words, frames) =>
    listOf(frames).length > 0 && boxed(words, "", stackList(log, frames));
  return [
    Object.keys(rest).length > 0 && h("div.box.pad", valueTable(rest)),
    stackPart("Stack", stack),
    stackPart("User stack", user),
  ];
}
async function payloadPart(log, compile, record, text) {
  const name = record.name.replace(/[^\w.-]+/g, "_").slice(0, 80) || "record",
    guards = record.kind === "dynamo_guards" ? readJson(text) : null;
  const guardRow = (guard) => [visible(guard && guard.code), stacksOf(log, guard || {})];
  return [
    h(
      "div.section",
      h("h2", "Payload"),
      h("span.quiet.small", bytes(record.bytes)),
      h("span.spacer"),
      button(() => copyText(text, "Payload"), "Copy"),
      button(() => save(new Blob([text], { type: "text/plain" }), `${name}.txt`), "Save"),
    ),
    PROVENANCE.test(record.name) && await provenancePart(log, compile, record, readJson(text)),
    Array.isArray(guards)
      ? h("div.box.pad", table(["=~guard", "from"], guards.map(guardRow)))
      : codeView(...shapeOf(record, text)),
  ];
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
