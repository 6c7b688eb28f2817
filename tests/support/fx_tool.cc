// A program for the oracle in tests/support/fx_oracle.py and for measurements.
//
//   fx_tool counts FILE…   one JSON line per text: what was read
//   fx_tool print FILE     the text again
//   fx_tool bench FILE N   MB/s of parsing and printing, best of N

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "ir/file.h"
#include "ir/fx/fx.h"
#include "ir/json.h"

namespace strata {
namespace {

double Seconds(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int Main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  Result<std::string> text = ReadFile(argv[2]);
  if (!text) {
    fmt::print(stderr, "{}\n", text.error().message());
    return 2;
  }
  Result<FxDocument> document = ParseFx(*text, {.file = argv[2], .graph_name = {}});
  if (!document) {
    fmt::print(stderr, "{}\n", document.error().message());
    return 2;
  }
  for (const FxDiagnostic& d : document->diagnostics) {
    fmt::print(stderr, "{}:{}:{}: {}: {}\n", argv[2], d.line, d.column, d.what, d.skipped);
  }
  if (mode == "print") {
    fmt::print("{}", PrintFx(document->graph()));
  } else if (mode == "bench") {
    double parse = 1e9, print = 1e9;
    for (int i = 0; i < std::stoi(argv[3]); ++i) {
      parse = std::min(parse, Seconds([&] { (void)ParseFx(*text); }));
      print = std::min(print, Seconds([&] { (void)PrintFx(document->graph()); }));
    }
    const double megabytes = static_cast<double>(text->size()) / 1e6;
    fmt::print("parse {:.0f} MB/s, print {:.0f} MB/s, {} nodes\n", megabytes / parse,
               megabytes / print, document->graph().num_printed_nodes());
  }
  return 0;
}

}  // namespace strata

int main(int argc, char** argv) {
  return strata::Main(argc, argv);
}
