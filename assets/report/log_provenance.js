// From generated kernels back to the graphs of a compilation.

import { codeView, lineHeight, markLines } from "./code_view.js";
import { fxText } from "./copy.js";
import { h, hear, rectOf, stepOf, visible } from "./dom.js";
import { boxed, section } from "./elements.js";
import { listOf, recordLink } from "./log_data.js";
import { frameLine } from "./log_parts.js";
import { floor } from "./math.js";

/**
 * The graph before Inductor's passes, the graph after them, and the code that Inductor generated: a
 * line of one marks its lines in the others.
 */
export async function provenancePart(log, { records }, record, map) {
  if (!map) return null;
  const sources = sourcesOf(records, record),
    texts = await Promise.all(sources.map((source) => textOf(log, source))),
    panes = new LinkedPanes(texts, linesOf(texts, map));
  return section(
    "Provenance",
    "a line marks its origin and the code made from it",
    h(
      "div.texts",
      panes.boxes.map((box, i) =>
        h("div", h("h3", sources[i] ? recordLink(log, sources[i]) : "–"), box)
      ),
    ),
  );
}
/** Three records around a record: graph before, graph after, code. The nearest one before it. */
function sourcesOf(records, record) {
  const at = records.indexOf(record),
    near = (fits) => records.slice(0, at).findLast(fits) || records.find(fits),
    graph = (name) => near((r) => r.ref && name.test(r.name));
  return [
    graph(/(before|inductor)_pre_grad_graph/),
    graph(/(after|inductor)_post_grad_graph/),
    near((r) => r.kind === "inductor_output_code" || /aot_wrapper_code/.test(r.name)),
  ];
}
async function textOf(log, source) {
  if (!source) return "";
  return await log.payload(source) || source.ref && await fxText(source.ref) || "";
}
/** Pairs of lines: {became: [[before, after], …], generated: [[after, code], …]}. */
function linesOf([before, after, code], map) {
  const nodesBefore = definitionsOf(before), nodesAfter = definitionsOf(after);
  const lineAfter = (name) => nodesAfter.has(name) ? [nodesAfter.get(name)] : [];
  const swap = ([a, b]) => [b, a];
  return {
    became: pairsOf(map.postToPre, lineAfter, nodesBefore).map(swap),
    generated: pairsOf(map.cppCodeToPost, kernelFinder(code), nodesAfter).map(swap),
  };
}
/** The first line that defines each name. */
function definitionsOf(text) {
  const lines = visible(text).split("\n");
  return new Map(lines.map((line, i) => [line.split(/[:=]/)[0].trim(), i + 1]).reverse());
}
/** [line of the key, line of the value] for each key and each of its values that have a line. */
function pairsOf(map, linesOfKey, lineOfValue) {
  const pairs = [];
  for (const [key, values] of Object.entries(map || {})) {
    for (const line of linesOfKey(key)) {
      for (const value of listOf(values)) {
        if (lineOfValue.has(value)) pairs.push([line, lineOfValue.get(value)]);
      }
    }
  }
  return pairs;
}
/**
 * Finds the lines of a kernel. Its call follows the line with its name and number; without such a
 * line, every line with its name counts.
 */
