#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Folders of checkpoints: their names, and changes to them that survive a loss of power.
namespace strata {

/// The file that makes a folder a checkpoint.
constexpr std::string_view kManifest = "checkpoint.json";

/// `<folder>/step-<step>`.
std::string CheckpointPath(const std::string& folder, int64_t step);

/// Steps of the complete checkpoints in a folder, ascending; none when there is no folder.
std::vector<int64_t> ListCheckpoints(const std::string& folder);

/// Where a checkpoint is written before it gets its name.
std::string UnfinishedPath(const std::string& path);

/// Removes what a killed run left unfinished, or did not remove completely.
void RemoveLeftovers(const std::string& folder);

/// Makes a folder and those above it; their names survive a loss of power.
Status MakeFolder(const std::string& folder);

/// A folder's new or removed names survive a loss of power.
Status SyncFolder(const std::string& folder);

/// Removes a checkpoint: first its name, so that no half of it is ever found.
Status RemoveCheckpoint(const std::string& path);

/// Gives a complete folder its name. An older folder of that name is replaced atomically, so that
/// one of the two exists whenever the program stops.
Status NameCheckpoint(const std::string& aside, const std::string& path);

}  // namespace strata
