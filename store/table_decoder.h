#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "store/database/bytes.h"
#include "store/database/pool.h"

namespace strata {

/// Turns references to records of strings and types into ids of a module. The first error goes to
/// `error`; later ids are invalid.
class TableDecoder {
 public:
  /// REQUIRES: all arguments outlive this.
  TableDecoder(Module& module, RecordSource& strings, RecordSource& types,
               std::optional<Error>& error)
      : module_(module), string_records_(strings), type_records_(types), error_(error) {}

  StrId String(ByteReader& in);
  DimId Dim(ByteReader& in);
  TypeId Type(ByteReader& in);
  /// Declares the symbols that a root lists.
  void Symbols(ByteReader& in);

 private:
  /// Ids of the module by ids of records; filled as they are met.
  template <class Id>
  class IdCache {
   public:
    /// None when it was not met yet.
    Id Find(uint32_t record) const { return record < ids_.size() ? ids_[record] : Id{}; }
    /// REQUIRES: the record exists, so that a damaged number cannot ask for all memory.
    Id Set(uint32_t record, Id id) {
      if (record >= ids_.size()) ids_.resize(std::max<size_t>(record + 1, ids_.size() * 2));
      return ids_[record] = id;
    }

   private:
    std::vector<Id> ids_;
  };

  void Fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  Module& module_;
  RecordSource& string_records_;
  RecordSource& type_records_;
  std::optional<Error>& error_;
  IdCache<StrId> strings_;
  IdCache<DimId> dims_;  // by the string that spells it
  IdCache<TypeId> types_;
};

/// Looks a record up; false, and `error` if it is the first, when there is none.
bool GetRecord(RecordSource& source, uint32_t record, std::string_view& bytes,
               std::optional<Error>& error);

}  // namespace strata
