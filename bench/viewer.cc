#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/bench.h"
#include "cli/core/flags.h"
#include "ir/text/native_text.h"
#include "store/trace_writer.h"

namespace strata::cli {
namespace {

constexpr int kViewedPasses = 4;

/// A pass: in one of four layers in turn, a view becomes a reshape.
std::string WithEditedLayers(const std::string& text, int pass) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  size_t begin = 0;
  for (size_t end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    constexpr std::string_view kModule = "module=layers.", kView = "aten.view.default";
    const size_t layer = line.find(kModule), view = line.find(kView);
    if (layer != std::string::npos && view != std::string::npos &&
        std::atoi(line.c_str() + layer + kModule.size()) % (4 * kViewedPasses) == pass) {
      line.replace(view, kView.size(), "aten.reshape.default");
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace

Result<Exit> BenchViewer(Args args) {
  std::string path;
  int64_t nodes = 100'000;
  Flags flags("bench viewer",
              "write a trace of a large graph, for the measurements of strata-view");
  flags.Required("-o,--output", "FILE", &path, "the trace to write");
  flags.Option("--nodes", "N", &nodes, "about how many nodes");
  STRATA_TRY(const bool proceed, flags.Parse(args));
  if (!proceed) return Exit::kOk;
  STRATA_TRY(const auto writer, TraceWriter::Create(path, TraceWriter::Mode::kAside));
  STRATA_TRY(const RunId run, writer->BeginRun({}));
  std::string text =
      PrintText(TransformerLikeGraph(static_cast<int>(nodes))->graph({0}), {.stable_ids = true}) +
      "\n";
  STRATA_TRY(const std::unique_ptr<Module> first, ParseText(text));
  STRATA_TRY(SnapshotId last, writer->AddSnapshot(run, "step", first->graph({0})));
  for (int pass = 0; pass < kViewedPasses; ++pass) {
    text = WithEditedLayers(text, pass);
    STRATA_TRY(const std::unique_ptr<Module> after, ParseText(text));
    PassRecord record;
    record.index = pass;
    record.name = fmt::format("views-{}", pass);
    record.graph = "step";
    record.before = last;
    STRATA_TRY(const StoredPass stored, writer->RecordPass(run, record, &after->graph({0})));
    last = stored.record.after;
  }
  STRATA_RETURN_IF_ERROR(writer->EndRun(run, RunStatus::kFinished));
  STRATA_RETURN_IF_ERROR(writer->Finish());
  return Exit::kOk;
}

}  // namespace strata::cli
