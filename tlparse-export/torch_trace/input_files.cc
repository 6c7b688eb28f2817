#include "tlparse-export/torch_trace/input_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "tlparse-export/torch_trace/fx_folder.h"
#include "tlparse-export/torch_trace/log_runs.h"
#include "tlparse-export/torch_trace/tlparse_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

bool IsLog(const std::string& name) {
  return name.ends_with(".log") || name.ends_with(".log.gz") || name.ends_with(".log.zst");
}
bool IsText(const std::string& name) {
  return name.ends_with(".txt") || name.ends_with(".txt.gz") || name.ends_with(".txt.zst");
}

/// Entries of a folder whose names are wanted, in order of ranks and then of names.
template <class IsWanted>
std::vector<std::string> Entries(const std::string& folder, bool folders, IsWanted is_wanted) {
  std::vector<std::pair<int32_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const bool is_kind = folders ? entry.is_directory(error) : entry.is_regular_file(error);
    if (!is_kind || !is_wanted(entry.path().filename().string())) continue;
    found.emplace_back(RankOfPath(entry.path().string()).value_or(-1), entry.path().string());
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& [rank, path] : found)
    paths.push_back(std::move(path));
  return paths;
}

class FileInputs final : public LogInputs {
 public:
  Status Add(const std::string& word) {
    words_.push_back(word);
    std::error_code error;
    if (!fs::is_directory(word, error)) {
      inputs_.push_back({word});
      return Ok();
    }
    if (IsFxFolder(word)) return AddFxFolder(word);
    if (AddTlparse(word)) return Ok();
    std::vector<std::string> files = LogsOfFolder(word);
    if (files.empty()) {
      for (const std::string& rank :
           Entries(word, true, [](const auto& name) { return name.starts_with("rank_"); })) {
        if (!AddTlparse(rank)) AddFiles(LogsOfFolder(rank));
      }
      if (!inputs_.empty()) return Ok();
      files = Entries(word, false, IsText);
    }
    if (files.empty()) return Error("no logs: {}: the folder has no file '*.log'", word);
    AddFiles(files);
    return Ok();
  }

  size_t size() const override { return inputs_.size(); }
  std::string name() const override { return fmt::format("{}", fmt::join(words_, ", ")); }

  Result<LogInput> Open(size_t index) override {
    const auto& [path, is_tlparse, fx_run] = inputs_[index];
    LogInput input;
    input.path = path;
    if (fx_run > 0) {
      input.path = fmt::format("{}/{}", path, fx_run);
      STRATA_TRY(input.bytes, OpenFxFolder(path, fx_run));
    } else if (is_tlparse) {
      STRATA_TRY(input.bytes, OpenTlparseFolder(path));
    } else {
      STRATA_TRY(input.bytes, OpenByteSource(path));
      if (path == "-") input.path = "standard input";
    }
    return input;
  }

 private:
  struct Input {
    std::string path;
    bool is_tlparse = false;
    int64_t fx_run = 0;  // of a folder that an export wrote
  };

  Status AddFxFolder(const std::string& folder) {
    STRATA_TRY(const std::vector<int64_t> runs, RunsOfFxFolder(folder));
    for (int64_t run : runs)
      inputs_.push_back({folder, false, run});
    return Ok();
  }

  /// The copy of the log that tlparse keeps tells more than what it made of it.
  bool AddTlparse(const std::string& folder) {
    std::error_code error;
    const std::string copy = folder + "/raw.log";
    if (fs::is_regular_file(copy, error)) {
      inputs_.push_back({copy});
      return true;
    }
    if (!IsTlparseFolder(folder)) return false;
    inputs_.push_back({folder, true});
    return true;
  }

  void AddFiles(const std::vector<std::string>& files) {
    for (const std::string& file : files)
      inputs_.push_back({file});
  }

  std::vector<std::string> words_;
  std::vector<Input> inputs_;
};

}  // namespace

std::vector<std::string> LogsOfFolder(const std::string& folder) {
  return Entries(folder, false, IsLog);
}

Result<std::unique_ptr<LogInputs>> FindInputs(const std::vector<std::string>& words) {
  auto inputs = std::make_unique<FileInputs>();
  for (const std::string& word : words)
    STRATA_RETURN_IF_ERROR(inputs->Add(word));
  return std::unique_ptr<LogInputs>(std::move(inputs));
}

}  // namespace strata
