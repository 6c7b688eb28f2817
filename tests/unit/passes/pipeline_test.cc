#include <string>

#include <doctest/doctest.h>

#include "passes/core/registry.h"
#include "passes/passes.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;

enum class Mode { kFast, kSmall };

class Tunable final : public Pass {
 public:
  static constexpr std::string_view kSummary = "do what the options say";

  struct Options {
    int64_t prefetch = 1;
    double budget = 0.5;
    bool strict = false;
    std::string plan;
    Mode mode = Mode::kFast;

    void Bind(OptionList& list) {
      list.Add("prefetch", prefetch, "buckets launched ahead");
      list.Add("budget", budget, "gigabytes");
      list.Add("strict", strict, "refuse what is unknown");
      list.Add("plan", plan, "a file");
      list.Add("mode", mode, {{"fast", Mode::kFast}, {"small", Mode::kSmall}}, "what to save");
    }
  };

  explicit Tunable(Options options) : options_(std::move(options)) {}
  Result<Changed> Run(Module& /*module*/) override { return Changed::kNo; }
  const Options& options() const { return options_; }

 private:
  Options options_;
};

PassRegistry Registry() {
  PassRegistry registry = AllPasses();
  registry.Add<Tunable>("tunable");
  return registry;
}

/// The text of the parsed pipeline, or the error.
std::string Reprinted(std::string_view text) {
  const auto passes = ParsePipeline(text, Registry());
  if (!passes) return passes.error().message();
  std::string out;
  for (const auto& pass : *passes)
    out += (out.empty() ? "" : ",") + pass->Text();
  return out;
}

TEST_CASE("pipeline text names passes in order") {
  CHECK_EQ(Reprinted("dce,canonicalize"), "dce,canonicalize");
  CHECK_EQ(Reprinted(" dce ,\n canonicalize{ } "), "dce,canonicalize");
  CHECK_EQ(Reprinted(""), "");
  CHECK_EQ(Reprinted(" \n"), "");
}

TEST_CASE("options reach the pass with their types") {
  const auto passes = OrDie(ParsePipeline(
      "tunable{prefetch=-3, budget=1e3, strict=true, plan=llama3.toml, mode=small}", Registry()));
  const auto& options = static_cast<const Tunable&>(*passes[0]).options();
  CHECK_EQ(options.prefetch, -3);
  CHECK_EQ(options.budget, 1000.0);
  CHECK(options.strict);
  CHECK_EQ(options.plan, "llama3.toml");
  CHECK(options.mode == Mode::kSmall);
}

TEST_CASE("printing and parsing a pipeline is a round trip") {
  for (const char* text :
       {"dce", "tunable", "tunable{prefetch=2}", "dce,tunable{budget=0.25,strict=true},dce",
        R"(tunable{plan="a b,c{d}=\"e\"\\"})", "tunable{mode=small}", "tunable{budget=1e-09}"}) {
    CHECK_EQ(Reprinted(text), text);
  }
}

TEST_CASE("defaults are not printed") {
  CHECK_EQ(Reprinted("tunable{prefetch=1,plan=\"\",mode=fast}"), "tunable");
}

