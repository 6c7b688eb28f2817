#include "base/interrupt.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

namespace strata {
namespace {

/// A signal is of the whole process, and so is what has to be done about it.
struct Interrupts {
  std::recursive_mutex mutex;  // an InterruptsHeld may have it already
  std::condition_variable_any changed;
  std::multiset<std::string> temporary;
  bool is_asked = false;  // a StopRequest is alive
  std::string told;
  int taken = 0;  // the signal that the StopRequest took
};

/// Never destroyed: the thread below reads it until the process is gone.
Interrupts& TheInterrupts() {
  static Interrupts& interrupts = *new Interrupts;
  return interrupts;
}

int signal_pipe[2] = {-1, -1};
pid_t owner = -1;

void ToPipe(int signal) {
  // A child that was forked has what is temporary from its parent, which takes care of it.
  if (::getpid() != owner) ::_exit(128 + signal);
  const int error = errno;
  const auto byte = static_cast<char>(signal);
  if (::write(signal_pipe[1], &byte, 1) < 0) ::_exit(128 + signal);
  errno = error;
}

[[noreturn]] void EndBy(int signal) {
  std::signal(signal, SIG_DFL);
  ::kill(::getpid(), signal);
  while (true)
    ::pause();
}

/// Removes what is temporary. False: something was left, or came while it was removed.
bool RemoveAll(const std::multiset<std::string>& temporary) {
  std::error_code ignored;
  bool is_clean = true;
  for (const std::string& path : temporary) {
    std::filesystem::remove_all(path, ignored);
    is_clean &= !std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  }
  return is_clean;
}

/// Has the lock and keeps it, so that nothing temporary can be named any more. Other threads run
/// until the end, though, and one may be about to make a file in a folder that is being removed:
/// hence again, until nothing came for a while.
[[noreturn]] void RemoveAllAndEnd(const Interrupts& interrupts, int signal) {
  constexpr int kMaxRounds = 200, kQuietRounds = 4;
  constexpr auto kRound = std::chrono::milliseconds(5);
  for (int round = 0, quiet = 0; round < kMaxRounds; ++round) {
    quiet = RemoveAll(interrupts.temporary) ? quiet + 1 : 0;
    if (interrupts.temporary.empty() || quiet == kQuietRounds) break;
    std::this_thread::sleep_for(kRound);
  }
  EndBy(signal);
}

void TakeSignals() {
  Interrupts& interrupts = TheInterrupts();
  char byte = 0;
  while (true) {
    if (::read(signal_pipe[0], &byte, 1) != 1) continue;
    const std::scoped_lock lock(interrupts.mutex);
    if (!interrupts.is_asked || interrupts.taken != 0) RemoveAllAndEnd(interrupts, byte);
    interrupts.taken = byte;
    interrupts.changed.notify_all();
    // A failure of this cannot be reported.
    (void)!::write(STDERR_FILENO, interrupts.told.data(), interrupts.told.size());
  }
}

}  // namespace

void CleanUpOnInterrupt() {
  if (::pipe2(static_cast<int*>(signal_pipe), O_CLOEXEC) != 0) return;
  owner = ::getpid();
  std::thread(TakeSignals).detach();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = ToPipe;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

InterruptsHeld::InterruptsHeld() {
  TheInterrupts().mutex.lock();
}

InterruptsHeld::~InterruptsHeld() {
  TheInterrupts().mutex.unlock();
}

TemporaryPath::TemporaryPath(std::string path) : path_(std::move(path)) {
  Interrupts& interrupts = TheInterrupts();
  const std::scoped_lock lock(interrupts.mutex);
  interrupts.temporary.insert(path_);
}

Result<TemporaryPath> TemporaryPath::MakeFolder() {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "strata-XXXXXX").string();
  const InterruptsHeld held;
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    return Error(ErrorCode::kIo,
                 "cannot create a temporary folder: {}: set TMPDIR to a writable one", folder);
  }
  return TemporaryPath(std::move(folder));
}

TemporaryPath::TemporaryPath(TemporaryPath&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryPath& TemporaryPath::operator=(TemporaryPath&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

TemporaryPath::~TemporaryPath() {
  Remove();
}

void TemporaryPath::Remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  Keep();
}

void TemporaryPath::Keep() {
  if (path_.empty()) return;
  Interrupts& interrupts = TheInterrupts();
  const std::scoped_lock lock(interrupts.mutex);
  interrupts.temporary.erase(interrupts.temporary.find(path_));
  path_.clear();
}

StopRequest::StopRequest(std::string told) {
  Interrupts& interrupts = TheInterrupts();
  const std::scoped_lock lock(interrupts.mutex);
  STRATA_CHECK(!interrupts.is_asked);
  interrupts.is_asked = true;
  interrupts.told = std::move(told);
}

StopRequest::~StopRequest() {
  Interrupts& interrupts = TheInterrupts();
  const std::scoped_lock lock(interrupts.mutex);
  interrupts.is_asked = false;
}

bool StopRequest::Wait(int ms) const {
  Interrupts& interrupts = TheInterrupts();
  std::unique_lock lock(interrupts.mutex);
  return interrupts.changed.wait_for(lock, std::chrono::milliseconds(ms),
                                     [&] { return interrupts.taken != 0; });
}

void EndAsInterrupted() {
  Interrupts& interrupts = TheInterrupts();
  const std::scoped_lock lock(interrupts.mutex);
  if (interrupts.taken != 0) RemoveAllAndEnd(interrupts, interrupts.taken);
}

}  // namespace strata
