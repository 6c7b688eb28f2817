#pragma once
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"

namespace strata::testing {

inline FxDocument Parse(std::string_view text) {
  Result<FxDocument> document = ParseFx(text, {.file = "t.txt", .graph_name = {}, .strict = true});
  REQUIRE_MESSAGE(document.has_value(), (document ? "" : document.error().message()));
  const Status verified = Verify(*document->module);
  REQUIRE_MESSAGE(verified.has_value(), (verified ? "" : verified.error().message()));
  return std::move(*document);
}

/// Wraps body lines (indented by 8) into a class. A line break before the first is dropped.
inline std::string Program(std::string_view parameters, std::string_view body) {
  if (body.starts_with('\n')) body.remove_prefix(1);
  return "class GraphModule(torch.nn.Module):\n    def forward(self, " + std::string(parameters) +
         "):\n" + std::string(body);
}

/// The graph as native text without types and metadata, after a line break.
inline std::string Plain(const FxDocument& document) {
  return "\n" + PrintText(*document.module, {.types = false, .metadata = false});
}

inline NodeId OrderedNode(const Graph& graph, int position) {
  return *std::next(graph.nodes().begin(), position);
}

inline std::string StrictError(std::string_view text) {
  const Result<FxDocument> document =
      ParseFx(text, {.file = "t.txt", .graph_name = {}, .strict = true});
  return document ? "no error" : document.error().message();
}

}  // namespace strata::testing
