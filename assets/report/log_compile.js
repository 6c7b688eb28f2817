// One compilation of a log: failure, metrics, records, stack, symbolic sizes, events.

import { $, h, joined, visible } from "./dom.js";
import { boxed, card, cards, inPortions, section, table } from "./elements.js";
import { number, plural, time } from "./format.js";
import { brackets, compileLink, recordLink, statusChip } from "./log_data.js";
import { eventPart } from "./log_events.js";
import {
  failedLine,
  linkTable,
  recordTable,
  stackList,
  stacksOf,
  valueTable,
} from "./log_parts.js";

/** The sections of the page. */
export async function compilePage(log, compile) {
  const metrics = compile.records.filter((record) => /compilation_metrics/.test(record.kind)),
    tables = log.tables.filter(([id]) => id === compile.id);
  return [
    compileHead(log, compile),
    failurePart(compile),
    metricCards(compile.metrics),
    section("Records", "in the order of the log", recordTable(log, compile.records)),
    compile.stack && boxed("Stack", "where compilation began", stackList(log, compile.stack)),
    symbolPart(log, compile),
    metrics.map((record) =>
      boxed(
        record.kind.replaceAll("_", " "),
        "fields that have a value",
        valueTable(record.data),
      )
    ),
    await eventsOf(log, compile),
    tables.map(([, content]) => linkTable(content)),
  ];
}
function compileHead(log, compile) {
  const m = compile.metrics, attempts = log.attemptsOf(compile);
  const where = m && m.co_filename
    ? `${m.co_filename}:${m.co_firstlineno}`
    : plural(compile.records.length, "record");
  return h(
    "div.hero",
    h("h1", `${brackets(compile.id)} ${visible(compile.name)}`),
    statusChip(compile.status),
    h("span.quiet.small", where),
    attempts.length > 1 &&
      h("span.small", "Attempts ", attempts.map((other) => [compileLink(log, other), " "])),
  );
}
function failurePart({ metrics: m, restarts }) {
  return [
    m && m.fail_type && h(
      "div.failure",
      { role: "alert" },
      h("b", visible(m.fail_type)),
      h("pre", visible(m.fail_reason || "")),
      failedLine(m),
    ),
    restarts.map((reason) =>
      h("div.failure", h("b", "Analysis restarted"), h("pre", visible(reason)))
    ),
  ];
}
/** Cards of the metrics that have a value. */
function metricCards(m) {
  if (!m) return null;
  const words = (value, format) => typeof value === "number" ? format(value) : "";
  const seconds = (s) => time(s * 1000);
  const facts = [
    ["Compile time", words(m.entire_frame_compile_time_s, seconds), [
      words(m.backend_compile_time_s, (s) => `backend ${seconds(s)}`),
      words(m.inductor_compile_time_s, (s) => `Inductor ${seconds(s)}`),
    ]],
    ["Graph", words(m.graph_node_count, (n) => plural(n, "node")), [
      words(m.graph_op_count, (n) => plural(n, "operator")),
      words(m.graph_input_count, (n) => plural(n, "input")),
    ]],
    ["Guards", words(m.guard_count, number), [
      words(m.shape_env_guard_count, (n) => `${number(n)} of sizes`),
    ]],
    ["Cache", words(m.cache_size, (n) => plural(n, "entry", "entries")), [
      "before",
      words(m.accumulated_cache_size, (n) => `${number(n)} in all`),
    ]],
  ].filter(([, value]) => value);
  return facts.length > 0 &&
    cards(facts.map(([title, value, more]) => card(title, value, joined(more))));
}
/** Records about symbols, and the fields that describe each. */
const SYMBOL_FIELDS = {
  create_symbol: ["symbol", "val", "vr", "source"],
  create_unbacked_symbol: ["symbol", "vr"],
  symbolic_shape_specialization: ["symbol", "value", "sources", "reason"],
  guard_added: ["expr", "result", "prefix"],
  guard_added_fast: ["expr"],
};
function symbolPart(log, compile) {
  const records = compile.records.filter((record) => Object.hasOwn(SYMBOL_FIELDS, record.kind));
  if (!records.length) return null;
  const row = (record) => {
    const values = SYMBOL_FIELDS[record.kind].flatMap((field) => record.data[field] ?? []),
      [what, ...more] = values;
    return [
      recordLink(log, record, record.kind.replaceAll("_", " ")),
      visible(what),
      [more.join(", "), ...stacksOf(log, record.data)],
    ];
  };
  const box = h("div.box.pad"), heads = ["what", "=~expression", "~value, range, from"];
  inPortions(records, box, (list) => {
    $(".more-rows", box).before(table(heads, list.map(row)));
  }, "symbols and guards");
  return section("Symbolic sizes", "symbols, specializations and guards", box);
}
/** Events of the compilation; an attempt has its own, the first one also those of all. */
async function eventsOf(log, { id, base }) {
  if (!log.events) return null;
  const isOwn = ({ args }) =>
    args && (args.compile_id === id || args.compile_id === base && !/_/.test(id));
  if (!(await log.loadEvents()).some(isOwn)) return null;
  return section("Chromium events", "", await eventPart(log, isOwn));
}
