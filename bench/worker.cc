#include "bench/worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace strata::cli {
namespace {

namespace dom = simdjson::dom;

/// The line of a log that says why a program ended: Python's last error, else the last line.
std::string ReasonIn(const std::string& path) {
  const auto text = ReadFile(path);
  std::string last, error;
  for (std::string_view rest = text ? std::string_view(*text) : ""; !rest.empty();) {
    const std::string_view line = TakeLine(rest);
    if (line.empty()) continue;
    last = line;
    const std::string_view kind = line.substr(0, line.find(": "));
    if (kind.find(' ') == std::string_view::npos && kind.ends_with("Error")) error = line;
  }
  return error.empty() ? last : error;
}

/// As `posix_spawn` takes them. REQUIRES: `words` outlive the result.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// `more` and the variables of this process that are not among them.
std::vector<std::string> Variables(std::vector<std::string> more) {
  const size_t own = more.size();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name(*variable, std::strcspn(*variable, "=") + 1);
    const bool is_set =
        std::any_of(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(own),
                    [&](const std::string& ours) { return ours.starts_with(name); });
    if (!is_set) more.emplace_back(*variable);
  }
  return more;
}

}  // namespace

struct Worker::State {
  std::string program, log;
  pid_t child = -1;
  int connection = -1;  // the child's stdin and stdout
  std::string read;     // what came beyond the last line
  dom::parser parser;   // of answers

  ~State() {
    if (connection >= 0) ::close(connection);  // it reads the end of its orders
    while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  Error GaveUp() const {
    const std::string why = ReasonIn(log);
    return Error("a process that is measured ended: {}: {}", program,
                 why.empty() ? "it printed no reason" : why);
  }

  /// The answer is valid until the next call.
  Result<dom::element> Receive() {
    size_t end = std::string::npos;
    while ((end = read.find('\n')) == std::string::npos) {
      std::array<char, 4096> buffer{};
      const ssize_t count = ::recv(connection, buffer.data(), buffer.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return GaveUp();
      read.append(buffer.data(), static_cast<size_t>(count));
    }
    dom::element answer;
    const auto error = parser.parse(read.data(), end).get(answer);
    read.erase(0, end + 1);
    if (error != simdjson::SUCCESS || !answer.is_object()) return GaveUp();
    return answer;
  }
};

Worker::Worker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::Start(Command command) {
  auto state = std::make_unique<State>();
  state->program = command.words.front();
  state->log = command.log;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error(ErrorCode::kIo, "cannot make a socket pair");
  }
  state->connection = ends[0];
  std::vector<std::string> variables = Variables(std::move(command.variables));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, state->log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  const int failure = ::posix_spawnp(&state->child, state->program.c_str(), &actions, nullptr,
                                     Pointers(command.words).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failure != 0) {
    state->child = -1;
    return Error(ErrorCode::kIo, "cannot run {}: {}", state->program, std::strerror(failure));
  }
  return std::unique_ptr<Worker>(new Worker(std::move(state)));
}

Status Worker::Send(std::string_view order) {
  const std::string line = std::string(order) + "\n";
  if (::send(state_->connection, line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return state_->GaveUp();
  }
  return Ok();
}

Result<FirstSteps> Worker::ReceiveFirstSteps() {
  STRATA_TRY(const dom::element answer, state_->Receive());
  FirstSteps first{.first_wall = answer["first_wall_s"].get_double().value(),
                   .first_cpu = answer["first_cpu_s"].get_double().value(),
                   .peak_bytes = answer["peak_bytes"].get_int64().value(),
                   .losses = {}};
  const dom::array losses = answer["losses"].get_array().value();
  for (const dom::element loss : losses)
    first.losses.push_back(loss.get_double().value());
  return first;
}

Result<std::vector<StepTime>> Worker::ReceiveTimes() {
  STRATA_TRY(const dom::element answer, state_->Receive());
  std::vector<StepTime> times;
  const dom::array of_steps = answer["times_ms"].get_array().value();
  for (const dom::element time : of_steps)
    times.push_back(
        {.cpu = time.at(0).get_double().value(), .wall = time.at(1).get_double().value()});
  return times;
}

}  // namespace strata::cli
