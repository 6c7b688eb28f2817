#include "bench/log.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "ir/fx/fx.h"
#include "ir/rewriter.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/md5.h"

namespace strata::cli {
namespace {

/// Adds `offset` to the number behind each `key` in a line.
void ShiftNumbers(std::string& line, std::string_view key, int64_t offset) {
  for (size_t at = line.find(key); at != std::string::npos; at = line.find(key, at)) {
    at += key.size();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), number);
    if (error == std::errc()) {
      line.replace(at, static_cast<size_t>(end - (line.data() + at)),
                   std::to_string(number + offset));
    }
  }
}

/// The log with the frames of its `copy`-th copy, and of rank `rank`.
void AppendCopy(std::string_view log, int64_t copy, int32_t rank, std::string& out) {
  constexpr int64_t kFramesOfALog = 100;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n') + 1, log.size());
    std::string_view line = log.substr(0, end == 0 ? log.size() : end);
    log.remove_prefix(line.size());
    if (line.starts_with('\t')) {
      out += line;
      continue;
    }
    std::string header(line);
    ShiftNumbers(header, "\"frame_id\": ", copy * kFramesOfALog);
    constexpr std::string_view kRank = "\"rank\": ";
    if (const size_t at = header.find(kRank); at != std::string::npos) {
      const size_t number = at + kRank.size();
      const size_t after = header.find_first_not_of("0123456789", number);
      header.replace(number, after - number, std::to_string(rank));
    }
    out += header;
  }
}

std::string Artifact(std::string_view name, std::string_view text) {
  std::string record = fmt::format(
      "V1120 18:32:38.396000 14073 torchtitan/experiments/graph_trainer/passes.py:10] "
      "{{\"artifact\": {{\"name\": \"{}\", \"encoding\": \"string\"}}, \"has_payload\": \"{}\"}}\n",
      name, Md5Hex(text));
  while (true) {
    const size_t end = text.find('\n');
    record += '\t';
    record += text.substr(0, end);
    record += '\n';
    if (end == std::string_view::npos) return record;
    text.remove_prefix(end + 1);
  }
}

/// Changes one in `step` operators.
void Edit(Graph& graph, size_t step) {
  size_t count = 0;
  for (const NodeId id : graph.nodes().Snapshot()) {
    if (graph.node(id).kind != NodeKind::kCall || ++count % step != 0) continue;
    Rewriter(graph).SetOp(id, "aten.add.Tensor");
  }
}

}  // namespace

Result<std::vector<std::string>> ReadLogsBelow(const std::string& folder) {
  constexpr size_t kLargestPart = 4'000'000;  // a longer log would outweigh all others
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if ((path.ends_with(".log") || path.ends_with(".log.zst")) &&
        path.find("/malformed/") == std::string::npos) {
      paths.push_back(path);
    }
  }
  std::ranges::sort(paths);
  std::vector<std::string> logs;
  for (const std::string& path : paths) {
    STRATA_TRY(std::string bytes, ReadFile(path));
    STRATA_TRY(std::string log, Decompress(std::move(bytes), path));
    if (log.size() > kLargestPart) continue;
    if (!log.empty() && log.back() != '\n') log += '\n';
    logs.push_back(std::move(log));
  }
  if (logs.empty()) return Error("no logs: {}: give a folder of them with --logs", folder);
  return logs;
}

Status WriteLargeLog(const std::string& path, int64_t bytes, int32_t rank,
                     const std::vector<std::string>& logs) {
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  int64_t written = 0;
  std::string part;
  for (int64_t copy = 0; written < bytes; ++copy) {
    part.clear();
    const auto number = static_cast<size_t>(copy) % logs.size();
    AppendCopy(logs[number], copy, rank, part);
    STRATA_RETURN_IF_ERROR(file.Append(part));
    written += static_cast<int64_t>(part.size());
  }
  return file.Commit();
}

Status WriteTrainerLog(const std::string& path, int nodes) {
  constexpr int kPasses = 9;
  const auto module = TransformerLikeGraph(nodes);
  Graph& graph = module->graph(GraphId{0});
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  std::string text = PrintFx(graph);
  STRATA_RETURN_IF_ERROR(file.Append(Artifact("make_fx_graph_traced", text)));
  for (int pass = 0; pass < kPasses; ++pass) {
    STRATA_RETURN_IF_ERROR(file.Append(Artifact(fmt::format("before_pass_{}", pass), text)));
    if (pass == 1 || pass == 4) {
      Edit(graph, 20);
      text = PrintFx(graph);
    }
    STRATA_RETURN_IF_ERROR(file.Append(Artifact(fmt::format("after_pass_{}", pass), text)));
  }
  return file.Commit();
}

Status WriteDistinctLog(const std::string& path, int64_t bytes) {
  constexpr int kNodes = 2000;
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  int64_t written = 0;
  for (uint32_t i = 0; written < bytes; ++i) {
    const std::string text = PrintFx(TransformerLikeGraph(kNodes, i)->graph(GraphId{0}));
    const std::string record = Artifact(fmt::format("graph_{}", i), text);
    STRATA_RETURN_IF_ERROR(file.Append(record));
    written += static_cast<int64_t>(record.size());
  }
  return file.Commit();
}

ProgramCost RunProgram(const std::vector<std::string>& words) {
  ProgramCost cost;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2})
      ::dup2(nothing, stream);
    std::vector<char*> args;
    for (const std::string& word : words)
      args.push_back(const_cast<char*>(word.c_str()));
    args.push_back(nullptr);
    ::execvp(args[0], args.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  cost.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  cost.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  cost.peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  cost.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return cost;
}

}  // namespace strata::cli
