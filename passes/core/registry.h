#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// A pass that has a struct `Options`, whose `Bind(OptionList&)` gives its fields names.
template <class P>
concept PassWithOptions = requires(typename P::Options& options, OptionList& list) {
  options.Bind(list);
  P(options);
};

/// The passes that pipeline text can name. One line per pass:
///
///     registry.Add<DeadCodeElimination>("dce");
///
/// A pass says what it does in `static constexpr std::string_view kSummary`, half a sentence.
class PassRegistry {
 public:
  /// Sets options; an error ends the making of the pass.
  using Configure = std::function<Status(OptionList&)>;

  struct Entry {
    std::string name;
    std::string_view summary;
    std::function<Result<std::unique_ptr<Pass>>(const Configure&)> make;
  };

  /// REQUIRES: no other pass has that name.
  template <class P>
  void Add(std::string_view name);

  /// The entry called `name`, or null.
  const Entry* Find(std::string_view name) const;
  /// In order of registration.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void AddEntry(Entry entry);

  std::vector<Entry> entries_;
};

template <class P>
void PassRegistry::Add(std::string_view name) {
  AddEntry(
      {std::string(name), P::kSummary,
       [name = std::string(name)](const Configure& configure) -> Result<std::unique_ptr<Pass>> {
         OptionList list;
         std::unique_ptr<Pass> pass;
         if constexpr (PassWithOptions<P>) {
           typename P::Options options;
           options.Bind(list);
           STRATA_RETURN_IF_ERROR(configure(list));
           pass = std::make_unique<P>(options);
           pass->SetText(name, list.Text());
         } else {
           STRATA_RETURN_IF_ERROR(configure(list));
           pass = std::make_unique<P>();
           pass->SetText(name, "");
         }
         return pass;
       }});
}

/// Passes from their text, `dce,canonicalize,place{plan=llama3.toml,depth=2}`. Blanks and line
/// breaks around names and values are skipped. A value that is empty or holds a blank or one of
/// `,{}="\` is written in double quotes, with `\"` and `\\` inside. The empty text is the empty
/// pipeline.
///
/// Errors read `pipeline:line:column: what`, list what exists, and show the line with a caret.
Result<std::vector<std::unique_ptr<Pass>>> ParsePipeline(std::string_view text,
                                                         const PassRegistry& registry);

/// What can be written in a pipeline: a line per pass with its summary, a line per option with its
/// type, default and meaning.
std::string DescribePasses(const PassRegistry& registry);

}  // namespace strata
