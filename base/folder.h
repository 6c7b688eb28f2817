#pragma once
#include <string>
#include <string_view>

#include "base/interrupt.h"
#include "base/result.h"

namespace strata {

/// An output folder whose files appear together. They are written aside: beside a folder that does
/// not exist yet, inside of one that does and is empty. `Commit` gives them their names; a folder
/// that is destroyed without a commit leaves nothing.
class AtomicFolder {
 public:
  /// Errors: the path is a file, a folder with something in it, or in a folder that is missing or
  /// not writable.
  static Result<AtomicFolder> Create(std::string path);

  /// Where to write the file `name` ("1/003_joint.txt"); makes its folders.
  Result<std::string> PathOf(std::string_view name) const;
  Status Write(std::string_view name, std::string_view bytes) const;

  /// REQUIRES: no commit before.
  Status Commit();

  /// The path given to `Create`.
  const std::string& path() const { return path_; }

 private:
  AtomicFolder(std::string path, TemporaryPath aside, bool exists)
      : path_(std::move(path)), aside_(std::move(aside)), exists_(exists) {}

  std::string path_;
  TemporaryPath aside_;  // empty after Commit
  bool exists_ = false;
};

}  // namespace strata
