#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "base/text.h"
#include "base/toml.h"
#include "diff/policy/policy.h"

namespace strata {
namespace {

constexpr std::array<std::string_view, 4> kKindWords = {"input", "constant", "compute", "output"};
constexpr std::array<std::string_view, 13> kLimitWords = {
    "renamed", "moved",  "changed",      "derived",        "inserted", "deleted", "replaced",
    "cloned",  "merged", "became_input", "became_compute", "touched",  "hunks"};

class PolicyReader {
 public:
  explicit PolicyReader(const TomlFile& file) : file_(file) { policy_.file = file.file; }

  Result<Policy> Run() {
    TomlTable top(file_, file_.root, "a policy");
    const std::vector<const TomlValue*> allow = top.Tables("allow"), forbid = top.Tables("forbid");
    const TomlValue* const limit = top.Table("limit");
    const TomlValue* const require = top.Table("require");
    STRATA_RETURN_IF_ERROR(top.Finish());
    for (const TomlValue* rule : allow)
      STRATA_RETURN_IF_ERROR(ReadRule(*rule, "[[allow]]", policy_.allow));
    for (const TomlValue* rule : forbid)
      STRATA_RETURN_IF_ERROR(ReadRule(*rule, "[[forbid]]", policy_.forbid));
    if (limit != nullptr) STRATA_RETURN_IF_ERROR(ReadLimits(*limit));
    if (require != nullptr) STRATA_RETURN_IF_ERROR(ReadInvariants(*require));
    return std::move(policy_);
  }

 private:
  Status ReadRule(const TomlValue& value, std::string_view what, std::vector<Policy::Rule>& rules) {
    TomlTable table(file_, value, std::string(what));
    Policy::Rule rule;
    rule.where = file_.Where(value.at);
    rule.why = table.Text("why").value_or("");
    STRATA_RETURN_IF_ERROR(ReadWords(table, "statuses", kChangeWords, rule.statuses));
    STRATA_RETURN_IF_ERROR(ReadWords(table, "kinds", kKindWords, rule.kinds));
    STRATA_RETURN_IF_ERROR(ReadPatterns(table, "targets", rule.targets));
    STRATA_RETURN_IF_ERROR(ReadPatterns(table, "modules", rule.modules));
    STRATA_RETURN_IF_ERROR(ReadPatterns(table, "fields", rule.fields));
    STRATA_RETURN_IF_ERROR(ReadPatterns(table, "patterns", rule.patterns));
    STRATA_RETURN_IF_ERROR(ReadPatterns(table, "nodes", rule.nodes));
    STRATA_RETURN_IF_ERROR(table.Finish());
    rules.push_back(std::move(rule));
    return Ok();
  }

  /// An empty list would say "none" to its reader and "any" to us.
  Result<std::vector<TomlText>> ReadTexts(TomlTable& table, std::string_view key) {
    std::vector<TomlText> texts = table.Texts(key);
    if (texts.empty() && table.Has(key)) {
      STRATA_RETURN_IF_ERROR(table.Finish());
      return Error("{}: '{}' is empty: leave it out, or say what", file_.file, key);
    }
    return texts;
  }

  Status ReadWords(TomlTable& table, std::string_view key, std::span<const std::string_view> words,
                   std::vector<std::string>& target) {
    STRATA_TRY(const std::vector<TomlText> texts, ReadTexts(table, key));
    for (const TomlText& text : texts) {
      if (std::ranges::find(words, text.text) == words.end()) {
        const std::vector<std::string> known(words.begin(), words.end());
        return file_.At(text.at,
                        fmt::format("unknown word '{}' in '{}'{}; it may be {}", OneLine(text.text),
                                    key, DidYouMean(text.text, known), fmt::join(known, ", ")));
      }
      target.push_back(text.text);
    }
    return Ok();
  }

  Status ReadPatterns(TomlTable& table, std::string_view key, std::vector<NamePattern>& target) {
    STRATA_TRY(const std::vector<TomlText> texts, ReadTexts(table, key));
    for (const TomlText& text : texts) {
      Result<NamePattern> pattern = NamePattern::Parse(text.text);
      if (!pattern) return file_.At(text.at, pattern.error().message());
      target.push_back(std::move(*pattern));
    }
    return Ok();
  }

  Status ReadLimits(const TomlValue& value) {
    TomlTable table(file_, value, "[limit]");
    for (std::string_view word : kLimitWords) {
      if (const std::optional<int64_t> most = table.Count(word)) {
        policy_.limits.push_back({std::string(word), *most, WhereOf(value, word)});
      }
    }
    return table.Finish();
  }

  Status ReadInvariants(const TomlValue& value) {
    TomlTable table(file_, value, "[require]");
    for (std::string_view word : kInvariantWords) {
      if (table.Flag(word).value_or(false)) {
        policy_.invariants.push_back({std::string(word), WhereOf(value, word)});
      }
    }
    return table.Finish();
  }

  std::string WhereOf(const TomlValue& table, std::string_view key) const {
    for (const TomlValue::Member& member : std::get<TomlValue::Table>(table.value)) {
      if (member.key == key) return file_.Where(member.at);
    }
    return file_.file;
  }

  const TomlFile& file_;
  Policy policy_;
};

}  // namespace

Result<Policy> ParsePolicy(std::string_view text, std::string_view file) {
  STRATA_TRY(const TomlFile toml, ParseToml(text, file));
  return PolicyReader(toml).Run();
}

}  // namespace strata
