#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace strata {

/// The most threads that a command accepts.
inline constexpr int kMaxThreads = 1024;

/// Reads a file of /proc or /sys; none: there is no such file.
using ReadSystemFile = std::function<std::optional<std::string>(const std::string& path)>;

/// Physical cores that a process may use: the distinct cores of `processors`, its affinity mask, at
/// most the CPU quota of its control group (cgroup v1 or v2), rounded down, and at least 1.
/// Processors whose core is unknown count as cores.
int PhysicalCores(std::span<const int> processors, const ReadSystemFile& read);

/// The same of this process.
int PhysicalCores();

/// The threads that OMP_NUM_THREADS asks for (`variable`; null: it is not set), else `cores`. Of a
/// list, one number for each level of nesting, the first; text that is not a positive number is
/// ignored, as OpenMP ignores it.
int ThreadsFrom(const char* variable, int cores);

/// Threads inside operators: `asked`, which is the value of --threads, or without one (0) those of
/// OMP_NUM_THREADS, else the physical cores of this process.
int ChooseThreads(int64_t asked);

/// Runs ATen's operators and `ParallelFor` on that many threads from here on. Sums over several
/// threads may round differently, so the number belongs to what identifies a result.
///
/// REQUIRES: 1 <= threads <= kMaxThreads.
void SetThreads(int threads);

/// The number set last, else the number that ATen starts with.
int NumThreads();

}  // namespace strata
