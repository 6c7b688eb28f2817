#include "refs/compilations.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "ir/module.h"
#include "refs/cut_graph.h"
#include "refs/import_files.h"
#include "refs/ref.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/log.h"
#include "tlparse-export/torch_trace/read/pasted_text.h"

namespace strata {
namespace {

constexpr std::string_view kForward = "aot_forward_graph";
constexpr std::string_view kInference = "aot_inference_graph";
constexpr std::string_view kBackward = "aot_backward_graph";
constexpr std::string_view kDynamo = "dynamo_output_graph";
constexpr std::string_view kSplit = "optimize_ddp_split_graph";
constexpr std::string_view kMetadata = "aot_forward_graph_fw_metadata";
constexpr std::string_view kSubclassMetadata = "aot_forward_graph_fw_subclass_metadata";

/// The compilations of one run of a log.
class CompilationReader {
 public:
  CompilationReader(const LogContent& log, const LogRun& run) : log_(log), run_(run) {}

  Result<LoggedCompilations> Read() {
    for (const LogGraph& graph : run_.graphs)
      STRATA_RETURN_IF_ERROR(AddGraph(graph));
    for (const LogRecord& record : run_.records) {
      AddPiece(record);
      AddMetadata(record);
    }
    for (const auto& [id, texts] : cuts_)
      STRATA_RETURN_IF_ERROR(ReadCutOf(id, texts));
    LoggedCompilations logged;
    logged.rank = run_.rank;
    for (const std::string& id : order_) {
      LoggedCompilation& compilation = by_id_[id];
      if (compilation.forward.module != nullptr)
        logged.compilations.push_back(std::move(compilation));
    }
    return logged;
  }

 private:
  LoggedCompilation& Of(const std::string& id) {
    const auto [found, is_new] = by_id_.try_emplace(id);
    if (is_new) {
      order_.push_back(id);
      found->second.id = id;
    }
    return found->second;
  }

  Status AddGraph(const LogGraph& graph) {
    const LogRecord& record = run_.records[graph.snapshots[0].record];
    const bool is_forward = record.name == kForward || record.name == kInference;
    if (!is_forward && record.name != kBackward && record.name != kDynamo) return Ok();
    STRATA_TRY(FxDocument document, log_.Parse(run_, graph, graph.snapshots[0]));
    const GraphId id = document.module->programs()[0];
    LoadedGraph loaded{std::move(document.module), id};
    LoggedCompilation& compilation = Of(record.compile);
    if (record.name == kDynamo) {
      for (const NodeId node : loaded.graph().placeholders()) {
        const std::string_view argument = loaded.graph().attribute(node, "argument");
        compilation.inputs.emplace_back(argument.empty() ? loaded.graph().name(node) : argument);
      }
    } else if (record.name == kBackward) {
      compilation.backward = std::move(loaded);
    } else {
      compilation.forward = std::move(loaded);
    }
    return Ok();
  }

  std::string_view TextOf(const LogRecord& record) const {
    return log_.payloads[static_cast<size_t>(record.payload)].text;
  }

  /// The backward graph of a part is logged after its forward graph.
  void AddPiece(const LogRecord& record) {
    if (record.payload < 0) return;
    if (record.name == kSplit) {
      cuts_[record.compile].split = TextOf(record);
    } else if (record.name == kForward || record.name == kInference) {
      cuts_[record.compile].pieces.push_back({.forward = TextOf(record), .backward = {}});
    } else if (record.name == kBackward && !cuts_[record.compile].pieces.empty()) {
      cuts_[record.compile].pieces.back().backward = TextOf(record);
    }
  }

  Status ReadCutOf(const std::string& id, const CutTexts& texts) {
    if (texts.pieces.size() < 2) return Ok();
    if (texts.split.empty()) {
      return Error(ErrorCode::kUnsupported,
                   "several forward graphs: {}: compilation {}: the log does not say how they "
                   "belong together",
                   log_.path, id);
    }
    STRATA_TRY(Of(id).cut, ReadCut(texts, log_.path));
    return Ok();
  }

  void AddMetadata(const LogRecord& record) {
    if (record.payload < 0 || (record.name != kMetadata && record.name != kSubclassMetadata))
      return;
    LoggedCompilation& compilation = Of(record.compile);
    std::string& text =
        record.name == kMetadata ? compilation.metadata : compilation.subclass_metadata;
    text = log_.payloads[static_cast<size_t>(record.payload)].text;
  }

  const LogContent& log_;
  const LogRun& run_;
  std::map<std::string, LoggedCompilation> by_id_;
  std::vector<std::string> order_;
  std::map<std::string, CutTexts> cuts_;
};

}  // namespace

Result<std::vector<LoggedCompilations>> LoadCompilations(std::string_view text) {
  STRATA_TRY(const Ref ref, ParseRef(text));
  STRATA_TRY(const std::vector<std::string> files, LogFilesOf(ref.file));
  std::vector<LoggedCompilations> ranks;
  for (const std::string& file : files) {
    if (std::error_code error; std::filesystem::is_directory(file, error))
      return Error("no logs: {}: give a folder with logs of PyTorch", file);
    STRATA_TRY(std::string bytes, ReadFile(file));
    STRATA_TRY(std::string read, Decompress(std::move(bytes), file));
    STRATA_TRY(const LogContent log, ReadLog(ReadPasted(std::move(read)).text, file));
    for (size_t i = 0; i < log.runs.size(); ++i) {
      if (ref.rank && log.runs[i].rank != *ref.rank) continue;
      STRATA_TRY(LoggedCompilations logged, CompilationReader(log, log.runs[i]).Read());
      logged.ref = fmt::format("{}#run={}", file, i + 1);
      if (!logged.compilations.empty()) ranks.push_back(std::move(logged));
    }
  }
  std::ranges::stable_sort(ranks, {}, &LoggedCompilations::rank);
  return ranks;
}

}  // namespace strata
