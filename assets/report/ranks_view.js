import { $$, h, joined, link } from "./dom.js";
import { boxed } from "./overview.js";
import { goTo, linkTo, views } from "./route.js";
import { graphsOf, loadFacts, momentsOf, report, subjects } from "./store.js";
import { matching, number, plural } from "./format.js";
import { pageHead } from "./views_common.js";
import { refWord } from "./copy.js";
const LETTER = (i) => i < 26 ? String.fromCharCode(65 + i) : `${i + 1}`;
const COLLECTIVE = [
  [/all_gather/, "AG"],
  [/reduce_scatter/, "RS"],
  [/all_reduce/, "AR"],
  [/all_to_all/, "A2A"],
  [/broadcast/, "BC"],
  [/./, "?"],
];

views.set("ranks", {
  label: "Ranks",
  shows: () => true,
  async render() {
    const runs = report.runs,
      page = h(
        "div.page",
        pageHead(
          "Ranks",
          `${plural(runs.length, "run")} of ${
            plural(new Set(runs.map((run) => run.rank)).size, "rank")
          }`,
        ),
      );
    if (runs.length < 2) {
      page.append(
        h(
          "div.empty",
          h("h2", "One rank in this file"),
          h("p", "Join the traces of all ranks to compare them pass by pass."),
          h("pre", "strata merge rank0.strata rank1.strata -o all.strata"),
        ),
      );
      return page;
    }
    const name = (run) =>
      new Set(runs.map((r) => r.rank)).size === runs.length ? `rank ${run.rank}` : `run ${run.id}`;
    page.append(matrix(runs, name), ...await collectiveLanes(runs, name));
    const untold = report.rank_pairs.filter((pair) => pair.detail < 0);
    if (untold.length) {
      page.append(
        h(
          "p.quiet.small",
          `${plural(untold.length, "pair")} of graphs that differ ${
            untold.length === 1 ? "is" : "are"
          } not compared node by node, beyond 20,000 nodes: ${
            untold.slice(0, 4).map((pair) => pair.name).join("; ")
          }${untold.length > 4 ? "; …" : ""}`,
        ),
      );
    }
    return page;
  },
});

/** "ranks 0–4, 6": names that end in neighbouring numbers as ranges. */
function ranges(group, name) {
  const word = name(group[0]).replace(/ \d+$/, ""),
    numbers = group.map((run) => Number(/\d+$/.exec(name(run))[0])).sort((a, b) => a - b),
    spans = [];
  for (const n of numbers) {
    const last = spans[spans.length - 1];
    if (last && n === last[1] + 1) last[1] = n;
    else spans.push([n, n]);
  }
  return `${word}${group.length > 1 ? "s" : ""} ${
    spans.map(([from, to]) => from === to ? from : `${from}–${to}`).join(", ")
  }`;
}
/** What every rank had after each pass, as letters: equal letters are equal graphs. */
function matrix(runs, name) {
  const markOf = (e) => e ? (e.after || e.last).fingerprint : "";
  const places = runs.map((run) =>
    new Map(
      [
        ...run.passes,
        ...run.graphs.filter((graph) => !run.passes.some((pass) => pass.graph === graph.name)),
      ].map((e) => [`${e.graph}\n${e.index}\n${e.name}`, e]),
    )
  );
  let split = null, first = null;
  const cells = [...new Set(places.flatMap((of) => [...of.keys()]))].map((key) => {
    const entries = places.map((of) => of.get(key)),
      { name: title, index } = entries.find(Boolean),
      marks = entries.map(markOf),
      kinds = [...new Set(marks)],
      column = { title, head: index === undefined ? title : `#${index}` };
    const parts = split === null && kinds.length > 1;
    if (parts) {
      split = {
        column,
        groups: kinds.map((mark) => runs.filter((_, i) => marks[i] === mark)),
      };
    }
    return { column, parts, entries, letters: marks.map((mark) => kinds.indexOf(mark)) };
  });
  const groups = (list) => list.map((group) => ranges(group, name)).join(" | ");
  const words = split
    ? `Ranks part at ${split.column.head} ${split.column.title}: ${groups(split.groups)}.`
    : "All ranks have the same graphs after every pass.";
  const hint = h("p.mid", { role: "note" }, "Choose two cells to compare them."),
    subjectOf = (e) => subjects.find((s) => s.ref === e.ref && !s.base);
  /** The first cell is kept, the second one opens what is different between them. */
  const choose = (event, e, title) => {
    const other = first,
      marks = other && [markOf(other), markOf(e)].sort().join(),
      pair = other &&
        subjects.find((s) =>
          s.group === "between ranks" && s.graph === (e.graph || e.name) &&
          s.index === (e.index ?? -1) &&
          [markOf({ last: s.before }), markOf(s)].sort().join() === marks
        );
    first = other ? null : e;
    for (const cell of $$(".cell", grid)) {
      cell.setAttribute("aria-pressed", String(Boolean(first) && cell === event.currentTarget));
    }
    if (first) {
      hint.replaceChildren(
        title,
        ": ",
        subjectOf(e) ? link(linkTo(subjectOf(e)), "open it") : "no pass changed it",
        ", or choose a second cell to compare it with.",
      );
    } else if (pair) goTo(pair);
    else if (markOf(other) === markOf(e)) {
      hint.replaceChildren(
        other === e ? "Choose two cells to compare them." : "Both are the same graph.",
      );
    } else {hint.replaceChildren(
        "These two were not compared here. This does it:",
        h("pre", `strata diff ${refWord(other.ref)} ${refWord(e.ref)}`),
      );}
  };
  const grid = h(
    "table.matrix",
    { label: words },
    h(
      "thead",
      h(
        "tr",
        h("th", { scope: "col" }, ""),
        cells.map(({ column, parts }) =>
          h(
            "th",
            { scope: "col", title: column.title, class: parts && "parting" },
            h("span.cut", column.head),
          )
        ),
      ),
    ),
    h(
      "tbody",
      runs.map((run, i) =>
        h(
          "tr",
          h("th", { scope: "row" }, name(run)),
          cells.map(({ column, entries, letters }) => {
            const e = entries[i],
              title = `${name(run)}, ${column.title}: group ${LETTER(letters[i])}`;
            return h(
              "td",
              e
                ? h("button", {
                  class: `cell ${"abcd"[Math.min(3, letters[i])]}`,
                  title,
                  "aria-pressed": "false",
                  click: (event) => choose(event, e, title),
                }, LETTER(letters[i]))
                : h("span.cell.none", "none"),
            );
          }),
        )
      ),
    ),
  );
  return boxed(
    "Graphs after each pass",
    `equal letters: equal fingerprints${split ? "; underlined: where ranks part first" : ""}`,
    told(words, grid),
    hint,
  );
}
const told = (words, grid) => [h("p.mid.told", words), h("div.scroll", grid)];

