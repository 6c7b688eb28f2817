// Graphs of ranks against those of one device, as torch.compile logs both.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "prove/foreign/contracts.h"
#include "prove/foreign/dtensor_metadata.h"
#include "prove/foreign/foreign_proof.h"
#include "prove/foreign/rank_mesh.h"
#include "prove/foreign/relation.h"
#include "tests/support/graphs.h"
#include "tests/support/meshes.h"

namespace strata::prove {
namespace {

using testing::MeshOf;
using testing::OrDie;
using testing::ParseBody;

const Term kR = {};
const Term kSum = {.kind = Term::Kind::kSum};
const Term kMean = {.kind = Term::Kind::kMean};
Term S(int64_t dim, Sizes parts = {}) {
  return {.kind = Term::Kind::kShard, .dim = dim, .parts = std::move(parts)};
}

Tensor Counting(Sizes sizes) {
  Tensor tensor(Domain::kFloat, std::move(sizes));
  for (size_t i = 0; i < tensor.storage()->words.size(); ++i)
    tensor.storage()->words[i] = i + 1;
  return tensor;
}

TEST_CASE("PV-9: parts of a tensor make the tensor, and no other relation does") {
  const Mesh mesh = MeshOf("dp=2,tp=2");
  const Tensor whole = Counting({4, 8});
  const std::vector<Relation> cuts = {{kR, kR},     {S(0), kR},   {kR, S(1)},
                                      {S(0), S(1)}, {S(1), S(0)}, {S(1), S(1)}};
  for (const Relation& relation : cuts) {
    CAPTURE(RelationText(relation, mesh));
    std::vector<Value> parts;
    for (int64_t rank = 0; rank < 4; ++rank)
      parts.emplace_back(PartOf(whole, relation, mesh, rank));
    CHECK_FALSE(DifferenceOnRanks(whole, parts, relation, mesh).has_value());
    for (const Relation& other : cuts) {
      const auto found = WholeOf(parts, other, mesh);
      CHECK_EQ(found && SameElements(whole, *found), other == relation);
    }
  }
}

TEST_CASE("PV-9: summands are not values with a mean") {
  const Mesh mesh = MeshOf("dp=2,tp=2");
  const Tensor one = Counting({3});
  const std::vector<Value> parts = {one, one, one, one};
  const auto times = [&](uint64_t factor) {
    Tensor tensor = one.Copy();
    for (uint64_t& word : tensor.storage()->words)
      word *= factor;
    return Value(tensor);
  };
  CHECK_FALSE(DifferenceOnRanks(times(2), parts, {kSum, kR}, mesh).has_value());
  CHECK_FALSE(DifferenceOnRanks(times(4), parts, {kSum, kSum}, mesh).has_value());
  CHECK_FALSE(DifferenceOnRanks(one, parts, {kMean, kMean}, mesh).has_value());
  CHECK_EQ(DifferenceOnRanks(times(4), parts, {kSum, kMean}, mesh),
           "rank 0: 1/2 of the expected value");
}

/// Equal sizes on four ranks.
std::vector<Sizes> OnAll(const Sizes& sizes) {
  return std::vector<Sizes>(4, sizes);
}

TEST_CASE("sizes on a rank say which cuts are possible, and DTensor which one it is") {
  const Mesh mesh = MeshOf("dp=2,tp=2");
  const auto candidates = OrDie(CandidatesOf({8, 4}, OnAll({4, 4}), nullptr, mesh));
  CHECK_FALSE(candidates.is_stated);
  CHECK_EQ(candidates.relations, std::vector<Relation>{{S(0), kR}, {kR, S(0)}});
  CHECK_EQ(OrDie(CandidatesOf({8, 4}, OnAll({4, 2}), nullptr, mesh)).relations,
           std::vector<Relation>{{S(0), S(1)}, {S(1), S(0)}});
  CHECK_EQ(OrDie(CandidatesOf({8}, OnAll({2}), nullptr, mesh)).relations,
           std::vector<Relation>{{S(0), S(0)}});
  CHECK_FALSE(CandidatesOf({8}, OnAll({3}), nullptr, mesh));
  const DTensorSpec spec = {
      .axes = {{.name = "tp", .size = 2, .stride = 1}}, .texts = {"Shard(dim=0)"}, .terms = {S(0)}};
  CHECK_EQ(OrDie(CandidatesOf({8, 4}, OnAll({4, 4}), &spec, mesh)).relations,
           std::vector<Relation>{{kR, S(0)}});
  const DTensorSpec unknown = {.axes = {{.name = "tp", .size = 2, .stride = 1}},
                               .texts = {"_StridedShard(dim=0, sf=2)"},
                               .terms = {}};
  const auto refused = CandidatesOf({8, 4}, OnAll({4, 4}), &unknown, mesh);
  REQUIRE_FALSE(refused);
  CHECK_EQ(refused.error().message(), "a placement that is not known: _StridedShard(dim=0, sf=2)");
}

TEST_CASE("parts that are not equal are those of one axis") {
  const Mesh mesh = MeshOf("dp=2,tp=2");
  const std::vector<Sizes> local = {{4, 3}, {4, 2}, {3, 3}, {3, 2}};
  const auto candidates = OrDie(CandidatesOf({7, 5}, local, nullptr, mesh));
  CHECK_EQ(candidates.relations, std::vector<Relation>{{S(0), S(1)}});
  CHECK_EQ(candidates.relations[0][0].parts, Sizes{4, 3});
  CHECK_EQ(candidates.relations[0][1].parts, Sizes{3, 2});
  const DTensorSpec spec = {
      .axes = {{.name = "tp", .size = 2, .stride = 1}}, .texts = {"Shard(dim=1)"}, .terms = {S(1)}};
  CHECK_EQ(OrDie(CandidatesOf({7, 5}, local, &spec, mesh)).relations[0][1].parts, Sizes{3, 2});
  const auto refused = CandidatesOf({8, 5}, local, nullptr, mesh);
  REQUIRE_FALSE(refused);
  CHECK_EQ(refused.error().message(),
           "sizes [4, 3], [4, 2], [3, 3], [3, 2] on ranks, [8, 5] on one device, which no cut "
           "explains");

  const Tensor whole = Counting({7, 5});
  const Relation relation = {S(0, {4, 3}), S(1, {3, 2})};
  std::vector<Value> parts;
  for (int64_t rank = 0; rank < 4; ++rank)
    parts.emplace_back(PartOf(whole, relation, mesh, rank));
  CHECK_EQ(SizesOnRanks(parts), local);
  CHECK_FALSE(DifferenceOnRanks(whole, parts, relation, mesh).has_value());
  const auto joined = WholeOf(parts, {S(0), S(1)}, mesh);
  REQUIRE(joined);
  CHECK(SameElements(whole, *joined));
}

TEST_CASE("what AOTAutograd logs of DTensors is read") {
  constexpr std::string_view kText = R"(ViewAndMutationMeta(input_info=[],
    subclass_inp_meta=[PlainTensorMeta(unwrapped_idx=0,
                                       memory_format=None),
                       SubclassCreationMeta(flat_tensor_start_idx=1,
                         meta=(DTensorSpec(mesh=DeviceMesh((dp=2, tp=4), 'cpu', stride=(4, 1)),
                                           placements=(Replicate(), Shard(dim=1)),
                                           tensor_meta=TensorMeta(shape=torch.Size([8, 4]))), False)),
                       SubclassCreationMeta(flat_tensor_start_idx=2,
                         meta=(DTensorSpec(mesh=DeviceMesh((2,), 'cpu', stride=(1,)),
                                           placements=(MaskPartial(),)), False))],
    subclass_tangent_meta=[])";
  const DTensorSpecs specs = ReadDTensorSpecs(kText, "subclass_inp_meta");
  REQUIRE_EQ(specs.size(), 2);
  CHECK_EQ(specs.at(1).axes, std::vector<MeshAxis>{{.name = "dp", .size = 2, .stride = 4},
                                                   {.name = "tp", .size = 4, .stride = 1}});
  CHECK_EQ(specs.at(1).terms, Relation{kR, S(1)});
  CHECK(specs.at(2).terms.empty());
  CHECK_EQ(specs.at(2).texts, std::vector<std::string>{"MaskPartial()"});
  CHECK(ReadDTensorSpecs(kText, "subclass_tangent_meta").empty());
  CHECK(ReadDTensorSpecs("", "subclass_inp_meta").empty());
}

TEST_CASE("the mesh of ranks has the axes that DTensors name, and what is left") {
  const NamedGroups none;
  CHECK_EQ(OrDie(MeshOfRanks({}, none, 4)).Text(), "world=4");
  const std::vector<MeshAxis> tp = {{.name = "tp", .size = 2, .stride = 1}};
  CHECK_EQ(OrDie(MeshOfRanks(tp, none, 8)).Text(), "outer=4,tp=2");
  const std::vector<MeshAxis> dp = {{.name = "dp", .size = 2, .stride = 4}};
  CHECK_EQ(OrDie(MeshOfRanks(dp, none, 8)).Text(), "dp=2,inner=4");
  const std::vector<MeshAxis> crossing = {{.name = "a", .size = 2, .stride = 1},
                                          {.name = "b", .size = 2, .stride = 1}};
  CHECK_EQ(OrDie(MeshOfRanks(crossing, none, 2)).Text(), "a=2");
  const std::vector<MeshAxis> apart = {{.name = "a", .size = 4, .stride = 1},
                                       {.name = "b", .size = 4, .stride = 2}};
  CHECK_FALSE(MeshOfRanks(apart, none, 8));
}

// A product whose weight two ranks cut by rows: each has a summand of the result.
constexpr std::string_view kSingle = R"(
  primals_1 = placeholder : f32[4, 6][6, 1]cpu {+descriptor='PlainAOTInput(idx=0)'}
  primals_2 = placeholder : f32[6, 8][8, 1]cpu {+descriptor='PlainAOTInput(idx=1)' +fqn='w'}
  mm = aten.mm.default(primals_1, primals_2) : f32[4, 8][8, 1]cpu
  silu = aten.silu.default(mm) : f32[4, 8][8, 1]cpu
  output((silu,)) {+descriptors='PlainAOTOutput(idx=0)'}
)";
constexpr std::string_view kRank = R"(
  primals_1 = placeholder : f32[4, 3][3, 1]cpu {{+descriptor='PlainAOTInput(idx=0)'}}
  primals_2 = placeholder : f32[3, 8][8, 1]cpu {{+descriptor='PlainAOTInput(idx=1)' +fqn='w'}}
  mm = aten.mm.default(primals_1, primals_2) : f32[4, 8][8, 1]cpu
  sum = _c10d_functional.all_reduce.default(mm, '{}', '0') : f32[4, 8][8, 1]cpu
  wait = _c10d_functional.wait_tensor.default(sum) : f32[4, 8][8, 1]cpu
  silu = aten.silu.default({}) : f32[4, 8][8, 1]cpu
  output((silu,)) {{+descriptors='PlainAOTOutput(idx=0)'}}
)";

