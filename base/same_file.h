#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace strata {

/// A path of a command line, and what names it there: `CONFIG`, `--save`,
/// `dataloader.dataset_path`.
struct NamedPath {
  std::string name, path;
};

/// Whether two paths name one file, through links too. A file that does not exist yet is the same
/// as another one of equal folder and name.
bool IsSameFile(const std::string& a, const std::string& b);

/// Rejects outputs that would replace what the command reads, or each other. An input that is a
/// folder stands for the files in it. `-`, devices and pipes are never replaced.
Status CheckOutputs(std::span<const NamedPath> outputs, std::span<const NamedPath> inputs);

}  // namespace strata
