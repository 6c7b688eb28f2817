#include "passes/core/options.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/python_literal.h"
#include "base/suggest.h"
#include "base/text.h"

namespace strata {
namespace {

template <class T>
bool ParseNumber(std::string_view text, T& value) {
  T number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return false;
  value = number;
  return true;
}

// A value as pipeline text spells it: quoted where it would be read otherwise.
std::string Spelled(std::string_view value) {
  const bool plain = !value.empty() && value.find_first_of(",{}=\"\\ \t\r\n") == value.npos;
  if (plain) return std::string(value);
  std::string quoted = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

void OptionList::Add(std::string_view name, int64_t& field, std::string_view help) {
  AddOption(
      name, "int", help,
      [&field](std::string_view text) -> Status {
        if (ParseNumber(text, field)) return Ok();
        return Error("expected an integer, not '{}'", OneLine(text));
      },
      [&field] { return fmt::format("{}", field); });
}

void OptionList::AddCount(std::string_view name, int64_t& field, std::string_view help) {
  AddOption(
      name, "int", help,
      [&field](std::string_view text) -> Status {
        int64_t count = 0;
        if (!ParseNumber(text, count) || count < 1)
          return Error("expected an integer from 1, not '{}'", OneLine(text));
        field = count;
        return Ok();
      },
      [&field] { return fmt::format("{}", field); });
}

void OptionList::Add(std::string_view name, double& field, std::string_view help) {
  AddOption(
      name, "float", help,
      [&field](std::string_view text) -> Status {
        if (ParseNumber(text, field)) return Ok();
        return Error("expected a number, not '{}'", OneLine(text));
      },
      [&field] {
        std::string text;
        AppendFloat(field, text);
        return text;
      });
}

void OptionList::Add(std::string_view name, bool& field, std::string_view help) {
  AddOption(
      name, "bool", help,
      [&field](std::string_view text) -> Status {
        if (text != "true" && text != "false") {
          return Error("expected true or false, not '{}'", OneLine(text));
        }
        field = text == "true";
        return Ok();
      },
      [&field] { return std::string(field ? "true" : "false"); });
}

void OptionList::Add(std::string_view name, std::string& field, std::string_view help) {
  AddOption(
      name, "string", help,
      [&field](std::string_view text) {
        field = text;
        return Ok();
      },
      [&field] { return field; });
}

void OptionList::AddChoice(std::string_view name, std::vector<std::string> names,
                           const std::function<size_t()>& get,
                           const std::function<void(size_t)>& set, std::string_view help) {
  const auto parse = [names, set](std::string_view text) -> Status {
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) {
      return Error("expected one of {}, not '{}'{}", fmt::join(names, ", "), OneLine(text),
                   DidYouMean(text, names));
    }
    set(static_cast<size_t>(found - names.begin()));
    return Ok();
  };
  AddOption(name, fmt::format("{}", fmt::join(names, "|")), help, parse,
            [names, get] { return names[get()]; });
}

void OptionList::AddOption(std::string_view name, std::string type, std::string_view help,
                           std::function<Status(std::string_view)> set,
                           std::function<std::string()> get) {
  STRATA_CHECK(!Find(name), "option '{}' is bound twice", name);
  std::string default_value = get();
  options_.push_back({std::string(name), std::move(type), std::string(help),
                      std::move(default_value), std::move(set), std::move(get)});
}

const Option* OptionList::Find(std::string_view name) const {
  const auto found = std::ranges::find(options_, name, &Option::name);
  return found == options_.end() ? nullptr : &*found;
}

std::string OptionList::Text() const {
  std::string text;
  for (const Option& option : options_) {
    const std::string value = option.get();
    if (value == option.default_value) continue;
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", option.name, Spelled(value));
  }
  return text;
}

}  // namespace strata
