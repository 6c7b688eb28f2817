#include "ir/type.h"

#include <array>
#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

struct Tables {
  StringTable strings;
  DimTable dims{strings};
  TypeTable types{strings, dims};

  const Type& operator()(std::string_view text) { return types[types.Parse(text)]; }
};

TEST_CASE("types: annotations come back unchanged") {
  for (const char* text : {
           "bf16[256, 64][64, 1]cpu",
           "f32[2]",
           "f32[][]cuda:0",
           "f32[]",
           "b8[2, 3][3, 1]meta",
           "b8x1[4][1]cpu",
           "f8e4m3fn[16, 16][16, 1]cuda:3",
           "f32[0][1]cpu",
           "i64[s77, 4][4, 1]cpu",
           "f32[((s75*s96)//2), ((s75*s96)//(((s75*s96)//2)))][Max(1, ((s75*s96)//2)), 1]cpu",
           "f32[(((-u1)//3)) + 5]",
           "f32[2, 4][-4, 1]cpu",
           "Sym(s77)",
           "Sym(8)",
           "Sym(2.0*ToFloat(s77))",
           "Sym(s17 > 3)",
           "Parameter(f32[2][1]cpu)",
           "DTensor(f32[4, 4][4, 1]cpu, S(0))",
           "DTensor(f32[4, 4], R)",
           "DTensor(bf16[4, s0][s0, 1]cuda:0, P(sum)S(1)R)",
           "DTensor(f32[8, 4][4, 1]cpu, T(0)E(1)F(0, 2))",
           // Not understood, kept as text.
           "DTensor(f32[8, 4][4, 1]cpu, F(0))",
           "DTensor(f32[8, 4][4, 1]cpu, T(0, 2))",
           "DTensor(f32[4, 4][4, 1]cpu, S(1)[1]S(1)[0])",
           "DTensor(f32[4, 4][4, 1]cpu, _S(0, 2))",
           "q128[4]",
           "List[int]",
           "",
           "Sym(",
           "f32[4",
           "f32]4[",
           "f32[4]][",
           "f32[4][1, 2]cpu",
           "f32[4][1]CPU or so",
           "Parameter(f32[2][1]cpu",
           "DTensor(f32[4, 4][4, 1]cpu, )",
       }) {
    Tables t;
    CHECK_EQ(t.types.ToString(t.types.Parse(text)), text);
  }
}

TEST_CASE("types: the parts of a tensor annotation") {
  Tables t;
  const Type& type = t("bf16[s0, 64][64, 1]cuda:0");
  CHECK_EQ(type.kind, TypeKind::kTensor);
  CHECK_EQ(type.dtype, DType::kBF16);
  REQUIRE_EQ(type.sizes.size(), 2);
  CHECK_EQ(t.dims.ToString(type.sizes[0]), "s0");
  CHECK_EQ(t.dims.AsConst(type.sizes[1]), 64);
  CHECK(type.has_strides);
  CHECK_EQ(t.dims.AsConst(type.strides[0]), 64);
  CHECK_EQ(t.strings[type.device], "cuda:0");
  CHECK_FALSE(type.wrapper.valid());
}

TEST_CASE("types: parts that an annotation omits are unknown") {
  Tables t;
  CHECK_FALSE(t("f32[2]").has_strides);
  CHECK_FALSE(t("f32[2]").device.valid());
  CHECK(t("f32[][]").has_strides);
  CHECK_NE(t.types.Parse("f32[]"), t.types.Parse("f32[][]"));
}

TEST_CASE("types: bool is b8, bits8 is b8x1") {
  Tables t;
  CHECK_EQ(t("b8[1]").dtype, DType::kBool);
  CHECK_EQ(t("b8x1[1]").dtype, DType::kBits8);
}

TEST_CASE("types: placements, one per mesh axis") {
  Tables t;
  const Type& type = t("DTensor(f32[4, 4][4, 1]cpu, P(sum)S(1)R)");
  CHECK_EQ(t.strings[type.wrapper], "DTensor");
  REQUIRE_EQ(type.placements.size(), 3);
  CHECK_EQ(type.placements[0].kind, Placement::Kind::kPartial);
  CHECK_EQ(t.strings[type.placements[0].reduce], "sum");
  CHECK_EQ(type.placements[1].kind, Placement::Kind::kShard);
  CHECK_EQ(type.placements[1].dim, 1);
  CHECK_EQ(type.placements[2].kind, Placement::Kind::kReplicate);
}

TEST_CASE("types: a type with placements is a DTensor, whatever created it") {
  Tables t;
  Type type = t("f32[4, 4][4, 1]cpu");
  type.placements.push_back({.kind = Placement::Kind::kShard, .dim = 1, .reduce = {}});
  CHECK_EQ(t.types.Intern(type), t.types.Parse("DTensor(f32[4, 4][4, 1]cpu, S(1))"));
}

TEST_CASE("types: equal types have one id") {
  Tables t;
  CHECK_EQ(t.types.Parse("f32[2, 3][3, 1]cpu"),
           t.types.Tensor(DType::kF32, std::array<int64_t, 2>{2, 3}, "cpu"));
  CHECK_EQ(t.types.Parse("f32[s0*s1]"), t.types.Parse("f32[s1*s0]"));
  CHECK_NE(t.types.Parse("f32[2, 3][3, 1]cpu"), t.types.Parse("f32[2, 3][1, 2]cpu"));
}

TEST_CASE("types: strides of empty tensors are PyTorch's") {
  Tables t;
  // torch.empty(2, 0, 3).stride() == (3, 3, 1)
  const TypeId id = t.types.Tensor(DType::kF32, std::array<int64_t, 3>{2, 0, 3}, "cpu");
  CHECK_EQ(t.types.ToString(id), "f32[2, 0, 3][3, 3, 1]cpu");
}

TEST_CASE("types: hints give the size in bytes") {
  Tables t;
  CHECK_EQ(t.types.Bytes(t.types.Parse("bf16[256, 64]")), 32768);
  CHECK_EQ(t.types.Bytes(t.types.Parse("f32[]")), 4);
  CHECK_EQ(t.types.Bytes(t.types.Parse("f32[s0]")), std::nullopt);
  t.dims.SetSymbol({.name = t.strings.Intern("s0"), .hint = 3});
  CHECK_EQ(t.types.Bytes(t.types.Parse("f32[s0]")), 12);
  CHECK_EQ(t.types.Bytes(t.types.Parse("Sym(s0)")), std::nullopt);
  CHECK_EQ(t.types.Bytes(t.types.Parse("f32[9223372036854775807]")), std::nullopt);
}

TEST_CASE("types: every dtype is found by both names") {
  for (int i = 1; i <= static_cast<int>(DType::kF4E2M1FNX2); ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK_EQ(DTypeFromShortName(ShortName(dtype)), dtype);
    CHECK_EQ(DTypeFromTorchName(TorchName(dtype)), dtype);
    CHECK_GT(ByteSize(dtype), 0);
  }
  CHECK_EQ(DTypeFromShortName("?"), std::nullopt);
  CHECK_EQ(ByteSize(DType::kUnknown), 0);
}

TEST_CASE("types: hostile annotations become opaque text") {
  Tables t;
  for (const std::string& text :
       {"f32[" + std::string(100000, '(') + "]", "f32" + std::string(100000, '['),
        "A(" + std::string(50000, 'A') + std::string(50000, '('), std::string("f32[\0]", 6)}) {
    CHECK_EQ(t(text).kind, TypeKind::kOpaque);
    CHECK_EQ(t.types.ToString(t.types.Parse(text)), text);
  }
}

}  // namespace
}  // namespace strata
