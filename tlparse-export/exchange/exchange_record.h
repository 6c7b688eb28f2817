#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

/// The exchange file of a recorded Python process: JSON lines that `strata.record` appends. Format:
/// docs/exchange_format.md.
namespace strata {

enum class ExchangeKind : uint8_t {
  kHead,      ///< first record: the schema and the process
  kText,      ///< a string that later records name by number
  kGraph,     ///< a graph that snapshots follow of
  kBegin,     ///< a pass began
  kSnap,      ///< a graph, as the nodes that differ from its last snapshot
  kEdge,      ///< new nodes and the nodes they were made from
  kEnd,       ///< a pass ended
  kArtifact,  ///< a text that belongs to the run, such as generated code
  kDrop,      ///< the recorder left something out
  kTail,      ///< the recording ended
  kOther,     ///< of a later version: ignored
};

/// A node of a snapshot as a statement of FX text.
struct ExchangeNode {
  enum class Kind : uint8_t { kInput, kStatement, kOutput };
  int64_t id = 0;  ///< positive
  Kind kind = Kind::kStatement;
  std::string text;     ///< `x: "f32[2]"`, `y: "f32[2]" = torch.relu(x)`, the returned value
  int64_t comment = 0;  ///< number of a kText record; 0: none
  std::string alias;    ///< of an input: the name that the body uses, when it is another one
};

/// One program or body of a snapshot: its nodes in order, as ranges of consecutive ids.
struct ExchangeBody {
  std::string path;  ///< "" for the program, "cond_0/inner" for a body
  std::vector<std::pair<int64_t, int64_t>> order;  ///< (first id, number of ids)
};

/// One line. Only fields of its kind are set.
struct ExchangeRecord {
  ExchangeKind kind = ExchangeKind::kOther;
  int64_t id = 0;     ///< kText: its number; kGraph, kSnap: graph; kBegin, kEdge, kEnd: pass
  int64_t pass = 0;   ///< kSnap: the pass
  int64_t graph = 0;  ///< kBegin: the graph that the pass reads
  int64_t from = 0;   ///< kGraph: the graph whose last snapshot is its first; 0: none
  std::string name;   ///< kText: the text; kGraph, kBegin: name; kDrop: what
  std::string when;   ///< kSnap: before, after, failed; kEdge: clone, create, replace; kEnd: status
  std::string options, file, error, class_name, source, command;
  std::string content;  ///< kArtifact: the text; its name is `name`
  int64_t line = 0, ns = 0, rank = 0, world = 1, count = 0;
  std::vector<std::string> inner;  ///< kEnd: passes that ran inside
  std::vector<ExchangeNode> nodes;
  std::vector<ExchangeBody> bodies;
  std::vector<int64_t> new_ids, old_ids;
};

/// True for the first line of an exchange file.
bool LooksLikeExchange(std::string_view text);

/// Reads one line without its line end. Unknown keys are ignored, missing ones keep their defaults.
/// Errors name the field: the caller adds file and line.
Result<ExchangeRecord> ReadExchangeRecord(std::string_view line);

}  // namespace strata
