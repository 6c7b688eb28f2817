#include "cli/core/flags.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/suggest.h"
#include "runtime/aten/threads.h"

namespace strata::cli {
namespace {

/// The long spelling of "-o,--out", for messages.
std::string_view LongName(std::string_view name) {
  return name.substr(name.rfind(',') + 1);
}

/// Lines up `rows` of (left, right) in two columns.
std::string Columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  constexpr size_t kMaxWidth = 28;
  size_t width = 0;
  for (const auto& [left, right] : rows) {
    if (left.size() <= kMaxWidth) width = std::max(width, left.size());
  }
  std::string text;
  for (const auto& [left, right] : rows) {
    if (left.size() > width) {
      text += fmt::format("  {}\n  {:{}}  {}\n", left, "", width, right);
    } else {
      text += fmt::format("  {:<{}}  {}\n", left, width, right);
    }
  }
  return text;
}

template <class T>
bool ReadNumber(const std::string& text, T* target) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  *target = number;
  return true;
}

}  // namespace

struct Flags::Impl {
  struct Positional {
    CLI::Option* option;
    std::string name;
    size_t min;
    bool many;
    std::function<void(const std::vector<std::string>&)> set;
  };
  struct Named {
    CLI::Option* option;
    std::string name;
    bool required, repeated;
    std::function<Status(const std::vector<std::string>&)> set;
  };

  explicit Impl(std::string_view command_name, std::string_view command_summary)
      : command(command_name), summary(command_summary) {
    app.set_help_flag();
    app.allow_extras();
  }

  CLI::Option* Add(std::string_view name) {
    return app.add_option(std::string(name))
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void AddPositional(std::string_view name, size_t min, bool many, std::string_view help,
                     std::function<void(const std::vector<std::string>&)> set) {
    CLI::Option* option = Add(name);
    if (many) option->allow_extra_args();
    positionals.push_back({option, std::string(name), min, many, std::move(set)});
    positional_rows.emplace_back(name, help);
  }

  void AddNamed(std::string_view name, std::string_view value, bool required, bool repeated,
                std::string_view help, std::function<Status(const std::vector<std::string>&)> set) {
    named.push_back({Add(name), std::string(LongName(name)), required, repeated, std::move(set)});
    AddRow(name, value, help);
  }

  void AddRow(std::string_view name, std::string_view value, std::string_view help) {
    std::string left(name);
    if (const size_t comma = left.find(','); comma != std::string::npos)
      left.insert(comma + 1, " ");
    if (!value.empty()) left += fmt::format(" {}", value);
    option_rows.emplace_back(std::move(left), help);
  }

  template <class... T>
  Error Trouble(fmt::format_string<T...> what, T&&... parts) const {
    return Error("{}: strata {}: see 'strata {} --help'",
                 fmt::format(what, std::forward<T>(parts)...), command, command);
  }

  std::vector<std::string> OptionNames() const {
    std::vector<std::string> names = switch_names;
    for (const Named& option : named)
      names.push_back(option.name);
    names.emplace_back("--help");
    return names;
  }

  /// The option that was meant; or a field of the configuration, where those can be set.
  std::string Suggestion(const std::string& name) const {
    const std::vector<std::string> names = OptionNames();
    const std::string similar = DidYouMean(name, names);
    if (!similar.empty() || !name.starts_with("--") ||
        std::ranges::find(names, "--set") == names.end())
      return similar;
    return fmt::format("; a field of the configuration is '--set {}=VALUE'", name.substr(2));
  }

  std::string Usage() const {
    std::string usage = fmt::format("usage: strata {}", command);
    for (const Named& option : named) {
      if (option.required) {
        usage += fmt::format(" {} {}", option.name, option.option->get_option_text());
      }
    }
    for (const Positional& positional : positionals) {
      std::string word = positional.name + (positional.many ? "…" : "");
      usage += positional.min == 0 ? fmt::format(" [{}]", word) : fmt::format(" {}", word);
    }
    return usage + " [OPTION…]\n";
  }

  std::string Help() const {
    std::string text = fmt::format("strata {}: {}\n\n{}", command, summary, Usage());
    if (!positional_rows.empty()) text += "\narguments:\n" + Columns(positional_rows);
    auto rows = option_rows;
    rows.emplace_back("-h, --help", "this text");
    text += "\noptions:\n" + Columns(rows);
    if (!examples.empty()) text += "\nexamples:\n";
    for (const std::string& example : examples)
      text += fmt::format("  {}\n", example);
    return text;
  }

  Error Extra(const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      if (word.size() < 2 || word[0] != '-') continue;
      const std::string name = word.substr(0, word.find('='));
      return Trouble("unknown option '{}'{}", name, Suggestion(name));
    }
    return Trouble("unexpected argument '{}'", words[0]);
  }

  std::string command, summary;
  CLI::App app;
  std::vector<Positional> positionals;
  std::vector<Named> named;
  std::vector<std::pair<CLI::Option*, bool*>> switches;
  std::vector<std::string> switch_names;
  std::vector<std::pair<std::string, std::string>> positional_rows, option_rows;
  std::vector<std::string> examples;
};

Flags::Flags(std::string_view command, std::string_view summary)
    : impl_(std::make_unique<Impl>(command, summary)) {}
Flags::~Flags() = default;

void Flags::Positional(std::string_view name, std::string* target, std::string_view help) {
  impl_->AddPositional(name, 1, false, help, [target](const auto& words) { *target = words[0]; });
}

void Flags::OptionalPositional(std::string_view name, std::string* target, std::string_view help) {
  impl_->AddPositional(name, 0, false, help, [target](const auto& words) { *target = words[0]; });
}

void Flags::Positionals(std::string_view name, std::vector<std::string>* target, size_t min,
                        std::string_view help) {
  impl_->AddPositional(name, min, true, help, [target](const auto& words) { *target = words; });
}

