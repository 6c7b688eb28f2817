#include "runtime/control/describe_tensor.h"

#include <limits>
#include <simdjson.h>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;

simdjson::dom::element Ask(const at::Tensor& tensor, std::string_view view) {
  static simdjson::dom::parser parser;
  const TensorQuestion question = OrDie(ParseTensorQuestion(view));
  static std::string json;
  json = OrDie(DescribeTensor(tensor, question)).json;
  return parser.parse(json);
}

std::vector<double> Numbers(simdjson::dom::element array) {
  std::vector<double> numbers;
  for (const simdjson::dom::element element : array.get_array())
    numbers.push_back(double(element));
  return numbers;
}

TEST_CASE("a value is described by type, sizes and statistics") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto data = Ask(at::tensor({1.0, kNan, -3.0, kNan}), "");
  CHECK(std::string_view(data["dtype"]) == "f64");
  CHECK(Numbers(data["sizes"]) == std::vector{4.0});
  CHECK(int64_t(data["statistics"]["nan"]) == 2);
  CHECK(double(data["statistics"]["min"]) == -3.0);
  CHECK(double(data["statistics"]["mean"]) == -1.0);
}

TEST_CASE("a slice takes ranges and indices, also from the end") {
  const at::Tensor tensor = at::arange(24.0).view({4, 6});
  const auto slice = [&](std::string_view text) {
    return Numbers(Ask(tensor, text)["slice"]["values"]);
  };
  CHECK(slice("[1, 2]") == std::vector{8.0});
  CHECK(slice("[-1, -1]") == std::vector{23.0});
  CHECK(slice("[0:2, 4:]") == std::vector{4.0, 5.0, 10.0, 11.0});
  CHECK(slice("[:, 0]") == std::vector{0.0, 6.0, 12.0, 18.0});
  CHECK(slice("[3]") == std::vector{18.0, 19.0, 20.0, 21.0, 22.0, 23.0});
}

TEST_CASE("slices that do not fit are errors") {
  const at::Tensor tensor = at::zeros({4, 100});
  for (const char* text : {"[]", "[", "[4]", "[-5]", "[0, 0, 0]", "[a]", "[0:1:2]", "[:]"}) {
    CAPTURE(text);
    const auto question = ParseTensorQuestion(text);
    CHECK_FALSE((question && DescribeTensor(tensor, *question).has_value()));
  }
}

TEST_CASE("a histogram counts every finite element once") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  at::Tensor tensor = at::arange(160.0);
  tensor[3] = kInf;
  double sum = 0.0;
  for (const double count : Numbers(Ask(tensor, "histogram")["histogram"]["counts"]))
    sum += count;
  CHECK(sum == 159.0);
  CHECK(Numbers(Ask(at::zeros({3}), "histogram")["histogram"]["counts"]).size() == 16);
  CHECK(Numbers(Ask(at::zeros({0}), "histogram")["histogram"]["counts"]).size() == 16);
}

TEST_CASE("an image of a matrix keeps small ones and averages large ones") {
  const auto small = Ask(at::arange(6.0).view({2, 3}), "image")["image"];
  CHECK(Numbers(small["values"]) == std::vector{0.0, 1.0, 2.0, 3.0, 4.0, 5.0});
  const auto large = Ask(at::arange(64.0 * 64.0).view({64, 64}), "image")["image"];
  CHECK(int64_t(large["rows"]) == 32);
  CHECK(int64_t(large["columns"]) == 64);
  CHECK_FALSE(DescribeTensor(at::zeros({3}), OrDie(ParseTensorQuestion("image"))).has_value());
}

}  // namespace
}  // namespace strata
