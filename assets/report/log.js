// The log of a run: compilations, their failures, guards and metrics, stacks, events, and every
// record's payload. State: graph is a compilation ("0/0", "-" for records outside of all), node the
// line of a record, open a line of its text.

import { $, button, dotted, h, link, save, visible } from "./dom.js";
import { PROVENANCE } from "./log_provenance.js";
import { boxed, card, cards, section, table, td } from "./overview.js";
import {
  brackets,
  cacheWord,
  clock,
  compileLink,
  listOf,
  loadLog,
  logLink,
  recordLink,
  statusChip,
} from "./log_data.js";
import { bytes, matcher, number, plural, time } from "./format.js";
import { currentRun, hashOf, linkTo, state, views } from "./route.js";
import { eventPart } from "./log_events.js";
import { inPortions, nothing } from "./tables.js";
import { recordPage } from "./log_record.js";
import { report } from "./store.js";

views.set("log", {
  label: "Log",
  shows: () => report.runs.some((run) => document.getElementById(`log-${run.id}`)),
  async render() {
    const run = currentRun(), log = await loadLog(run), page = h("div.page.log");
    if (!log) {
      page.append(
        h("div.hero", h("h1", "Log")),
        nothing("This run has no log and no artifacts. Choose another run above."),
      );
      return page;
    }
    const compile = log.compiles.get(state.graph),
      record = state.node === "" ? null : log.records[Number(state.node)];
    const body = h("div.log-body");
    page.append(compileList(log, compile), body);
    if (record) body.append(...await recordPage(log, record));
    else body.append(...compile ? await compilePage(log, compile) : await logPage(log));
    return page;
  },
});

/** The compilations, attempts under the first of them. */
function compileList(log, current) {
  const entry = (compile) =>
    h(
      "a.entry",
      { href: logLink(log.run, compile.id), "aria-current": compile === current && "true" },
      h("b.mono", brackets(compile.id)),
      h("span.cut", visible(compile.name)),
      compile.status &&
        h(
          "span",
          { class: `quiet small ${compile.status === "failed" ? "removed" : ""}` },
          compile.status,
        ),
    );
  return h(
    "nav.log-list.box",
    { label: "Compilations" },
    h("a.entry", {
      href: logLink(log.run),
      "aria-current": !current && state.node === "" && "true",
    }, h("b", "Whole log")),
    [...log.compiles.values()].map(entry),
  );
}

