#include "runtime/aten/threads.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sched.h>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include <fmt/format.h>

#include "base/result.h"

namespace strata {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
}

std::optional<int64_t> ToNumber(std::string_view text) {
  text = Trim(text);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// `package:core` by processor, as /proc/cpuinfo lists them on x86.
std::map<int64_t, std::string> CoresOfCpuInfo(std::string_view cpuinfo) {
  std::map<int64_t, std::string> cores;
  std::optional<int64_t> processor;
  std::string_view package;
  for (const std::string_view line : Split(cpuinfo, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = Trim(line.substr(0, colon)), value = Trim(line.substr(colon + 1));
    if (key == "processor") {
      processor = ToNumber(value);
      package = {};
    } else if (key == "physical id") {
      package = value;
    } else if (key == "core id" && processor) {
      cores[*processor] = fmt::format("{}:{}", package, value);
    }
  }
  return cores;
}

/// Processors' worth of time that a group and those around it may take; none: no limit.
class CpuQuota {
 public:
  explicit CpuQuota(const ReadSystemFile& read) : read_(read) {
    const std::string groups = read("/proc/self/cgroup").value_or("");
    for (const std::string_view line : Split(groups, '\n')) {
      const std::vector<std::string_view> fields = Split(line, ':');
      if (fields.size() < 3) continue;
      const std::string path(fields[2] == "/" ? "" : fields[2]);
      if (fields[1].empty()) {
        AddVersion2("/sys/fs/cgroup", path);
      } else if (std::ranges::count(Split(fields[1], ','), "cpu") > 0) {
        AddVersion1(fmt::format("/sys/fs/cgroup/{}", fields[1]), path);
      }
    }
  }

  std::optional<double> processors() const { return processors_; }

 private:
  void AddVersion2(const std::string& root, const std::string& path) {
    ForEachGroup(root, path, [&](const std::string& folder) {
      const std::string text = read_(folder + "/cpu.max").value_or("");  // `200000 100000`
      const std::vector<std::string_view> words = Split(Trim(text), ' ');
      if (words.size() == 2) Add(ToNumber(words[0]), ToNumber(words[1]));
    });
  }

  void AddVersion1(const std::string& root, const std::string& path) {
    ForEachGroup(root, path, [&](const std::string& folder) {
      Add(ToNumber(read_(folder + "/cpu.cfs_quota_us").value_or("")),
          ToNumber(read_(folder + "/cpu.cfs_period_us").value_or("")));
    });
  }

  /// The group, then those around it. In a container its own group is often the root.
  template <class Fn>
  static void ForEachGroup(const std::string& root, std::string path, Fn&& fn) {
    for (; !path.empty(); path.resize(path.rfind('/')))
      fn(root + path);
    fn(root);
  }

  void Add(std::optional<int64_t> quota, std::optional<int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const double processors = static_cast<double>(*quota) / static_cast<double>(*period);
    processors_ = std::min(processors, processors_.value_or(processors));
  }

  const ReadSystemFile& read_;
  std::optional<double> processors_;
};

std::vector<int> ProcessorsOfThisProcess() {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(static_cast<size_t>(processor), &set)) processors.push_back(processor);
  }
  return processors;
}

std::optional<std::string> ReadFromSystem(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace

int PhysicalCores(std::span<const int> processors, const ReadSystemFile& read) {
  std::set<std::string> cores;
  std::optional<std::map<int64_t, std::string>> listed;  // /proc/cpuinfo, read where sysfs is empty
  for (const int processor : processors) {
    // The processors of one core name the same siblings.
    const std::optional<std::string> siblings =
        read(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor));
    if (siblings) {
      cores.insert(*siblings);
      continue;
    }
    if (!listed) listed = CoresOfCpuInfo(read("/proc/cpuinfo").value_or(""));
    const auto core = listed->find(processor);
    cores.insert(core != listed->end() ? "core " + core->second
                                       : fmt::format("processor {}", processor));
  }
  double count = static_cast<double>(cores.size());
  if (const auto quota = CpuQuota(read).processors()) count = std::min(count, std::floor(*quota));
  return std::clamp(static_cast<int>(count), 1, kMaxThreads);
}

int PhysicalCores() {
  return PhysicalCores(ProcessorsOfThisProcess(), ReadFromSystem);
}

int ThreadsFrom(const char* variable, int cores) {
  if (variable == nullptr) return cores;
  const std::optional<int64_t> number = ToNumber(Split(variable, ',').front());
  if (!number || *number <= 0) return cores;
  return static_cast<int>(std::min<int64_t>(*number, kMaxThreads));
}

int ChooseThreads(int64_t asked) {
  if (asked > 0) return static_cast<int>(std::min<int64_t>(asked, kMaxThreads));
  return ThreadsFrom(std::getenv("OMP_NUM_THREADS"), PhysicalCores());
}

void SetThreads(int threads) {
  STRATA_CHECK(threads >= 1 && threads <= kMaxThreads);
  // The first call also makes the thread pool of mobile kernels, which nothing here runs. Its
  // threads spin for 30 ms; a pool of one has none.
  [[maybe_unused]] static const bool has_pool = (at::set_num_threads(1), true);
  at::set_num_threads(threads);
}

int NumThreads() {
  return at::get_num_threads();
}

}  // namespace strata
