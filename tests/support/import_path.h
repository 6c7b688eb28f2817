#pragma once
#include <memory>
#include <string>

#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/support/results.h"
#include "tlparse-export/torch_trace/import/input_files.h"

namespace strata::testing {

/// Imports a log, a folder or an FX text into a new trace at `trace` and opens it. Returns null and
/// logs the message if the import fails.
inline std::unique_ptr<TraceReader> ImportPath(const std::string& path, const std::string& trace,
                                               ImportSummary* summary = nullptr) {
  auto inputs = FindInputs({path});
  REQUIRE_OK(inputs);
  auto writer = TraceWriter::Create(trace, TraceWriter::Mode::kAside);
  REQUIRE_OK(writer);
  ImportSummary own;
  if (const Status read = ImportLogs(**inputs, {}, **writer, summary ? *summary : own); !read) {
    MESSAGE(read.error().message());
    return nullptr;
  }
  REQUIRE_OK((*writer)->Finish());
  auto reader = TraceReader::Open(trace);
  REQUIRE_OK(reader);
  return std::move(*reader);
}

}  // namespace strata::testing