/// The proof of ranks against one device.
Proof ProofOfRanks(std::string_view one_device, const std::vector<std::string>& texts,
                   const ForeignOptions& options = {}) {
  const auto single = ParseBody(one_device);
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<CompiledProgram> ranks;
  for (const std::string& text : texts) {
    modules.push_back(ParseBody(text));
    ranks.push_back({.name = "0/0",
                     .forward = modules.back()->FindGraph("g"),
                     .backward = nullptr,
                     .inputs = {"L_x_", "L_w_"},
                     .metadata = "",
                     .gradient_metadata = ""});
  }
  const CompiledProgram program = {.name = "0/0",
                                   .forward = single->FindGraph("g"),
                                   .backward = nullptr,
                                   .inputs = {"L_x_", "L_w_"},
                                   .metadata = "",
                                   .gradient_metadata = ""};
  return ProveForeign(program, ranks, options);
}
Proof ProofOfRanks(const std::vector<std::string>& texts) {
  return ProofOfRanks(kSingle, texts);
}

TEST_CASE("PV-70: ranks are proven with inferred placements, which the proof states") {
  const std::string rank = fmt::format(kRank, "sum", "wait");
  const Proof proof = ProofOfRanks({rank, rank});
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.mesh, "world=2");
  CHECK_EQ(proof.assumptions, std::vector<Assumption>{{"ranks hold S(0) on world: w"},
                                                      {"ranks hold S(1) on world: L_x_"}});
}