void Flags::Switch(std::string_view name, bool* target, std::string_view help) {
  impl_->switches.emplace_back(impl_->app.add_flag(std::string(name)), target);
  impl_->switch_names.emplace_back(LongName(name));
  impl_->AddRow(name, "", help);
}

void Flags::Option(std::string_view name, std::string_view value, std::string* target,
                   std::string_view help) {
  impl_->AddNamed(name, value, false, false, help, [target](const auto& words) {
    *target = words[0];
    return Ok();
  });
}

void Flags::Required(std::string_view name, std::string_view value, std::string* target,
                     std::string_view help) {
  impl_->AddNamed(name, value, true, false, help, [target](const auto& words) {
    *target = words[0];
    return Ok();
  });
  impl_->named.back().option->option_text(std::string(value));
}

void Flags::Option(std::string_view name, std::string_view value,
                   std::optional<std::string>* target, std::string_view help) {
  impl_->AddNamed(name, value, false, false, help, [target](const auto& words) {
    *target = words[0];
    return Ok();
  });
}

void Flags::Option(std::string_view name, std::string_view value, int64_t* target,
                   std::string_view help, int64_t least, int64_t most) {
  impl_->AddNamed(
      name, value, false, false, help,
      [this, name = std::string(LongName(name)), target, least, most](const auto& words) -> Status {
        int64_t number = 0;
        if (!ReadNumber(words[0], &number)) {
          return impl_->Trouble("{} needs a whole number, not '{}'", name, words[0]);
        }
        if (number < least) return impl_->Trouble("{} must be at least {}", name, least);
        if (number > most) return impl_->Trouble("{} must be at most {}", name, most);
        *target = number;
        return Ok();
      });
}

void Flags::Threads(int64_t* target) {
  Option("--threads", "N", target,
         "threads inside operators (default: OMP_NUM_THREADS, else the physical cores)", 1,
         kMaxThreads);
}

void Flags::Operators(std::vector<std::string>* target) {
  Repeated("--operators", "FILE", target,
           "load a shared library whose operators the graph calls (docs/own_models.md)");
}

void Flags::Tolerance(std::string_view ulps, std::string_view relative, ValueTolerance* target) {
  Option(ulps, "N", &target->ulps, "treat values within N ULPs as equal");
  Option(relative, "X", &target->relative,
         "treat tensors as equal that differ by at most X times their largest magnitude");
}

void Flags::Option(std::string_view name, std::string_view value, double* target,
                   std::string_view help) {
  impl_->AddNamed(name, value, false, false, help,
                  [this, name = std::string(LongName(name)), target](const auto& words) -> Status {
                    double number = 0;
                    if (!ReadNumber(words[0], &number) || !(number >= 0)) {
                      return impl_->Trouble("{} needs a number from 0, not '{}'", name, words[0]);
                    }
                    *target = number;
                    return Ok();
                  });
}

void Flags::Repeated(std::string_view name, std::string_view value,
                     std::vector<std::string>* target, std::string_view help) {
  impl_->AddNamed(name, value, false, true, help, [target](const auto& words) {
    *target = words;
    return Ok();
  });
}

void Flags::Choice(std::string_view name, std::string* target, std::vector<std::string> choices,
                   std::string_view help) {
  const std::string described =
      fmt::format("{} (default: {})", help, target->empty() ? "none" : *target);
  impl_->AddNamed(
      name, fmt::format("{}", fmt::join(choices, "|")), false, false, described,
      [this, name = std::string(LongName(name)), target, choices](const auto& words) -> Status {
        if (std::ranges::find(choices, words[0]) == choices.end()) {
          return impl_->Trouble("{} cannot be '{}', only {}{}", name, words[0],
                                fmt::join(choices, ", "), DidYouMean(words[0], choices));
        }
        *target = words[0];
        return Ok();
      });
}

void Flags::Example(std::string_view line) {
  impl_->examples.emplace_back(line);
}

Result<bool> Flags::Parse(Args args) {
  for (const std::string& word : args) {
    if (word == "--") break;
    if (word != "--help" && word != "-h") continue;
    STRATA_RETURN_IF_ERROR(WriteFile("-", impl_->Help()));
    return false;
  }
  try {
    impl_->app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    return impl_->Trouble("{} needs a value", what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& error) {
    return impl_->Trouble("{}", error.what());
  }
  // CLI11 leaves the word `--` among the unknown ones.
  std::vector<std::string> extra = impl_->app.remaining();
  if (const auto mark = std::ranges::find(extra, "--"); mark != extra.end()) extra.erase(mark);
  if (!extra.empty()) return impl_->Extra(extra);
  for (const Impl::Positional& positional : impl_->positionals) {
    const std::vector<std::string>& words = positional.option->results();
    if (words.size() < positional.min) {
      return impl_->Trouble("missing argument {}", positional.name);
    }
    if (!words.empty()) positional.set(words);
  }
  const std::vector<std::string> names = impl_->OptionNames();
  for (const Impl::Named& option : impl_->named) {
    const std::vector<std::string>& words = option.option->results();
    if (words.empty() && option.required) return impl_->Trouble("missing option {}", option.name);
    if (words.size() > 1 && !option.repeated) {
      return impl_->Trouble("option {} is given {} times", option.name, words.size());
    }
    if (const auto found = std::ranges::find_first_of(words, names); found != words.end())
      return impl_->Trouble("{} needs a value, and '{}' is an option", option.name, *found);
    if (!words.empty()) STRATA_RETURN_IF_ERROR(option.set(words));
  }
  for (const auto& [option, target] : impl_->switches) {
    if (option->count() > 0) *target = true;
  }
  return true;
}

}  // namespace strata::cli