/** Collectives in order, a lane per rank, aligned with those of the first rank. */
async function collectiveLanes(runs, name) {
  const facts = await loadFacts(),
    lanes = runs.map((run) => {
      const moments = momentsOf(run, graphsOf(run)[0]), last = moments[moments.length - 1];
      return (last && facts[last.facts] && facts[last.facts].collectives || []).map((
        [node, op, type, group],
      ) => ({ node, op, type, group }));
    });
  const most = Math.max(...lanes.map((lane) => lane.length));
  if (!most) return [];
  const short = (c) => COLLECTIVE.find(([shape]) => shape.test(c.op))[1],
    same = (a, b) => a.op === b.op && a.type === b.type && a.group === b.group,
    reference = lanes[0];
  // A lane against the first: equal operators in order belong together, whatever their types.
  const align = (lane) => {
    if (lane === reference || reference.length * lane.length > 1e6) {
      return reference.map((_, i) => lane[i] || null);
    }
    return matching(reference, lane, (a, b) => a.op === b.op).map((at) => lane[at] || null);
  };
  const aligned = lanes.map(align),
    differs = reference.map((c, i) => aligned.some((lane) => !lane[i] || !same(lane[i], c))),
    first = differs.indexOf(true);
  const from = Math.max(0, first - 6), to = Math.min(reference.length, from + 60);
  const rows = runs.map((run, r) =>
    h(
      "tr",
      h("th", { scope: "row" }, name(run)),
      aligned[r].slice(from, to).map((c, k) => {
        const wanted = reference[from + k],
          odd = c && !same(c, wanted),
          words = c ? `${c.op} ${c.type} ${c.group}` : "none";
        return h(
          "td",
          h(
            "span",
            { class: `collective${!c ? " missing" : odd ? " odd" : ""}`, title: words },
            c ? short(c) + (odd ? " ~" : "") : "none",
          ),
        );
      }),
    )
  );
  const extra = lanes.map((lane, r) => lane.length - aligned[r].filter(Boolean).length);
  const words = first < 0 && !extra.some(Boolean)
    ? `All ${plural(reference.length, "collective")} agree in operator, type and group.`
    : first < 0
    ? "The first rank's collectives agree."
    : `Collective ${first} is the first that differs: ${reference[first].op} ${
      reference[first].type
    }.`;
  const sentence = `${words}${
    extra.some(Boolean)
      ? ` Without a partner on the first rank: ${
        joined(runs.map((run, r) => extra[r] && `${name(run)} ${extra[r]}`))
      }.`
      : ""
  }`;
  const grid = h(
    "table.lanes",
    { label: sentence },
    h(
      "thead",
      h(
        "tr",
        h("th", { scope: "col" }, ""),
        reference.slice(from, to).map((_, k) => h("th", { scope: "col" }, String(from + k))),
      ),
    ),
    h("tbody", rows),
  );
  return [
    boxed(
      "Collectives in order",
      `of ${graphsOf(runs[0])[0]} after the last pass${
        reference.length > to - from
          ? `; ${to - from} of ${number(reference.length)} around the first difference`
          : ""
      }`,
      told(sentence, grid),
    ),
  ];
}
