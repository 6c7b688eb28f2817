#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata {

/// One option of a pass: a name for a field of its `Options`.
struct Option {
  std::string name;
  std::string type;           ///< "int", "float", "bool", "string", or the choices: "fast|small"
  std::string help;           ///< half a sentence
  std::string default_value;  ///< as text
  /// Sets the field. Errors: the text is not a value of the type.
  std::function<Status(std::string_view text)> set;
  std::function<std::string()> get;
};

/// Binds names to the fields of an `Options` struct, for parsing, printing and help:
///
///     struct Options {
///       int64_t prefetch = 1;
///       Mode mode = Mode::kFast;
///       void Bind(OptionList& list) {
///         list.Add("prefetch", prefetch, "buckets launched ahead");
///         list.Add("mode", mode, {{"fast", Mode::kFast}, {"small", Mode::kSmall}}, "what to
///         keep");
///       }
///     };
///
/// REQUIRES: the struct outlives the list.
class OptionList {
 public:
  void Add(std::string_view name, int64_t& field, std::string_view help);
  /// A number from 1.
  void AddCount(std::string_view name, int64_t& field, std::string_view help);
  void Add(std::string_view name, double& field, std::string_view help);
  void Add(std::string_view name, bool& field, std::string_view help);
  void Add(std::string_view name, std::string& field, std::string_view help);
  /// A choice by name. REQUIRES: `field` is one of the choices.
  template <class Enum>
  void Add(std::string_view name, Enum& field,
           std::initializer_list<std::pair<std::string_view, std::type_identity_t<Enum>>> choices,
           std::string_view help);

  /// The option called `name`, or null.
  const Option* Find(std::string_view name) const;
  /// In order of binding.
  const std::vector<Option>& options() const { return options_; }

  /// What differs from the defaults, `ag=2,mode=fast`, in order of binding: the inside of the
  /// braces in pipeline text.
  std::string Text() const;

 private:
  void AddChoice(std::string_view name, std::vector<std::string> names,
                 const std::function<size_t()>& get, const std::function<void(size_t)>& set,
                 std::string_view help);
  void AddOption(std::string_view name, std::string type, std::string_view help,
                 std::function<Status(std::string_view)> set, std::function<std::string()> get);

  std::vector<Option> options_;
};

template <class Enum>
void OptionList::Add(
    std::string_view name, Enum& field,
    std::initializer_list<std::pair<std::string_view, std::type_identity_t<Enum>>> choices,
    std::string_view help) {
  std::vector<std::string> names;
  std::vector<Enum> values;
  for (const auto& [choice, value] : choices) {
    names.emplace_back(choice);
    values.push_back(value);
  }
  const auto get = [&field, values] {
    size_t index = 0;
    while (index + 1 < values.size() && values[index] != field)
      ++index;
    return index;
  };
  const auto set = [&field, values](size_t index) { field = values[index]; };
  AddChoice(name, std::move(names), get, set, help);
}

}  // namespace strata
