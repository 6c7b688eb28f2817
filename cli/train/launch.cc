#include "cli/train/launch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "runtime/ranks/processes/gloo_links.h"

namespace strata::cli {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMostRanks = 1024;

// For a signal handler: the processes that run, and the interrupt that came.
std::array<std::atomic<pid_t>, kMostRanks> running;
std::atomic<int> interrupt = 0;

void PassOn(int signal) {
  const int error = errno;
  interrupt = signal;
  for (const std::atomic<pid_t>& process : running) {
    if (process > 0) ::kill(process, signal);
  }
  errno = error;
}

void PassOnInterrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = PassOn;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

/// Words as `execve` takes them. REQUIRES: `words` outlive the result.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The variables of this process, and those of a rank.
std::vector<std::string> Variables(int64_t rank, int64_t count, uint16_t port) {
  std::vector<std::string> all = {fmt::format("RANK={}", rank),
                                  fmt::format("LOCAL_RANK={}", rank),
                                  fmt::format("WORLD_SIZE={}", count),
                                  fmt::format("LOCAL_WORLD_SIZE={}", count),
                                  "MASTER_ADDR=127.0.0.1",
                                  fmt::format("MASTER_PORT={}", port),
                                  "TORCHELASTIC_USE_AGENT_STORE=True",
                                  "TORCHELASTIC_RESTART_COUNT=0"};
  const size_t own = all.size();
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string_view name(*variable, std::strcspn(*variable, "=") + 1);
    const bool is_set =
        std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(own),
                    [&](const std::string& ours) { return ours.starts_with(name); });
    if (!is_set) all.emplace_back(*variable);
  }
  return all;
}

/// Starts a process that ends with this one. In a process group of its own: a terminal's interrupt
/// comes here alone, and is passed on once.
pid_t Start(std::vector<std::string>& words, std::vector<std::string>& variables) {
  const std::vector<char*> argv = Pointers(words), environment = Pointers(variables);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  // Only what is safe between fork and exec in a process of several threads.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::execve("/proc/self/exe", argv.data(), environment.data());
  ::_exit(127);
}

struct Ended {
  int64_t rank = -1;
  int status = 0;  // as of waitpid
};

/// Waits until a process ends; none: not within the time.
Ended WaitForOne(int64_t count, steady_clock::time_point until) {
  constexpr auto kLook = std::chrono::milliseconds(10);
  while (true) {
    for (int64_t rank = 0; rank < count; ++rank) {
      std::atomic<pid_t>& process = running[static_cast<size_t>(rank)];
      int status = 0;
      if (process > 0 && ::waitpid(process, &status, WNOHANG) == process) {
        process = 0;
        return {rank, status};
      }
    }
    if (steady_clock::now() >= until) return {};
    std::this_thread::sleep_for(kLook);
  }
}

void KillAll() {
  for (const std::atomic<pid_t>& process : running) {
    if (process > 0) ::kill(process, SIGKILL);
  }
}

std::string SignalName(int signal) {
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

/// Waits for all processes. Errors: each that ended by a signal that it was not sent.
Result<Exit> WaitForAll(int64_t count, int64_t patience_seconds) {
  Exit exit = Exit::kOk;
  std::string killed;
  bool is_ours = false;  // signals are sent from here
  auto until = steady_clock::time_point::max();
  for (int64_t left = count; left > 0;) {
    const Ended ended = WaitForOne(count, until);
    if (ended.rank < 0) {
      KillAll();
      is_ours = true;
      until = steady_clock::time_point::max();
      continue;
    }
    --left;
    const bool is_well = WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0;
    if (!is_well) exit = Exit::kError;
    if (exit == Exit::kError) until = steady_clock::now() + std::chrono::seconds(patience_seconds);
    if (is_well) continue;
    if (WIFSIGNALED(ended.status) && !is_ours && interrupt == 0) {
      killed += fmt::format("{}rank {}: {}", killed.empty() ? "" : ", ", ended.rank,
                            SignalName(WTERMSIG(ended.status)));
    }
  }
  if (!killed.empty()) return Error("a process was killed: {}; the other ranks stopped", killed);
  return exit;
}

}  // namespace

Result<Exit> LaunchRanks(const std::string& command, Args args, int64_t count,
                         int64_t patience_seconds) {
  if (count > static_cast<int64_t>(kMostRanks)) {
    return Error("too many processes: {}: take at most {} on one machine", count, kMostRanks);
  }
  STRATA_TRY(const ProcessStore store, ProcessStore::Open());
  std::vector<std::string> words = {"strata-runtime", command};
  words.insert(words.end(), args.begin(), args.end());
  PassOnInterrupts();
  std::fflush(stdout);
  for (int64_t rank = 0; rank < count; ++rank) {
    std::vector<std::string> variables = Variables(rank, count, store.port());
    const pid_t process = Start(words, variables);
    if (process < 0) {
      const std::string why = std::strerror(errno);
      KillAll();
      return Error(ErrorCode::kIo, "cannot start process {} of {}: {}", rank, count, why);
    }
    running[static_cast<size_t>(rank)] = process;
  }
  Result<Exit> exit = WaitForAll(count, patience_seconds);
  if (interrupt != 0) {
    // Ends as the program that was interrupted would have, so that a shell sees it.
    std::signal(interrupt, SIG_DFL);
    ::raise(interrupt);
  }
  return exit;
}

}  // namespace strata::cli
