#pragma once
#include <string>
#include <string_view>

#include "tlparse-export/torch_trace/read/byte_source.h"

namespace strata {

/// A log that is made of files of another form, in pieces as they are made.
class MadeLog : public ByteSource {
 public:
  Result<std::string_view> ReadPiece() final;

 protected:
  /// Adds to `made_`; false: there is no more.
  virtual Result<bool> Make() = 0;

  /// `fields`: the envelope without its braces and without a checksum.
  void AddRecord(std::string_view prefix, std::string_view fields, std::string_view payload);

  std::string made_;
};

/// The text of a file inside `folder`. Errors: `name` leads out of the folder, or the file cannot
/// be read.
Result<std::string> ReadInside(const std::string& folder, const std::string& name);

}  // namespace strata
