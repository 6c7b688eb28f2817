// The log of a run: compilations, their failures, guards and metrics, stacks, events, and every record's payload.
// State: graph is a compilation ("0/0", "-" for records outside of all), node the line of a record, open a line of its text.

// --- Data ---

const RECORD = ["line", "compile", "kind", "name", "prefix", "meta", "bytes", "part", "slot", "ref", "nodes", "count"];
/** JSON of Python, which knows numbers that JSON does not; null for what is none, and for what is nested to do harm. */
function readJson(text) {
  let depth = 0, most = 0;
  for (const c of text || "") { if (c === "[" || c === "{") most = Math.max(most, ++depth); else if (c === "]" || c === "}") depth--; }
  const parse = (t) => { try { return JSON.parse(t); } catch { return null; } };
  return !text || most > 200 ? null : parse(text) ?? parse(text.replace(/"(?:\\.|[^"\\])*"|-?\b(?:NaN|Infinity)\b/g, (t) => t[0] === '"' ? t : `"${t}"`));
}
const listOf = (value) => Array.isArray(value) ? value : [];
const logs = new Map();
/** What is known of a run's log; null when it has none. */
function loadLog(run) {
  if (!logs.has(run.id)) logs.set(run.id, inflate(`log-${run.id}`).then((data) => data && new Log(run, data)));
  return logs.get(run.id);
}

