#include "diff/graph/listing.h"

#include <doctest/doctest.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::ParseBody;
using testing::ParseOrDie;

std::string NamesOf(const Listing& listing) {
  std::string names;
  for (EntityId id : listing.ids())
    names += listing.name(id) + " ";
  return names;
}

TEST_CASE("a listing has nodes, named elements and the output") {
  const auto module = ParseBody(R"(
  x = placeholder
  (a, _, c) = aten.split.Tensor(x, 2) as split
  add = aten.add.Tensor(a, c)
  output(add)
)");
  const Listing listing(module->graph({0}));
  CHECK_EQ(NamesOf(listing), "x split a c add output ");
  CHECK_EQ(listing.size(), module->graph({0}).num_printed_nodes());
  CHECK_EQ(listing.target(listing.FindName("c")), "_operator.getitem");
  CHECK_EQ(listing.target(listing.FindName("split")), "aten.split.Tensor");
  CHECK_FALSE(listing.value(listing.FindName("split")).valid());
  CHECK(listing.value(listing.FindName("c")).valid());
}

TEST_CASE("a listing names nodes of bodies by the attribute that holds the body") {
  const auto module = ParseOrDie(R"(graph g
  x = placeholder
  true_graph_0 = attr true_graph_0(graph(1))
  false_graph_0 = attr false_graph_0(graph(2))
  cond = higher_order.cond(x, true_graph_0, false_graph_0, [x])
  output(cond)
graph true_graph_0 body
  y = placeholder
  sin = aten.sin.default(y)
  output(sin)
graph false_graph_0 body
  z = placeholder
  output(z)
)");
  const Listing listing(module->graph({0}));
  CHECK_EQ(NamesOf(listing),
           "x true_graph_0 false_graph_0 cond output true_graph_0/y true_graph_0/sin "
           "true_graph_0/output false_graph_0/z false_graph_0/output ");
  CHECK_EQ(listing.scopes().size(), 3);
  CHECK_EQ(listing.scopes()[ScopeId{1}].referred_by, listing.FindName("true_graph_0"));
  CHECK_EQ(listing.scope_of(listing.FindName("false_graph_0/z")), ScopeId{2});
}

}  // namespace
}  // namespace strata
