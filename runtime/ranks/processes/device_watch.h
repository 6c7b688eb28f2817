#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ranks/device_collectives.h"
#include "runtime/ranks/processes/gloo_links.h"
#include "runtime/ranks/processes/wait_watch.h"

namespace strata {

/// Ends the collectives of a rank whose GPU waits for ranks that do not come: another one failed,
/// or work takes longer than the timeout. Then each rank publishes in the store what it
/// enqueued, and finds where the others differ.
class DeviceWatch {
 public:
  /// REQUIRES: all outlive this.
  DeviceWatch(GlooLinks& links, WaitWatch& watch, DeviceCollectives& collectives, int64_t rank);
  ~DeviceWatch();

  /// How long the work between `Begin` and `End` may take.
  void set_timeout(std::chrono::milliseconds timeout);
  void Begin();
  void End();

 private:
  void Loop();
  std::string Diagnose();
  std::string ReportOf(int64_t rank, std::chrono::steady_clock::time_point until);

  GlooLinks& links_;
  WaitWatch& watch_;
  DeviceCollectives& collectives_;
  int64_t rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false, works_ = false;
  std::chrono::milliseconds timeout_{300'000};
  std::chrono::steady_clock::time_point since_;
  std::thread thread_;
};

}  // namespace strata
