#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata::viewer {

/// An action with a name, that a key, a menu, the palette or a script calls.
struct Command {
  std::string id;                 ///< "next-pass"
  std::string words;              ///< "Next pass"
  std::vector<std::string> keys;  ///< "j", "Ctrl+P"; as KeyName gives them
  std::function<void(int count)> run;
};

/// All commands, and which key calls which. Keys can be rebound.
class CommandTable {
 public:
  void Add(std::string id, std::string words, std::vector<std::string> keys,
           std::function<void(int count)> run);

  /// Null: no command is called so.
  const Command* Find(std::string_view id) const;
  const Command* OfKey(std::string_view key) const;
  const std::vector<Command>& all() const { return commands_; }

  /// Gives a command other keys; each is taken from the command that had it.
  /// Errors: no such command.
  Status Bind(std::string_view id, std::vector<std::string> keys);
  /// Reads lines `COMMAND = KEY KEY…`; `#` begins a comment. `name_of` gives a key its name.
  /// Errors name file and line: no such command, no key.
  Status ReadBindings(std::string_view text, std::string_view file,
                      const std::function<Result<std::string>(const std::string& word)>& name_of);

 private:
  std::vector<Command> commands_;
};

}  // namespace strata::viewer