TEST_CASE("PV-71: an error in a collective of a rank is found, with what it reads") {
  const std::string rank = fmt::format(kRank, "sum", "wait");
  const std::string unsummed = fmt::format(kRank, "sum", "mm");
  const Proof missing = ProofOfRanks({unsummed, unsummed});
  CHECK_EQ(missing.verdict, Verdict::kDiffers);
  REQUIRE_EQ(missing.findings.size(), 1);
  CHECK_EQ(missing.findings[0].node, "silu");
  CHECK_EQ(missing.findings[0].reference, "silu");
  CHECK_EQ(missing.findings[0].module, "output 0");
  CHECK_EQ(missing.findings[0].diagnosis.kind, BugKind::kMissingCollective);
  CHECK_EQ(missing.findings[0].diagnosis.reason, "reads mm, which is P(sum) on world");
  const Proof averaged = ProofOfRanks({fmt::format(kRank, "avg", "wait"), rank});
  CHECK_EQ(averaged.verdict, Verdict::kDiffers);
  REQUIRE_EQ(averaged.findings.size(), 1);
  CHECK_EQ(averaged.findings[0].node, "sum");
}

TEST_CASE("a loss that is a sum differs, unless other code sums it over the ranks") {
  const auto step = [](int samples) {
    return fmt::format(R"(
  primals_1 = placeholder : f32[{0}, 6][6, 1]cpu {{+descriptor='PlainAOTInput(idx=0)'}}
  primals_2 = placeholder : f32[6, 8][8, 1]cpu {{+descriptor='PlainAOTInput(idx=1)' +fqn='w'}}
  mm = aten.mm.default(primals_1, primals_2) : f32[{0}, 8][8, 1]cpu
  loss = aten.sum.default(mm) : f32[][]cpu
  output((loss,)) {{+descriptors='PlainAOTOutput(idx=0)'}}
)",
                       samples);
  };
  const Proof proof = ProofOfRanks(step(4), {step(2), step(2)});
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK(proof.findings[0].diagnosis.reason.ends_with(
      "no graph sums over world; if other code does: --assume world=sums"));
  const Proof stated =
      ProofOfRanks(step(4), {step(2), step(2)}, {.reduced_outside = {{"world", Term::Kind::kSum}}});
  CHECK_EQ(stated.verdict, Verdict::kProven);
}

