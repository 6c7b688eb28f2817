#pragma once
#include <vector>

#include "viewer/compare/async_value.h"
#include "viewer/compare/text_diff.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Both graphs as native text, line by line, with the words that differ marked.
class TextPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Row(Ui& ui, const Area& area, const TextRow& row) const;

  AsyncValue<std::vector<TextRow>> rows_{"text"};
  size_t context_ = 3;  // lines around a difference; more once a fold was opened
  SceneNodeId shown_;   // that was scrolled to last
};

}  // namespace strata::viewer
