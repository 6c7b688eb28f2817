#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/results.h"
#include "tests/unit/log/log_text.h"
#include "tlparse-export/torch_trace/read/log_select.h"

namespace strata {
namespace {

using testing::Artifact;
using testing::GraphText;

LogContent Log() {
  Result<LogContent> log = ReadLog(
      Artifact("traced", GraphText(1), R"(, "rank": 0)") + Artifact("before_dce", GraphText(1)) +
          Artifact("after_dce", GraphText(2)) + Artifact("before_dce", GraphText(2)) +
          Artifact("after_dce", GraphText(3)) + Artifact("other", GraphText(4), R"(, "rank": 1)"),
      "log_rank_0.log");
  REQUIRE_OK(log);
  return std::move(*log);
}

std::string Selected(const LogSelector& selector) {
  const LogContent log = Log();
  const auto choices = Choose(log, selector);
  if (!choices) return choices.error().message();
  std::string out;
  for (const LogChoice& choice : *choices)
    out += fmt::format("{} record {}; ", choice.selector, choice.snapshot_of().record);
  return out;
}

TEST_CASE("log selector: a graph is its last snapshot, a record its own") {
  CHECK_EQ(Selected({.graph = "traced"}), "run=1,graph=traced record 4; ");
  CHECK_EQ(Selected({.rank = 1}), "run=2,graph=other record 0; ");
  CHECK_EQ(Selected({.graph = "after_dce"}),
           "run=1,graph=after_dce record 2; run=1,graph=after_dce record 4; ");
}

TEST_CASE("log selector: passes by index, name and prefix of a name") {
  CHECK_EQ(Selected({.pass = "1"}), "run=1,graph=traced,pass=1:after record 4; ");
  CHECK_EQ(Selected({.pass = "0", .before = true}), "run=1,graph=traced,pass=0:before record 1; ");
  CHECK_EQ(Selected({.pass = "d…"}),
           "run=1,graph=traced,pass=0:after record 2; run=1,graph=traced,pass=1:after record 4; ");
}

TEST_CASE("log selector: errors list what exists") {
  CHECK_EQ(Selected({.graph = "tracde"}),
           "no graph 'tracde': log_rank_0.log: the log has traced, other, did you mean 'traced'");
  CHECK_EQ(Selected({.pass = "cse"}), "no pass 'cse': log_rank_0.log: the log has dce");
  CHECK_EQ(Selected({.rank = 7}), "no rank '7': log_rank_0.log: the log has 0, 1");
}

TEST_CASE("log selector: a log of a compilation that failed has no graphs") {
  const Result<LogContent> log = ReadLog(Artifact("dynamo_error", "an error"), "failed.log");
  REQUIRE_OK(log);
  const auto choices = Choose(*log, {});
  REQUIRE_FALSE(choices);
  CHECK_EQ(choices.error().message(), "no graphs: failed.log: 'strata ls' shows what the log has");
}

}  // namespace
}  // namespace strata
