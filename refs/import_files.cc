#include "refs/import_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/interrupt.h"
#include "store/trace_writer.h"
#include "tlparse-export/exchange/exchange_import.h"
#include "tlparse-export/torch_trace/import/follow.h"
#include "tlparse-export/torch_trace/import/input_files.h"

namespace strata {
namespace {

/// Passes the warnings of an import on, each once.
class WarningForwarder {
 public:
  WarningForwarder(const ImportSummary& summary, const WarningSink& warn)
      : summary_(summary), warn_(warn) {}

  void ForwardNew() {
    for (; forwarded_ < summary_.warnings.size(); ++forwarded_)
      Forward(summary_.warnings[forwarded_]);
  }
  /// The rest, and how many warnings the summary counted without keeping their text.
  void ForwardRest() {
    ForwardNew();
    const auto dropped = summary_.num_warnings - static_cast<int64_t>(forwarded_);
    if (dropped > 0) Forward(fmt::format("and {} more of these", dropped));
  }

 private:
  void Forward(std::string_view warning) const {
    if (warn_) warn_(warning);
  }

  const ImportSummary& summary_;
  const WarningSink& warn_;
  size_t forwarded_ = 0;
};

}  // namespace

Result<std::vector<std::string>> LogFilesOf(const std::string& word) {
  std::error_code error;
  if (!std::filesystem::is_directory(word, error)) return std::vector<std::string>{word};
  std::vector<std::string> files = LogsOfFolder(word);
  // What else a folder may be is read as a whole.
  return files.empty() ? std::vector<std::string>{word} : files;
}

Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options, const WarningSink& warn) {
  const bool is_exchange = std::ranges::any_of(words, IsExchangeInput);
  std::unique_ptr<LogInputs> inputs;
  if (!is_exchange) {
    STRATA_TRY(inputs, FindInputs(words));
  }
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace,
             TraceWriter::Create(output, TraceWriter::Mode::kAside));
  ImportSummary summary;
  const Status imported = is_exchange ? ImportExchange(words, options, *trace, summary)
                                      : ImportLogs(*inputs, options, *trace, summary);
  WarningForwarder(summary, warn).ForwardRest();
  if (!imported) return imported.error();
  STRATA_RETURN_IF_ERROR(trace->Finish());
  return summary;
}

Result<ImportSummary> FollowFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options, std::optional<double> idle_s,
                                  const WarningSink& warn) {
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace, TraceWriter::Create(output));
  ImportSummary summary;
  WarningForwarder warnings(summary, warn);
  const StopRequest stop;
  const auto wait = [&](int ms) {
    warnings.ForwardNew();
    return stop.Wait(ms);
  };
  // A folder may be empty when its processes start: the name that `strata.record` gives decides.
  const bool is_exchange = std::ranges::any_of(words, [](const std::string& word) {
    return word.ends_with(".d") || word.ends_with(".d/") || IsExchangeInput(word);
  });
  const Status followed =
      is_exchange
          ? FollowExchange(words, options, idle_s, wait, *trace, summary)
          : FollowLogs(words, {.import = options, .idle_s = idle_s, .wait = wait}, *trace, summary);
  warnings.ForwardRest();
  // What came before an error is a trace, too.
  const Status finished = trace->Finish();
  if (!followed) return followed.error();
  STRATA_RETURN_IF_ERROR(finished);
  return summary;
}

}  // namespace strata
