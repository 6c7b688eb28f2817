#include "cli/prove/prove_pins.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/text.h"
#include "base/unicode.h"

namespace strata::cli {
namespace {

constexpr std::string_view kColon = ": ", kComma = ", ";

std::string_view Trimmed(std::string_view text) {
  while (text.ends_with(' ') || text.ends_with('\r'))
    text.remove_suffix(1);
  while (text.starts_with(' '))
    text.remove_prefix(1);
  return text;
}

/// An assumption as what is said, and of which values: `ranks hold R on tp` of `L_x_`, `norm`. One
/// without values is said of "".
struct Statement {
  std::string_view said;
  std::vector<std::string_view> of;
};

Statement StatementOf(std::string_view text) {
  const size_t colon = text.find(kColon);
  if (colon == text.npos) return {text, {""}};
  Statement statement{text.substr(0, colon), {}};
  std::string_view rest = text.substr(colon + kColon.size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(kComma), rest.size());
    statement.of.push_back(Trimmed(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + kComma.size(), rest.size()));
  }
  return statement;
}

std::string TextOf(std::string_view said, const std::vector<std::string_view>& of) {
  if (of.size() == 1 && of[0].empty()) return std::string(said);
  return fmt::format("{}{}{}", said, kColon, fmt::join(of, kComma));
}

}  // namespace

Result<Pins> ReadPins(const std::string& file) {
  STRATA_TRY(const std::string bytes, ReadFile(file));
  Pins pins;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    for (const std::string_view prefix : {"inferred:", "assumed:"}) {
      if (!line.starts_with(prefix)) continue;
      const Statement statement = StatementOf(Trimmed(line.substr(prefix.size())));
      for (const std::string_view of : statement.of)
        pins.emplace(statement.said, of);
    }
  }
  if (!pins.empty()) return pins;
  return Error("no pins: {}: give lines 'inferred: …' that strata prove printed", Visible(file));
}

void ApplyPins(const Pins& pins, std::vector<StepProof>& proofs) {
  for (StepProof& proof : proofs) {
    std::vector<prove::Assumption> all;
    for (const prove::Assumption& assumption : proof.proof.assumptions) {
      const Statement statement = StatementOf(assumption.text);
      std::vector<std::string_view> pinned, left;
      for (const std::string_view of : statement.of) {
        const bool is_pinned =
            !assumption.is_inferred ||
            pins.contains(std::pair(std::string(statement.said), std::string(of)));
        (is_pinned ? pinned : left).push_back(of);
      }
      if (!pinned.empty()) all.push_back({TextOf(statement.said, pinned), false});
      if (!left.empty()) all.push_back({TextOf(statement.said, left), true});
    }
    proof.proof.assumptions = std::move(all);
  }
}

}  // namespace strata::cli