async function logPage(log) {
  const run = log.run,
    all = [...log.compiles.values()].filter((compile) => compile.id !== "-"),
    bases = new Set(all.map((compile) => compile.base)),
    failed = all.filter((compile) => compile.status === "failed"),
    restarts = all.reduce((sum, compile) => sum + compile.restarts.length, 0);
  const seconds = all.reduce(
      (sum, compile) => sum + (compile.metrics && compile.metrics.entire_frame_compile_time_s || 0),
      0,
    ),
    out = [];
  out.push(
    h(
      "div.hero",
      h("h1", all.length ? "Log" : "Artifacts"),
      h(
        "span.quiet.small",
        dotted(
          `${
            plural(
              log.records.reduce((sum, record) => sum + record.count, 0) + log.events,
              "record",
            )
          } of ${run.source}, rank ${run.rank}`,
        ),
      ),
      h("span.spacer"),
      button(() =>
        save(
          new Blob(
            log.records.map((record) =>
              `${
                JSON.stringify({
                  line: record.line,
                  compile: record.compile,
                  kind: record.kind,
                  name: record.name,
                  bytes: record.bytes,
                  data: record.data,
                })
              }\n`
            ),
            { type: "application/json" },
          ),
          "records.jsonl",
        ), "Save as JSON lines"),
    ),
  );
  if (all.length) {
    out.push(
      cards(
        [
          card("Compilations", number(bases.size), plural(all.length, "attempt")),
          card(
            "Failures",
            number(failed.length),
            failed.map((compile) => brackets(compile.id)).join(" ") || "none",
          ),
          card("Restarts", number(restarts), restarts ? "analysis began anew" : "none"),
          seconds > 0 && card("Compile time", time(seconds * 1000), "of all frames"),
        ].filter(Boolean),
      ),
    );
  }
  const troubles = all.flatMap((
    compile,
  ) => [
    ...compile.restarts.map((reason) => [compile, "restart", reason, ""]),
    ...compile.metrics && compile.metrics.fail_type
      ? [[
        compile,
        compile.metrics.fail_type,
        compile.metrics.fail_reason || "–",
        compile.metrics.fail_user_frame_filename
          ? `${compile.metrics.fail_user_frame_filename}:${compile.metrics.fail_user_frame_lineno}`
          : "",
      ]]
      : [],
  ]);
  // What an export of a program asks to be looked at.
  for (const compile of log.compiles.values()) {
    for (const { kind, data } of compile.records) {
      if (/_fake_kernel$|^propagate_real_tensors_prov/.test(kind)) {
        troubles.push([
          compile,
          kind.replaceAll("_", " "),
          `${data.op || data.expr || ""} ${data.reason || ""}`,
          "",
        ]);
      }
    }
  }
  if (troubles.length) {
    out.push(
      boxed(
        "Failures and restarts",
        "",
        table(
          ["compilation", "what", "reason, user code"],
          troubles.slice(0, 1000).map((
            [compile, what, reason, where],
          ) => [compileLink(log, compile), visible(what), [
            h("pre", visible(reason)),
            h("div.small", visible(where)),
          ]]),
        ),
      ),
    );
  }
  const known = all.filter((compile) => compile.stack),
    unknown = all.filter((compile) => !compile.stack);
  if (known.length) {
    out.push(
      boxed(
        "Where compilation began",
        "stacks of all compilations, common frames once",
        stackTrie(log, known),
      ),
    );
  }
  if (unknown.length) {
    out.push(
      section(
        "Compilations without a stack",
        "",
        h("p.mono", unknown.map((compile) => [compileLink(log, compile), " "])),
      ),
    );
  }
  out.push(...report.log_tables.map(madeTable));
  if (log.events) {
    out.push(
      section(
        "Chromium events",
        `${plural(log.events, "event")}, times of the compiler`,
        await eventPart(log, () => true),
      ),
    );
  }
  const outside = log.compiles.get("-");
  if (outside) {
    out.push(
      section(
        all.length ? "Records outside of compilations" : "Records",
        "",
        recordTable(log, outside.records),
      ),
    );
  }
  return out;
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
/** Nodes of a graph, else bytes, else a dash. */
function sizeOf(record) {
  if (record.nodes) return plural(record.nodes, "node");
  return record.bytes >= 0 ? bytes(record.bytes) : "–";
}

async function compilePage(log, compile) {
  const m = compile.metrics, out = [], attempts = log.attemptsOf(compile);
  out.push(
    h(
      "div.hero",
      h("h1", `${brackets(compile.id)} ${visible(compile.name)}`),
      statusChip(compile.status),
      h(
        "span.quiet.small",
        m && m.co_filename
          ? `${m.co_filename}:${m.co_firstlineno}`
          : plural(compile.records.length, "record"),
      ),
      attempts.length > 1 &&
        h("span.small", "Attempts ", attempts.map((other) => [compileLink(log, other), " "])),
    ),
  );
  if (m && m.fail_type) {
    out.push(
      h(
        "div.failure",
        { role: "alert" },
        h("b", visible(m.fail_type)),
        h("pre", visible(m.fail_reason || "")),
        m.fail_user_frame_filename && `${m.fail_user_frame_filename}:${m.fail_user_frame_lineno}`,
      ),
    );
  }
  for (const reason of compile.restarts) {
    out.push(h("div.failure", h("b", "Analysis restarted"), h("pre", visible(reason))));
  }
  // What the metrics do not tell is left out.
  const tell = (value, words) => typeof value === "number" ? [words(value)] : [],
    facts = m
      ? [["Compile time", tell(m.entire_frame_compile_time_s, (s) => time(s * 1000)), [
        ...tell(m.backend_compile_time_s, (s) => `backend ${time(s * 1000)}`),
        ...tell(m.inductor_compile_time_s, (s) => `Inductor ${time(s * 1000)}`),
      ]], ["Graph", tell(m.graph_node_count, (n) => plural(n, "node")), [
        ...tell(m.graph_op_count, (n) => plural(n, "operator")),
        ...tell(m.graph_input_count, (n) => plural(n, "input")),
      ]], [
        "Guards",
        tell(m.guard_count, number),
        tell(m.shape_env_guard_count, (n) => `${number(n)} of sizes`),
      ], ["Cache", tell(m.cache_size, (n) => plural(n, "entry", "entries")), [
        "before",
        ...tell(m.accumulated_cache_size, (n) => `${number(n)} in all`),
      ]]].filter(([, value]) => value.length)
      : [];
  if (facts.length) {
    out.push(cards(facts.map(([title, [value], more]) => card(title, value, more.join(", ")))));
  }
  out.push(section("Records", "in the order of the log", recordTable(log, compile.records)));
  if (compile.stack) {
    out.push(boxed("Stack", "where compilation began", stackList(log, compile.stack)));
  }
  const tells = {
      create_symbol: "symbol val vr source",
      create_unbacked_symbol: "symbol vr",
      symbolic_shape_specialization: "symbol value sources reason",
      guard_added: "expr result prefix",
      guard_added_fast: "expr",
    },
    symbols = compile.records.filter((record) => Object.hasOwn(tells, record.kind));
  if (symbols.length) {
    const box = h("div.box.pad");
    out.push(section("Symbolic sizes", "symbols, specializations and guards", box));
    inPortions(
      symbols,
      box,
      (list) =>
        $(".more-rows", box).before(
          table(
            ["what", "=~expression", "~value, range, from"],
            list.map((record) => {
              const [what, ...more] = tells[record.kind].split(" ").flatMap((key) =>
                record.data[key] ?? []
              );
              return [recordLink(log, record, record.kind.replaceAll("_", " ")), visible(what), [
                more.join(", "),
                ...stacksOf(log, record.data),
              ]];
            }),
          ),
        ),
      "symbols and guards",
    );
  }
  for (const record of compile.records) {
    if (/compilation_metrics/.test(record.kind)) {
      out.push(
        boxed(
          record.kind.replaceAll("_", " "),
          "fields that have a value",
          valueTable(record.data),
        ),
      );
    }
  }
  if (log.events) {
    const id = compile.id,
      mine = (event) =>
        event.args &&
        (event.args.compile_id === id || event.args.compile_id === compile.base && !/_/.test(id));
    if ((await log.loadEvents()).some(mine)) {
      out.push(section("Chromium events", "", await eventPart(log, mine)));
    }
  }
  for (const [id, made] of log.tables) if (id === compile.id) out.push(madeTable(made));
  return out;
}

/** A table as it was made (log_tables.h): cells are texts, or lists of links into logs. */
const madeTable = ([title, words, heads, rows]) =>
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

function recordTable(log, records) {
  const fits = matcher(state.filter),
    list = records.filter((record) => fits(`${record.name} ${record.kind}`));
  if (!list.length) {
    return nothing(state.filter ? `Nothing matches “${state.filter}”.` : "No records.");
  }
  const timed = list.some((record) => clock(record.prefix));
  return h(
    "div.box.pad",
    table(
      [...(timed ? ["?=time", "?#line"] : []), "record", "?kind", "#size", ""],
      list.slice(0, 2000).map((record) => [
        ...(timed
          ? [
            td(clock(record.prefix), "quiet"),
            td(record.line ? number(record.line) : "–", "quiet"),
          ]
          : []),
        [recordLink(log, record), record.count > 1 && ` ×${number(record.count)}`],
        td(record.kind, "quiet"),
        sizeOf(record),
        record.bytes > 0 && PROVENANCE.test(record.name)
          ? recordLink(log, record, "side by side")
          : record.ref
          ? link(linkTo(record), "graph")
          : record.kind === "link" && /^https?:\/\//.test(record.data.url)
          ? h("a", { href: record.data.url, rel: "noreferrer noopener", target: "_blank" }, "open")
          : cacheWord(record)
          ? h("span.chip.same", `cache ${cacheWord(record)}`)
          : record.bytes >= 0 && record.part < 0 && h("span.quiet", "left out"),
      ]),
    ),
    list.length > 2000 && h("p.quiet", `${number(list.length - 2000)} more; search to find them`),
  );
}
