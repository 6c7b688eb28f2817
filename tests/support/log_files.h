#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/results.h"
#include "tlparse-export/torch_trace/read/decompress.h"

namespace strata::testing {

/// Paths of the files below `folder` whose names end with `ending`, sorted; none if there is no
/// such folder.
inline std::vector<std::string> FilesBelow(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

/// The logs of PyTorch in tests/data. Those of tests/data/logs/malformed are not among them: they
/// are stored uncompressed.
inline std::vector<std::string> CompressedLogs() {
  std::vector<std::string> logs = FilesBelow("tests/data/logs", ".log.zst");
  REQUIRE_FALSE(logs.empty());
  return logs;
}

/// The text of a log, decompressed if the file is compressed.
inline std::string ReadLogText(const std::string& path) {
  Result<std::string> bytes = ReadFile(path);
  REQUIRE_OK(bytes);
  Result<std::string> text = Decompress(std::move(*bytes), path);
  REQUIRE_OK(text);
  return std::move(*text);
}

}  // namespace strata::testing
