#include "refs/ref_log.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/fx/program.h"
#include "tlparse-export/torch_trace/read/log_select.h"

namespace strata {
namespace {

/// Reports the text that a lenient parser skipped.
void ReportSkipped(const FxDocument& document, std::string_view where, const WarningSink& warn) {
  if (!warn) return;
  for (const FxDiagnostic& diagnostic : document.diagnostics) {
    warn(fmt::format("{}:{}:{}: {}: passed over '{}'", where, diagnostic.line, diagnostic.column,
                     diagnostic.what, diagnostic.skipped));
  }
  if (document.num_diagnostics > document.diagnostics.size()) {
    warn(fmt::format("{}: and {} more places like these", where,
                     document.num_diagnostics - document.diagnostics.size()));
  }
}

Snapshot MakeSnapshot(const Ref& ref, FxDocument document) {
  Snapshot snapshot;
  snapshot.ref = ref.text;
  snapshot.module = std::move(document.module);
  snapshot.graph_id = snapshot.module->programs()[0];
  snapshot.graph_name = snapshot.graph().name_text();
  return snapshot;
}

/// A file of one graph, which has the name of the file.
struct OneGraph {
  std::string file, name;
  bool is_strict = true;

  FxOptions options() const {
    FxOptions fx;
    fx.file = file;
    fx.graph_name = name;
    fx.strict = is_strict;
    return fx;
  }
};

/// Errors: `ref` selects something else.
Result<OneGraph> OnlyGraphOf(const Ref& ref, const LoadOptions& options) {
  if (ref.pass || ref.run || ref.rank) {
    return Error(ErrorCode::kNotFound,
                 "no runs and passes: {}: it is the text of one graph, leave out the selector",
                 ref.text);
  }
  const std::string name = std::filesystem::path(ref.file).stem().string();
  if (ref.graph && *ref.graph != name) {
    return Error(ErrorCode::kNotFound, "no graph '{}': {}: it has '{}'", *ref.graph, ref.file,
                 name);
  }
  return OneGraph{.file = ref.file, .name = name, .is_strict = !options.lenient};
}

}  // namespace

Result<Snapshot> LoadFromLog(const Ref& ref, std::string_view content, const LoadOptions& options) {
  STRATA_TRY(const LogContent log, ReadLog(content, ref.file));
  LogSelector selector;
  selector.run = ref.run;
  selector.rank = ref.rank;
  selector.graph = ref.graph;
  selector.pass = ref.pass;
  selector.before = ref.side == Ref::Side::kBefore;
  STRATA_TRY(const std::vector<LogChoice> choices, Choose(log, selector));
  if (choices.size() > 1) {
    std::vector<std::string> selectors;
    for (const LogChoice& choice : choices)
      selectors.push_back(choice.selector);
    return Ambiguous(ref, selectors);
  }
  const LogChoice& found = choices[0];
  FxOptions fx;
  fx.strict = !options.lenient;
  STRATA_TRY(FxDocument document, log.Parse(*found.run, found.graph_of(), found.snapshot_of(), fx));
  ReportSkipped(document, log.Place(*found.run, found.snapshot_of()), options.warn);
  return MakeSnapshot(ref, std::move(document));
}

Result<Snapshot> LoadFxText(const Ref& ref, std::string_view content, const LoadOptions& options) {
  STRATA_TRY(const OneGraph one, OnlyGraphOf(ref, options));
  STRATA_TRY(FxDocument document, ParseFx(content, one.options()));
  ReportSkipped(document, ref.file, options.warn);
  return MakeSnapshot(ref, std::move(document));
}

Result<Snapshot> LoadFxProgram(const Ref& ref, std::string_view content,
                               const LoadOptions& options) {
  STRATA_TRY(const OneGraph one, OnlyGraphOf(ref, options));
  STRATA_TRY(FxProgram program, ParseFxProgram(content, one.options()));
  ReportSkipped(program.document, ref.file, options.warn);
  if (!program.unknown.empty() && options.warn) {
    const Graph& graph = program.document.graph();
    const NodeId first = program.unknown[0];
    options.warn(fmt::format("{}:{}: unknown types: the results of {} calls; the first is {} of {}",
                             ref.file, graph.node(first).text_line + 1, program.unknown.size(),
                             graph.name(first), graph.op(first)));
  }
  return MakeSnapshot(ref, std::move(program.document));
}

}  // namespace strata