/// Of all passes, in order of registration.
std::string Names() {
  const PassRegistry registry = Registry();
  std::string names;
  for (const PassRegistry::Entry& entry : registry.entries())
    names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

TEST_CASE("the error for an unknown pass shows the position, the closest name and all names") {
  CHECK(Names().starts_with("dce, canonicalize, remove-detach, "));
  CHECK(Names().ends_with(", place-casts, fuse, cuda-graph, tunable"));
  CHECK_EQ(Reprinted("dce,dcee"),
           "pipeline:1:5: unknown pass 'dcee'; did you mean 'dce'? available: " + Names() +
               "\n  dce,dcee\n"
               "      ^");
  CHECK_EQ(Reprinted("dce,\n  inlining"),
           "pipeline:2:3: unknown pass 'inlining'; available: " + Names() +
               "\n    inlining\n"
               "    ^");
}

TEST_CASE("the error for an unknown option lists all options") {
  CHECK_EQ(Reprinted("tunable{prefech=2}"),
           "pipeline:1:9: pass 'tunable' has no option 'prefech'; did you mean 'prefetch'? "
           "available: prefetch, budget, strict, plan, mode\n"
           "  tunable{prefech=2}\n"
           "          ^");
  CHECK_EQ(Reprinted("dce{fast=1}"),
           "pipeline:1:5: pass 'dce' has no options\n"
           "  dce{fast=1}\n"
           "      ^");
}

TEST_CASE("the error for a value of the wrong type states the expected type") {
  CHECK_EQ(Reprinted("tunable{prefetch=two}"),
           "pipeline:1:18: option 'prefetch' of pass 'tunable': expected an integer, not 'two'\n"
           "  tunable{prefetch=two}\n"
           "                   ^");
  CHECK_EQ(Reprinted("tunable{mode=smal}"),
           "pipeline:1:14: option 'mode' of pass 'tunable': expected one of fast, small, not "
           "'smal', did you mean 'small'\n"
           "  tunable{mode=smal}\n"
           "               ^");
  const auto what = [](std::string_view text) {
    const std::string message = Reprinted(text);
    return message.substr(0, message.find('\n'));
  };
  CHECK_EQ(what("tunable{prefetch=99999999999999999999}"),
           "pipeline:1:18: option 'prefetch' of pass 'tunable': expected an integer, not "
           "'99999999999999999999'");
  CHECK_EQ(
      what("cuda-graph{min_nodes=0}"),
      "pipeline:1:22: option 'min_nodes' of pass 'cuda-graph': expected an integer from 1, not "
      "'0'");
  CHECK_EQ(what("tunable{budget=1x}"),
           "pipeline:1:16: option 'budget' of pass 'tunable': expected a number, not '1x'");
  CHECK_EQ(what("tunable{strict=yes}"),
           "pipeline:1:16: option 'strict' of pass 'tunable': expected true or false, not 'yes'");
}

TEST_CASE("syntax errors show the position and the expected syntax") {
  const auto what = [](std::string_view text) {
    const std::string message = Reprinted(text);
    return message.substr(0, message.find('\n'));
  };
  CHECK_EQ(what("dce,"), "pipeline:1:5: expected the name of a pass");
  CHECK_EQ(what(",dce"), "pipeline:1:1: expected the name of a pass");
  CHECK_EQ(what("dce canonicalize"), "pipeline:1:5: expected ',' between passes");
  CHECK_EQ(what("tunable{prefetch=1"), "pipeline:1:8: this brace is not closed");
  CHECK_EQ(what("tunable{"), "pipeline:1:8: this brace is not closed");
  CHECK_EQ(what("tunable{prefetch}"), "pipeline:1:17: expected '=' after option 'prefetch'");
  CHECK_EQ(what("tunable{=1}"), "pipeline:1:9: expected the name of an option");
  CHECK_EQ(what("tunable{plan=}"), "pipeline:1:14: expected a value; an empty one is written \"\"");
  CHECK_EQ(what("tunable{plan=\"x}"), "pipeline:1:14: this quote is not closed");
  CHECK_EQ(what("tunable{plan=a{0..3}}"),
           "pipeline:1:14: a value with '{' must be in double quotes");
  CHECK_EQ(what("tunable{prefetch=1 plan=x}"),
           "pipeline:1:18: a value with '=' must be in double quotes");
  CHECK_EQ(what("tunable{plan=\"x\" mode=fast}"), "pipeline:1:18: expected ',' or '}'");
  CHECK_EQ(what("tunable{prefetch=1,prefetch=2}"),
           "pipeline:1:20: option 'prefetch' is given twice");
}

TEST_CASE("the description lists passes, options, types and defaults") {
  PassRegistry registry;
  registry.Add<Tunable>("tunable");
  CHECK_EQ(DescribePasses(registry),
           "tunable  do what the options say\n"
           "  prefetch=1  (int) buckets launched ahead\n"
           "  budget=0.5  (float) gigabytes\n"
           "  strict=false  (bool) refuse what is unknown\n"
           "  plan=  (string) a file\n"
           "  mode=fast  (fast|small) what to save\n");
}

}  // namespace
}  // namespace strata
