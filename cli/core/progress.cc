#include "cli/core/progress.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace strata::cli {

namespace {

bool IsDumb() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
}

/// Columns of the terminal at stderr; 80 where it does not say.
size_t WidthOfStderr() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The first `columns` characters of a line of UTF-8.
std::string_view CutTo(std::string_view line, size_t columns) {
  size_t bytes = 0;
  for (; bytes < line.size(); ++bytes) {
    const bool begins_character = (static_cast<unsigned char>(line[bytes]) & 0xc0U) != 0x80U;
    if (begins_character && columns-- == 0) break;
  }
  return line.substr(0, bytes);
}

}  // namespace

Progress::Progress(std::string_view label)
    : label_(label), enabled_(::isatty(STDERR_FILENO) == 1 && !IsDumb()) {}

Progress::~Progress() {
  Clear();
}

void Progress::Update(int64_t done, int64_t total, std::string_view detail) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  const std::string count = total > 0 ? fmt::format("{}/{}", done, total) : fmt::format("{}", done);
  const std::string line = fmt::format("{}  {}  {}", label_, count, detail);
  // A line that is broken cannot be rewritten; the last column is left, where cursors wait.
  fmt::print(stderr, "\r{}\x1b[K", CutTo(line, WidthOfStderr() - 1));
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

bool ColoursOnStdout() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') && !IsDumb();
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
