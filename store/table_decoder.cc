#include "store/table_decoder.h"

#include "store/snapshot_format.h"

namespace strata {

using namespace snapshot_format;

StrId TableDecoder::String(ByteReader& in) {
  const auto record = static_cast<uint32_t>(in.Bounded(UINT32_MAX));
  if (record == 0) return {};
  if (const StrId known = strings_.Find(record); known.valid()) return known;
  std::string_view text;
  if (!GetRecord(string_records_, record, text, error_)) return {};
  return strings_.Set(record, module_.Intern(text));
}

DimId TableDecoder::Dim(ByteReader& in) {
  const uint64_t code = in.Varint();
  if (code == kNoDim) return {};
  if (code == kConstDim) return module_.dims().Const(in.Signed());
  if (code - kFirstTextDim >= UINT32_MAX) {
    in.Fail();
    return {};
  }
  const auto record = static_cast<uint32_t>(code - kFirstTextDim + 1);
  if (const DimId known = dims_.Find(record); known.valid()) return known;
  std::string_view text;
  if (!GetRecord(string_records_, record, text, error_)) return {};
  Result<DimId> parsed = module_.dims().Parse(text);
  if (!parsed) {
    Fail(string_records_.Damaged(record, "it is no size"));
    return {};
  }
  return dims_.Set(record, *parsed);
}

TypeId TableDecoder::Type(ByteReader& in) {
  const auto record = static_cast<uint32_t>(in.Bounded(UINT32_MAX));
  if (record == 0) return {};
  if (const TypeId known = types_.Find(record); known.valid()) return known;
  std::string_view bytes;
  if (!GetRecord(type_records_, record, bytes, error_)) return {};
  ByteReader reader(bytes);
  strata::Type type;
  const uint8_t kind = reader.Byte();
  const uint8_t dtype = reader.Byte();
  const uint8_t flags = reader.Byte();
  type.kind = static_cast<TypeKind>(kind);
  type.dtype = static_cast<DType>(dtype);
  type.has_strides = (flags & kHasStrides) != 0;
  type.requires_grad = (flags & kRequiresGrad) != 0;
  type.device = String(reader);
  type.wrapper = String(reader);
  type.dim = Dim(reader);
  for (size_t left = reader.Count(); left > 0 && reader.ok(); --left)
    type.sizes.push_back(Dim(reader));
  for (size_t left = reader.Count(); left > 0 && reader.ok(); --left)
    type.strides.push_back(Dim(reader));
  for (size_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    Placement placement;
    const uint8_t placement_kind = reader.Byte();
    const bool is_strided = placement_kind == kStridedShard;
    placement.kind =
        is_strided ? Placement::Kind::kShard : static_cast<Placement::Kind>(placement_kind);
    placement.dim = reader.Int32();
    if (is_strided) placement.split = reader.Int32();
    placement.reduce = String(reader);
    if (placement_kind > static_cast<uint8_t>(kLastPlacementKind) && !is_strided) reader.Fail();
    if (is_strided && placement.split == 0) reader.Fail();
    type.placements.push_back(placement);
  }
  type.text = String(reader);
  const auto is_dim = [](DimId dim) { return dim.valid(); };
  if (!error_ &&
      (!reader.AtEnd() || kind > static_cast<uint8_t>(kLastTypeKind) ||
       dtype > static_cast<uint8_t>(kLastDType) || !std::ranges::all_of(type.sizes, is_dim) ||
       !std::ranges::all_of(type.strides, is_dim) ||
       (type.kind == TypeKind::kSymInt && !type.dim.valid()))) {
    Fail(type_records_.Damaged(record, "its bytes do not decode"));
  }
  if (error_) return {};
  return types_.Set(record, module_.types().Intern(type));
}

void TableDecoder::Symbols(ByteReader& in) {
  const size_t count = in.Count();
  for (size_t i = 0; i < count && in.ok(); ++i) {
    Symbol symbol;
    symbol.name = String(in);
    const uint8_t flags = in.Byte();
    const int64_t hint = in.Signed();
    symbol.backed = (flags & kBacked) != 0;
    if ((flags & kHasHint) != 0) symbol.hint = hint;
    symbol.min = in.Signed();
    symbol.max = in.Signed();
    if (in.ok() && symbol.name.valid()) module_.dims().SetSymbol(symbol);
  }
}

bool GetRecord(RecordSource& source, uint32_t record, std::string_view& bytes,
               std::optional<Error>& error) {
  Result<std::string_view> found = source.Get(record);
  if (found) {
    bytes = *found;
    return true;
  }
  if (!error) error = std::move(found).error();
  return false;
}

}  // namespace strata
