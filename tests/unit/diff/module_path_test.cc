#include "diff/graph/module_path.h"

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("places of one shape differ in numbers only") {
  CHECK_EQ(ModulePathShape("layers.3.attention.wq"), "layers.*.attention.wq");
  CHECK_EQ(ModulePathShape("layers.31.attention.wq"), "layers.*.attention.wq");
  CHECK_EQ(ModulePathShape("w2"), "w2");
  CHECK_EQ(ModulePathShape(""), "");
}

TEST_CASE("a common module is a whole number of path parts") {
  CHECK_EQ(CommonModule("layers.1.attention.wq", "layers.1.attention.wk"), "layers.1.attention");
  CHECK_EQ(CommonModule("layers.1", "layers.10"), "layers");
  CHECK_EQ(CommonModule("layers.1", "layers.1.norm"), "layers.1");
  CHECK_EQ(CommonModule("layers.1", "layers.1"), "layers.1");
  CHECK_EQ(CommonModule("norm", "output"), "");
}

TEST_CASE("places become a range with exceptions") {
  std::vector<std::string> modules;
  for (int i = 0; i < 32; ++i) {
    if (i != 7) modules.push_back("layers." + std::to_string(i));
  }
  const ModulePathRange range = GeneralizeModulePaths(modules);
  CHECK_EQ(range.where, "layers.{0..31}");
  CHECK_EQ(range.except, std::vector<std::string>{"layers.7"});
}

TEST_CASE("places that leave large gaps are listed") {
  const ModulePathRange range = GeneralizeModulePaths({"layers.0.norm", "layers.9.norm"});
  CHECK_EQ(range.where, "layers.{0,9}.norm");
  CHECK(range.except.empty());
}

TEST_CASE("a single place, none, and places of several shapes") {
  CHECK_EQ(GeneralizeModulePaths({"layers.4", "layers.4"}).where, "layers.4");
  CHECK_EQ(GeneralizeModulePaths({}).where, "");
  CHECK_EQ(GeneralizeModulePaths({"layers.0", "output", "layers.1"}).where,
           "layers.{0..1}, output");
}

}  // namespace
}  // namespace strata
