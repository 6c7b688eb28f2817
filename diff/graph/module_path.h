#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// A module path with its numbers hidden: "layers.*.attention.wq".
std::string ModulePathShape(std::string_view module);

/// The path up to its first number: "layers.3" of "layers.3.attention.wq"; "" when it has none.
std::string_view LayerOf(std::string_view module);

/// The longest module path that holds both; "" when there is none.
std::string_view CommonModule(std::string_view a, std::string_view b);

/// Order of paths with numbers compared as numbers: negative, zero or positive.
int CompareModulePaths(std::string_view a, std::string_view b);

/// Several module paths in one expression.
struct ModulePathRange {
  std::string where;                ///< "layers.{0..31}.attention"; "" of no paths
  std::vector<std::string> except;  ///< paths inside the range that are not among them
};

/// Paths of one shape become one expression; where one number varies, the gaps of its range are
/// exceptions (a third of the range at most, else the numbers are listed). Paths of several shapes
/// are joined by ", ".
ModulePathRange GeneralizeModulePaths(const std::vector<std::string>& modules);

}  // namespace strata
