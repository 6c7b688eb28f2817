#include "viewer/model/settings.h"

#include <doctest/doctest.h>

namespace strata::viewer {
namespace {

TEST_CASE("settings that are printed read back as they were") {
  Settings settings;
  settings.dark = true;
  settings.hide_bottom = true;
  settings.left = 240;
  settings.modules = 310;
  settings.recent = {"/tmp/a b.strata", "run = 1.strata"};
  settings.bookmarks = {{"a", "t.strata#run=1,pass=3&node=mm"}, {"=", "x#"}};
  CHECK(ParseSettings(PrintSettings(settings)) == settings);
  CHECK(PrintSettings(Settings()).empty());
}

TEST_CASE("settings of another version and out of range are ignored") {
  const Settings settings = ParseSettings("left = 99999\nright = -3\nfuture = 1\nbottom = x\nno\n");
  CHECK(settings == Settings());
}

TEST_CASE("a file that is opened again moves to the front of the recent ones") {
  Settings settings;
  for (int i = 0; i < 12; ++i)
    settings.AddRecent(std::to_string(i));
  CHECK(settings.recent.size() == Settings::kMostRecent);
  settings.AddRecent("5");
  CHECK(settings.recent.front() == "5");
  CHECK(settings.recent.size() == Settings::kMostRecent);
  settings.AddRecent("two\nlines");
  CHECK(settings.recent.front() == "5");
}

}  // namespace
}  // namespace strata::viewer
