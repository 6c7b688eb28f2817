#include "viewer/model/match_pins.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/file.h"

namespace strata::viewer {
namespace {

constexpr std::string_view kEnding = ".pins.toml";

/// `T.strata` of `./T.strata`, `logs` of `logs/`.
std::filesystem::path Place(const std::string& file) {
  std::filesystem::path path(file);
  if (!path.has_filename()) path = path.parent_path();
  return path;
}

/// Fingerprints of large graphs take time, which most files need not spend.
bool HasAnyPins(const std::filesystem::path& place) {
  std::error_code failure;
  const std::string begin = place.filename().string() + ".";
  const std::filesystem::path folder = place.has_parent_path() ? place.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(kEnding)) return true;
  }
  return false;
}

}  // namespace

Result<std::optional<Pins>> ReadPins(const std::string& file, const Graph& before,
                                     const Graph& after) {
  if (!HasAnyPins(Place(file))) return std::optional<Pins>();
  const std::string path = PinsPath(file, FingerprintOf(before), FingerprintOf(after));
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return std::optional<Pins>();
  STRATA_TRY(const std::string text, ReadFile(path));
  STRATA_TRY(Pins pins, ParsePins(text, path));
  return std::optional<Pins>(std::move(pins));
}

std::string PinsPath(const std::string& file, Fingerprint before, Fingerprint after) {
  const std::filesystem::path place = Place(file);
  return fmt::format("{}.{}-{}{}", place.string(), ToString(before).substr(0, 8),
                     ToString(after).substr(0, 8), kEnding);
}

Status WritePins(const Pins& pins) {
  if (!pins.same.empty() || !pins.never.empty()) return WriteFile(pins.file, PrintPins(pins));
  std::error_code failure;
  std::filesystem::remove(pins.file, failure);
  if (failure) return Error(ErrorCode::kIo, "cannot remove: {}: {}", pins.file, failure.message());
  return Ok();
}

}  // namespace strata::viewer
