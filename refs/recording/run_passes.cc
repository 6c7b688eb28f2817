#include "refs/recording/run_passes.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "passes/core/pass_manager.h"
#include "passes/passes.h"
#include "refs/recording/recording.h"

namespace strata {
namespace {

/// Asks before each pass whether to go on.
class AskBefore final : public PassInstrumentation {
 public:
  explicit AskBefore(const std::function<Status(int)>& ask) : ask_(ask) {}

  Status BeforePass(const PassRun& run, const Module& /*module*/) override {
    return ask_ ? ask_(run.index) : Ok();
  }

 private:
  const std::function<Status(int)>& ask_;
};

}  // namespace

std::vector<PassWords> AllPassWords() {
  std::vector<PassWords> all;
  const PassRegistry registry = AllPasses();
  for (const PassRegistry::Entry& entry : registry.entries()) {
    PassWords words{.name = entry.name, .summary = std::string(entry.summary), .options = {}};
    const auto list = [&](OptionList& options) {
      for (const Option& option : options.options())
        words.options.push_back({option.name, fmt::format("({}) {}", option.type, option.help)});
      return Ok();
    };
    const auto made = entry.make(list);
    STRATA_CHECK(made, "pass '{}' refuses its defaults", entry.name);
    all.push_back(std::move(words));
  }
  return all;
}

Result<int> CountPasses(std::string_view pipeline) {
  STRATA_TRY(const auto passes, ParsePipeline(pipeline, AllPasses()));
  return static_cast<int>(passes.size());
}

Status RunPasses(Module& module, const PassesToRun& run) {
  PassManager manager({.input_ref = run.source});
  STRATA_TRY(auto passes, ParsePipeline(run.pipeline, AllPasses()));
  for (auto& pass : passes)
    manager.Add(std::move(pass));
  STRATA_TRY(Recording recording, Recording::Begin(run.trace, {.kind = RunKind::kOpt,
                                                               .source = run.source,
                                                               .command = run.command,
                                                               .pipeline = manager.Text(),
                                                               .config = {}}));
  manager.Watch(recording.watcher());
  manager.set_run_ref(recording.RunRef());
  AskBefore ask(run.before_pass);
  manager.Watch(ask);
  const Result<Changed> passed = manager.Run(module);
  const Status recorded = recording.End(passed ? Ok() : Status(passed.error()));
  if (!passed) return passed.error();
  return recorded;
}

}  // namespace strata
