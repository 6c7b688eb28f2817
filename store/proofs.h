#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/trace_writer.h"

namespace strata {

/// The kind of the artifacts that hold verdicts.
inline constexpr std::string_view kProofKind = "proof";

/// What a proof said of a pass over one graph. See docs/prove.md.
struct PassProof {
  int32_t pass = 0;     ///< index in its run
  std::string graph;    ///< name in its run
  std::string verdict;  ///< "proven", "differs", "unproven"
  std::string node;     ///< of the first finding; "": none
  std::string bug;      ///< class of the first finding: "wrong-factor"; "": none
  std::string what;     ///< one line: the first finding, or why the pass is unproven
  /// What of the graph was evaluated, if not all: "on reduced sizes; 3 of 126 layers …".
  std::string scope = {};

  friend bool operator==(const PassProof&, const PassProof&) = default;
};

/// Stores it as an artifact of kind `proof`, a JSON object that is also its attributes.
Status AddProof(TraceWriter& trace, RunId run, const PassProof& proof);

struct RunProof {
  RunId run = RunId::kNone;
  PassProof proof;
};

/// Adds verdicts to a trace that has ended, all or none. Errors: the trace is being written, or its
/// format is too old.
Status RecordProofs(const std::string& path, std::span<const RunProof> proofs);

/// The last verdict of each pass, by index and graph.
using PassProofs = std::map<std::pair<int32_t, std::string>, PassProof>;
PassProofs ProofsOf(const StoredRun& run);

/// "✓ proven, on reduced sizes", "✗ differs: mul_12", "? unproven".
std::string VerdictText(const PassProof& proof);

}  // namespace strata
