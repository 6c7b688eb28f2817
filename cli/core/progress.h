#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::cli {

/// A progress line on stderr while something takes long: `importing  412/750  bucket_pass`. Shown
/// only if stderr is a terminal that can; rewritten in place at most ten times a second, cut to the
/// terminal's width; gone at the end.
class Progress {
 public:
  explicit Progress(std::string_view label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `total` 0: not known.
  void Update(int64_t done, int64_t total, std::string_view detail = {});
  /// Removes the line, so that something else can be printed; the next `Update` brings it back.
  void Clear();

 private:
  std::string label_;
  bool enabled_, shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

/// True when stdout is a terminal that shows colours, and NO_COLOR is not set.
bool ColoursOnStdout();

/// Columns of the terminal at stdout; else what COLUMNS says; else 120.
int64_t WidthOfStdout();

}  // namespace strata::cli
