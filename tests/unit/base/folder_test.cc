#include "base/folder.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::TempDir;

size_t Entries(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
    ++count;
  return count;
}

TEST_CASE("folder: files appear together") {
  const TempDir temp;
  for (const bool exists : {false, true}) {
    const std::string path = temp / (exists ? "old" : "new");
    if (exists) std::filesystem::create_directory(path);
    auto folder = AtomicFolder::Create(path + "/");
    REQUIRE_OK(folder);
    CHECK_OK(folder->Write("a.txt", "a"));
    CHECK_OK(folder->Write("1/b.txt", "b"));
    CHECK_FALSE(std::filesystem::exists(path + "/a.txt"));
    CHECK_OK(folder->Commit());
    CHECK_EQ(*ReadFile(path + "/a.txt"), "a");
    CHECK_EQ(*ReadFile(path + "/1/b.txt"), "b");
    CHECK_EQ(Entries(path), 2);
  }
  CHECK_EQ(Entries(temp.path()), 2);
}

TEST_CASE("folder: without a commit no file remains") {
  const TempDir temp;
  {
    auto folder = AtomicFolder::Create(temp / "f");
    REQUIRE_OK(folder);
    CHECK_OK(folder->Write("a.txt", "a"));
  }
  CHECK_EQ(Entries(temp.path()), 0);
}

TEST_CASE("folder: the partial folder of a killed writer does not disturb the next one") {
  const TempDir temp;
  std::filesystem::create_directories(temp / "f/.partial/x");
  std::filesystem::create_directories(temp / "g.partial/x");
  for (const char* name : {"f", "g"}) {
    auto folder = AtomicFolder::Create(temp / name);
    REQUIRE_OK(folder);
    CHECK_OK(folder->Write("a.txt", "a"));
    CHECK_OK(folder->Commit());
    CHECK_EQ(Entries(temp / name), 1);
  }
}

TEST_CASE("folder: errors name paths that cannot become new folders") {
  const TempDir temp;
  REQUIRE_OK(WriteFile(temp / "file", "x"));
  std::filesystem::create_directory(temp / "full");
  REQUIRE_OK(WriteFile(temp / "full/x", "x"));
  const auto message = [&](const std::string& name) {
    return testing::MessageOf(AtomicFolder::Create(temp / name));
  };
  CHECK_EQ(message("file"), "not a folder: " + (temp / "file") + ": give the name of a new folder");
  CHECK_EQ(message("full"),
           "folder is not empty: " + (temp / "full") + ": give a new one, or remove what is in it");
  CHECK_EQ(message("missing/new"), "cannot create folder: " + (temp / "missing/new") +
                                       ": No such file or directory: is its parent there and "
                                       "writable?");
}

}  // namespace
}  // namespace strata
