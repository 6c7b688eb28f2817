#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

/// What SIGINT, SIGTERM and SIGHUP do to a program: what is unfinished goes before the program
/// does.
namespace strata {

/// From here on one of these signals removes every TemporaryPath and then ends the program as it
/// would have without. Those that the program was started to ignore (nohup) stay ignored. To be
/// called once, at the start of main.
void CleanUpOnInterrupt();

/// Delays interrupts for its lifetime: between the creation of a file or folder and that of its
/// TemporaryPath.
class InterruptsHeld {
 public:
  InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;
  ~InterruptsHeld();
};

/// A file or folder that lives as long as this object: removed, with all that is in it, by the
/// destructor and by an interrupt.
class TemporaryPath {
 public:
  /// Names nothing.
  TemporaryPath() = default;
  explicit TemporaryPath(std::string path);
  /// An empty folder of its own, where the system keeps what is temporary. Errors: there is no room
  /// for it.
  static Result<TemporaryPath> MakeFolder();
  TemporaryPath(TemporaryPath&& other) noexcept;
  TemporaryPath& operator=(TemporaryPath&& other) noexcept;
  ~TemporaryPath();

  const std::string& path() const { return path_; }
  bool empty() const { return path_.empty(); }

  void Remove();
  /// Names nothing from now on; what is there stays.
  void Keep();

 private:
  std::string path_;
};

/// While one lives, the first interrupt asks instead of ending the program, for work that has a
/// good place to stop. The second one ends it.
///
/// REQUIRES: no other StopRequest is alive.
class StopRequest {
 public:
  /// `told` is written to stderr when the interrupt comes; it says when the program will stop.
  explicit StopRequest(std::string told = {});
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  /// True: it came, at any time since this object is there.
  bool came() const { return Wait(0); }
  /// The same; waits up to `ms` milliseconds.
  bool Wait(int ms) const;
};

/// Ends the program by the interrupt that a StopRequest took, so that a shell sees it and stops its
/// own loops, too. Nothing happens if none was taken.
void EndAsInterrupted();

}  // namespace strata
