// From generated kernels back to the graphs of a compilation.

import { boxed, section } from "./overview.js";
import { codeView, lineHeight, markLines } from "./log_record.js";
import { frameLine } from "./log.js";
import { fxText } from "./copy.js";
import { h, hear, rectOf, stepOf, visible } from "./dom.js";
import { listOf, recordLink } from "./log_data.js";

export const PROVENANCE = /^inductor_provenance_tracking_node_mappings/;
/**
 * The graph before Inductor's passes, the one after them, and the code made of it: a line of one
 * marks its lines in the others.
 */
export async function provenancePart(log, { records }, record, map) {
  if (!map) return [];
  const at = records.indexOf(record),
    near = (fits) => records.slice(0, at).findLast(fits) || records.find(fits),
    named = (name) => (r) => r.ref && name.test(r.name);
  const sources = [
    near(named(/(before|inductor)_pre_grad_graph/)),
    near(named(/(after|inductor)_post_grad_graph/)),
    near((r) => r.kind === "inductor_output_code" || /aot_wrapper_code/.test(r.name)),
  ];
  const texts = await Promise.all(
    sources.map(async (source) =>
      source && (await log.payload(source) || source.ref && await fxText(source.ref)) || ""
    ),
  );
  const [pre, post] = texts.map((text) =>
    new Map(
      visible(text).split("\n").map((line, i) => [line.split(/[:=]/)[0].trim(), i + 1]).reverse(),
    )
  );
  const code = visible(texts[2]).split("\n"),
    start = code.findIndex((line) => /def call\(|::run_impl\(/.test(line)),
    has = (line, name) =>
      line.includes(name) && !/\d/.test(line.charAt(line.indexOf(name) + name.length));
  // A kernel is called below the line that tells its name and number; without such a line wherever
  // its name stands.
  const linesOf = (name) => {
    const bare = name.replace(/:\d+$/, ""),
      told = bare === name ? -1 : code.findIndex((line, i) => i > start && has(line, name)),
      call = told < 0 ? -1 : code.findIndex((line, i) => i > told && has(line, bare));
    return call < 0
      ? code.flatMap((line, i) => i > start && has(line, bare) ? [i + 1] : [])
      : [call + 1];
  };
  const pairs = (told, from, to) =>
    Object.entries(told || {}).flatMap(([name, list]) =>
      Array.isArray(list)
        ? from(name).flatMap((a) =>
          list.flatMap((other) => to.has(other) ? [[a, to.get(other)]] : [])
        )
        : []
    );
  const became = pairs(map.postToPre, (name) => post.has(name) ? [post.get(name)] : [], pre).map((
      [a, b],
    ) => [b, a]
    ),
    made = pairs(map.cppCodeToPost, linesOf, post).map(([a, b]) => [b, a]);
  const boxes = texts.map((text) =>
      codeView(text || "Not in this report.", /::run_impl/.test(text) ? "cpp" : "python", true)
    ),
    places = [0, 0, 0];
  const pick = (pane, line) => {
    if (line < 1 || line === places[pane]) return;
    places[pane] = line;
    const middle = pane === 1
      ? [line]
      : (pane ? made : became).filter((pair) => pair[pane >> 1] === line).map((pair) =>
        pair[1 - (pane >> 1)]
      );
    [
      became.filter((pair) => middle.includes(pair[1])).map(([a]) => a),
      middle,
      made.filter((pair) => middle.includes(pair[0])).map(([, b]) => b),
    ].forEach((list, i) => {
      const box = boxes[i],
        lines = i === pane ? [line] : [...new Set(list)].sort((a, b) => a - b),
        top = lineHeight(box) * lines[lines.length >> 1];
      markLines(box, lines);
      if (
        top && (i !== pane || top < box.scrollTop || top > box.scrollTop + box.clientHeight - 36)
      ) box.scrollTop = top - box.clientHeight / 2;
    });
  };
  boxes.forEach((box, i) => {
    for (const kind of ["mousemove", "click"]) {
      hear(box, kind, (event) =>
        pick(
          i,
          Math.floor((event.clientY - rectOf(box).top + box.scrollTop - 8) / lineHeight(box)) + 1,
        ));
    }
    hear(box, "keydown", (event) => {
      const step = stepOf(event, "ArrowUp", "ArrowDown");
      if (step) pick(i, places[i] + step);
    });
  });
  const [first] = [...made.map(([line]) => line), ...became.map(([, line]) => line)];
  if (first) requestAnimationFrame(() => pick(1, first));
  return [
    section(
      "Provenance",
      "a line marks what it came from and what became of it",
      h(
        "div.texts",
        boxes.map((box, i) =>
          h("div", h("h3", sources[i] ? recordLink(log, sources[i]) : "–"), box)
        ),
      ),
    ),
  ];
}

/** How an expression of sizes came about, down to its symbols. */
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
  // A guard without the number of its expression tells it, or what it compares.
  const root = made.get(data.expr_node_id ?? data.result_id) || made.get(expr) ||
    made.get(expr.replace(/^\w\w\((.*), .*\)$|^(.*) [<>]=? .*$/, "$1$2"));
  return root
    ? [boxed("Expression", "how it came about", h("div.trie", h("ul", tree(root, 0))))]
    : [];
}