class LogRecord {
  constructor(row, place) { row.forEach((value, i) => { this[RECORD[i]] = value; }); this.place = place; }
  /** What the record says beside its payload; of ten thousands few are looked at. */
  get data() { return this.read ||= readJson(this.meta) || {}; }
}
class Log {
  constructor(run, data) {
    this.run = run;
    this.events = data.events;
    this.tables = data.tables;
    this.strings = new Map(Object.entries(readJson(data.strings) || {}));
    this.records = data.records.map((row, place) => new LogRecord(row, place));
    this.sources = new Map(this.records.filter((record) => record.kind === "dump_file").map((record) => [record.name, record]));
    this.compiles = new Map();
    for (const record of this.records) {
      const id = record.compile || "-";
      if (!this.compiles.has(id)) this.compiles.set(id, {id, base: id.replace(/_\d+$/, ""), records: []});
      this.compiles.get(id).records.push(record);
    }
    for (const [id, status] of data.status) this.judge(this.compiles.get(id), status);
  }
  of(compile, kind) { return compile.records.filter((record) => record.kind === kind); }
  attemptsOf(compile) { return [...this.compiles.values()].filter((other) => other.base === compile.base); }
  judge(compile, status) {
    const metrics = this.of(compile, "compilation_metrics").map((record) => record.data), start = this.of(compile, "dynamo_start")[0];
    compile.metrics = metrics[metrics.length - 1];
    compile.stack = start && Array.isArray(start.data.stack) ? start.data.stack.filter((f) => f && typeof f === "object").slice(-200) : null;
    compile.restarts = metrics.flatMap((m) => listOf(m.restart_reasons));
    compile.status = status;
    compile.name = compile.metrics && compile.metrics.co_name || compile.stack && compile.stack.length && compile.stack[compile.stack.length - 1].name || "";
  }
  /** "model.py:7 in forward" with its line of code. */
  frame(told) {
    const frame = told || {}, file = frame.uninterned_filename || this.strings.get(String(frame.filename)) || "(unknown)";
    return {file: String(file).replace(/^.*#link-tree\//, ""), line: frame.line, name: frame.name, code: frame.loc || ""};
  }
  async json(record) { return record && readJson(await this.payload(record)) || {}; }
  async payload(record) {
    if (record.part < 0) return null;
    const id = `log-${this.run.id}-${record.part}`;
    this.parts ||= new Map();
    if (!this.parts.has(id)) this.parts.set(id, inflate(id));
    return (await this.parts.get(id))[record.slot];
  }
  async loadEvents() { return this.eventList ||= (await inflate(`log-${this.run.id}-events`) || []).map(readJson).filter((event) => event && typeof event === "object"); }
}

/** Records that match, of the logs that were looked at; the others are read for the next search. */
const readLogs = [];
function searchRecords(text) {
  for (const run of report.runs) loadLog(run).then((log) => { if (log && !readLogs.includes(log)) readLogs.push(log); });
  const fits = matcher(text);
  return text ? readLogs.flatMap((log) => log.records.filter((record) => fits(record.name)).map((record) => [record, logLink(log.run, record.compile || "-", record)])) : [];
}

const logLink = (run, compile, record) => hashOf({view: "log", run: String(run.id), graph: compile || "", node: record ? String(record.place) : ""});
const recordLink = (log, record, words = record.name) => link(logLink(log.run, record.compile || "-", record), words);
const compileLink = (log, {id}) => h("a.mono", {href: logLink(log.run, id)}, brackets(id));
const brackets = (id) => id === "-" ? "Outside" : `[${id}]`;
const statusChip = (status) => status && h("span", {class: `chip ${{failed: "removed", restarted: "changed"}[status] || "same"}`}, status);
/** Caches tell how they did by the names of their records. */
const cacheWord = (record) => { const match = /cache_(hit|miss|bypass)/.exec(record.name); return match ? match[1] : ""; };
const clock = (prefix) => { const match = /^.(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{3})/.exec(prefix); return match ? match[3] : ""; };

// --- Pages ---

views.set("log", {label: "Log", shows: () => report.runs.some((run) => document.getElementById(`log-${run.id}`)), async render() {
  const run = currentRun(), log = await loadLog(run), page = h("div.page.log");
  if (!log) { page.append(h("div.hero", h("h1", "Log")), nothing("This run has no log and no artifacts. Choose another run above.")); return page; }
  const compile = log.compiles.get(state.graph), record = state.node === "" ? null : log.records[Number(state.node)];
  const body = h("div.log-body");
  page.append(compileList(log, compile), body);
  if (record) body.append(...await recordPage(log, record));
  else body.append(...compile ? await compilePage(log, compile) : await logPage(log));
  return page;
}});

/** The compilations, attempts under the first of them. */
function compileList(log, current) {
  const entry = (compile) => h("a.entry", {href: logLink(log.run, compile.id), "aria-current": compile === current && "true"}, h("b.mono", brackets(compile.id)), h("span.cut", visible(compile.name)), compile.status && h("span", {class: `quiet small ${compile.status === "failed" ? "removed" : ""}`}, compile.status));
  return h("nav.log-list.box", {label: "Compilations"}, h("a.entry", {href: logLink(log.run), "aria-current": !current && state.node === "" && "true"}, h("b", "Whole log")), [...log.compiles.values()].map(entry));
}

async function logPage(log) {
  const run = log.run, all = [...log.compiles.values()].filter((compile) => compile.id !== "-"), bases = new Set(all.map((compile) => compile.base)), failed = all.filter((compile) => compile.status === "failed"), restarts = all.reduce((sum, compile) => sum + compile.restarts.length, 0);
  const seconds = all.reduce((sum, compile) => sum + (compile.metrics && compile.metrics.entire_frame_compile_time_s || 0), 0), out = [];
  out.push(h("div.hero", h("h1", all.length ? "Log" : "Artifacts"), h("span.quiet.small", dotted(`${plural(log.records.reduce((sum, record) => sum + record.count, 0) + log.events, "record")} of ${run.source}, rank ${run.rank}`)), h("span.spacer"), button(() => save(new Blob(log.records.map((record) => `${JSON.stringify({line: record.line, compile: record.compile, kind: record.kind, name: record.name, bytes: record.bytes, data: record.data})}\n`), {type: "application/json"}), "records.jsonl"), "Save as JSON lines")));
  if (all.length) out.push(cards([card("Compilations", number(bases.size), plural(all.length, "attempt")), card("Failures", number(failed.length), failed.map((compile) => brackets(compile.id)).join(" ") || "none"), card("Restarts", number(restarts), restarts ? "analysis began anew" : "none"), seconds > 0 && card("Compile time", time(seconds * 1000), "of all frames")].filter(Boolean)));
  const troubles = all.flatMap((compile) => [...compile.restarts.map((reason) => [compile, "restart", reason, ""]), ...compile.metrics && compile.metrics.fail_type ? [[compile, compile.metrics.fail_type, compile.metrics.fail_reason || "–", compile.metrics.fail_user_frame_filename ? `${compile.metrics.fail_user_frame_filename}:${compile.metrics.fail_user_frame_lineno}` : ""]] : []]);
  // What an export of a program asks to be looked at.
  for (const compile of log.compiles.values()) for (const {kind, data} of compile.records) if (/_fake_kernel$|^propagate_real_tensors_prov/.test(kind)) troubles.push([compile, kind.replaceAll("_", " "), `${data.op || data.expr || ""} ${data.reason || ""}`, ""]);
  if (troubles.length) out.push(boxed("Failures and restarts", "", table(["compilation", "what", "reason, user code"], troubles.slice(0, 1000).map(([compile, what, reason, where]) => [compileLink(log, compile), visible(what), [h("pre", visible(reason)), h("div.small", visible(where))]]))));
  const known = all.filter((compile) => compile.stack), unknown = all.filter((compile) => !compile.stack);
  if (known.length) out.push(boxed("Where compilation began", "stacks of all compilations, common frames once", stackTrie(log, known)));
  if (unknown.length) out.push(section("Compilations without a stack", "", h("p.mono", unknown.map((compile) => [compileLink(log, compile), " "]))));
  out.push(...report.log_tables.map(madeTable));
  if (log.events) out.push(section("Chromium events", `${plural(log.events, "event")}, times of the compiler`, await eventPart(log, () => true)));
  const outside = log.compiles.get("-");
  if (outside) out.push(section(all.length ? "Records outside of compilations" : "Records", "", recordTable(log, outside.records)));
  return out;
}

/** Stacks as a tree: frames that several compilations share stand once. */
function stackTrie(log, compiles) {
  const root = {children: new Map(), ends: []};
  for (const compile of compiles) {
    let at = root;
    for (const frame of compile.stack.map((f) => log.frame(f))) {
      const key = `${frame.file}:${frame.line}:${frame.name}`;
      if (!at.children.has(key)) at.children.set(key, {frame, children: new Map(), ends: []});
      at = at.children.get(key);
    }
    at.ends.push(compile);
  }
  const list = (at) => h("ul", [...at.children.values()].map((child) => h("li", frameLine(log, child.frame), child.ends.map((compile) => h("span.end", compileLink(log, compile), " ", statusChip(compile.status))), child.children.size > 0 && list(child))));
  return h("div.trie", list(root));
}
/** A frame; source that the log itself holds is linked. */
function frameLine(log, frame) {
  const where = visible(`${frame.file}:${frame.line}`), dump = log.sources.get(frame.file);
  return h("span.frame", dump ? h("a.mono", {href: hashOf({view: "log", run: String(log.run.id), graph: dump.compile || "-", node: String(dump.place), open: String(frame.line)})}, where) : h("span.mono", where), " in ", h("b", visible(frame.name)), frame.code && h("code", visible(frame.code)));
}
const stacksOf = (log, {user_stack: user, stack}) => [foldedStack(log, "user stack", user), foldedStack(log, "framework stack", stack)];
const stackList = (log, stack) => h("div.trie", listOf(stack).map((f) => h("div", frameLine(log, log.frame(f)))));
function foldedStack(log, words, stack) {
  if (!listOf(stack).length) return null;
  const box = h("details", {toggle: () => { if (!box.children[1]) box.append(stackList(log, stack)); }}, h("summary", `${words}, ${plural(stack.length, "frame")}`));
  return box;
}

async function compilePage(log, compile) {
  const m = compile.metrics, out = [], attempts = log.attemptsOf(compile);
  out.push(h("div.hero", h("h1", `${brackets(compile.id)} ${visible(compile.name)}`), statusChip(compile.status), h("span.quiet.small", m && m.co_filename ? `${m.co_filename}:${m.co_firstlineno}` : plural(compile.records.length, "record")),
    attempts.length > 1 && h("span.small", "Attempts ", attempts.map((other) => [compileLink(log, other), " "]))));
  if (m && m.fail_type) out.push(h("div.failure", {role: "alert"}, h("b", visible(m.fail_type)), h("pre", visible(m.fail_reason || "")), m.fail_user_frame_filename && `${m.fail_user_frame_filename}:${m.fail_user_frame_lineno}`));
  for (const reason of compile.restarts) out.push(h("div.failure", h("b", "Analysis restarted"), h("pre", visible(reason))));
  // What the metrics do not tell is left out.
  const tell = (value, words) => typeof value === "number" ? [words(value)] : [], facts = m ? [["Compile time", tell(m.entire_frame_compile_time_s, (s) => time(s * 1000)), [...tell(m.backend_compile_time_s, (s) => `backend ${time(s * 1000)}`), ...tell(m.inductor_compile_time_s, (s) => `Inductor ${time(s * 1000)}`)]],
    ["Graph", tell(m.graph_node_count, (n) => plural(n, "node")), [...tell(m.graph_op_count, (n) => plural(n, "operator")), ...tell(m.graph_input_count, (n) => plural(n, "input"))]],
    ["Guards", tell(m.guard_count, number), tell(m.shape_env_guard_count, (n) => `${number(n)} of sizes`)], ["Cache", tell(m.cache_size, (n) => plural(n, "entry", "entries")), ["before", ...tell(m.accumulated_cache_size, (n) => `${number(n)} in all`)]]].filter(([, value]) => value.length) : [];
  if (facts.length) out.push(cards(facts.map(([title, [value], more]) => card(title, value, more.join(", ")))));
  out.push(section("Records", "in the order of the log", recordTable(log, compile.records)));
  if (compile.stack) out.push(boxed("Stack", "where compilation began", stackList(log, compile.stack)));
  const tells = {create_symbol: "symbol val vr source", create_unbacked_symbol: "symbol vr", symbolic_shape_specialization: "symbol value sources reason", guard_added: "expr result prefix", guard_added_fast: "expr"}, symbols = compile.records.filter((record) => Object.hasOwn(tells, record.kind));
  if (symbols.length) {
    const box = h("div.box.pad");
    out.push(section("Symbolic sizes", "symbols, specializations and guards", box));
    inPortions(symbols, box, (list) => $(".more-rows", box).before(table(["what", "=~expression", "~value, range, from"], list.map((record) => {
      const [what, ...more] = tells[record.kind].split(" ").flatMap((key) => record.data[key] ?? []);
      return [recordLink(log, record, record.kind.replaceAll("_", " ")), visible(what), [more.join(", "), ...stacksOf(log, record.data)]];
    }))), "symbols and guards");
  }
  for (const record of compile.records) if (/compilation_metrics/.test(record.kind)) out.push(boxed(record.kind.replaceAll("_", " "), "fields that have a value", valueTable(record.data)));
  if (log.events) {
    const id = compile.id, mine = (event) => event.args && (event.args.compile_id === id || event.args.compile_id === compile.base && !/_/.test(id));
    if ((await log.loadEvents()).some(mine)) out.push(section("Chromium events", "", await eventPart(log, mine)));
  }
  for (const [id, made] of log.tables) if (id === compile.id) out.push(madeTable(made));
  return out;
}

/** A table as it was made (log_tables.h): cells are texts, or lists of links into logs. */
const madeTable = ([title, words, heads, rows]) => boxed(title, words, table(heads, rows.map((row) => row.map((cell) => Array.isArray(cell) ? cell.map(([text, run, graph, place], i) => [i ? " | " : "", link(hashOf({view: "log", run, graph, node: place < 0 ? "" : place}), text)]) : cell))));
const valueTable = (data) => table(["=~field", "=~value"], Object.entries(data).filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length)).map(([key, value]) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)]));

