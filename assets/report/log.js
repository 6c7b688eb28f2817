// The log of a run: compilations, their failures, guards and metrics, stacks, events, and every
// record's payload. State: graph is a compilation ("0/0", "-" for records outside of all), node the
// line of a record, open a line of its text.

import { h, visible } from "./dom.js";
import { nothing } from "./elements.js";
import { compilePage } from "./log_compile.js";
import { brackets, loadLog, logLink } from "./log_data.js";
import { logPage } from "./log_page.js";
import { recordPage } from "./log_record.js";
import { currentRun, state, views } from "./route.js";
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
    const parts = record
      ? recordPage(log, record)
      : compile
      ? compilePage(log, compile)
      : logPage(log);
    page.append(compileList(log, compile), h("div.log-body", await parts));
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
