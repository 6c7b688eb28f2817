#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/render/proof_text.h"

namespace strata::cli {

/// The question of `strata prove SINGLE RANKS…`.
struct ForeignRequest {
  std::string single;                    ///< a log of one device
  std::vector<std::string> ranks;        ///< logs of all ranks, or folders of them
  std::vector<std::string> assumptions;  ///< "dp=averages"
  int64_t seed = 1, max_findings = 20;
};

/// Whether words name logs of ranks: several, a folder, or one with several ranks.
Result<bool> NamesRanks(const std::vector<std::string>& words);

/// Whether a word names a log, and not a graph in it, of one device with compiled graphs.
bool IsCompiledLog(const std::string& word);

/// Proves each compilation of the ranks against that of one device. Errors: logs that cannot be
/// read, or not of ranks 0, 1, 2, …; no compilation in one of them; an assumption of another form.
Result<std::vector<StepProof>> ProveForeignLogs(const ForeignRequest& request);

}  // namespace strata::cli
