#include "cli/core/flags.h"

#include <doctest/doctest.h>

#include "cli/core/command.h"

namespace strata::cli {
namespace {

/// The declaration of a command with one flag of each kind.
struct Sample {
  std::string before, after, format = "text", output;
  std::optional<std::string> patch;
  std::vector<std::string> set;
  int64_t steps = 3;
  double rate = 0.5;
  bool meta = false;
  Flags flags{"diff", "compares"};

  Sample() {
    flags.Positional("BEFORE", &before, "first");
    flags.OptionalPositional("AFTER", &after, "second");
    flags.Choice("--format", &format, {"text", "json"}, "how");
    flags.Option("-o,--output", "FILE", &output, "where");
    flags.Option("--patch", "FILE", &patch, "script");
    flags.Option("--steps", "N", &steps, "how many", 1, 100);
    flags.Option("--rate", "X", &rate, "how fast");
    flags.Repeated("--set", "K=V", &set, "settings");
    flags.Switch("--meta", &meta, "more");
  }

  std::string ErrorOf(std::vector<std::string> words) {
    const Result<bool> parsed = flags.Parse(words);
    REQUIRE(!parsed);
    return parsed.error().message();
  }
};

TEST_CASE("flags keep their defaults when only positionals are given") {
  Sample sample;
  const std::vector<std::string> words{"a"};
  const Result<bool> parsed = sample.flags.Parse(words);
  REQUIRE(parsed);
  CHECK(*parsed);
  CHECK_EQ(sample.before, "a");
  CHECK_EQ(sample.after, "");
  CHECK_EQ(sample.format, "text");
  CHECK_FALSE(sample.patch.has_value());
  CHECK_EQ(sample.steps, 3);
  CHECK_FALSE(sample.meta);
}

TEST_CASE("flags of every kind are read in any order") {
  Sample sample;
  const std::vector<std::string> words{"--meta", "a",          "--set",    "x=1",  "b",
                                       "-o",     "-",          "--set",    "y=2",  "--steps",
                                       "20",     "--rate=1.5", "--format", "json", "--patch=p"};
  const Result<bool> parsed = sample.flags.Parse(words);
  REQUIRE(parsed);
  CHECK_EQ(sample.before, "a");
  CHECK_EQ(sample.after, "b");
  CHECK_EQ(sample.output, "-");
  CHECK_EQ(sample.set, std::vector<std::string>{"x=1", "y=2"});
  CHECK_EQ(sample.steps, 20);
  CHECK_EQ(sample.rate, 1.5);
  CHECK_EQ(sample.format, "json");
  CHECK_EQ(sample.patch.value(), "p");
  CHECK(sample.meta);
}

TEST_CASE("arguments after -- are not options") {
  Sample sample;
  const std::vector<std::string> words{"a", "--", "--meta"};
  REQUIRE(sample.flags.Parse(words));
  CHECK_EQ(sample.after, "--meta");
  CHECK_FALSE(sample.meta);
}

TEST_CASE("flag errors name the flag and its help") {
  CHECK_EQ(Sample().ErrorOf({}), "missing argument BEFORE: strata diff: see 'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "b", "c"}),
           "unexpected argument 'c': strata diff: see 'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--fromat", "json"}),
           "unknown option '--fromat', did you mean '--format': strata diff: see 'strata diff "
           "--help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--fromat=json"}),
           "unknown option '--fromat', did you mean '--format': strata diff: see 'strata diff "
           "--help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--learning_rate", "1"}),
           "unknown option '--learning_rate'; a field of the configuration is '--set "
           "learning_rate=VALUE': strata diff: see 'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--format"}),
           "--format needs a value: strata diff: see 'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--format", "--steps"}),
           "--format needs a value, and '--steps' is an option: strata diff: see 'strata diff "
           "--help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--format", "jsom"}),
           "--format cannot be 'jsom', only text, json, did you mean 'json': strata diff: see "
           "'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--steps", "many"}),
           "--steps needs a whole number, not 'many': strata diff: see 'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--steps", "0"}),
           "--steps must be at least 1: strata diff: see 'strata diff --help'");
  CHECK_EQ(Sample().ErrorOf({"a", "--steps", "101"}),
           "--steps must be at most 100: strata diff: see 'strata diff --help'");
  for (const std::string word : {"-1", "fast", "nan"}) {
    CHECK_EQ(
        Sample().ErrorOf({"a", "--rate", word}),
        "--rate needs a number from 0, not '" + word + "': strata diff: see 'strata diff --help'");
  }
  CHECK_EQ(Sample().ErrorOf({"a", "--format", "json", "--format", "text"}),
           "option --format is given 2 times: strata diff: see 'strata diff --help'");
}

}  // namespace
}  // namespace strata::cli
