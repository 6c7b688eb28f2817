#pragma once
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// A pass that has a struct `Options`, bound to names by `Options::Bind(OptionList&)`.
template <class P>
concept PassWithOptions = requires(typename P::Options& options, OptionList& list) {
  options.Bind(list);
  P(options);
};

/// The passes that pipeline text can name. One line per pass:
///
///     registry.Add<DeadCodeElimination>("dce");
class PassRegistry {
 public:
  /// What a pass is called, and what it can be told.
  struct Entry {
    std::string name;
    /// Makes the options with their defaults, lets `configure` set them, then makes the pass.
    std::function<Result<std::unique_ptr<Pass>>(
        const std::function<Status(OptionList&)>& configure)>
        make;
  };

  /// REQUIRES: no other pass has that name.
  template <class P>
  void Add(std::string_view name) {
    AddEntry({std::string(name), [](const auto& configure) -> Result<std::unique_ptr<Pass>> {
                OptionList list;
                if constexpr (PassWithOptions<P>) {
                  typename P::Options options;
                  options.Bind(list);
                  STRATA_RETURN_IF_ERROR(configure(list));
                  return std::unique_ptr<Pass>(std::make_unique<P>(options));
                } else {
                  STRATA_RETURN_IF_ERROR(configure(list));
                  return std::unique_ptr<Pass>(std::make_unique<P>());
                }
              }});
  }

  /// The entry called `name`, or null.
  const Entry* Find(std::string_view name) const;
  /// In order of registration.
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<std::string> names() const;

 private:
  void AddEntry(Entry entry);

  std::vector<Entry> entries_;
};

/// Passes from their text, `dce,canonicalize,place{plan=llama3.toml,depth=2}`. Spaces around names,
/// options and values are skipped; a value with `,`, `{`, `}`, quotes or spaces at its ends is
/// written in double quotes, with `\"` and `\\` inside. The empty text is the empty pipeline.
///
/// Errors read `pipeline:line:column: what`, then the line and a caret, and list what exists.
Result<std::vector<std::unique_ptr<Pass>>> ParsePipeline(std::string_view text,
                                                         const PassRegistry& registry);

/// One line per pass: its name, and its options with type, default and meaning.
std::string DescribePasses(const PassRegistry& registry);

}  // namespace strata
