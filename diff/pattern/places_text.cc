#include "diff/pattern/places_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "diff/graph/module_path.h"
#include "diff/pattern/layers.h"

namespace strata {

std::string PlacesText(std::vector<std::string> paths, size_t elsewhere) {
  const auto unnamed =
      std::ranges::partition(paths, [](const std::string& path) { return !IsUnnamedPlace(path); });
  const size_t count = std::set<std::string>(unnamed.begin(), unnamed.end()).size();
  paths.erase(unnamed.begin(), unnamed.end());
  std::string where = GeneralizeModulePaths(paths).where;
  if (count == 0) return where;
  if (!where.empty()) where += ", ";
  const size_t places = count + elsewhere;
  return where + (places == 1 ? "one place" : fmt::format("{} equal places", places));
}

}  // namespace strata
