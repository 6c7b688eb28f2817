#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diff/diff.h"
#include "diff/output/diff_json.h"
#include "ir/text/native_text.h"

namespace strata {
namespace {

constexpr std::string_view kSeparator = "\n====\n";

/// Marks the entities of one side; each may occur once.
class Seen {
 public:
  explicit Seen(int32_t size) : seen_(static_cast<size_t>(size), false) {}
  void Mark(EntityId id) {
    STRATA_CHECK(!seen_[static_cast<size_t>(id.index)]);
    seen_[static_cast<size_t>(id.index)] = true;
    ++count_;
  }
  bool all() const { return count_ == seen_.size(); }

 private:
  std::vector<bool> seen_;
  size_t count_ = 0;
};

void CheckDiff(const Graph& before, const Graph& after, bool stable_ids) {
  DiffOptions options;
  options.stable_ids = stable_ids;
  options.meta = true;
  const Result<GraphDiff> diff = Diff(before, after, options);
  STRATA_CHECK(diff.has_value());
  Seen befores(diff->before.size()), afters(diff->after.size());
  for (const Pair& pair : diff->pairs) {
    STRATA_CHECK(diff->before[pair.before].kind == diff->after[pair.after].kind);
    STRATA_CHECK(!pair.status.changed || !pair.status.derived);
    befores.Mark(pair.before);
    afters.Mark(pair.after);
  }
  for (EntityId id : diff->deleted)
    befores.Mark(id);
  for (EntityId id : diff->inserted)
    afters.Mark(id);
  STRATA_CHECK(befores.all() && afters.all());
  (void)DiffJson(*diff, "a", "b");
}

}  // namespace
}  // namespace strata

// Two native texts: every node of both is in the diff once, and no graph differs from itself.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t separator = text.find(strata::kSeparator);
  if (separator == std::string_view::npos) return 0;
  const auto before = strata::ParseText(text.substr(0, separator));
  const auto after = strata::ParseText(text.substr(separator + strata::kSeparator.size()));
  if (!before || !after || (*before)->programs().empty() || (*after)->programs().empty()) return 0;
  const strata::Graph& a = (*before)->graph((*before)->programs()[0]);
  const strata::Graph& b = (*after)->graph((*after)->programs()[0]);
  strata::CheckDiff(a, b, false);
  strata::CheckDiff(a, b, true);
  const auto itself = strata::Diff(a, a);
  STRATA_CHECK(itself.has_value() && itself->Equal());
  return 0;
}
