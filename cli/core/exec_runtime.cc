#include "cli/core/exec_runtime.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"

namespace strata::cli {
namespace {

/// A program beside this one.
std::string PathOf(const std::string& program) {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return program;
  const std::string path(self.data(), static_cast<size_t>(length));
  return path.substr(0, path.rfind('/') + 1) + program;
}

/// Becomes the program beside this one. Errors: it is not there: `missing`.
Error ExecBeside(const std::string& name, std::vector<std::string> words, Error missing) {
  const std::string program = PathOf(name);
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  ::execv(program.c_str(), argv.data());
  if (errno == ENOENT) return missing;
  return Error(ErrorCode::kIo, "cannot start: {}: {}", program, std::strerror(errno));
}

/// By default threads of OpenMP that wait for others spin for milliseconds, and keep these from the
/// cores when another program needs one, too: a step of the demo took 50 times as long. With 1000
/// turns, which libgomp itself takes where threads outnumber cores, they sleep after some ten
/// microseconds, about what it costs to wake them; alone on the machine they are as fast. Read when
/// LibTorch is loaded.
void LimitSpinning() {
  constexpr int kKeepWhatIsSet = 0;
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "1000", kKeepWhatIsSet);
}

/// LibTorch and its operators' schemas fill 60 MB of small allocations. Huge pages, which many
/// kernels give on request only, shorten the load by a tenth. glibc reads this when a program
/// starts.
void AskForHugePages() {
  constexpr int kKeepWhatIsSet = 0;
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", kKeepWhatIsSet);
}

void PrepareRuntime() {
  LimitSpinning();
  AskForHugePages();
}

}  // namespace

/// LibTorch takes half a second to load, which `strata ls` need not wait for.
Error ExecRuntime(const std::string& command, Args args) {
  PrepareRuntime();
  std::vector<std::string> words = {command};
  words.insert(words.end(), args.begin(), args.end());
  return ExecBeside("strata-runtime", std::move(words),
                    Error(ErrorCode::kUnsupported,
                          "this build cannot run graphs: strata {}: build with LibTorch, './dev "
                          "setup' and then './dev build'",
                          command));
}

Status RunRuntime(const std::string& command, const std::vector<std::string>& args,
                  const std::string& log) {
  PrepareRuntime();
  std::vector<std::string> words = {PathOf("strata-runtime"), command};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = -1;
  const int failure = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    return Error(ErrorCode::kIo, "cannot start: {}: {}", words[0], std::strerror(failure));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok();
  STRATA_TRY(const std::string said, ReadFile(log));
  return Error(ErrorCode::kIo, "failed: strata {}: {}", command, said);
}

Result<Exit> ExecView(Args args) {
  return ExecBeside("strata-view", {args.begin(), args.end()},
                    Error(ErrorCode::kUnsupported,
                          "this build has no desktop viewer: strata view: './dev build release "
                          "strata-view' builds it"));
}

Result<Exit> ExecCalibrate(Args args) {
  return ExecRuntime("calibrate", args);
}

Result<Exit> ExecTrain(Args args) {
  return ExecRuntime("train", args);
}

Result<Exit> ExecTrace(Args args) {
  return ExecRuntime("trace", args);
}

Result<Exit> ExecRun(Args args) {
  return ExecRuntime("run", args);
}

Result<Exit> ExecCompareValues(Args args) {
  return ExecRuntime("compare-values", args);
}

Result<Exit> ExecBenchExperts(Args args) {
  return ExecRuntime("bench-experts", args);
}

Result<Exit> ExecBenchFlex(Args args) {
  return ExecRuntime("bench-flex", args);
}

Result<Exit> ExecBenchMemory(Args args) {
  return ExecRuntime("bench-memory", args);
}

Result<Exit> ExecBenchParallel(Args args) {
  return ExecRuntime("bench-parallel", args);
}

Result<Exit> ExecBenchPipeline(Args args) {
  return ExecRuntime("bench-pipeline", args);
}

Result<Exit> ExecBenchPlace(Args args) {
  return ExecRuntime("bench-place", args);
}

Result<Exit> ExecBenchSimulate(Args args) {
  return ExecRuntime("bench-simulate", args);
}

Result<Exit> ExecBenchTrain(Args args) {
  return ExecRuntime("bench-train", args);
}

}  // namespace strata::cli
