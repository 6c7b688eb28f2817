#include "passes/placement/mesh.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using Ranks = std::vector<int64_t>;

Mesh MeshOf(std::string_view text) {
  return OrDie(Mesh::Parse(text));
}

Ranks Group(const Mesh& mesh, std::string_view group, int64_t rank) {
  return OrDie(mesh.GroupOf(group, rank));
}

std::string ParseError(std::string_view text) {
  const auto mesh = Mesh::Parse(text);
  return mesh ? "" : mesh.error().message();
}

TEST_CASE("a mesh is read and printed, axes of size 1 are left out") {
  CHECK_EQ(MeshOf("").num_ranks(), 1);
  CHECK_EQ(MeshOf("").Text(), "");
  CHECK_EQ(MeshOf("fsdp=1"), Mesh());
  const Mesh mesh = MeshOf("pp=1,dp_replicate=2,fsdp=3,tp=4");
  CHECK_EQ(mesh.num_ranks(), 24);
  CHECK_EQ(mesh.Text(), "dp_replicate=2,fsdp=3,tp=4");
  CHECK_EQ(MeshOf(mesh.Text()), mesh);
  CHECK_EQ(mesh.Find("fsdp")->size, 3);
  CHECK(mesh.Find("pp") == nullptr);
}

TEST_CASE("ranks that differ in the last axis alone are consecutive") {
  const Mesh mesh = MeshOf("dp_replicate=2,fsdp=3,tp=4");
  CHECK_EQ(mesh.Coordinates(0), Ranks({0, 0, 0}));
  CHECK_EQ(mesh.Coordinates(1), Ranks({0, 0, 1}));
  CHECK_EQ(mesh.Coordinates(23), Ranks({1, 2, 3}));
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank)
    CHECK_EQ(mesh.RankAt(mesh.Coordinates(rank)), rank);
}

TEST_CASE("a group holds the ranks that differ in its axes alone") {
  const Mesh mesh = MeshOf("dp_replicate=2,fsdp=3,tp=4");
  CHECK_EQ(Group(mesh, "tp", 6), Ranks({4, 5, 6, 7}));
  CHECK_EQ(Group(mesh, "fsdp", 6), Ranks({2, 6, 10}));
  CHECK_EQ(Group(mesh, "dp_replicate", 6), Ranks({6, 18}));
  CHECK_EQ(Group(mesh, "dp_replicate+fsdp", 6), Ranks({2, 6, 10, 14, 18, 22}));
  CHECK_EQ(Group(mesh, "fsdp+dp_replicate", 6), Ranks({2, 14, 6, 18, 10, 22}));
  for (const std::string_view group : {"tp", "fsdp", "dp_replicate+tp", "tp+fsdp"}) {
    for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
      const int64_t index = OrDie(mesh.IndexIn(group, rank));
      CHECK_EQ(Group(mesh, group, rank)[static_cast<size_t>(index)], rank);
    }
  }
}

TEST_CASE("groups of experts are consecutive ranks of a block of dp_replicate") {
  const Mesh mesh = MeshOf("dp_replicate=2,fsdp=2,tp=4,ep=4");
  CHECK_EQ(mesh.num_ranks(), 16);
  CHECK_EQ(mesh.Text(), "dp_replicate=2,fsdp=2,tp=4,ep=4");
  CHECK_EQ(mesh.Find("efsdp")->size, 2);
  CHECK_EQ(Group(mesh, "ep", 9), Ranks({8, 9, 10, 11}));
  CHECK_EQ(Group(mesh, "efsdp", 9), Ranks({9, 13}));
  CHECK_EQ(Group(mesh, "dp_replicate+efsdp", 9), Ranks({1, 5, 9, 13}));
  const Mesh all = MeshOf("fsdp=2,tp=2,ep=4");
  CHECK(all.Find("efsdp") == nullptr);
  CHECK_EQ(Group(all, "ep", 2), Ranks({0, 1, 2, 3}));
}

