#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace strata {

/// Module paths in one expression: "layers.{0-3}.attention". Layers without a name are only
/// counted, and with them `elsewhere` hunks in no layer: "layers.0, 3 equal places".
std::string PlacesText(std::vector<std::string> paths, size_t elsewhere);

}  // namespace strata
