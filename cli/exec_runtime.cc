#include "cli/exec_runtime.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace strata::cli {
namespace {

/// The program beside this one; LibTorch takes half a second to load, which `strata ls` need not
/// wait for.
constexpr const char* kProgram = "strata-runtime";

std::string ProgramPath() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return kProgram;
  const std::string path(self.data(), static_cast<size_t>(length));
  return path.substr(0, path.rfind('/') + 1) + kProgram;
}

}  // namespace

Error ExecRuntime(const std::string& command, Args args) {
  const std::string program = ProgramPath();
  std::vector<std::string> words = {program, command};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  ::execv(program.c_str(), argv.data());
  if (errno == ENOENT) {
    return Error(ErrorCode::kUnsupported,
                 "this build cannot run graphs: strata {}: build with LibTorch, './dev setup' and "
                 "then './dev build'",
                 command);
  }
  return Error(ErrorCode::kIo, "cannot start: {}: {}", program, std::strerror(errno));
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

Result<Exit> ExecBenchTrain(Args args) {
  return ExecRuntime("bench-train", args);
}

}  // namespace strata::cli
