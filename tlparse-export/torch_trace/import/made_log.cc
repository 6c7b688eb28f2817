#include "tlparse-export/torch_trace/import/made_log.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "tlparse-export/torch_trace/read/md5.h"

namespace strata {

Result<std::string_view> MadeLog::ReadPiece() {
  made_.clear();
  while (made_.empty()) {
    STRATA_TRY(const bool more, Make());
    if (!more) break;
  }
  return std::string_view(made_);
}

void MadeLog::AddRecord(std::string_view prefix, std::string_view fields,
                        std::string_view payload) {
  made_ += fmt::format("{}{{{}, \"has_payload\": \"{}\"}}\n", prefix, fields, Md5Hex(payload));
  while (true) {
    const size_t end = payload.find('\n');
    made_ += '\t';
    made_ += payload.substr(0, end);
    made_ += '\n';
    if (end == std::string_view::npos) return;
    payload.remove_prefix(end + 1);
  }
}

Result<std::string> ReadInside(const std::string& folder, const std::string& name) {
  const std::filesystem::path path(name);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
    return Error("a file outside of the folder: {}: {}: it is not read", folder, name);
  }
  return ReadFile((std::filesystem::path(folder) / path).string());
}

}  // namespace strata
