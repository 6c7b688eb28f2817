#include "tlparse-export/torch_trace/import/tlparse_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "tlparse-export/torch_trace/import/made_log.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoPrefix = "V0101 00:00:00.000000 0 tlparse:1] ";

/// `-_0_0_0`: compiled autograd, frame, compilation, attempt; `-` for what is missing.
std::optional<std::vector<std::string>> CompileParts(const std::string& name) {
  std::vector<std::string> parts;
  for (std::string_view rest = name;;) {
    const size_t end = rest.find('_');
    const std::string_view part = rest.substr(0, end);
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number && part != "-") return std::nullopt;
    parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (parts.size() != 4) return std::nullopt;
  return parts;
}

/// The folders of compilations, by name.
std::vector<std::string> CompileFolders(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error) && CompileParts(name)) found.push_back(name);
  }
  std::ranges::sort(found);
  return found;
}

/// Names and other things that tlparse adds to a record.
bool IsAdded(std::string_view key) {
  return key == "timestamp" || key == "thread" || key == "pathname" || key == "lineno" ||
         key == "payload_filename" || key == "has_payload";
}

/// The header of the log, from `2026-11-21T03:25:43.800000Z` and its neighbours.
std::string PrefixOf(const std::vector<JsonField>& fields) {
  const auto text = [&](std::string_view key) {
    const JsonField* field = FindField(fields, key);
    return field ? ReadJsonString(field->value).value_or(std::string(field->value)) : "";
  };
  const std::string time = text("timestamp");
  constexpr size_t kLength = 26;
  std::string path = text("pathname");
  path.erase(0, path.find_first_not_of(' '));
  std::string thread = text("thread"), line = text("lineno");
  if (time.size() < kLength || thread.empty() || path.empty() || line.empty()) {
    return std::string(kNoPrefix);
  }
  return fmt::format("V{}{} {} {} {}:{}] ", time.substr(5, 2), time.substr(8, 2),
                     time.substr(11, 15), thread, path, line);
}

class JsonLines final : public MadeLog {
 public:
  JsonLines(std::string folder, std::unique_ptr<ByteSource> lines)
      : folder_(std::move(folder)), lines_(std::move(lines)) {}

 private:
  Result<bool> Make() override {
    if (is_at_end_) return false;
    STRATA_TRY(std::string_view piece, lines_->Read());
    if (piece.empty()) {
      is_at_end_ = true;
      if (!partial_.empty()) AddLine(partial_);
      AddChromiumEvents();
      return true;
    }
    for (size_t end; (end = piece.find('\n')) != std::string_view::npos;
         piece.remove_prefix(end + 1)) {
      partial_ += piece.substr(0, end);
      AddLine(std::exchange(partial_, {}));
    }
    partial_ += piece;
    return true;
  }

  void AddLine(const std::string& line) {
    const auto fields = ReadJsonObject(line);
    if (!fields) {
      made_ += line + "\n";  // the reader of the log reports it
      return;
    }
    if (const JsonField* table = FindField(*fields, "string_table"))
      return AddStrings(table->value);
    std::string kept;
    for (const JsonField& field : *fields) {
      if (IsAdded(field.key)) continue;
      if (!kept.empty()) kept += ", ";
      kept += fmt::format("\"{}\": {}", field.key, field.value);
    }
    const std::string prefix = PrefixOf(*fields);
    const JsonField* file = FindField(*fields, "payload_filename");
    const auto name = file ? ReadJsonString(file->value) : std::nullopt;
    const auto payload = name ? ReadInside(folder_, *name) : Result<std::string>(Error("none"));
    if (payload) {
      AddRecord(prefix, kept, *payload);
    } else {
      made_ += fmt::format("{}{{{}}}\n", prefix, kept);
    }
  }

  void AddStrings(std::string_view table) {
    int64_t id = 0;
    for (const std::string_view text :
         ReadJsonArray(table).value_or(std::vector<std::string_view>{})) {
      if (text != "null") made_ += fmt::format("{}{{\"str\": [{}, {}]}}\n", kNoPrefix, text, id);
      ++id;
    }
  }

  void AddChromiumEvents() {
    const auto text = ReadFile(folder_ + "/chromium_events.json");
    if (!text) return;
    for (const std::string_view event :
         ReadJsonArray(*text).value_or(std::vector<std::string_view>{})) {
      AddRecord(kNoPrefix, "\"chromium_event\": {}", event);
    }
  }

  std::string folder_;
  std::unique_ptr<ByteSource> lines_;
  std::string partial_;
  bool is_at_end_ = false;
};

/// Files of compilations, in the order in which tlparse numbered them.
class CompileFiles final : public MadeLog {
 public:
  explicit CompileFiles(const std::string& folder) {
    std::error_code error;
    for (const std::string& compile : CompileFolders(folder)) {
      for (const auto& entry : fs::directory_iterator(folder + "/" + compile, error)) {
        const std::string stem = entry.path().stem().string();
        const size_t mark = stem.rfind('_');
        const std::string extension = entry.path().extension().string();
        if (mark == std::string::npos || (extension != ".txt" && extension != ".json")) continue;
        int64_t number = 0;
        std::from_chars(stem.data() + mark + 1, stem.data() + stem.size(), number);
        files_.push_back({number, entry.path().string(), stem.substr(0, mark), compile});
      }
    }
    std::ranges::sort(files_, {}, [](const File& f) { return std::tie(f.number, f.path); });
  }

 private:
  struct File {
    int64_t number;
    std::string path, name, compile;
  };

  Result<bool> Make() override {
    if (next_ == files_.size()) return false;
    const File& file = files_[next_++];
    STRATA_TRY(const std::string payload, ReadFile(file.path));
    std::string fields;
    JsonWriter json(fields);
    json.BeginObject().Key("artifact").BeginObject();
    json.Field("name", file.name);
    json.Field("encoding", file.path.ends_with(".json") ? "json" : "string");
    json.EndObject();
    constexpr const char* kKeys[] = {"compiled_autograd_id", "frame_id", "frame_compile_id",
                                     "attempt"};
    const std::vector<std::string> parts = *CompileParts(file.compile);
    for (size_t i = 0; i < parts.size(); ++i) {
      int64_t number = 0;
      std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), number);
      if (parts[i] != "-") json.Field(kKeys[i], number);
    }
    json.EndObject();
    AddRecord(kNoPrefix, std::string_view(fields).substr(1, fields.size() - 2), payload);
    return true;
  }

  std::vector<File> files_;
  size_t next_ = 0;
};

}  // namespace

bool IsTlparseFolder(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(folder + "/raw.jsonl", error) || !CompileFolders(folder).empty();
}

Result<std::unique_ptr<ByteSource>> OpenTlparseFolder(const std::string& folder) {
  auto lines = OpenByteSource(folder + "/raw.jsonl");
  if (lines) {
    return std::unique_ptr<ByteSource>(std::make_unique<JsonLines>(folder, *std::move(lines)));
  }
  return std::unique_ptr<ByteSource>(std::make_unique<CompileFiles>(folder));
}

}  // namespace strata
