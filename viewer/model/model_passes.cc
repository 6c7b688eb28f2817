#include <filesystem>

#include <fmt/format.h>

#include "base/shell.h"
#include "base/unicode.h"
#include "embedded/strata_demo.h"
#include "ir/text/native_text.h"
#include "refs/recording/run_passes.h"
#include "refs/ref.h"
#include "viewer/model/model.h"
#include "viewer/model/settings.h"

namespace strata::viewer {
namespace {

namespace fs = std::filesystem;

/// Two layers on four ranks, as a training would have them.
constexpr const char* kDemoPasses =
    "dce,canonicalize,place{mesh=\"fsdp=2,tp=2\",plan=llama3},lower,tag-memory{policy=full},"
    "recompute,bucket-transformer-blocks,overlap-collectives,fuse";

constexpr const char* kSlot = "passes";

std::string CommandOf(const PassesToRun& run) {
  return fmt::format("strata opt {} --passes {} -o {}", ShellWord(run.source),
                     ShellWord(run.pipeline), ShellWord(run.trace));
}

}  // namespace

Result<Model::GraphSource> Model::ShownGraph() const {
  if (comparison() == nullptr && (subject() == nullptr || !subject()->failed))
    return Error("no graph is shown: open a file first");
  if (!document_) return GraphSource{pair_after_, pair_after_};
  const std::string link =
      fmt::format("#{}{}", subject()->selector, subject()->failed ? ":before" : "");
  return GraphSource{document_->trace_path() + link, document_->file() + link};
}

void Model::CompareWith(const std::string& ref) {
  const Result<GraphSource> source = ShownGraph();
  if (!source) return Fail(source.error());
  OpenPair(source->named, ref);
}

void Model::RunPasses(const std::string& pipeline) {
  const Result<GraphSource> source = ShownGraph();
  if (!source) return Fail(source.error());
  RecordPasses(
      {.pipeline = pipeline,
       .source = source->named,
       .command = {},
       .trace = NewTracePath(ParseRef(source->named) ? ParseRef(source->named)->file : "graph",
                             StateFolder()),
       .before_pass = {}},
      [ref = source->ref]() -> Result<std::unique_ptr<Module>> {
        STRATA_TRY(Snapshot snapshot, LoadRef(ref));
        return std::move(snapshot.module);
      });
}

void Model::MakeDemo(const std::string& trace) {
  RecordPasses({.pipeline = kDemoPasses,
                .source = "demo",
                .command = "strata-view",
                .trace = trace,
                .before_pass = {}},
               [] { return ParseText(assets::kLlama3StepTxt, "demo"); });
}

void Model::RecordPasses(PassesToRun run, std::function<Result<std::unique_ptr<Module>>()> load) {
  if (!writes_files) return Say("No files are written now");
  const Result<int> count = CountPasses(run.pipeline);
  if (!count) return Fail(count.error());
  if (run.command.empty()) run.command = CommandOf(run);
  error_.clear();
  passes_done_ = std::make_shared<std::atomic<int>>(0);
  passes_count_ = *count;
  Say(fmt::format("Running {}", Visible(run.pipeline)));
  workers_.Post(
      kSlot,
      [this, run = std::move(run), load = std::move(load), done = passes_done_,
       wake = wake_](const Outdated& outdated) mutable -> Workers::Deliver {
        std::error_code failure;
        if (const fs::path folder = fs::path(run.trace).parent_path(); !folder.empty())
          fs::create_directories(folder, failure);  // Recording says what is wrong with it
        bool began = false;
        run.before_pass = [&](int index) -> Status {
          began = true;
          if (outdated) return Error("given up: {}: its trace holds what was done", run.trace);
          *done = index;
          wake();
          return Ok();
        };
        Result<std::unique_ptr<Module>> module = load();
        const Status passed = module ? strata::RunPasses(**module, run) : Status(module.error());
        const bool recorded = passed || began;
        return [this, trace = run.trace, passed, recorded, index = done->load()] {
          if (!recorded) return Fail(passed.error());
          if (!passed) log_.push_back("error: " + VisibleLines(passed.error().message()));
          // The pass that failed, or the first that changed something.
          Open(passed ? trace : fmt::format("{}#pass={}", trace, index));
          Say(passed ? "Written: " + Visible(trace) : VisibleLines(passed.error().message()));
        };
      });
}

void Model::CancelPasses() {
  if (!running_passes()) return;
  workers_.Cancel(kSlot);
  Say("Passes given up");
}

}  // namespace strata::viewer
