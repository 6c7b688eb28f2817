// The log of a run: compilations, records and their payloads, as the report packs them.

import { h, link } from "./dom.js";
import { matcher } from "./format.js";
import { max } from "./math.js";
import { hashOf } from "./route.js";
import { inflate, report } from "./store.js";

/** Names of records that map generated kernels to nodes. */
export const PROVENANCE = /^inductor_provenance_tracking_node_mappings/;
const RECORD = "line compile kind name prefix meta bytes part slot ref nodes count".split(" ");
/**
 * JSON as Python writes it, with NaN and Infinity; null for an invalid text, and for one nested
 * over 200 levels.
 */
export function readJson(text) {
  let depth = 0, most = 0;
  for (const c of text || "") {
    if (c === "[" || c === "{") most = max(most, ++depth);
    else if (c === "]" || c === "}") depth--;
  }
  const parse = (t) => {
    try {
      return JSON.parse(t);
    } catch {
      return null;
    }
  };
  return !text || most > 200
    ? null
    : parse(text) ?? parse(text.replace(/"(?:\\.|[^"\\])*"|-?\b(?:NaN|Infinity)\b/g, (t) =>
      t[0] === '"' ? t : `"${t}"`));
}
export const listOf = (value) => Array.isArray(value) ? value : [];
const logs = new Map();
/** The log of a run; null for a run without one. */
export function loadLog(run) {
  if (!logs.has(run.id)) {
    logs.set(
      run.id,
      inflate(`log-${run.id}`).then((data) => data && new Log(run, data)),
    );
  }
  return logs.get(run.id);
}

class LogRecord {
  constructor(row, place) {
    row.forEach((value, i) => {
      this[RECORD[i]] = value;
    });
    this.place = place;
  }
  /** The fields of the record beside its payload, parsed when they are first read. */
  get data() {
    return this.read ||= readJson(this.meta) || {};
  }
}
class Log {
  constructor(run, data) {
    this.run = run;
    this.events = data.events;
    this.tables = data.tables;
    this.strings = new Map(Object.entries(readJson(data.strings) || {}));
    this.records = data.records.map((row, place) => new LogRecord(row, place));
    this.sources = new Map(
      this.records.filter((record) => record.kind === "dump_file").map((
        record,
      ) => [record.name, record]),
    );
    this.compiles = new Map();
    for (const record of this.records) {
      const id = record.compile || "-";
      if (!this.compiles.has(id)) {
        this.compiles.set(id, { id, base: id.replace(/_\d+$/, ""), records: [] });
      }
      this.compiles.get(id).records.push(record);
    }
    for (const [id, status] of data.status) this.judge(this.compiles.get(id), status);
  }
  of(compile, kind) {
    return compile.records.filter((record) => record.kind === kind);
  }
  attemptsOf(compile) {
    return [...this.compiles.values()].filter((other) => other.base === compile.base);
  }
  judge(compile, status) {
    const metrics = this.of(compile, "compilation_metrics").map((record) => record.data),
      start = this.of(compile, "dynamo_start")[0];
    compile.metrics = metrics[metrics.length - 1];
    compile.stack = start && Array.isArray(start.data.stack)
      ? start.data.stack.filter((f) => f && typeof f === "object").slice(-200)
      : null;
    compile.restarts = metrics.flatMap((m) => listOf(m.restart_reasons));
    compile.status = status;
    compile.name = compile.metrics && compile.metrics.co_name ||
      compile.stack && compile.stack.length && compile.stack[compile.stack.length - 1].name || "";
  }
  /** "model.py:7 in forward" with its line of code. */
  frame(packed) {
    const frame = packed || {},
      file = frame.uninterned_filename || this.strings.get(String(frame.filename)) || "(unknown)";
    return {
      file: String(file).replace(/^.*#link-tree\//, ""),
      line: frame.line,
      name: frame.name,
      code: frame.loc || "",
    };
  }
  async json(record) {
    return record && readJson(await this.payload(record)) || {};
  }
  async payload(record) {
    if (record.part < 0) return null;
    const id = `log-${this.run.id}-${record.part}`;
    this.parts ||= new Map();
    if (!this.parts.has(id)) this.parts.set(id, inflate(id));
    return (await this.parts.get(id))[record.slot];
  }
  async loadEvents() {
    return this.eventList ||= (await inflate(`log-${this.run.id}-events`) || []).map(readJson)
      .filter((event) => event && typeof event === "object");
  }
}

/** Matching records of the logs that were read; the other logs are read for the next search. */
const readLogs = [];
export function searchRecords(text) {
  for (const run of report.runs) {
    loadLog(run).then((log) => {
      if (log && !readLogs.includes(log)) readLogs.push(log);
    });
  }
  const fits = matcher(text);
  return text
    ? readLogs.flatMap((log) =>
      log.records.filter((record) => fits(record.name)).map((
        record,
      ) => [record, logLink(log.run, record.compile || "-", record)])
    )
    : [];
}

export const logLink = (run, compile, record) =>
  hashOf({
    view: "log",
    run: String(run.id),
    graph: compile || "",
    node: record ? String(record.place) : "",
  });
export const recordLink = (log, record, words = record.name) =>
  link(logLink(log.run, record.compile || "-", record), words);
export const compileLink = (log, { id }) =>
  h("a.mono", { href: logLink(log.run, id) }, brackets(id));
export const brackets = (id) => id === "-" ? "Outside" : `[${id}]`;
export const statusChip = (status) =>
  status &&
  h(
    "span",
    { class: `chip ${{ failed: "removed", restarted: "changed" }[status] || "same"}` },
    status,
  );
/** "hit", "miss" or "bypass" from the name of a cache record. */
export const cacheWord = (record) => {
  const match = /cache_(hit|miss|bypass)/.exec(record.name);
  return match ? match[1] : "";
};
export const clock = (prefix) => {
  const match = /^.(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{3})/.exec(prefix);
  return match ? match[3] : "";
};
