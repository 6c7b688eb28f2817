#include "refs/cut_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "ir/fx/fx.h"

namespace strata {
namespace {

/// Appends the class of a graph as a class of another one.
void AppendBody(std::string_view name, std::string_view text, std::string& out) {
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (is_first && !line.starts_with("class ")) continue;
    if (is_first) {
      out += fmt::format("    class {}(torch.nn.Module):\n", name);
    } else if (!line.starts_with('#')) {
      out += fmt::format("    {}\n", line);
    }
    is_first = false;
  }
}

/// The body of this name. Errors: there is none.
Result<GraphId> BodyNamed(const Module& module, std::string_view name, std::string_view file) {
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const GraphId id{static_cast<int32_t>(i)};
    if (module.graph(id).name_text() == name) return id;
  }
  return Error("no graph: {}: the log has no text of {}", file, name);
}

std::string ForwardName(size_t piece) {
  return fmt::format("forward_{}", piece);
}
std::string BackwardName(size_t piece) {
  return fmt::format("backward_{}", piece);
}

}  // namespace

Result<CutGraph> ReadCut(const CutTexts& texts, std::string_view file) {
  constexpr std::string_view kSplit = "split";
  std::string text = "class cut(torch.nn.Module):\n    def forward(self):\n        return ()\n\n";
  AppendBody(kSplit, texts.split, text);
  for (size_t i = 0; i < texts.pieces.size(); ++i) {
    AppendBody(ForwardName(i), texts.pieces[i].forward, text);
    AppendBody(BackwardName(i), texts.pieces[i].backward, text);
  }
  STRATA_TRY(FxDocument document, ParseFx(text, {.file = file}));
  CutGraph cut;
  cut.module = std::move(document.module);
  STRATA_TRY(cut.split, BodyNamed(*cut.module, kSplit, file));
  for (size_t i = 0; i < texts.pieces.size(); ++i) {
    CutGraph::Piece& piece = cut.pieces.emplace_back();
    STRATA_TRY(piece.forward, BodyNamed(*cut.module, ForwardName(i), file));
    if (texts.pieces[i].backward.empty()) continue;
    STRATA_TRY(piece.backward, BodyNamed(*cut.module, BackwardName(i), file));
  }
  return cut;
}

}  // namespace strata
