#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/database/database.h"
#include "store/database/hash.h"
#include "store/database/pack.h"

namespace strata {

/// Records of bytes that a trace stores once: strings, types, versions of nodes, chunks of order
/// lists. A record's id is its place in order of first appearance, from 1. Blocks of records share
/// a row, so that they compress well and 100,000 of them are read in milliseconds.
class PoolWriter {
 public:
  explicit PoolWriter(TableId table) : table_(table) {}

  struct Interned {
    uint32_t id;
    bool is_new;
  };
  /// The id of the record with these bytes. `guess` is tried first: where it is right, as it is for
  /// nodes and names that a pass left alone, a search with its cache miss is saved.
  Interned Intern(std::string_view bytes, uint32_t guess = 0);
  /// The id of a record that is known to be new, and is never looked for.
  uint32_t Append(std::string_view bytes);
  uint32_t size() const { return forgotten_ + static_cast<uint32_t>(hashes_.size()); }
  /// Records until now are not found again; ids go on.
  void Forget();
  uint32_t num_forgotten() const { return forgotten_; }

  /// Stores what was interned since the last call. REQUIRES: a transaction is open.
  Status Flush(Database& database, Packer& packer);

 private:
  void Store(std::string_view bytes, const Hash128& hash);

  TableId table_;
  ContentIndex index_;
  std::vector<Hash128> hashes_;  // by id, minus 1 and forgotten_
  uint32_t forgotten_ = 0;
  std::string pending_;               // records with their lengths
  std::vector<size_t> pending_ends_;  // of each record in pending_
};

/// Where a snapshot's records are read from: the pools of a file, or a test's list.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The record's bytes; they stay until the next load. Errors: there is no such record, or it is
  /// damaged.
  virtual Result<std::string_view> Get(uint32_t id) = 0;
  /// An error of code kCorrupt about a record.
  virtual Error Damaged(uint32_t id, std::string_view what) const = 0;
};

/// The records of one pool of a file. Blocks that were read stay in memory until `Trim`.
class PoolReader final : public RecordSource {
 public:
  /// REQUIRES: `database` outlives this.
  PoolReader(Database& database, TableId table) : database_(database), table_(table) {}

  Result<std::string_view> Get(uint32_t id) override {
    if (last_ == nullptr || id < last_->first || id - last_->first >= last_->size()) {
      STRATA_RETURN_IF_ERROR(Find(id));
    }
    return (*last_)[id - last_->first];
  }
  Error Damaged(uint32_t id, std::string_view what) const override;

  /// Forgets all blocks when they take over `limit` bytes.
  void Trim(size_t limit);

  /// Whether the block in `row` can be taken apart.
  Status CheckBlock(const Cursor& row) const;

 private:
  struct Block {
    uint32_t first = 0;
    std::string bytes;
    std::vector<std::pair<uint32_t, uint32_t>> records;  // offset, size
    uint32_t size() const { return static_cast<uint32_t>(records.size()); }
    std::string_view operator[](uint32_t i) const {
      return std::string_view(bytes).substr(records[i].first, records[i].second);
    }
  };

  /// Makes the block that holds `id` the last one.
  Status Find(uint32_t id);
  Result<std::unique_ptr<Block>> Decode(const Cursor& row) const;

  Database& database_;
  TableId table_;
  std::map<uint32_t, std::unique_ptr<Block>> blocks_;  // by first id
  const Block* last_ = nullptr;
  size_t cached_bytes_ = 0;
};

}  // namespace strata
