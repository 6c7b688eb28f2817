#include "passes/simulate/exported_placements.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;

/// A product of a batch with a parameter that is gathered, and a view of the result.
constexpr std::string_view kProduct = R"json({
 "mesh": {"shape": [8], "dim_names": ["dp"]},
 "nodes": [
  {"name": "x", "op": "placeholder", "placement": "S(0)",
                           "inputs" : [],
                           "compute_cost" : 0.0,
                           "dtype" : "bfloat16",
                           "shape" : [ 16384, 4096 ]
},
  {"name": "w", "op": "placeholder", "placement": "S(0)", "inputs": [], "compute_cost": 0.0,
   "dtype": "bfloat16", "shape": [4096, 4096]},
  {"name": "mm", "op": "aten.mm.default", "phase": "forward", "placement": "S(0)",
   "inputs": [
    {"name": "x", "src_placement": "S(0)", "dst_placement": "S(0)", "comm_cost": 0.0,
     "transition_cost": 0.0},
    {"name": "w", "src_placement": "S(0)", "dst_placement": "R", "comm_cost": 100.0,
     "transition_cost": 1.0}],
   "compute_cost": 99.0, "transition_cost": 1.0, "dtype": "bfloat16", "shape": [16384, 4096]},
  {"name": "view", "op": "aten.view.default", "placement": "S(0)",
   "inputs": [{"name": "mm", "src_placement": "S(0)", "dst_placement": "S(0)", "comm_cost": 0,
     "transition_cost": 0}],
   "compute_cost": 0, "dtype": "bfloat16", "shape": [2, 8192, 4096]},
  {"name": "output", "op": "output", "inputs": [{"name": "view"}]}
 ],
 "summary": {"total": 200.0, "comm": 100.0, "compute": 99.0, "transition": 1.0}
}
)json";

ExportedPlacement Evaluate(std::string_view text) {
  return OrDie(EvaluateExported(text, "p.json", OrDie(Topology::Load("h100"))));
}

std::string ExportError(std::string_view text) {
  const auto exported = EvaluateExported(text, "p.json", OrDie(Topology::Load("h100")));
  return exported ? "" : exported.error().message();
}

std::string Replaced(std::string_view from, std::string_view to) {
  std::string text(kProduct);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST_CASE("exported placements: products and gathers cost what the model says, views nothing") {
  REQUIRE(LooksLikeExportedPlacement(kProduct));
  const ExportedPlacement exported = Evaluate(kProduct);
  CHECK_EQ(exported.mesh, "dp=8");
  CHECK_EQ(exported.theirs.compute_us, doctest::Approx(99));
  CHECK_EQ(exported.theirs.communication_us, doctest::Approx(101));
  // The worked example of the reference: 2048 rows by a matrix, and 2^25 bytes on 8 ranks.
  CHECK_EQ(exported.ours.compute_us, doctest::Approx(99.26).epsilon(1e-3));
  CHECK_EQ(exported.ours.communication_us, doctest::Approx(115.16 + 1).epsilon(1e-3));
  CHECK_EQ(exported.num_unknown, 0);
  REQUIRE_EQ(exported.items.size(), 2);
  CHECK_EQ(exported.items[0].what, "mm, w: S(0) -> R");
  CHECK_EQ(exported.items[1].what, "mm: aten.mm.default");
}

TEST_CASE("exported placements: axes of one rank are left out, and a partial value is a sum") {
  std::string text = Replaced("[8], \"dim_names\": [\"dp\"]", "[8, 1], \"dim_names\": null");
  for (size_t at = 0; (at = text.find("\"S(0)\"", at)) != std::string::npos; at += 8)
    text.replace(at, 6, "\"S(0)R\"");
  text.replace(text.find("\"R\""), 3, "\"RP\"");
  const ExportedPlacement exported = Evaluate(text);
  CHECK_EQ(exported.mesh, "0=8,1=1");
  CHECK_EQ(exported.ours.communication_us, doctest::Approx(115.16 + 1).epsilon(1e-3));
}

TEST_CASE("exported placements: what is not known is counted, and not priced") {
  const ExportedPlacement exported =
      Evaluate(Replaced("\"dst_placement\": \"R\"", "\"dst_placement\": null"));
  CHECK_EQ(exported.num_unknown, 1);
  CHECK_EQ(exported.ours.us(), 0);
  CHECK_EQ(exported.theirs.us(), doctest::Approx(200));
}

TEST_CASE("exported placements: errors name the place") {
  CHECK(ExportError("{\"mesh\": ").starts_with("p.json:1:"));
  CHECK(ExportError("{}").starts_with("p.json:1:1: expected a table \"mesh\" with a \"shape\""));
  CHECK(
      ExportError(Replaced("\"nodes\"", "\"knots\"")).starts_with("p.json:1:1: expected an array"));
  CHECK(ExportError(Replaced("\"name\": \"w\", \"op\"", "\"name\": 7, \"op\""))
            .starts_with("p.json:10:12: expected a text \"name\""));
  CHECK(ExportError(Replaced("\"comm_cost\": 100.0", "\"comm_cost\": \"much\""))
            .starts_with("p.json:16:79: expected a number \"comm_cost\""));
  CHECK(ExportError(Replaced("{\"name\": \"w\", \"src", "{\"name\": \"v\", \"src"))
            .starts_with("p.json:16:5: no node 'v' before this one"));
  CHECK(ExportError(Replaced("[8]", "[12]")).starts_with("nodes of 8 ranks are filled unevenly"));
}

TEST_CASE("exported placements: any damaged byte gives costs or an error") {
  size_t read = 0;
  const Topology topology = OrDie(Topology::Load("h100"));
  for (size_t at = 0; at < kProduct.size(); ++at) {
    for (const char byte : {'9', '"', '(', '-'}) {
      std::string text(kProduct);
      text[at] = byte;
      if (EvaluateExported(text, "p.json", topology)) ++read;
    }
  }
  CHECK_GT(read, 500);
}

}  // namespace
}  // namespace strata
