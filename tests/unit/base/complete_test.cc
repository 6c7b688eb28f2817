#include "base/complete.h"

#include <doctest/doctest.h>

namespace strata {
namespace {

std::vector<std::string> Words(std::string_view text) {
  if (text.empty()) return {"back", "break", "breaks", "step"};
  if (text == "break ") return {"module", "nan", "node"};
  return {};
}

TEST_CASE("the only word that fits is completed with a blank") {
  CHECK(Complete("st", Words).added == "ep ");
  CHECK(Complete("break mo", Words).added == "dule ");
  CHECK(Complete("break mo", Words).choices.empty());
}

TEST_CASE("of several words their common beginning is completed, and they are listed") {
  CHECK(Complete("br", Words).added == "eak");
  const Completion completion = Complete("break n", Words);
  CHECK(completion.added.empty());
  CHECK(completion.choices == std::vector<std::string>{"nan", "node"});
}

TEST_CASE("nothing is added where no word fits") {
  CHECK(Complete("x", Words).added.empty());
  CHECK(Complete("print m", Words).choices.empty());
}

}  // namespace
}  // namespace strata
