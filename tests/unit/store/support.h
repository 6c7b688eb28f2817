#pragma once
#include <memory>
#include <random>
#include <string>

#include "ir/module.h"
#include "store/trace.h"

/// Graphs and files for tests of the store.
namespace strata::store_test {

using Random = std::mt19937_64;

/// A number below `bound`, the same on every machine.
inline size_t Below(Random& random, size_t bound) {
  return static_cast<size_t>(random() % bound);
}

/// A program "step" of about `nodes` nodes that uses everything a graph can hold: all kinds of
/// nodes and arguments, bodies inside bodies, tuples, aliases, symbolic sizes, placements,
/// metadata.
std::unique_ptr<Module> MakeModule(uint64_t seed, size_t nodes);

/// `count` random edits of the program: nodes made, erased, moved, rewired, renamed, tagged. The
/// graph stays sound.
void Edit(Module& module, Random& random, size_t count);

/// Native text with stable ids: equal text is an equal graph.
std::string FullText(const Graph& graph);

/// A folder that is removed at the end.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The value; ends the test when there is none.
template <class T>
T Get(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}
inline void Get(Status status) {
  if (!status) throw std::runtime_error(status.error().message());
}

/// Bytes of a file.
std::string Slurp(const std::string& path);
void Spill(const std::string& path, const std::string& bytes);

/// A trace of one run: the module, then `passes` rounds of edits, each recorded as a pass.
void WriteTrace(TraceWriter& writer, Module& module, Random& random, int passes, size_t edits);

/// Everything that a trace tells, as text; the first error that reading it gives.
Result<std::string> Dump(const std::string& path);

}  // namespace strata::store_test
