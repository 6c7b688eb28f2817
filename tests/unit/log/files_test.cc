// Properties of every graph of the logs and the FX texts in tests/data.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "tests/support/log_files.h"
#include "tests/support/results.h"
#include "tlparse-export/torch_trace/read/log.h"

namespace strata {
namespace {

using testing::CompressedLogs;
using testing::FilesBelow;
using testing::ReadLogText;

LogContent ReadHealthy(const std::string& path) {
  Result<LogContent> log = ReadLog(ReadLogText(path), path, {.strict = true});
  REQUIRE_OK(log);
  return std::move(*log);
}

/// Calls `fn(path, text)` for every distinct graph.
template <class Fn>
void ForEachGraph(Fn&& fn) {
  size_t graphs = 0;
  for (const std::string& path : FilesBelow("tests/data/fx", ".txt")) {
    const Result<std::string> text = ReadFile(path);
    REQUIRE_OK(text);
    fn(path, *text);
    ++graphs;
  }
  const std::vector<std::string> logs = CompressedLogs();
  for (const std::string& path : logs) {
    for (const LogPayload& payload : ReadHealthy(path).payloads) {
      if (!payload.is_graph) continue;
      fn(path, payload.text);
      ++graphs;
    }
  }
  CHECK_GE(graphs, 25);
}

FxDocument ParseStrictly(const std::string& path, std::string_view text) {
  FxOptions options;
  options.file = path;
  options.strict = true;
  Result<FxDocument> document = ParseFx(text, options);
  REQUIRE_OK(document);
  return std::move(*document);
}

TEST_CASE("files: every graph is read without a diagnostic and is valid") {
  ForEachGraph([](const std::string& path, const std::string& text) {
    CHECK(LooksLikeFxGraph(text));
    const FxDocument document = ParseStrictly(path, text);
    CHECK_EQ(document.num_diagnostics, 0);
    CHECK_OK(Verify(*document.module));
    CHECK(document.graph().is_foreign());
  });
}

TEST_CASE("files: every graph prints its original text, including frees and comments") {
  ForEachGraph([](const std::string& path, const std::string& text) {
    // Text around a graph that is not part of it: the frame of an export, terminal colours,
    // metadata blocks.
    const bool has_more = text.starts_with("ExportedProgram:") ||
                          text.find('\x1b') != std::string::npos ||
                          text.find("\"\"\"") != std::string::npos;
    if (has_more) return;
    std::string expected = text;
    if (const size_t id = expected.find("\n # graph id:"); id != std::string::npos) {
      expected.resize(id);
      expected.resize(expected.find_last_not_of('\n') + 2);
    }
    CHECK_MESSAGE(PrintFx(ParseStrictly(path, text).graph()) == expected, path);
  });
}

TEST_CASE("files: a printed graph reads back with the same fingerprint") {
  ForEachGraph([](const std::string& path, const std::string& text) {
    const FxDocument document = ParseStrictly(path, text);
    const FxDocument again = ParseStrictly(path, PrintFx(document.graph()));
    CHECK_EQ(ToString(FingerprintOf(again.graph())), ToString(FingerprintOf(document.graph())));
    const FxDocument bare =
        ParseStrictly(path, PrintFx(document.graph(), {.comments = false, .frees = false}));
    CHECK_EQ(ToString(FingerprintOf(bare.graph())), ToString(FingerprintOf(document.graph())));
  });
}

TEST_CASE("files: a graph survives native text, and then FX text") {
  ForEachGraph([](const std::string& path, const std::string& text) {
    const FxDocument document = ParseStrictly(path, text);
    const auto native = ParseText(PrintText(*document.module), path);
    REQUIRE_OK(native);
    const Graph& graph = (*native)->graph(GraphId{0});
    CHECK_EQ(ToString(FingerprintOf(graph, FingerprintScope::kEverything)),
             ToString(FingerprintOf(document.graph(), FingerprintScope::kEverything)));
    const FxDocument again = ParseStrictly(path, PrintFx(graph));
    CHECK_EQ(ToString(FingerprintOf(again.graph())), ToString(FingerprintOf(graph)));
  });
}

TEST_CASE("files: every annotation prints unchanged") {
  ForEachGraph([](const std::string&, const std::string& text) {
    if (text.find('\x1b') != std::string::npos) return;
    StringTable strings;
    DimTable dims(strings);
    TypeTable types(strings, dims);
    size_t at = 0;
    while ((at = text.find(": \"", at)) != std::string::npos) {
      const size_t end = text.find('"', at + 3);
      REQUIRE_NE(end, std::string::npos);
      const std::string annotation = text.substr(at + 3, end - at - 3);
      CHECK_EQ(types.ToString(types.Parse(annotation)), annotation);
      at = end;
    }
  });
}

TEST_CASE("files: graphs have the number of nodes that PyTorch counted during compilation") {
  const std::vector<std::string> logs = CompressedLogs();
  size_t compared = 0;
  for (const std::string& path : logs) {
    const LogContent log = ReadHealthy(path);
    for (const LogRun& run : log.runs) {
      std::map<std::string, const LogRecord*> graphs;  // by compilation, the last
      for (const LogRecord& record : run.records) {
        if (record.kind == "dynamo_output_graph") graphs[record.compile] = &record;
        constexpr std::string_view kCount = "\"graph_node_count\": ";
        const size_t at = record.envelope.find(kCount);
        const auto graph = graphs.find(record.compile);
        if (record.kind != "compilation_metrics" || at == std::string::npos ||
            graph == graphs.end()) {
          continue;
        }
        const int expected = std::atoi(record.envelope.c_str() + at + kCount.size());
        if (expected == 0) continue;  // null: the compilation failed
        const auto payload = static_cast<size_t>(graph->second->payload);
        CHECK_EQ(ParseStrictly(path, log.payloads[payload].text).graph().num_printed_nodes(),
                 expected);
        ++compared;
      }
    }
  }
  CHECK_GE(compared, 4);
}

TEST_CASE("files: a text truncated anywhere is still read") {
  const Result<std::string> text = ReadFile("tests/data/fx/operators.txt");
  REQUIRE_OK(text);
  for (size_t size = 0; size < text->size(); size += 7) {
    const auto document = ParseFx(std::string_view(*text).substr(0, size));
    if (document) CHECK_OK(Verify(*document->module));
  }
}

TEST_CASE("files: the trainer's log is one graph with four passes") {
  const LogContent log = ReadHealthy("tests/data/logs/trainer_torch2.11.log.zst");
  REQUIRE_EQ(log.runs.size(), 1);
  const LogRun& run = log.runs[0];
  REQUIRE_EQ(run.graphs.size(), 1);
  CHECK_EQ(run.graphs[0].name, "make_fx_graph_traced");
  REQUIRE_EQ(run.passes.size(), 4);
  CHECK_EQ(run.passes[0].name, "eliminate_dead_code_pass");
  CHECK(run.passes[0].unchanged);
  CHECK_FALSE(run.passes[1].unchanged);
  CHECK_EQ(run.passes[3].name, "normalize_view_ops_as_reshape");
}

TEST_CASE("files: malformed logs are read without an error") {
  const std::string folder = "tests/data/logs/malformed";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".log") continue;
    const Result<std::string> text = ReadFile(entry.path().string());
    REQUIRE_OK(text);
    const Result<LogContent> log = ReadLog(*text, entry.path().string());
    REQUIRE_OK(log);
    for (const LogRun& run : log->runs) {
      for (const LogGraph& graph : run.graphs)
        CHECK_OK(log->Parse(run, graph, graph.snapshots.back()));
    }
    ++files;
  }
  CHECK_EQ(files, 72);
}

}  // namespace
}  // namespace strata
