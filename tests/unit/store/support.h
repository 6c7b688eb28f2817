#pragma once
#include <memory>
#include <random>
#include <string>

#include "ir/module.h"
#include "store/trace_writer.h"
#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"

/// Graphs and files for tests of the store.
namespace strata::store_test {

using testing::OrDie;
using testing::TempDir;

using Random = std::mt19937_64;

/// A number below `bound`, the same on every machine.
inline size_t Below(Random& random, size_t bound) {
  return static_cast<size_t>(random() % bound);
}

/// A program "step" of about `nodes` nodes with everything that a graph can contain: all kinds of
/// nodes and arguments, bodies inside bodies, tuples, aliases, symbolic sizes, placements,
/// metadata.
std::unique_ptr<Module> MakeModule(uint64_t seed, size_t nodes);

/// `count` random edits of the program: nodes created, erased, moved, rewired, renamed, tagged. The
/// graph stays valid.
void Edit(Module& module, Random& random, size_t count);

/// Native text with stable ids. Equal graphs have equal texts.
std::string FullText(const Graph& graph);

/// The bytes of a file.
std::string Slurp(const std::string& path);
void Spill(const std::string& path, const std::string& bytes);

/// A trace of one run: the module, then `passes` rounds of edits, each recorded as a pass.
void WriteTrace(TraceWriter& writer, Module& module, Random& random, int passes, size_t edits);

/// Writes a trace that has a row in every table.
void WriteSmallTrace(const std::string& path, size_t nodes);

/// Everything that a trace contains, as text, with or without the text of its graphs. Fails with
/// the first error of reading it.
Result<std::string> Dump(const std::string& path, bool texts = true);

}  // namespace strata::store_test
