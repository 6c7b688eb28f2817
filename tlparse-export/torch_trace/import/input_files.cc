#include "tlparse-export/torch_trace/import/input_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "tlparse-export/torch_trace/import/debug_folder.h"
#include "tlparse-export/torch_trace/import/fx_folder.h"
#include "tlparse-export/torch_trace/import/tlparse_folder.h"
#include "tlparse-export/torch_trace/read/byte_source.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/log_runs.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

bool IsLog(const std::string& name) {
  return name.ends_with(".log") || name.ends_with(".log.gz") || name.ends_with(".log.zst");
}
bool IsText(const std::string& name) {
  return name.ends_with(".txt") || name.ends_with(".txt.gz") || name.ends_with(".txt.zst");
}

/// The rank in the first records of a log. A rank that traces before its process group exists has
/// none in its file name.
std::optional<int32_t> RankInside(const std::string& path) {
  const auto source = OpenByteSource(path);
  if (!source) return std::nullopt;
  const auto piece = (*source)->Read();
  if (!piece) return std::nullopt;
  constexpr std::string_view kRank = "\"rank\": ";
  for (std::string_view rest = *piece; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::optional<LogHeader> header = ReadHeader(line);
    const size_t at = header ? header->json.rfind(kRank) : std::string_view::npos;
    if (at == std::string_view::npos) continue;
    const std::string_view digits = header->json.substr(at + kRank.size());
    int32_t rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && rank >= 0) return rank;
  }
  return std::nullopt;
}

/// Sorts logs by rank (from the file name, else from the records), then by name.
void SortByRank(std::vector<std::string>& files) {
  std::vector<std::pair<int32_t, std::string>> ranked;
  for (std::string& file : files) {
    const std::optional<int32_t> named = RankOfPath(file);
    ranked.emplace_back((named ? named : RankInside(file)).value_or(-1), std::move(file));
  }
  std::ranges::sort(ranked);
  files.clear();
  for (auto& [rank, file] : ranked)
    files.push_back(std::move(file));
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
    if (AddTlparse(word) || AddDebug(word)) return Ok();
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
    SortByRank(files);
    AddFiles(files);
    return Ok();
  }

  size_t size() const override { return inputs_.size(); }
  std::string name() const override { return fmt::format("{}", fmt::join(words_, ", ")); }

  Result<LogInput> Open(size_t index) override {
    const auto& [path, is_tlparse, fx_run, is_debug] = inputs_[index];
    LogInput input;
    input.path = path;
    if (fx_run > 0) {
      input.path = fmt::format("{}/{}", path, fx_run);
      STRATA_TRY(input.bytes, OpenFxFolder(path, fx_run));
    } else if (is_debug) {
      input.bytes = OpenDebugRun(path);
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
    int64_t fx_run = 0;     // of a folder that an export wrote
    bool is_debug = false;  // a run of TORCH_COMPILE_DEBUG
  };

  Status AddFxFolder(const std::string& folder) {
    STRATA_TRY(const std::vector<int64_t> runs, RunsOfFxFolder(folder));
    for (int64_t run : runs)
      inputs_.push_back({folder, false, run});
    return Ok();
  }

  /// Prefers the copy of the log that tlparse keeps: it has more than the files made from it.
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

  bool AddDebug(const std::string& folder) {
    const std::vector<std::string> runs = DebugRunsOf(folder);
    for (const std::string& run : runs)
      inputs_.push_back({.path = run, .is_debug = true});
    return !runs.empty();
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

bool HoldsRuns(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  return !LogsOfFolder(folder).empty() || IsFxFolder(folder) || IsTlparseFolder(folder) ||
         fs::is_regular_file(folder + "/raw.log", error) || !DebugRunsOf(folder).empty();
}

Result<std::unique_ptr<LogInputs>> FindInputs(const std::vector<std::string>& words) {
  auto inputs = std::make_unique<FileInputs>();
  for (const std::string& word : words)
    STRATA_RETURN_IF_ERROR(inputs->Add(word));
  return std::unique_ptr<LogInputs>(std::move(inputs));
}

}  // namespace strata
