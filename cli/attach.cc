#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <poll.h>
#include <simdjson.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace strata::cli {
namespace {

struct AttachFlags {
  std::string path;
  std::optional<std::string> batch;
  double wait = 10.0;
};

Result<bool> ParseFlags(Args args, AttachFlags& out) {
  Flags flags("attach", "stops, steps and inspects a running training");
  flags.Positional("PATH", &out.path, "the socket of strata train --control PATH");
  flags.Option(
      "--batch", "FILE", &out.batch,
      "run the commands of FILE, one a line, and end; 'assert PATH == VALUE' compares with "
      "the last answer, '#' begins a comment; - is standard input");
  flags.Option("--wait", "SECONDS", &out.wait, "how long to wait for the socket");
  flags.Example("strata attach out/control");
  flags.Example("strata attach out/control --batch commands.txt");
  return flags.Parse(args);
}

/// A connection to a training.
class Connection {
 public:
  struct Answer {
    bool ok = false;
    std::string text;
    simdjson::dom::element data;  ///< valid until the next answer
  };

  Connection() = default;
  ~Connection() {
    if (fd_ >= 0) ::close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Open(const std::string& path, double wait_seconds) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
      return Error("not a path of a socket: {}: it is too long", OneLine(path));
    std::memcpy(address.sun_path, path.data(), path.size());
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
    while (true) {
      fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return Ok();
      const int error = errno;
      ::close(std::exchange(fd_, -1));
      if (std::chrono::steady_clock::now() >= end) {
        return Error(ErrorCode::kIo,
                     "no training listens here: {}: {}: start one with strata train --control {}",
                     path, std::strerror(error), path);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  Result<Answer> Ask(std::string_view command) {
    const int64_t id = ++last_id_;
    STRATA_RETURN_IF_ERROR(Send(id, command));
    while (true) {
      STRATA_TRY(const std::string line, ReadLine());
      int64_t answered = 0;
      Answer answer;
      std::string_view text;
      simdjson::dom::object object;
      if (parser_.parse(line).get(object) != simdjson::SUCCESS ||
          object["id"].get(answered) != simdjson::SUCCESS ||
          object["ok"].get(answer.ok) != simdjson::SUCCESS ||
          object["text"].get(text) != simdjson::SUCCESS ||
          object["data"].get(answer.data) != simdjson::SUCCESS) {
        return Error("not an answer of a training: {}", OneLine(line));
      }
      if (answered != id) continue;
      answer.text = text;
      return answer;
    }
  }

 private:
  Status Send(int64_t id, std::string_view command) {
    std::string line = fmt::format(R"({{"id":{},"command":)", id);
    AppendJsonString(command, line);
    line += "}\n";
    if (::send(fd_, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size()))
      return Ok();
    return Error("the training has ended");
  }

  /// Ctrl-C pauses the training; a second one ends this program.
  Result<std::string> ReadLine() {
    size_t end = 0;
    while ((end = pending_.find('\n')) == std::string::npos) {
      if (!pauses_ && interrupt_.came()) {
        pauses_ = true;
        STRATA_RETURN_IF_ERROR(Send(0, "pause"));
      }
      pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&readable, 1, 100) <= 0) continue;
      char bytes[4096];
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Error("the training has ended");
      pending_.append(bytes, static_cast<size_t>(count));
    }
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return line;
  }

  int fd_ = -1;
  int64_t last_id_ = 0;
  std::string pending_;
  bool pauses_ = false;
  StopRequest interrupt_;
  simdjson::dom::parser parser_;
};

/// A field of an answer as text, and as a number if it is one.
struct FieldValue {
  std::string text;
  std::optional<double> number;
};

/// `statistics.max` of an answer.
Result<FieldValue> FieldOf(simdjson::dom::element data, std::string_view path) {
  std::string pointer = fmt::format("/{}", path);
  for (char& c : pointer)
    if (c == '.') c = '/';
  simdjson::dom::element field;
  if (data.at_pointer(pointer).get(field) != simdjson::SUCCESS)
    return Error("the last answer has no such field: {}: it is {}", path,
                 OneLine(simdjson::minify(data), 300));
  FieldValue value;
  if (std::string_view text; field.get(text) == simdjson::SUCCESS) {
    value.text = text;
    return value;
  }
  value.text = simdjson::minify(field);
  if (double number = 0.0; field.get(number) == simdjson::SUCCESS) value.number = number;
  return value;
}

/// Compares as numbers where both are numbers, else as text.
Result<bool> Compare(const FieldValue& left, std::string_view comparison, std::string_view right) {
  std::optional<double> number;
  const std::string text(right);
  char* end = nullptr;
  if (const double parsed = std::strtod(text.c_str(), &end); end != text.c_str() && *end == '\0')
    number = parsed;
  const bool are_numbers = left.number && number;
  if (comparison == "==") return are_numbers ? *left.number == *number : left.text == right;
  if (comparison == "!=") return are_numbers ? *left.number != *number : left.text != right;
  if (!are_numbers) return Error("not two numbers: {} {} {}", left.text, comparison, right);
  if (comparison == "<") return *left.number < *number;
  if (comparison == "<=") return *left.number <= *number;
  if (comparison == ">") return *left.number > *number;
  if (comparison == ">=") return *left.number >= *number;
  return Error("no such comparison: {}: write ==, !=, <, <=, > or >=", comparison);
}

/// `PATH == VALUE`. The value may contain blanks.
Result<bool> Holds(std::string_view assertion, const std::optional<Connection::Answer>& last) {
  if (!last) return Error("nothing was answered before: {}", assertion);
  const size_t first = assertion.find(' ');
  const size_t second = first == std::string_view::npos ? first : assertion.find(' ', first + 1);
  if (second == std::string_view::npos)
    return Error("not an assertion: {}: write assert PATH == VALUE", OneLine(assertion));
  STRATA_TRY(const FieldValue field, FieldOf(last->data, assertion.substr(0, first)));
  const std::string_view comparison = assertion.substr(first + 1, second - first - 1);
  const std::string_view value = TrimBlanks(assertion.substr(second + 1));
  STRATA_TRY(const bool holds, Compare(field, comparison, value));
  if (!holds) fmt::print(stderr, "strata: assertion failed: {}: it is {}\n", assertion, field.text);
  return holds;
}

/// The rest of a line that begins with a word, or none.
std::optional<std::string_view> AfterWord(std::string_view line, std::string_view word) {
  if (!line.starts_with(word) || line.size() == word.size() || line[word.size()] != ' ')
    return std::nullopt;
  return TrimBlanks(line.substr(word.size()));
}

Result<Exit> RunBatch(Connection& training, std::string_view commands, std::string_view file) {
  std::optional<Connection::Answer> last;
  int64_t number = 0;
  while (!commands.empty()) {
    const size_t end = std::min(commands.find('\n'), commands.size());
    std::string_view line = commands.substr(0, end);
    commands.remove_prefix(std::min(end + 1, commands.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = TrimBlanks(line);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", file, number);
    if (const auto assertion = AfterWord(line, "assert")) {
      auto holds = Holds(*assertion, last);
      if (!holds) return std::move(holds).error().In(where);
      if (!*holds) return Exit::kDifferences;
      continue;
    }
    auto answer = training.Ask(line);
    if (!answer) return std::move(answer).error().In(where);
    if (!answer->ok) return Error("{}: {}: {}", where, OneLine(line), answer->text);
    fmt::print("> {}\n{}\n", line, answer->text);
    last = *std::move(answer);
  }
  return Exit::kOk;
}

Result<Exit> RunPrompt(Connection& training) {
  STRATA_TRY(const Connection::Answer first, training.Ask("where"));
  fmt::print("{}\n'help' lists the commands, 'quit' leaves and lets the training run.\n",
             first.text);
  std::string line;
  while (true) {
    fmt::print("(strata) ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    const std::string_view command = TrimBlanks(line);
    if (command == "quit" || command == "exit") return Exit::kOk;
    if (command.empty()) continue;
    STRATA_TRY(const Connection::Answer answer, training.Ask(command));
    fmt::print("{}{}\n", answer.ok ? "" : "error: ", answer.text);
  }
  fmt::print("\n");
  return Exit::kOk;
}

}  // namespace

Result<Exit> RunAttach(Args args) {
  AttachFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  std::string commands;
  if (!flags.batch && ::isatty(STDIN_FILENO) == 0) flags.batch = "-";
  if (flags.batch) {
    STRATA_TRY(commands, ReadFile(*flags.batch));
  }
  Connection training;
  STRATA_RETURN_IF_ERROR(training.Open(flags.path, flags.wait));
  if (flags.batch) return RunBatch(training, commands, *flags.batch);
  return RunPrompt(training);
}

}  // namespace strata::cli
