#include "runtime/ranks/sharding.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/meshes.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using testing::MeshOf;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

std::vector<Tensor> Parts(const Sharding& sharding, const Tensor& whole, const Mesh& mesh) {
  std::vector<Tensor> parts;
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank)
    parts.push_back(sharding.Shard(whole, rank));
  return parts;
}

TEST_CASE("T75: a tensor is cut by axes from the outside in, and put together again") {
  const Mesh mesh = MeshOf("dp_replicate=2,fsdp=2,tp=3");
  const Tensor whole = at::arange(12 * 6, at::kFloat).view({12, 6});
  const Sharding sharding = OrDie(Sharding::Parse("DTensor(f32[12, 6][6, 1]cpu, RS(0)S(1))", mesh));
  const std::vector<Tensor> parts = Parts(sharding, whole, mesh);
  for (int64_t rank = 0; rank < 12; ++rank) {
    const Tensor wanted = whole.narrow(0, rank / 3 % 2 * 6, 6).narrow(1, rank % 3 * 2, 2);
    CHECK(at::equal(parts[static_cast<size_t>(rank)], wanted));
  }
  CHECK(at::equal(sharding.Gather(parts), whole));
}

TEST_CASE("two axes can cut one dimension") {
  const Mesh mesh = MeshOf("fsdp=2,tp=2");
  const Tensor whole = at::arange(8, at::kFloat);
  const Sharding sharding = OrDie(Sharding::Parse("DTensor(f32[8][1]cpu, S(0)S(0))", mesh));
  const std::vector<Tensor> parts = Parts(sharding, whole, mesh);
  CHECK(at::equal(parts[1], whole.narrow(0, 2, 2)));
  CHECK(at::equal(parts[2], whole.narrow(0, 4, 2)));
  CHECK(at::equal(sharding.Gather(parts), whole));
}

TEST_CASE("T74: a strided axis cuts what inner axes left") {
  const Mesh mesh = MeshOf("fsdp=2,tp=2");
  const Tensor whole = at::arange(8, at::kFloat);
  const Sharding sharding = OrDie(Sharding::Parse("DTensor(f32[8][1]cpu, _S(0, 2)S(0))", mesh));
  const std::vector<Tensor> parts = Parts(sharding, whole, mesh);
  CHECK(at::equal(parts[0], whole.narrow(0, 0, 2)));
  CHECK(at::equal(parts[1], whole.narrow(0, 4, 2)));
  CHECK(at::equal(parts[2], whole.narrow(0, 2, 2)));
  CHECK(at::equal(sharding.Gather(parts), whole));
}

TEST_CASE("T69, T75: uneven dimensions are continued by zeros, which no whole has") {
  const Mesh mesh = MeshOf("fsdp=4,tp=2");
  for (const int64_t rows : {1, 3, 5, 7, 9}) {
    const Tensor whole = at::arange(1, rows * 3 + 1, at::kFloat).view({rows, 3});
    const std::string type = "DTensor(f32[" + std::to_string(rows) + ", 3][3, 1]cpu, S(0)S(0))";
    const Sharding sharding = OrDie(Sharding::Parse(type, mesh));
    const std::vector<Tensor> parts = Parts(sharding, whole, mesh);
    for (const Tensor& part : parts)
      CHECK_EQ(part.sizes(), parts[0].sizes());
    CHECK(at::equal(sharding.Gather(parts), whole));
  }
  const Sharding sharding = OrDie(Sharding::Parse("DTensor(f32[5][1]cpu, S(0)R)", mesh));
  CHECK(at::equal(sharding.Shard(at::arange(1, 6, at::kFloat), 4), at::tensor({5.F, 0.F})));
}

TEST_CASE("a tensor without placements, or with R alone, is on every rank") {
  const Mesh mesh = MeshOf("fsdp=2");
  const Tensor whole = at::arange(4, at::kFloat);
  for (const char* type : {"f32[4][1]cpu", "DTensor(f32[4][1]cpu, R)"}) {
    const Sharding sharding = OrDie(Sharding::Parse(type, mesh));
    CHECK(sharding.is_replicated());
    const Tensor part = sharding.Shard(whole, 1);
    CHECK(at::equal(part, whole));
    CHECK_NE(part.const_data_ptr(), whole.const_data_ptr());
  }
}

TEST_CASE("sizes that are symbols are those of the trace") {
  const Mesh mesh = MeshOf("fsdp=2,tp=2");
  CHECK_EQ(OrDie(Sharding::Parse("DTensor(f32[2*s0, 3][3, 1]cpu, S(0)R)", mesh, {{"s0", 4}})),
           OrDie(Sharding::Parse("DTensor(f32[8, 3][3, 1]cpu, S(0)R)", mesh)));
}

TEST_CASE("types that no rank can hold are errors") {
  const Mesh mesh = MeshOf("fsdp=2,tp=2");
  const auto error = [&](std::string_view type) { return MessageOf(Sharding::Parse(type, mesh)); };
  CHECK_EQ(error("DTensor(f32[4][1]cpu, S(0))"),
           "placement 'DTensor(f32[4][1]cpu, S(0))': it has 1 placements for the axes of "
           "fsdp=2,tp=2");
  CHECK_EQ(error("DTensor(f32[4][1]cpu, RP(sum))"),
           "placement 'DTensor(f32[4][1]cpu, RP(sum))': it is partial");
  CHECK_EQ(error("DTensor(f32[4][1]cpu, RS(1))"),
           "placement 'DTensor(f32[4][1]cpu, RS(1))': it has no dimension 1");
  CHECK_EQ(error("DTensor(f32[s0][1]cpu, RR)"),
           "placement 'DTensor(f32[s0][1]cpu, RR)': its sizes depend on symbols");
}

}  // namespace
}  // namespace strata
