#include "tlparse-export/torch_trace/import/fx_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "tlparse-export/torch_trace/import/made_log.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

constexpr std::string_view kSchema = "strata.export/1";

using Fields = std::vector<JsonField>;

Fields ReadObject(std::string_view text) {
  return ReadJsonObject(text).value_or(Fields{});
}

std::string Text(const Fields& fields, std::string_view key) {
  return ReadJsonString(FieldValue(fields, key)).value_or("");
}

std::vector<Fields> ObjectsOf(const Fields& index, std::string_view key) {
  std::vector<Fields> objects;
  for (std::string_view entry :
       ReadJsonArray(FieldValue(index, key)).value_or(std::vector<std::string_view>{})) {
    objects.push_back(ReadObject(entry));
  }
  return objects;
}

std::string IndexPath(const std::string& folder) {
  return folder + "/index.json";
}

class FxFolder final : public MadeLog {
 public:
  FxFolder(std::string folder, const Fields& index, int64_t run) : folder_(std::move(folder)) {
    const auto of_run = [&](std::string_view key) {
      std::vector<Fields> objects = ObjectsOf(index, key);
      std::erase_if(objects,
                    [&](const Fields& o) { return ReadJsonInt(FieldValue(o, "run")) != run; });
      return objects;
    };
    const std::vector<Fields> passes = of_run("passes");
    std::map<std::string, std::string> first_files;  // of graphs that passes work on
    for (const Fields& pass : passes)
      first_files.try_emplace(Text(pass, "graph"), Text(pass, "before"));
    for (const Fields& graph : of_run("files")) {
      const std::string name = Text(graph, "graph");
      const auto first = first_files.find(name);
      compiles_.try_emplace(name, compiles_.size());
      Add(graph, name, first == first_files.end() ? Text(graph, "file") : first->second);
    }
    for (const Fields& pass : passes) {
      Add(pass, "before_" + Text(pass, "name"), Text(pass, "before"));
      Add(pass, "after_" + Text(pass, "name"), Text(pass, "after"));
    }
  }

 private:
  struct Record {
    std::string fields, file;
  };

  void Add(const Fields& entry, const std::string& name, const std::string& file) {
    if (file.empty()) return;  // a pass that failed may have left none
    std::string fields = "\"artifact\": {\"name\": ";
    AppendJsonString(name, fields);
    fmt::format_to(std::back_inserter(fields),
                   ", \"encoding\": \"string\"}}, \"rank\": {}, \"frame_id\": 0, "
                   "\"frame_compile_id\": {}, \"attempt\": 0",
                   ReadJsonInt(FieldValue(entry, "rank")).value_or(0),
                   compiles_[Text(entry, "graph")]);
    records_.push_back({std::move(fields), file});
  }

  Result<bool> Make() override {
    if (next_ == records_.size()) return false;
    const Record& record = records_[next_++];
    STRATA_TRY(const std::string text, ReadInside(folder_, record.file));
    AddRecord("V0101 00:00:00.000000 0 strata/export:1] ", record.fields, text);
    return true;
  }

  std::string folder_;
  std::map<std::string, size_t> compiles_;  // by graph
  std::vector<Record> records_;
  size_t next_ = 0;
};

}  // namespace

bool IsFxFolder(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(IndexPath(folder), error)) return false;
  const Result<std::string> index = ReadFile(IndexPath(folder));
  return index && Text(ReadObject(*index), "schema") == kSchema;
}

Result<std::vector<int64_t>> RunsOfFxFolder(const std::string& folder) {
  STRATA_TRY(const std::string index, ReadFile(IndexPath(folder)));
  std::vector<int64_t> runs;
  for (const Fields& graph : ObjectsOf(ReadObject(index), "files")) {
    const int64_t run = ReadJsonInt(FieldValue(graph, "run")).value_or(0);
    if (run > 0 && std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
  }
  if (runs.empty()) return Error("no graphs: {}: its index names none", folder);
  return runs;
}

Result<std::unique_ptr<ByteSource>> OpenFxFolder(const std::string& folder, int64_t run) {
  STRATA_TRY(const std::string index, ReadFile(IndexPath(folder)));
  return std::unique_ptr<ByteSource>(std::make_unique<FxFolder>(folder, ReadObject(index), run));
}

}  // namespace strata
