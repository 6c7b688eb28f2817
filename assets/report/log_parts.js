// Parts of the pages of a log: frames of stacks, tables of values and of records.

import { h, link, visible } from "./dom.js";
import { boxed, nothing, table, td } from "./elements.js";
import { bytes, matcher, number, plural } from "./format.js";
import { cacheWord, clock, listOf, PROVENANCE, recordLink } from "./log_data.js";
import { hashOf, linkTo, state } from "./route.js";

/** A frame; source that the log itself holds is linked. */
export function frameLine(log, frame) {
  const where = visible(`${frame.file}:${frame.line}`), dump = log.sources.get(frame.file);
  return h(
    "span.frame",
    dump
      ? h("a.mono", {
        href: hashOf({
          view: "log",
          run: String(log.run.id),
          graph: dump.compile || "-",
          node: String(dump.place),
          open: String(frame.line),
        }),
      }, where)
      : h("span.mono", where),
    " in ",
    h("b", visible(frame.name)),
    frame.code && h("code", visible(frame.code)),
  );
}
export const stacksOf = (
  log,
  { user_stack: user, stack },
) => [foldedStack(log, "user stack", user), foldedStack(log, "framework stack", stack)];
export const stackList = (log, stack) =>
  h("div.trie", listOf(stack).map((f) => h("div", frameLine(log, log.frame(f)))));
function foldedStack(log, words, stack) {
  if (!listOf(stack).length) return null;
  const box = h("details", {
    toggle: () => {
      if (!box.children[1]) box.append(stackList(log, stack));
    },
  }, h("summary", `${words}, ${plural(stack.length, "frame")}`));
  return box;
}
/** A table of log_tables.h: cells are texts, or lists of links into logs. */
export const linkTable = ([title, words, heads, rows]) =>
  boxed(
    title,
    words,
    table(
      heads,
      rows.map((row) =>
        row.map((cell) =>
          Array.isArray(cell)
            ? cell.map((
              [text, run, graph, place],
              i,
            ) => [
              i ? " | " : "",
              link(hashOf({ view: "log", run, graph, node: place < 0 ? "" : place }), text),
            ])
            : cell
        )
      ),
    ),
  );
export const valueTable = (data) =>
  table(
    ["=~field", "=~value"],
    Object.entries(data).filter(([, value]) =>
      value !== null && value !== "" && !(Array.isArray(value) && !value.length)
    ).map((
      [key, value],
    ) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)]),
  );

/** Nodes of a graph, else bytes, else a dash. */
function sizeOf(record) {
  if (record.nodes) return plural(record.nodes, "node");
  return record.bytes >= 0 ? bytes(record.bytes) : "–";
}

/** The user's line that failed. */
export const failedLine = (m) =>
  m.fail_user_frame_filename ? `${m.fail_user_frame_filename}:${m.fail_user_frame_lineno}` : "";

export function recordTable(log, records) {
  const fits = matcher(state.filter),
    list = records.filter((record) => fits(`${record.name} ${record.kind}`));
  if (!list.length) {
    return nothing(state.filter ? `Nothing matches “${state.filter}”.` : "No records.");
  }
  const timed = list.some((record) => clock(record.prefix)),
    timeCells = (record) => [
      td(clock(record.prefix), "quiet"),
      td(record.line ? number(record.line) : "–", "quiet"),
    ];
  const rows = list.slice(0, 2000).map((record) => [
    ...timed ? timeCells(record) : [],
    [recordLink(log, record), record.count > 1 && ` ×${number(record.count)}`],
    td(record.kind, "quiet"),
    sizeOf(record),
    moreOf(log, record),
  ]);
  return h(
    "div.box.pad",
    table([...timed ? ["?=time", "?#line"] : [], "record", "?kind", "#size", ""], rows),
    list.length > 2000 && h("p.quiet", `${number(list.length - 2000)} more; search to find them`),
  );
}
/** The last column: a link to another form of the record, or a word about it. */
function moreOf(log, record) {
  if (record.bytes > 0 && PROVENANCE.test(record.name)) {
    return recordLink(log, record, "side by side");
  }
  if (record.ref) return link(linkTo(record), "graph");
  const { url } = record.data;
  if (record.kind === "link" && /^https?:\/\//.test(url)) {
    return h("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, "open");
  }
  const cache = cacheWord(record);
  if (cache) return h("span.chip.same", `cache ${cache}`);
  return record.bytes >= 0 && record.part < 0 && h("span.quiet", "left out");
}
