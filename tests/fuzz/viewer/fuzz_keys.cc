#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "viewer/model/commands.h"

// Any text is key bindings, after which no key calls two commands, or an error of one line that
// names the place.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::viewer::Command;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  strata::viewer::CommandTable commands;
  for (const char* id : {"next-pass", "palette", "quit"})
    commands.Add(id, id, {std::string(id, 1)}, [](int) {});
  const auto name_of = [](const std::string& word) -> strata::Result<std::string> {
    if (word.size() > 8) return strata::Error("'{}' is not a key", word.size());
    return word;
  };
  const strata::Status read = commands.ReadBindings(text, "k", name_of);
  if (!read) {
    STRATA_CHECK(read.error().message().find(": k:") != std::string::npos);
    STRATA_CHECK(read.error().message().find('\n') == std::string::npos);
  }
  std::set<std::string> keys;
  for (const Command& command : commands.all()) {
    for (const std::string& key : command.keys) {
      STRATA_CHECK(keys.insert(key).second);
      STRATA_CHECK(commands.OfKey(key) == &command);
    }
  }
  return 0;
}
