#include "runtime/ranks/processes/device_watch.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Issued = DeviceCollectives::Issued;

std::string ReportKey(int64_t rank) {
  return fmt::format("device/{}", rank);
}

/// Calls by group and number.
using Report = std::map<std::pair<std::string, int64_t>, std::string>;

/// On one line, without the tabulators that separate fields.
std::string TextOf(const Issued& collective) {
  std::string text = collective.call;
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

/// A line for each collective: number, group and call.
std::string ReportText(const std::vector<Issued>& issued) {
  std::string text;
  for (const Issued& collective : issued)
    text += fmt::format("{}\t{}\t{}\n", collective.number, collective.group, TextOf(collective));
  return text;
}

Report ParseReport(const std::string& text) {
  Report report;
  std::istringstream lines(text);
  std::string number, group, call;
  while (std::getline(lines, number, '\t') && std::getline(lines, group, '\t') &&
         std::getline(lines, call)) {
    report[{group, std::atoll(number.c_str())}] = call;
  }
  return report;
}

/// Why `theirs`, what rank `other` enqueued, keeps `collective` of rank `mine` from its end; none:
/// it does not.
std::optional<std::string> FindDifference(const Issued& collective, int64_t mine, int64_t other,
                                          const Report& theirs) {
  const std::string text = TextOf(collective);
  const auto at = theirs.lower_bound({collective.group, collective.number});
  if (at == theirs.end() || at->first.first != collective.group)
    return fmt::format("in {} for rank {}, which does not call it", text, other);
  // Of older ones they say nothing any more.
  if (at->first.second != collective.number || at->second == text) return std::nullopt;
  const auto [first, second] = std::minmax({std::pair(mine, text), std::pair(other, at->second)});
  return fmt::format("ranks call different collectives: rank {} {}; rank {} {}", first.first,
                     first.second, second.first, second.second);
}

}  // namespace

DeviceWatch::DeviceWatch(GlooLinks& links, WaitWatch& watch, DeviceCollectives& collectives,
                         int64_t rank)
    : links_(links), watch_(watch), collectives_(collectives), rank_(rank), thread_([this] {
        Loop();
      }) {}

DeviceWatch::~DeviceWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DeviceWatch::set_timeout(milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

void DeviceWatch::Begin() {
  const std::lock_guard lock(mutex_);
  works_ = true;
  since_ = steady_clock::now();
}

void DeviceWatch::End() {
  const std::lock_guard lock(mutex_);
  works_ = false;
}

void DeviceWatch::Loop() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait_for(lock,
                      std::clamp<milliseconds>(timeout_ / 8, milliseconds(20), milliseconds(500)));
    if (ends_ || !works_) continue;
    const bool is_late = steady_clock::now() - since_ >= timeout_;
    lock.unlock();
    std::optional<std::string> why = watch_.FindFailure();
    if (!why && is_late) why = Diagnose();
    if (why) {
      watch_.Fail(*why);
      collectives_.Abort(*why);
    }
    lock.lock();
    if (why) return;
  }
}

/// What `rank` enqueued; empty: it does not say so in time.
std::string DeviceWatch::ReportOf(int64_t rank, steady_clock::time_point until) {
  while (true) {
    if (std::optional<std::string> report = links_.Find(ReportKey(rank))) return *report;
    if (steady_clock::now() >= until) return "";
    std::this_thread::sleep_for(milliseconds(20));
  }
}

/// The first collective of this rank that another rank did not enqueue, or enqueued otherwise; the
/// last one with a rank that does not say what it enqueued.
std::string DeviceWatch::Diagnose() {
  const std::vector<Issued> mine = collectives_.issued();
  links_.Put(ReportKey(rank_), ReportText(mine));
  const auto until =
      steady_clock::now() + std::min<milliseconds>(timeout_, std::chrono::seconds(5));
  const std::string waited =
      fmt::format("waited {} s", std::chrono::duration<double>(timeout_).count());
  std::string silent;
  std::map<int64_t, Report> reports;
  for (const Issued& collective : mine) {
    for (const int64_t other : collective.ranks) {
      if (other == rank_) continue;
      if (!reports.contains(other)) reports[other] = ParseReport(ReportOf(other, until));
      if (reports[other].empty()) {
        silent = fmt::format("{} in {} for rank {}", waited, TextOf(collective), other);
        continue;
      }
      const auto found = FindDifference(collective, rank_, other, reports[other]);
      if (found) return found->starts_with("in ") ? waited + " " + *found : *found;
    }
  }
  if (!silent.empty()) return silent;
  return mine.empty() ? waited + " for the GPU"
                      : fmt::format("{} in {} for the GPUs", waited, TextOf(mine.back()));
}

}  // namespace strata
