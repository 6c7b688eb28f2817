#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace strata::testing {

/// A new empty folder that is removed with all its files at the end of the scope.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strata_XXXXXX").string();
    STRATA_CHECK(::mkdtemp(pattern.data()) != nullptr, "cannot make a folder in /tmp");
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace strata::testing
