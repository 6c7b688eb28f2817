#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/model/model.h"
#include "viewer/ui/ui_tree.h"

namespace strata::viewer {

/// What the viewer shows, as (key, value) pairs in a fixed order; docs/viewer.md lists the keys.
/// With a `key`, what takes long is left out, except for that key.
std::vector<std::pair<std::string, std::string>> StateOf(const Model& model, bool dark,
                                                         std::string_view key = {});

/// `{"schema": "strata.ui/1", "state": {…}, "elements": […]}`.
std::string TreeJson(const std::vector<std::pair<std::string, std::string>>& state,
                     const UiTree& tree);

}  // namespace strata::viewer
