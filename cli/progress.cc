#include "cli/progress.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace strata::cli {

Progress::Progress(std::string_view label)
    : label_(label), enabled_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  Clear();
}

void Progress::Update(int64_t done, int64_t total, std::string_view detail) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  const std::string count = total > 0 ? fmt::format("{}/{}", done, total) : fmt::format("{}", done);
  const std::string line = fmt::format("\r{}  {}  {}\x1b[K", label_, count, detail);
  std::fwrite(line.data(), 1, line.size(), stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

bool ColoursOnStdout() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

int64_t WidthOfStdout() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  int64_t width = 0;
  if (columns != nullptr) {
    const std::string_view text(columns);
    std::from_chars(text.data(), text.data() + text.size(), width);
  }
  return width > 0 ? width : 120;
}

}  // namespace strata::cli
