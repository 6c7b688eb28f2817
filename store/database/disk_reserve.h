#pragma once
#include <string>

namespace strata {

/// Room on a disk for what must still be written when it is full: a file without a name, which a
/// crash leaves nothing of.
class DiskReserve {
 public:
  /// Beside `path`. Holds nothing where there is no room.
  explicit DiskReserve(const std::string& path);
  ~DiskReserve() { Release(); }
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  void Release();

 private:
  int file_ = -1;
};

}  // namespace strata