TEST_CASE("PV-72: the log of one rank of several is no proof") {
  const Proof proof = ProofOfRanks({fmt::format(kRank, "sum", "wait")});
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason,
           "input L_x_: sizes [4, 3] on ranks, [4, 6] on one device, which no cut explains");
}

TEST_CASE("ranks that compute the same prove nothing of their axis") {
  const Proof proof = ProofOfRanks({std::string(kSingle), std::string(kSingle)});
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason,
           "no input is cut over world, so its ranks compute the same: the log of one device must "
           "have the batch of all ranks");
}

TEST_CASE("B89: ranks of a group that call collectives in another order are found") {
  constexpr std::string_view kTwo = R"(
  primals_1 = placeholder : f32[4, 3][3, 1]cpu {{+descriptor='PlainAOTInput(idx=0)'}}
  primals_2 = placeholder : f32[3, 8][8, 1]cpu {{+descriptor='PlainAOTInput(idx=1)' +fqn='w'}}
  mm = aten.mm.default(primals_1, primals_2) : f32[4, 8][8, 1]cpu
{}  wait = _c10d_functional.wait_tensor.default(sum) : f32[4, 8][8, 1]cpu
  largest = _c10d_functional.wait_tensor.default(max) : f32[4, 3][3, 1]cpu
  output((wait, largest,)) {{+descriptors='PlainAOTOutput(idx=0)\nPlainAOTOutput(idx=1)'}}
)";
  const std::string sum =
      "  sum = _c10d_functional.all_reduce.default(mm, 'sum', '0') : f32[4, 8][8, 1]cpu\n";
  const std::string max =
      "  max = _c10d_functional.all_reduce.default(primals_1, 'max', '0') : f32[4, 3][3, 1]cpu\n";
  const Proof proof = ProofOfRanks({fmt::format(kTwo, sum + max), fmt::format(kTwo, max + sum)});
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  CHECK_EQ(proof.findings[0].diagnosis.kind, BugKind::kCollectiveOrder);
  CHECK_EQ(proof.findings[0].node, "max");
  CHECK_EQ(proof.findings[0].what,
           "collective 0 of group '0': rank 0: all_reduce(sum) of f32[4, 8][8, 1]cpu, rank 1: "
           "all_reduce(max) of f32[4, 3][3, 1]cpu");
}

TEST_CASE("ranks with other nodes are not evaluated") {
  const std::string rank = fmt::format(kRank, "sum", "wait");
  const Proof proof = ProofOfRanks({rank, fmt::format(kRank, "sum", "mm")});
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason,
           "rank 1 runs other nodes than rank 0: silu of graph g: strata ranks compares them");
}

}  // namespace
}  // namespace strata::prove
