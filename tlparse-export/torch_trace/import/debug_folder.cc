#include "tlparse-export/torch_trace/import/debug_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "tlparse-export/torch_trace/import/made_log.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "fx_graph_readable.py", kAfter = "fx_graph_transformed.py";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Whether a folder holds one graph that Inductor compiled.
bool HoldsGraph(const fs::path& folder) {
  return IsFile(folder / kBefore) || IsFile(folder / kAfter);
}

/// The number behind the last dot, in order of compilation.
int64_t NumberOf(const std::string& name) {
  int64_t number = -1;
  const size_t dot = name.rfind('.') + 1;  // npos + 1 is 0
  std::from_chars(name.data() + dot, name.data() + name.size(), number);
  return number;
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders, {}, [](const fs::path& path) {
    const std::string name = path.filename().string();
    return std::pair(NumberOf(name), name);
  });
  return folders;
}

/// The folders of graphs of a run: below `torchinductor`, in it, or the folder itself.
std::vector<fs::path> GraphsOf(const fs::path& run) {
  if (HoldsGraph(run)) return {run};
  std::vector<fs::path> graphs;
  for (const fs::path& folder : FoldersIn(run)) {
    if (HoldsGraph(folder)) graphs.push_back(folder);
  }
  if (graphs.empty() && run.filename() != "torchinductor") return GraphsOf(run / "torchinductor");
  return graphs;
}

class DebugRun final : public MadeLog {
 public:
  explicit DebugRun(const fs::path& run) {
    for (const fs::path& folder : GraphsOf(run))
      AddGraph(folder);
  }

 private:
  struct File {
    std::string folder, file, kind, name;
  };

  void AddGraph(const fs::path& folder) {
    const auto add = [&](std::string_view file, std::string_view kind, std::string_view name) {
      if (!IsFile(folder / file)) return;
      files_.push_back({folder.string(), std::string(file), std::string(kind), std::string(name)});
    };
    std::string name = folder.filename().string();
    if (NumberOf(name) >= 0) name.resize(name.rfind('.'));
    add(IsFile(folder / kBefore) ? kBefore : kAfter, "artifact", name);
    if (IsFile(folder / kBefore) && IsFile(folder / kAfter)) {
      add(kBefore, "artifact", "before_post_grad_graph");
      add(kAfter, "artifact", "after_post_grad_graph");
    }
    add("output_code.py", "inductor_output_code", "output_code.py");
    std::vector<std::string> others;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string file = entry.path().filename().string();
      const bool is_known = file == kBefore || file == kAfter || file == "output_code.py";
      if (entry.is_regular_file(error) && !is_known) others.push_back(file);
    }
    std::ranges::sort(others);
    for (const std::string& file : others)
      add(file, "artifact", std::string_view(file).substr(0, file.rfind('.')));
  }

  Result<bool> Make() override {
    if (next_ == files_.size()) return false;
    const File& file = files_[next_++];
    STRATA_TRY(const std::string text, ReadInside(file.folder, file.file));
    std::string fields;
    JsonWriter json(fields);
    json.BeginObject().Key(file.kind).BeginObject();
    if (file.kind == "artifact") {
      json.Field("name", file.name).Field("encoding", "string");
    } else {
      json.Field("filename", file.name);
    }
    json.EndObject().EndObject();
    AddRecord("V0101 00:00:00.000000 0 torch/compile/debug:1] ",
              std::string_view(fields).substr(1, fields.size() - 2), text);
    return true;
  }

  std::vector<File> files_;
  size_t next_ = 0;
};

}  // namespace

std::vector<std::string> DebugRunsOf(const std::string& folder) {
  const fs::path path(folder);
  if (!GraphsOf(path).empty()) return {folder};
  std::vector<std::string> runs;
  for (const fs::path& inside : FoldersIn(path)) {
    const std::string name = inside.filename().string();
    if (name == "torch_compile_debug") return DebugRunsOf(inside.string());
    if (name.starts_with("run_") && !GraphsOf(inside).empty()) runs.push_back(inside.string());
  }
  return runs;
}

std::unique_ptr<ByteSource> OpenDebugRun(const std::string& run) {
  return std::make_unique<DebugRun>(run);
}

}  // namespace strata
