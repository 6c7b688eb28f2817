#pragma once
#include <string>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/text/native_text.h"

namespace strata::testing {

/// All that reading a text gave.
inline std::string Everything(const FxDocument& document) {
  std::string all = PrintText(*document.module);
  for (size_t i = 0; i < document.module->num_graphs(); ++i) {
    const Graph& graph = document.module->graph(GraphId{static_cast<int32_t>(i)});
    for (const NodeId id : graph.nodes())
      all += fmt::format("{} on line {}\n", graph.name(id), graph.node(id).text_line);
  }
  for (const auto* list : {&document.diagnostics, &document.findings}) {
    for (const FxDiagnostic& d : *list)
      all += fmt::format("{}:{}: {}: {}\n", d.line, d.column, d.what, d.skipped);
  }
  return all + fmt::format("{} {}\n", document.num_diagnostics, document.num_findings);
}

}  // namespace strata::testing