TEST_CASE("the grid is as fine as that of the dense axes and that of experts") {
  using Names = std::vector<std::string>;
  const auto names = [](const Mesh& mesh) {
    Names all;
    for (const MeshAxis& axis : mesh.axes())
      all.push_back(fmt::format("{}={}", axis.name, axis.size));
    return all;
  };
  CHECK_EQ(names(MeshOf("fsdp=2,tp=4,ep=4")), Names({"fsdp=2", "tp=4"}));
  CHECK_EQ(names(MeshOf("fsdp=4,ep=2")), Names({"efsdp=2", "ep=2"}));
  CHECK_EQ(names(MeshOf("tp=4,ep=2")), Names({"efsdp=2", "ep=2"}));
  CHECK_EQ(names(MeshOf("fsdp=2,tp=4,ep=2")), Names({"fsdp=2", "tp_efsdp=2", "ep=2"}));
  const Mesh mesh = MeshOf("dp_replicate=2,fsdp=4,tp=2,ep=4");
  CHECK_EQ(names(mesh), Names({"dp_replicate=2", "efsdp=2", "fsdp_ep=2", "tp=2"}));
  CHECK_EQ(mesh.PartsOf("fsdp"), std::vector<size_t>({1, 2}));
  CHECK_EQ(mesh.PartsOf("ep"), std::vector<size_t>({2, 3}));
  CHECK_EQ(mesh.PartsOf("pp"), std::vector<size_t>());
  CHECK_EQ(mesh.Joined(1, 2)->name, "fsdp");
  CHECK_EQ(mesh.Joined(2, 2)->name, "ep");
  CHECK(mesh.Joined(1, 3) == nullptr);
  CHECK_EQ(Group(mesh, "fsdp", 5), Ranks({1, 3, 5, 7}));
  CHECK_EQ(Group(mesh, "fsdp_ep", 5), Ranks({5, 7}));
}

TEST_CASE("messages say what a mesh looks like") {
  constexpr std::string_view kAdvice = "; write axes and their sizes, as in fsdp=2,tp=4";
  const auto expect = [&](std::string_view text, std::string_view why) {
    CHECK_EQ(ParseError(text), std::string("not a mesh: '") + std::string(text) +
                                   "': " + std::string(why) + std::string(kAdvice));
  };
  expect("fsdp", "'fsdp' has no size");
  expect("fsdp=2,", "'' has no size");
  expect("f-s=2", "'f-s' is not a name");
  expect("fsdp=0", "the size of fsdp is '0'");
  expect("fsdp=2x", "the size of fsdp is '2x'");
  expect("fsdp=99999999999999999999", "the size of fsdp is '99999999999999999999'");
  expect("fsdp=2,fsdp=2", "fsdp is given twice");
  expect("efsdp=2,ep=2", "the size of efsdp follows from that of ep");
  expect("ep=2,fsdp=2", "ep is not the last axis");
  expect("fsdp=1048576,tp=2", "it has more than 1048576 ranks");
  expect("dp_replicate=4,fsdp=2,ep=4",
         "ep = 4 does not divide the 2 ranks of the axes inside dp_replicate");
  expect("fsdp=3,tp=2,ep=3", "ep = 3 takes no even part of fsdp");
}

TEST_CASE("groups of axes that the mesh does not have are errors") {
  const Mesh mesh = MeshOf("fsdp=2,tp=4,ep=4");
  const auto error = [&](std::string_view group) {
    return mesh.GroupOf(group, 0).error().message();
  };
  CHECK_EQ(error("pp"), "mesh 'fsdp=2,tp=4,ep=4' has no axis 'pp': it has fsdp, tp, efsdp, ep");
  CHECK_EQ(error("tp+tp"), "group 'tp+tp' names axis tp twice: name it once");
  CHECK_EQ(error("tp+ep"),
           "group 'tp+ep' joins tp and ep, which have ranks in common: join efsdp and ep, or the "
           "other axes");
  CHECK_EQ(Mesh().GroupOf("tp", 0).error().message(), "mesh '' has no axis 'tp': it has one rank");
}

}  // namespace
}  // namespace strata
