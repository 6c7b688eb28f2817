#include "store/database/pool.h"

#include <limits>

#include "store/database/bytes.h"

namespace strata {
namespace {

// Larger blocks compress better; smaller ones waste less when few of their records are in use. 50
// snapshots of 20,000 nodes: 1.47 MB with 4 KB, 1.22 MB with 16 KB, 1.18 MB with 64 KB.
constexpr size_t kBlockBytes = size_t{16} << 10;
// One record can be large (a constant in a graph), not that large.
constexpr size_t kMaxBlockBytes = size_t{1} << 30;

}  // namespace

PoolWriter::Interned PoolWriter::Intern(std::string_view bytes, uint32_t guess) {
  const Hash128 hash = HashBytes(bytes);
  if (guess > forgotten_ && hashes_[guess - forgotten_ - 1] == hash) return {guess, false};
  const uint32_t next = size() + 1;
  const auto [id, is_new] = index_.Emplace(hash, next);
  if (!is_new) return {*id, false};
  Store(bytes, hash);
  return {next, true};
}

uint32_t PoolWriter::Append(std::string_view bytes) {
  Store(bytes, {});
  return size();
}

void PoolWriter::Store(std::string_view bytes, const Hash128& hash) {
  hashes_.push_back(hash);
  ByteWriter(pending_).Sized(bytes);
  pending_ends_.push_back(pending_.size());
}

void PoolWriter::Forget() {
  forgotten_ = size();
  index_ = ContentIndex();
  hashes_ = {};
}

Status PoolWriter::Flush(Database& database, Packer& packer) {
  if (pending_ends_.empty()) return Ok();
  int64_t first = int64_t{size()} - static_cast<int64_t>(pending_ends_.size()) + 1;
  size_t begin = 0;
  int64_t count = 0;
  for (size_t i = 0; i < pending_ends_.size(); ++i) {
    ++count;
    const size_t end = pending_ends_[i];
    if (end - begin < kBlockBytes && i + 1 < pending_ends_.size()) continue;
    const std::string data = packer.Pack(std::string_view(pending_).substr(begin, end - begin));
    STRATA_RETURN_IF_ERROR(database.Put(table_, first, {count, data}));
    first += count;
    begin = end;
    count = 0;
  }
  pending_.clear();
  pending_ends_.clear();
  return database.Put(TableId::kCounter, CounterOf(table_),
                      {std::string_view(TableOf(table_).name), int64_t{size()}});
}

Status PoolReader::Find(uint32_t id) {
  auto next = blocks_.upper_bound(id);
  if (next != blocks_.begin()) {
    const Block& block = *std::prev(next)->second;
    if (id - block.first < block.size()) {
      last_ = &block;
      return Ok();
    }
  }
  STRATA_TRY(Cursor row, database_.FindAtMost(table_, id));
  STRATA_TRY(const bool found, row.Next());
  if (!found) return Damaged(id, "there is no such record");
  STRATA_TRY(std::unique_ptr<Block> block, Decode(row));
  if (id - block->first >= block->size()) return Damaged(id, "there is no such record");
  cached_bytes_ += block->bytes.size();
  last_ = block.get();
  blocks_[block->first] = std::move(block);
  return Ok();
}

Result<std::unique_ptr<PoolReader::Block>> PoolReader::Decode(const Cursor& row) const {
  if (row.id() < 1 || row.id() > std::numeric_limits<uint32_t>::max()) {
    return row.Damaged("its id is out of range");
  }
  auto block = std::make_unique<Block>();
  block->first = static_cast<uint32_t>(row.id());
  std::optional<std::string> bytes = Unpack(row.Bytes(1), kMaxBlockBytes);
  if (!bytes) return row.Damaged("its data does not unpack");
  block->bytes = std::move(*bytes);
  ByteReader reader(block->bytes);
  while (reader.ok() && reader.left() > 0) {
    const auto size = static_cast<uint32_t>(reader.Sized().size());
    block->records.emplace_back(static_cast<uint32_t>(reader.position()) - size, size);
  }
  if (!reader.ok() || static_cast<int64_t>(block->size()) != row.Integer(0)) {
    return row.Damaged("its records are cut off");
  }
  return block;
}

Error PoolReader::Damaged(uint32_t id, std::string_view what) const {
  return database_.Damaged(table_, id, what);
}

void PoolReader::Trim(size_t limit) {
  if (cached_bytes_ <= limit) return;
  blocks_.clear();
  last_ = nullptr;
  cached_bytes_ = 0;
}

Status PoolReader::CheckBlock(const Cursor& row) const {
  STRATA_TRY(const std::unique_ptr<Block> block, Decode(row));
  return Ok();
}

}  // namespace strata
