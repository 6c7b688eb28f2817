#include "viewer/model/commands.h"

#include <algorithm>

#include "base/suggest.h"
#include "base/text.h"

namespace strata::viewer {

void CommandTable::Add(std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int count)> run) {
  commands_.push_back({std::move(id), std::move(words), std::move(keys), std::move(run)});
}

const Command* CommandTable::Find(std::string_view id) const {
  const auto found = std::ranges::find(commands_, id, &Command::id);
  return found == commands_.end() ? nullptr : &*found;
}

const Command* CommandTable::OfKey(std::string_view key) const {
  const auto found = std::ranges::find_if(commands_, [&](const Command& command) {
    return std::ranges::find(command.keys, key) != command.keys.end();
  });
  return found == commands_.end() ? nullptr : &*found;
}

Status CommandTable::Bind(std::string_view id, std::vector<std::string> keys) {
  const auto found = std::ranges::find(commands_, id, &Command::id);
  if (found == commands_.end()) {
    std::vector<std::string> names;
    for (const Command& command : commands_)
      names.push_back(command.id);
    return Error(ErrorCode::kNotFound, "unknown command '{}'{}", OneLine(id),
                 DidYouMean(std::string(id), names));
  }
  for (Command& command : commands_) {
    std::erase_if(command.keys, [&](const std::string& key) {
      return std::ranges::find(keys, key) != keys.end();
    });
  }
  found->keys.clear();
  for (std::string& key : keys) {
    const bool known = std::ranges::find(found->keys, key) != found->keys.end();
    if (!known) found->keys.push_back(std::move(key));
  }
  return Ok();
}

Status CommandTable::ReadBindings(
    std::string_view text, std::string_view file,
    const std::function<Result<std::string>(const std::string& word)>& name_of) {
  int line_number = 0;
  while (!text.empty()) {
    const std::string_view line = TrimBlanks(TakeLine(text));
    ++line_number;
    if (line.empty() || line[0] == '#') continue;
    const size_t equal = line.find('=');
    if (equal == std::string_view::npos)
      return Error("no '=': {}:{}: write COMMAND = KEY", file, line_number);
    std::vector<std::string> keys;
    std::string_view rest = TrimBlanks(line.substr(equal + 1));
    while (!rest.empty()) {
      const size_t blank = std::min(rest.find(' '), rest.size());
      Result<std::string> key = name_of(std::string(rest.substr(0, blank)));
      if (!key)
        return Error("{}: {}:{}: write COMMAND = KEY", key.error().message(), file, line_number);
      keys.push_back(std::move(*key));
      rest = TrimBlanks(rest.substr(blank));
    }
    if (Status bound = Bind(TrimBlanks(line.substr(0, equal)), std::move(keys)); !bound)
      return Error("{}: {}:{}: see the names in docs/viewer.md", bound.error().message(), file,
                   line_number);
  }
  return Ok();
}

}  // namespace strata::viewer
