#pragma once
#include <optional>
#include <string>
#include <vector>

#include "diff/history/blame.h"
#include "viewer/compare/async_value.h"
#include "viewer/panes/node_sheet.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The selected node: fields before and after, inputs, outputs, source, code, provenance, match.
class NodePane {
 public:
  void Draw(Ui& ui, const Area& area);
  /// The Enter key while text is written: shows the slice that was named. False: not in its field.
  bool Enter(Model& model);

 private:
  /// What happened to the node over the passes. Null: not known yet, or not at all.
  const Blame* HistoryOf(Ui& ui, SceneNodeId node);

  /// The C++ that the node runs. Null: not known yet.
  const std::vector<std::string>* GeneratedOf(Ui& ui, SceneNodeId node);

  AsyncValue<std::optional<Blame>> history_{"history"};
  AsyncValue<std::vector<std::string>> generated_{"generated"};
  SliceField slice_;
};

}  // namespace strata::viewer
