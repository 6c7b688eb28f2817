#include "store/database/disk_reserve.h"

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace strata {

DiskReserve::DiskReserve(const std::string& path) {
  constexpr off_t kBytes = 256 << 10;
  std::string name = path + ".XXXXXX";
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) return;
  ::unlink(name.c_str());
  if (::posix_fallocate(file_, 0, kBytes) != 0) Release();
}

void DiskReserve::Release() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace strata
