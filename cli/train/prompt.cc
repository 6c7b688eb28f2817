#include "cli/train/prompt.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

namespace strata::cli {
namespace {

constexpr char kEndOfInput = 4, kBackspace = 8, kTab = 9, kKill = 21, kEscape = 27, kDelete = 127;

/// Characters arrive one by one, and are not echoed, until this is destroyed. Ctrl-C still ends
/// the program.
class RawTerminal {
 public:
  RawTerminal() {
    is_raw_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (is_raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  ~RawTerminal() {
    if (is_raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool is_raw_ = false;
};

/// 0: the input has ended.
char ReadByte() {
  char byte = 0;
  return ::read(STDIN_FILENO, &byte, 1) == 1 ? byte : '\0';
}

}  // namespace

std::optional<std::string> Prompt::Read() {
  if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) return ReadTerminal();
  fmt::print("{}", mark_);
  std::fflush(stdout);
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

std::optional<std::string> Prompt::ReadTerminal() {
  const RawTerminal terminal;
  std::string line;
  size_t at = past_.size();
  Show(line);
  while (true) {
    const char byte = ReadByte();
    if (byte == '\0' || (byte == kEndOfInput && line.empty())) return std::nullopt;
    if (byte == '\n' || byte == '\r') break;
    if (byte == kTab) {
      OnTab(line);
    } else if (byte == kBackspace || byte == kDelete) {
      // A character of UTF-8 goes as a whole.
      while (!line.empty() && (line.back() & 0xC0) == 0x80)
        line.pop_back();
      if (!line.empty()) line.pop_back();
    } else if (byte == kKill) {
      line.clear();
    } else if (byte == kEscape) {
      OnArrow(line, at);
    } else if (static_cast<unsigned char>(byte) >= ' ') {
      line += byte;
    }
    Show(line);
  }
  fmt::print("\n");
  if (!line.empty() && (past_.empty() || past_.back() != line)) past_.push_back(line);
  return line;
}

void Prompt::Show(std::string_view line) const {
  fmt::print("\r\x1b[K{}{}", mark_, line);
  std::fflush(stdout);
}

void Prompt::OnTab(std::string& line) const {
  const Completion completion = Complete(line, words_after_);
  line += completion.added;
  if (completion.added.empty() && !completion.choices.empty())
    fmt::print("\n{}\n", fmt::join(completion.choices, "  "));
}

void Prompt::OnArrow(std::string& line, size_t& at) const {
  if (ReadByte() != '[') return;
  const char arrow = ReadByte();
  if (arrow == 'A' && at > 0) line = past_[--at];
  if (arrow == 'B' && at < past_.size()) line = ++at < past_.size() ? past_[at] : std::string();
}

}  // namespace strata::cli
