#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/graph_text.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "refs/ref.h"
#include "tlparse-export/review/svg.h"

namespace strata::cli {
namespace {

/// Native text, with bodies if the module has no other program.
std::string NativeText(const Snapshot& snapshot) {
  const bool is_alone = snapshot.module->programs().size() == 1;
  return is_alone ? PrintText(*snapshot.module) : PrintText(snapshot.graph());
}

}  // namespace

Result<Exit> RunShow(Args args) {
  std::string ref, format = "text", output = "-";
  LoadOptions load{.warn = Warn};
  Flags flags("show", "prints a graph");
  flags.Positional("REF", &ref, "a trace, a log or the text of a graph; see 'strata --help'");
  flags.Choice("--format", &format, {"text", "fx", "json", "dot", "svg"},
               "native text, PyTorch's FX text, JSON, Graphviz, or a picture");
  flags.Option("-o,--output", "FILE", &output, "where to write (default: standard output)");
  flags.Switch("--lenient", &load.lenient, "recover from parse errors; keep what could be parsed");
  flags.Example("strata show 'run.strata#graph=step'");
  flags.Example("strata show 'train.log#pass=remove_detach_pass:after' --format fx");
  flags.Example("strata show graph.txt --format dot | dot -Tsvg > graph.svg");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const Snapshot snapshot, LoadRef(ref, load));
  std::string text;
  if (format == "text") text = NativeText(snapshot);
  if (format == "fx") text = PrintFx(snapshot.graph());
  if (format == "json") text = GraphJson(snapshot.graph(), ref);
  if (format == "svg") text = GraphSvg(snapshot.graph());
  if (format == "dot") text = GraphDot(snapshot.graph());
  STRATA_RETURN_IF_ERROR(WriteFile(output, text));
  return Exit::kOk;
}

}  // namespace strata::cli
