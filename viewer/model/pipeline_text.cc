#include "viewer/model/pipeline_text.h"

#include <algorithm>

#include "base/text.h"

namespace strata::viewer {
namespace {

/// Where the last pass of a pipeline begins, and its open brace; npos: none is open.
struct LastPass {
  size_t begin = 0;
  size_t brace = std::string_view::npos;
  size_t option = 0;  // where its last option begins
};

LastPass FindLastPass(std::string_view text) {
  LastPass last;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      continue;
    } else if (c == '{') {
      last.brace = i;
      last.option = i + 1;
    } else if (c == '}') {
      last.brace = std::string_view::npos;
    } else if (c == ',' && last.brace == std::string_view::npos) {
      last.begin = i + 1;
    } else if (c == ',') {
      last.option = i + 1;
    }
  }
  return last;
}

const PassWords* FindPass(const std::vector<PassWords>& passes, std::string_view name) {
  const auto found = std::ranges::find(passes, name, &PassWords::name);
  return found == passes.end() ? nullptr : &*found;
}

void AddOptions(const PassWords& pass, std::string_view before, std::string_view typed,
                std::vector<PipelineCompletion>& all) {
  for (const PassWords::Option& option : pass.options) {
    if (!option.name.starts_with(typed)) continue;
    all.push_back({std::string(before) + option.name + "=", option.name, option.words});
  }
}

}  // namespace

std::vector<PipelineCompletion> CompletePipeline(std::string_view text,
                                                 const std::vector<PassWords>& passes) {
  std::vector<PipelineCompletion> all;
  const LastPass last = FindLastPass(text);
  if (last.brace != std::string_view::npos) {
    const PassWords* pass =
        FindPass(passes, TrimBlanks(text.substr(last.begin, last.brace - last.begin)));
    const std::string_view option = text.substr(last.option);
    // The value is the user's.
    if (pass != nullptr && option.find('=') == std::string_view::npos)
      AddOptions(*pass, text.substr(0, last.option), TrimBlanks(option), all);
    return all;
  }
  const std::string_view before = text.substr(0, last.begin),
                         word = TrimBlanks(text.substr(last.begin));
  if (word.find('}') != std::string_view::npos) return all;
  for (const bool begins : {true, false}) {
    for (const PassWords& pass : passes) {
      const size_t at = pass.name.find(word);
      if (at == std::string::npos || (at == 0) != begins || pass.name == word) continue;
      all.push_back({std::string(before) + pass.name, pass.name, pass.summary});
    }
  }
  if (const PassWords* pass = FindPass(passes, word))
    AddOptions(*pass, std::string(before) + pass->name + "{", "", all);
  return all;
}

}  // namespace strata::viewer
