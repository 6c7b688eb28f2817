#include "passes/core/registry.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/source_error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace strata {
namespace {

/// `name=value`, and where each stands in the text.
struct OptionText {
  std::string name, value;
  size_t name_at = 0, value_at = 0;
};

/// `name{option,…}`.
struct PassText {
  std::string name;
  std::vector<OptionText> options;
  size_t at = 0;
};

template <class Items>
std::vector<std::string> NamesOf(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items)
    names.push_back(item.name);
  return names;
}

/// `; did you mean 'x'? available: x, y`: the end of a message about an unknown name.
std::string Alternatives(std::string_view name, const std::vector<std::string>& names) {
  const auto closest = ClosestMatch(name, names);
  return fmt::format("; {}available: {}",
                     closest ? fmt::format("did you mean '{}'? ", *closest) : std::string(),
                     Enumerate(names, names.size()));
}

class PipelineParser {
 public:
  PipelineParser(std::string_view text, const PassRegistry& registry)
      : text_(text), registry_(registry) {}

  Result<std::vector<std::unique_ptr<Pass>>> Run() {
    std::vector<std::unique_ptr<Pass>> passes;
    SkipBlanks();
    if (AtEnd()) return passes;
    do {
      STRATA_TRY(const PassText spelled, ParsePass());
      STRATA_TRY(passes.emplace_back(), Make(spelled));
    } while (Take(','));
    if (!AtEnd()) return Fail(at_, "expected ',' between passes");
    return passes;
  }

 private:
  Error Fail(size_t at, std::string_view what) const {
    return ErrorAt("pipeline", text_, at, what);
  }

  Result<PassText> ParsePass() {
    SkipBlanks();
    PassText pass;
    pass.at = at_;
    pass.name = TakeName();
    if (pass.name.empty()) return Fail(at_, "expected the name of a pass");
    if (!Take('{')) return pass;
    const size_t brace = at_ - 1;
    while (!Take('}')) {
      if (AtEnd()) return Fail(brace, "this brace is not closed");
      if (!pass.options.empty() && !Take(',')) return Fail(at_, "expected ',' or '}'");
      STRATA_TRY(pass.options.emplace_back(), ParseOption());
    }
    return pass;
  }

  Result<OptionText> ParseOption() {
    SkipBlanks();
    OptionText option;
    option.name_at = at_;
    option.name = TakeName();
    if (option.name.empty()) return Fail(at_, "expected the name of an option");
    if (!Take('=')) return Fail(at_, fmt::format("expected '=' after option '{}'", option.name));
    SkipBlanks();
    option.value_at = at_;
    STRATA_TRY(option.value, ParseValue());
    return option;
  }

  Result<std::string> ParseValue() {
    const size_t begin = at_;
    if (Peek() != '"') {
      while (!AtEnd() && std::string_view(",{}=\"\\").find(Peek()) == std::string_view::npos)
        ++at_;
      if (Peek() == '{' || Peek() == '=' || Peek() == '"' || Peek() == '\\') {
        return Fail(begin, fmt::format("a value with '{}' must be in double quotes", Peek()));
      }
      std::string_view value = text_.substr(begin, at_ - begin);
      value = value.substr(0, value.find_last_not_of(kBlanks) + 1);
      if (value.empty()) return Fail(begin, "expected a value; an empty one is written \"\"");
      return std::string(value);
    }
    std::string value;
    for (++at_; Peek() != '"'; ++at_) {
      if (AtEnd()) return Fail(begin, "this quote is not closed");
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      value += Peek();
    }
    ++at_;
    return value;
  }

  Result<std::unique_ptr<Pass>> Make(const PassText& spelled) const {
    const PassRegistry::Entry* entry = registry_.Find(spelled.name);
    if (entry == nullptr) {
      return Fail(spelled.at,
                  fmt::format("unknown pass '{}'{}", spelled.name,
                              Alternatives(spelled.name, NamesOf(registry_.entries()))));
    }
    return entry->make([&](OptionList& list) { return Configure(spelled, list); });
  }

  Status Configure(const PassText& spelled, OptionList& list) const {
    for (size_t i = 0; i < spelled.options.size(); ++i) {
      const OptionText& given = spelled.options[i];
      const Option* option = list.Find(given.name);
      if (option == nullptr && list.options().empty()) {
        return Fail(given.name_at, fmt::format("pass '{}' has no options", spelled.name));
      }
      if (option == nullptr) {
        return Fail(given.name_at,
                    fmt::format("pass '{}' has no option '{}'{}", spelled.name, given.name,
                                Alternatives(given.name, NamesOf(list.options()))));
      }
      const auto before = std::span(spelled.options).first(i);
      if (std::ranges::find(before, given.name, &OptionText::name) != before.end()) {
        return Fail(given.name_at, fmt::format("option '{}' is given twice", given.name));
      }
      if (const Status set = option->set(given.value); !set) {
        return Fail(given.value_at, fmt::format("option '{}' of pass '{}': {}", given.name,
                                                spelled.name, set.error().message()));
      }
    }
    return Ok();
  }

  static constexpr std::string_view kBlanks = " \t\r\n";

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
  bool Take(char c) {
    SkipBlanks();
    if (AtEnd() || Peek() != c) return false;
    ++at_;
    return true;
  }
  std::string TakeName() {
    const size_t begin = at_;
    const auto is_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.';
    };
    while (is_name(Peek()))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  const PassRegistry& registry_;
  size_t at_ = 0;
};

}  // namespace

const PassRegistry::Entry* PassRegistry::Find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

void PassRegistry::AddEntry(Entry entry) {
  STRATA_CHECK(!Find(entry.name), "pass '{}' is registered twice", entry.name);
  entries_.push_back(std::move(entry));
}

Result<std::vector<std::unique_ptr<Pass>>> ParsePipeline(std::string_view text,
                                                         const PassRegistry& registry) {
  return PipelineParser(text, registry).Run();
}

std::string DescribePasses(const PassRegistry& registry) {
  size_t width = 0;
  for (const PassRegistry::Entry& entry : registry.entries())
    width = std::max(width, entry.name.size());
  std::string text;
  for (const PassRegistry::Entry& entry : registry.entries()) {
    text += fmt::format("{:<{}}  {}\n", entry.name, width, entry.summary);
    const auto describe = [&](OptionList& list) {
      for (const Option& option : list.options()) {
        text += fmt::format("  {}={}  ({}) {}\n", option.name, option.default_value, option.type,
                            option.help);
      }
      return Ok();
    };
    const auto made = entry.make(describe);
    STRATA_CHECK(made, "pass '{}' refuses its defaults", entry.name);
  }
  return text;
}

}  // namespace strata
