#include <cstdio>
#include <memory>
#include <optional>
#include <simdjson.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/train/prompt.h"
#include "refs/control_client.h"
#include "refs/control_words.h"

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

/// A connection to a training, asked one command at a time.
class Connection {
 public:
  struct Answer {
    bool ok = false;
    std::string text;
    simdjson::dom::element data;  ///< valid until the next answer
  };

  Status Open(const std::string& path, double wait_seconds) {
    STRATA_TRY(client_, ControlClient::Connect(path, wait_seconds));
    return Ok();
  }

  /// Ctrl-C pauses the training; a second one ends this program.
  Result<Answer> Ask(std::string_view command) {
    STRATA_TRY(const int64_t id, client_->Send(command));
    while (true) {
      if (!pauses_ && interrupt_.came()) {
        pauses_ = true;
        STRATA_TRY(const int64_t pause, client_->Send("pause"));
        static_cast<void>(pause);  // its answer is that of `command`, too
      }
      STRATA_TRY(std::optional<ControlClient::Answer> came, client_->Receive(100));
      if (!came || came->id != id) continue;
      Answer answer{.ok = came->ok, .text = std::move(came->text), .data = {}};
      data_ = std::move(came->data);
      if (parser_.parse(data_).get(answer.data) != simdjson::SUCCESS)
        return Error("not an answer of a training: {}", OneLine(data_));
      return answer;
    }
  }

 private:
  std::unique_ptr<ControlClient> client_;
  bool pauses_ = false;
  StopRequest interrupt_;
  std::string data_;
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
    std::string_view line = TakeLine(commands);
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
  Prompt prompt("(strata) ", [](std::string_view text) {
    std::vector<std::string> words = ControlWordsAfter(text);
    if (TrimBlanks(text).empty()) words.insert(words.end(), {"exit", "quit"});
    return words;
  });
  while (const std::optional<std::string> line = prompt.Read()) {
    const std::string_view command = TrimBlanks(*line);
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
