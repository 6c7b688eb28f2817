#include "viewer/model/pipeline_text.h"

#include <doctest/doctest.h>

namespace strata::viewer {
namespace {

const std::vector<PassWords> kPasses = {
    {"dce", "erases", {}},
    {"lower", "lowers", {}},
    {"place", "places", {{"mesh", "(string) axes"}, {"plan", "(string) a plan"}}},
    {"replace", "replaces", {}}};

std::vector<std::string> TextsFor(std::string_view text) {
  std::vector<std::string> texts;
  for (const PipelineCompletion& completion : CompletePipeline(text, kPasses))
    texts.push_back(completion.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("the last pass of a pipeline is completed, those first that begin like it") {
  CHECK(TextsFor("") == Texts{"dce", "lower", "place", "replace"});
  CHECK(TextsFor("pl") == Texts{"place", "replace"});
  CHECK(TextsFor("dce, lo") == Texts{"dce,lower"});
  CHECK(TextsFor("dce,place{mesh=\"a=2,b=4\",plan=x},rep") ==
        Texts{"dce,place{mesh=\"a=2,b=4\",plan=x},replace"});
  CHECK(TextsFor("nothing").empty());
}

TEST_CASE("options of a pass are completed inside its braces, and once its name is complete") {
  CHECK(TextsFor("dce,place") == Texts{"dce,replace", "dce,place{mesh=", "dce,place{plan="});
  CHECK(TextsFor("place{") == Texts{"place{mesh=", "place{plan="});
  CHECK(TextsFor("place{mesh=\"tp=2\",p") == Texts{"place{mesh=\"tp=2\",plan="});
  CHECK(TextsFor("place{mesh=t").empty());
  CHECK(TextsFor("place{plan=llama3}").empty());
  CHECK(TextsFor("lower{").empty());
  CHECK(TextsFor("dce,place{mesh=\"a\\\"b,").empty());
}

}  // namespace
}  // namespace strata::viewer