function recordTable(log, records) {
  const fits = matcher(state.filter), list = records.filter((record) => fits(`${record.name} ${record.kind}`));
  if (!list.length) return nothing(state.filter ? `Nothing matches “${state.filter}”.` : "No records.");
  const timed = list.some((record) => clock(record.prefix));
  return h("div.box.pad", table([...(timed ? ["?=time", "?#line"] : []), "record", "?kind", "#size", ""], list.slice(0, 2000).map((record) => [
    ...(timed ? [td(clock(record.prefix), "quiet"), td(record.line ? number(record.line) : "–", "quiet")] : []),
    [recordLink(log, record), record.count > 1 && ` ×${number(record.count)}`], td(record.kind, "quiet"),
    record.nodes ? plural(record.nodes, "node") : record.bytes >= 0 ? bytes(record.bytes) : "–",
    record.bytes > 0 && PROVENANCE.test(record.name) ? recordLink(log, record, "side by side") : record.ref ? link(linkTo(record), "graph") : record.kind === "link" && /^https?:\/\//.test(record.data.url) ? h("a", {href: record.data.url, rel: "noreferrer noopener", target: "_blank"}, "open") : cacheWord(record) ? h("span.chip.same", `cache ${cacheWord(record)}`) : record.bytes >= 0 && record.part < 0 && h("span.quiet", "left out")])),
  list.length > 2000 && h("p.quiet", `${number(list.length - 2000)} more; search to find them`));
}

// --- One record ---

async function recordPage(log, record) {
  const compile = log.compiles.get(record.compile || "-"), at = compile.records.indexOf(record), step = (other, words) => other && h("a.button", {href: logLink(log.run, record.compile || "-", other)}, words);
  const out = [h("div.hero", h("h1", record.name), compileLink(log, compile), h("span.quiet.small.mono.wrap", dotted(record.prefix)), h("span.spacer"), step(compile.records[at - 1], "Record before"), step(compile.records[at + 1], "Next record"))];
  const {stack, user_stack: user, ...rest} = record.data;
  if (Object.keys(rest).length) out.push(h("div.box.pad", valueTable(rest)));
  for (const [words, frames] of [["Stack", stack], ["User stack", user]]) if (listOf(frames).length) out.push(boxed(words, "", stackList(log, frames)));
  out.push(...expressionPart(log, record));
  if (record.ref) out.push(h("p", link(linkTo(record), `The graph, ${plural(record.nodes, "node")}`), " · ", link(linkTo(record, {tab: "text", spelling: "fx"}), "as text")));
  const text = await log.payload(record);
  if (text === null) {
    if (record.bytes >= 0 && !record.ref) out.push(nothing(`${bytes(record.bytes)} were left out of this report. The trace has them: strata export T --torch-trace DIR`));
    return out;
  }
  const file = `${record.name.replace(/[^\w.-]+/g, "_").slice(0, 80) || "record"}.txt`;
  out.push(h("div.section", h("h2", "Payload"), h("span.quiet.small", bytes(record.bytes)), h("span.spacer"), button(() => copyText(text, "Payload"), "Copy"), button(() => save(new Blob([text], {type: "text/plain"}), file), "Save")));
  if (PROVENANCE.test(record.name)) out.push(...await provenancePart(log, compile, record, readJson(text)));
  const guards = record.kind === "dynamo_guards" ? readJson(text) : null;
  if (Array.isArray(guards)) out.push(h("div.box.pad", table(["=~guard", "from"], guards.map((guard) => [visible(guard && guard.code), stacksOf(log, guard || {})]))));
  else out.push(codeView(...shapeOf(record, text)));
  return out;
}

/** [text to show, its language]: JSON is set out, the rest is as it is. */
function shapeOf(record, text) {
  const json = /^\s*[[{]/.test(text) && text.length < 4e6 ? readJson(text) : null;
  if (json) return [JSON.stringify(json, null, 2).replace(/\\n/g, "\n"), "json"];
  const python = /^(\s*(#.*)?\n)*\s*(import |from \w+ import|class |def |@)/.test(text);
  return [text, /^\s*#include|\bint main\(|extern "C"/m.test(text.slice(0, 20000)) ? "cpp" : python ? "python" : "text"];
}

const WORDS = /^(?:and|as|assert|async|await|break|class|const|continue|def|del|elif|else|except|finally|for|from|if|import|in|is|lambda|not|or|pass|raise|return|try|while|with|yield|None|True|False|true|false|null|void|int|float|double|auto|static|struct|template|using|namespace)$/;
/** Comment, string, word, number; comments begin as the language says. */
const tokens = (comment) => new RegExp(String.raw`(${comment})|("""[^]*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(\b[A-Za-z_]\w*)|\b\d[\w.]*`, "g");
const TOKENS = {python: tokens("#[^\\n]*"), cpp: tokens("//[^\\n]*|/\\*[^]*?\\*/"), json: tokens("$^")};
const SHOWN_LINES = 4000, COLOURED = 400_000;
/** Text with numbered lines; long ones are shown in two steps. */
function codeView(text, language, all) {
  const lines = visible(text).split("\n"), box = h("div.code.box", {tabindex: "0", role: "region", label: "Text"});
  const draw = (count) => {
    const part = lines.slice(0, count).join("\n"), code = h("pre.text");
    code.append(...part.length <= COLOURED && TOKENS[language] ? colour(part, TOKENS[language]) : [part]);
    box.replaceChildren(h("pre.gutter", {"aria-hidden": "true"}, lines.slice(0, count).map((_, i) => i + 1).join("\n")), code);
    if (count < lines.length) box.append(h("button", {click: () => draw(lines.length)}, `Show all ${plural(lines.length, "line")}`));
  };
  const wanted = Number(state.open);
  draw(all || wanted > SHOWN_LINES ? lines.length : SHOWN_LINES);
  if (wanted >= 1 && wanted <= lines.length) requestAnimationFrame(() => { markLines(box, [wanted]); $(".mark", box).scrollIntoView({block: "center"}); });
  return box;
}
const lineHeight = (box) => parseFloat(getComputedStyle(box).lineHeight) || 18;
function markLines(box, lines) {
  for (const old of $$(".mark", box)) old.remove();
  box.append(...lines.map((line) => { const mark = h("div.mark"); mark.style.top = `${8 + (line - 1) * lineHeight(box)}px`; return mark; }));
}
function colour(text, tokens) {
  const out = [];
  let from = 0;
  for (const match of text.matchAll(tokens)) {
    const kind = match[1] !== undefined ? "comment" : match[2] !== undefined ? "string" : match[3] === undefined ? "value" : WORDS.test(match[3]) ? "word" : "";
    if (!kind) continue;
    out.push(text.slice(from, match.index), h("span", {class: kind}, match[0]));
    from = match.index + match[0].length;
  }
  return [...out, text.slice(from)];
}

// --- Events ---

/** Begin and end as one: [{name, start, length, depth, thread, args}], times in ms. */
function spansOf(events) {
  const spans = [], open = new Map();
  for (const event of events) {
    const thread = `${event.pid}/${event.tid}`, stack = open.get(thread) || [];
    open.set(thread, stack);
    const span = {name: String(event.name), thread, start: Number(event.ts) / 1000, length: Number(event.dur || 0) / 1000, args: event.args || {}};
    if (event.ph === "B") stack.push(span);
    if (event.ph === "X" || event.ph === "i") spans.push(span);
    const at = event.ph === "E" ? stack.findLastIndex((other) => other.name === span.name) : -1;
    if (at < 0) continue;
    const [begun] = stack.splice(at, 1);
    spans.push({...begun, length: span.start - begun.start, args: {...begun.args, ...span.args}});
  }
  spans.sort((a, b) => a.start - b.start || b.length - a.length);
  const ends = new Map();
  for (const span of spans) {
    const above = (ends.get(span.thread) || []).filter((end) => end > span.start + 1e-6);
    span.depth = above.length;
    ends.set(span.thread, [...above, span.start + span.length]);
  }
  return spans;
}
async function eventPart(log, wanted) {
  const events = (await log.loadEvents()).filter(wanted), spans = spansOf(events).filter((span) => Number.isFinite(span.start) && Number.isFinite(span.length));
  const all = button(() => save(new Blob([JSON.stringify(events)], {type: "application/json"}), "chromium_events.json"), "Save for Perfetto");
  if (!spans.length) return h("div.box.pad", `${plural(events.length, "event")} without a duration. `, all);
  const begin = Math.min(...spans.map((s) => s.start)), end = Math.max(...spans.map((s) => s.start + s.length)), width = 1000, row = 18, threads = [...new Set(spans.map((s) => s.thread))];
  let top = 0;
  const tops = new Map(threads.map((thread) => { const mine = top; top += (Math.max(...spans.filter((s) => s.thread === thread).map((s) => s.depth)) + 1) * row + 6; return [thread, mine]; }));
  const chart = svg("svg", {class: "flame", viewBox: `0 0 ${width} ${top + 16}`, role: "img", "aria-label": `${plural(spans.length, "span")} over ${time(end - begin)}`}), x = (t) => (t - begin) / (end - begin || 1) * width;
  for (const span of [...spans].sort((a, b) => b.length - a.length).slice(0, 3000)) {
    const left = x(span.start), size = Math.max(0.5, x(span.start + span.length) - left), y = tops.get(span.thread) + span.depth * row, group = svg("g", svg("title", `${span.name}, ${time(span.length)}`), svg("rect", {x: left.toFixed(2), y, width: size.toFixed(2), height: row - 2}));
    const letters = Math.floor(size / 6.2) - 1;
    if (letters > 3) group.append(svg("text", {x: (left + 4).toFixed(2), y: y + 12}, span.name.length > letters ? `${span.name.slice(0, letters - 1)}…` : span.name));
    chart.append(group);
  }
  chart.append(svg("text", {class: "axis", x: 0, y: top + 12}, "0"), svg("text", {class: "axis", x: width, y: top + 12, "text-anchor": "end"}, time(end - begin)));
  const names = new Map();
  for (const span of spans) { const sum = names.get(span.name) || [0, 0]; names.set(span.name, [sum[0] + 1, sum[1] + span.length]); }
  const rows = [...names].sort((a, b) => b[1][1] - a[1][1]);
  return h("div.box.pad", chart, h("details", h("summary", `Time by name, ${plural(rows.length, "name")}`), table(["=~event", "#times", "#together"], rows.slice(0, 200).map(([name, [count, sum]]) => [name, number(count), time(sum)]))), h("p", all));
}

// --- Provenance ---

const PROVENANCE = /^inductor_provenance_tracking_node_mappings/;
/** The graph before Inductor's passes, the one after them, and the code made of it: a line of one marks its lines in the others. */
async function provenancePart(log, {records}, record, map) {
  if (!map) return [];
  const at = records.indexOf(record), near = (fits) => records.slice(0, at).findLast(fits) || records.find(fits), named = (name) => (r) => r.ref && name.test(r.name);
  const sources = [near(named(/(before|inductor)_pre_grad_graph/)), near(named(/(after|inductor)_post_grad_graph/)), near((r) => r.kind === "inductor_output_code" || /aot_wrapper_code/.test(r.name))];
  const texts = await Promise.all(sources.map(async (source) => source && (await log.payload(source) || source.ref && await fxText(source.ref)) || ""));
  const [pre, post] = texts.map((text) => new Map(visible(text).split("\n").map((line, i) => [line.split(/[:=]/)[0].trim(), i + 1]).reverse()));
  const code = visible(texts[2]).split("\n"), start = code.findIndex((line) => /def call\(|::run_impl\(/.test(line)), has = (line, name) => line.includes(name) && !/\d/.test(line.charAt(line.indexOf(name) + name.length));
  // A kernel is called below the line that tells its name and number; without such a line wherever its name stands.
  const linesOf = (name) => {
    const bare = name.replace(/:\d+$/, ""), told = bare === name ? -1 : code.findIndex((line, i) => i > start && has(line, name)), call = told < 0 ? -1 : code.findIndex((line, i) => i > told && has(line, bare));
    return call < 0 ? code.flatMap((line, i) => i > start && has(line, bare) ? [i + 1] : []) : [call + 1];
  };
  const pairs = (told, from, to) => Object.entries(told || {}).flatMap(([name, list]) => Array.isArray(list) ? from(name).flatMap((a) => list.flatMap((other) => to.has(other) ? [[a, to.get(other)]] : [])) : []);
  const became = pairs(map.postToPre, (name) => post.has(name) ? [post.get(name)] : [], pre).map(([a, b]) => [b, a]), made = pairs(map.cppCodeToPost, linesOf, post).map(([a, b]) => [b, a]);
  const boxes = texts.map((text) => codeView(text || "Not in this report.", /::run_impl/.test(text) ? "cpp" : "python", true)), places = [0, 0, 0];
  const pick = (pane, line) => {
    if (line < 1 || line === places[pane]) return;
    places[pane] = line;
    const middle = pane === 1 ? [line] : (pane ? made : became).filter((pair) => pair[pane >> 1] === line).map((pair) => pair[1 - (pane >> 1)]);
    [became.filter((pair) => middle.includes(pair[1])).map(([a]) => a), middle, made.filter((pair) => middle.includes(pair[0])).map(([, b]) => b)].forEach((list, i) => {
      const box = boxes[i], lines = i === pane ? [line] : [...new Set(list)].sort((a, b) => a - b), top = lineHeight(box) * lines[lines.length >> 1];
      markLines(box, lines);
      if (top && (i !== pane || top < box.scrollTop || top > box.scrollTop + box.clientHeight - 36)) box.scrollTop = top - box.clientHeight / 2;
    });
  };
  boxes.forEach((box, i) => {
    for (const kind of ["mousemove", "click"]) hear(box, kind, (event) => pick(i, Math.floor((event.clientY - rectOf(box).top + box.scrollTop - 8) / lineHeight(box)) + 1));
    hear(box, "keydown", (event) => { const step = stepOf(event, "ArrowUp", "ArrowDown"); if (step) pick(i, places[i] + step); });
  });
  const [first] = [...made.map(([line]) => line), ...became.map(([, line]) => line)];
  if (first) requestAnimationFrame(() => pick(1, first));
  return [section("Provenance", "a line marks what it came from and what became of it", h("div.texts", boxes.map((box, i) => h("div", h("h3", sources[i] ? recordLink(log, sources[i]) : "–"), box))))];
}

/** How an expression of sizes came about, down to its symbols. */
function expressionPart(log, {data}) {
  const made = new Map(), expr = String(data.expr ?? "");
  if (!expr && !data.result_id) return [];
  for (const record of log.records) if (/^expression_created|^create_unbacked/.test(record.kind)) for (const key of [record.data.result_id ?? record.data.node_id, record.data.result]) if (key) made.set(key, record);
  let left = 500;
  const tree = (record, depth) => {
    const d = record.data, [frame] = listOf(d.user_stack).slice(-1);
    return h("li", recordLink(log, record, visible(d.result ?? d.symbol)), d.method ? ` by ${d.method} ` : " ", frame && frameLine(log, log.frame(frame)),
      h("ul", listOf(d.arguments).map((words, i) => { const from = made.get(listOf(d.argument_ids)[i]); return from && depth < 50 && left-- > 0 ? tree(from, depth + 1) : h("li.mono", visible(words)); })));
  };
  // A guard without the number of its expression tells it, or what it compares.
  const root = made.get(data.expr_node_id ?? data.result_id) || made.get(expr) || made.get(expr.replace(/^\w\w\((.*), .*\)$|^(.*) [<>]=? .*$/, "$1$2"));
  return root ? [boxed("Expression", "how it came about", h("div.trie", h("ul", tree(root, 0))))] : [];
}
