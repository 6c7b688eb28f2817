// The whole log of a run: counts, failures, stacks, events, and records outside of compilations.

import { button, dotted, h, save, visible } from "./dom.js";
import { boxed, card, cards, section, table } from "./elements.js";
import { number, plural, time } from "./format.js";
import { brackets, compileLink, statusChip } from "./log_data.js";
import { eventPart } from "./log_events.js";
import { failedLine, frameLine, linkTable, recordTable } from "./log_parts.js";
import { report } from "./store.js";

/** The sections of the page. */
export async function logPage(log) {
  const all = [...log.compiles.values()].filter((compile) => compile.id !== "-"),
    outside = log.compiles.get("-");
  return [
    logHead(log, all.length ? "Log" : "Artifacts"),
    all.length > 0 && cards(compileCards(all)),
    troublePart(log, [...all.flatMap(troublesOf), ...exportTroubles(log)]),
    stackPart(log, all),
    report.log_tables.map(linkTable),
    log.events && section(
      "Chromium events",
      `${plural(log.events, "event")}, times of the compiler`,
      await eventPart(log, () => true),
    ),
    outside &&
    section(
      all.length ? "Records outside of compilations" : "Records",
      "",
      recordTable(log, outside.records),
    ),
  ];
}
function logHead(log, title) {
  const count = log.events + log.records.reduce((sum, record) => sum + record.count, 0);
  const lines = () =>
    log.records.map(({ line, compile, kind, name, bytes, data }) =>
      `${JSON.stringify({ line, compile, kind, name, bytes, data })}\n`
    );
  const saveLines = () => save(new Blob(lines(), { type: "application/json" }), "records.jsonl");
  const { source, rank } = log.run;
  return h(
    "div.hero",
    h("h1", title),
    h("span.quiet.small", dotted(`${plural(count, "record")} of ${source}, rank ${rank}`)),
    h("span.spacer"),
    button(saveLines, "Save as JSON lines"),
  );
}
function compileCards(compiles) {
  const bases = new Set(compiles.map((compile) => compile.base)),
    failed = compiles.filter((compile) => compile.status === "failed"),
    restarts = compiles.flatMap((compile) => compile.restarts).length,
    secondsOf = ({ metrics }) => metrics && metrics.entire_frame_compile_time_s || 0,
    seconds = compiles.reduce((sum, compile) => sum + secondsOf(compile), 0);
  return [
    card("Compilations", number(bases.size), plural(compiles.length, "attempt")),
    card(
      "Failures",
      number(failed.length),
      failed.map((compile) => brackets(compile.id)).join(" ") || "none",
    ),
    card("Restarts", number(restarts), restarts ? "analysis began anew" : "none"),
    seconds > 0 && card("Compile time", time(seconds * 1000), "of all frames"),
  ];
}
/** [compilation, what, reason, user code] of the restarts and the failure of a compilation. */
function troublesOf(compile) {
  const restarts = compile.restarts.map((reason) => [compile, "restart", reason, ""]),
    m = compile.metrics;
  if (!m || !m.fail_type) return restarts;
  return [...restarts, [compile, m.fail_type, m.fail_reason || "–", failedLine(m)]];
}
/** Records of an export that ask for a reader's attention, in the same form. */
function exportTroubles(log) {
  const asks = /_fake_kernel$|^propagate_real_tensors_prov/;
  return [...log.compiles.values()].flatMap((compile) =>
    compile.records.filter(({ kind }) => asks.test(kind)).map(({ kind, data }) => [
      compile,
      kind.replaceAll("_", " "),
      `${data.op || data.expr || ""} ${data.reason || ""}`,
      "",
    ])
  );
}
function troublePart(log, troubles) {
  if (!troubles.length) return null;
  const rows = troubles.slice(0, 1000).map(([compile, what, reason, where]) => [
    compileLink(log, compile),
    visible(what),
    [h("pre", visible(reason)), h("div.small", visible(where))],
  ]);
  return boxed(
    "Failures and restarts",
    "",
    table(["compilation", "what", "reason, user code"], rows),
  );
}
function stackPart(log, compiles) {
  const known = compiles.filter((compile) => compile.stack),
    unknown = compiles.filter((compile) => !compile.stack);
  return [
    known.length > 0 &&
    boxed(
      "Where compilation began",
      "stacks of all compilations, common frames once",
      stackTrie(log, known),
    ),
    unknown.length > 0 &&
    section(
      "Compilations without a stack",
      "",
      h("p.mono", unknown.map((compile) => [compileLink(log, compile), " "])),
    ),
  ];
}
/** Stacks as a tree: frames that several compilations share stand once. */
function stackTrie(log, compiles) {
  const root = { children: new Map(), ends: [] };
  for (const compile of compiles) {
    let at = root;
    for (const frame of compile.stack.map((f) => log.frame(f))) {
      const key = `${frame.file}:${frame.line}:${frame.name}`;
      if (!at.children.has(key)) at.children.set(key, { frame, children: new Map(), ends: [] });
      at = at.children.get(key);
    }
    at.ends.push(compile);
  }
  const list = (at) =>
    h(
      "ul",
      [...at.children.values()].map((child) =>
        h(
          "li",
          frameLine(log, child.frame),
          child.ends.map((compile) =>
            h("span.end", compileLink(log, compile), " ", statusChip(compile.status))
          ),
          child.children.size > 0 && list(child),
        )
      ),
    );
  return h("div.trie", list(root));
}