function kernelFinder(code) {
  const lines = visible(code).split("\n"),
    start = lines.findIndex((line) => /def call\(|::run_impl\(/.test(line));
  const has = (line, name) =>
    line.includes(name) && !/\d/.test(line.charAt(line.indexOf(name) + name.length));
  const after = (begin, name) => lines.findIndex((line, i) => i > begin && has(line, name));
  return (name) => {
    const bare = name.replace(/:\d+$/, ""),
      named = bare === name ? -1 : after(start, name),
      call = named < 0 ? -1 : after(named, bare);
    if (call >= 0) return [call + 1];
    return lines.flatMap((line, i) => i > start && has(line, bare) ? [i + 1] : []);
  };
}
/** Texts side by side: pointer and arrow keys pick a line, which marks its lines in all texts. */
class LinkedPanes {
  constructor(texts, { became, generated }) {
    const language = (text) => /::run_impl/.test(text) ? "cpp" : "python";
    Object.assign(this, { became, generated, places: texts.map(() => 0) });
    this.boxes = texts.map((text) => codeView(text || "Not in this report.", language(text), true));
    for (const pane of this.boxes.keys()) this.listen(pane);
    const [first] = [...generated.map(([line]) => line), ...became.map(([, line]) => line)];
    if (first) requestAnimationFrame(() => this.pick(1, first));
  }
  listen(pane) {
    const box = this.boxes[pane];
    for (const kind of ["mousemove", "click"]) {
      hear(box, kind, (event) => {
        const y = event.clientY - rectOf(box).top + box.scrollTop - 8;
        this.pick(pane, floor(y / lineHeight(box)) + 1);
      });
    }
    hear(box, "keydown", (event) => {
      const step = stepOf(event, "ArrowUp", "ArrowDown");
      if (step) this.pick(pane, this.places[pane] + step);
    });
  }
  pick(pane, line) {
    if (line < 1 || line === this.places[pane]) return;
    this.places[pane] = line;
    const middle = this.middleOf(pane, line);
    const lists = [
      this.became.filter(([, after]) => middle.includes(after)).map(([before]) => before),
      middle,
      this.generated.filter(([after]) => middle.includes(after)).map(([, code]) => code),
    ];
    lists[pane] = [line];
    for (const [i, list] of lists.entries()) {
      const lines = [...new Set(list)].sort((a, b) => a - b);
      markLines(this.boxes[i], lines);
      this.scrollTo(this.boxes[i], lines[lines.length >> 1], i !== pane);
    }
  }
  /** The lines of the middle text, the graph after the passes, that belong to a line. */
  middleOf(pane, line) {
    if (pane === 1) return [line];
    return pane === 0
      ? this.became.filter(([before]) => before === line).map(([, after]) => after)
      : this.generated.filter(([, code]) => code === line).map(([after]) => after);
  }
  /** Centers a line; one that is in sight only if `always`. */
  scrollTo(box, line, always) {
    if (!line) return;
    const top = lineHeight(box) * line, bottom = box.scrollTop + box.clientHeight - 36;
    if (always || top < box.scrollTop || top > bottom) box.scrollTop = top - box.clientHeight / 2;
  }
}

/** The derivation of an expression of sizes, down to its symbols. */
export function expressionPart(log, { data }) {
  const made = new Map(), expr = String(data.expr ?? "");
  if (!expr && !data.result_id) return [];
  for (const record of log.records) {
    if (/^expression_created|^create_unbacked/.test(record.kind)) {
      for (const key of [record.data.result_id ?? record.data.node_id, record.data.result]) {
        if (key) made.set(key, record);
      }
    }
  }
  let left = 500;
  const tree = (record, depth) => {
    const d = record.data, [frame] = listOf(d.user_stack).slice(-1);
    return h(
      "li",
      recordLink(log, record, visible(d.result ?? d.symbol)),
      d.method ? ` by ${d.method} ` : " ",
      frame && frameLine(log, log.frame(frame)),
      h(
        "ul",
        listOf(d.arguments).map((words, i) => {
          const from = made.get(listOf(d.argument_ids)[i]);
          return from && depth < 50 && left-- > 0
            ? tree(from, depth + 1)
            : h("li.mono", visible(words));
        }),
      ),
    );
  };
  // A guard without the number of its expression has its text, or the text of a comparison.
  const root = made.get(data.expr_node_id ?? data.result_id) || made.get(expr) ||
    made.get(expr.replace(/^\w\w\((.*), .*\)$|^(.*) [<>]=? .*$/, "$1$2"));
  return root
    ? [boxed("Expression", "how it came about", h("div.trie", h("ul", tree(root, 0))))]
    : [];
}
