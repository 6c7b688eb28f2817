#include "passes/core/instrumentations.h"

#include <algorithm>
#include <re2/re2.h>

#include <fmt/format.h>

#include "base/file.h"
#include "ir/text/native_text.h"

namespace strata {
namespace {

int64_t CountNodes(const Module& module) {
  int64_t count = 0;
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    count += module.graph({static_cast<int32_t>(i)}).num_nodes();
  }
  return count;
}

std::string TextOf(const PassRun& run) {
  return run.params.empty() ? run.name : fmt::format("{}{{{}}}", run.name, run.params);
}

}  // namespace

// TimePasses -------------------------------------------------------------------------------------

Status TimePasses::BeforePipeline(std::string_view /*pipeline*/, const Module& /*module*/) {
  rows_.clear();
  return Ok();
}

Status TimePasses::BeforePass(const PassRun& /*run*/, const Module& module) {
  nodes_before_ = CountNodes(module);
  return Ok();
}

Status TimePasses::AfterPass(const PassRun& run, const Module& module) {
  rows_.push_back({TextOf(run), run.status, run.wall, nodes_before_, CountNodes(module)});
  return Ok();
}

Status TimePasses::AfterPassFailed(const PassRun& run, const Module& module) {
  return AfterPass(run, module);
}

std::string TimePasses::Table() const {
  std::chrono::nanoseconds total{};
  size_t width = std::string_view("total").size();
  for (const Row& row : rows_) {
    total += row.wall;
    width = std::max(width, row.pass.size());
  }
  const auto ms = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  std::string table = fmt::format("{:<{}}  {:>10}  {:>5}  {:<9}  {}\n", "pass", width, "ms", "%",
                                  "status", "nodes");
  for (const Row& row : rows_) {
    const double share = total.count() > 0 ? 100.0 * ms(row.wall) / ms(total) : 0.0;
    table +=
        fmt::format("{:<{}}  {:>10.3f}  {:>5.1f}  {:<9}  {} -> {}\n", row.pass, width, ms(row.wall),
                    share, ToString(row.status), row.nodes_before, row.nodes_after);
  }
  return table + fmt::format("{:<{}}  {:>10.3f}\n", "total", width, ms(total));
}

// PrintOnChange ----------------------------------------------------------------------------------

struct PrintOnChange::State {
  State(std::string_view text, Output out) : pattern(text, RE2::Quiet), output(std::move(out)) {}

  RE2 pattern;
  Output output;
  std::vector<std::string> before;  // text of each graph, by graph index
};

PrintOnChange::PrintOnChange(std::unique_ptr<State> state) : state_(std::move(state)) {}
PrintOnChange::PrintOnChange(PrintOnChange&&) noexcept = default;
PrintOnChange& PrintOnChange::operator=(PrintOnChange&&) noexcept = default;
PrintOnChange::~PrintOnChange() = default;

Result<PrintOnChange> PrintOnChange::Create(std::string_view pass_pattern, Output output) {
  auto state = std::make_unique<State>(pass_pattern, std::move(output));
  if (!state->pattern.ok()) {
    return Error("'{}' is not a regular expression: {}: see github.com/google/re2/wiki/Syntax",
                 pass_pattern, state->pattern.error());
  }
  return PrintOnChange(std::move(state));
}

Status PrintOnChange::BeforePass(const PassRun& run, const Module& module) {
  state_->before.clear();
  if (!RE2::FullMatch(run.name, state_->pattern)) return Ok();
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    state_->before.push_back(PrintText(module.graph({static_cast<int32_t>(i)})));
  }
  return Ok();
}

Status PrintOnChange::AfterPass(const PassRun& run, const Module& module) {
  if (!RE2::FullMatch(run.name, state_->pattern)) return Ok();
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const std::string after = PrintText(module.graph({static_cast<int32_t>(i)}));
    const std::string& before = i < state_->before.size() ? state_->before[i] : std::string();
    if (before == after) continue;
    const std::string title = fmt::format("pass {} {}", run.index, TextOf(run));
    state_->output(fmt::format("// before {}\n{}// after {}: {}\n{}", title, before, title,
                               ToString(run.status), after));
  }
  return Ok();
}

Status PrintOnChange::AfterPassFailed(const PassRun& run, const Module& module) {
  return AfterPass(run, module);
}

// Reproducer -------------------------------------------------------------------------------------

Status Reproducer::BeforePipeline(std::string_view /*pipeline*/, const Module& module) {
  input_ = module.Clone();
  return Ok();
}

Status Reproducer::AfterPassFailed(const PassRun& run, const Module& /*module*/) {
  std::string text = fmt::format("// {}\n", run.reproduce);
  text += PrintText(*input_, {.stable_ids = true});
  return WriteFile(path_, text);
}

}  // namespace strata
