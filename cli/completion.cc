#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"

namespace strata::cli {
namespace {

// Options and their choices come from the help of the command, so that there is one list of them.
constexpr std::string_view kBash = R"(_strata() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD-1]}} help words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{0} --help --version" -- "$word"))
    return
  fi
  help=$("${{COMP_WORDS[0]}}" "${{COMP_WORDS[1]}}" --help 2>/dev/null)
  if [[ $word == -* ]]; then
    words=$(grep -oE -- '--[a-z-]+' <<<"$help" | sort -u)
  elif [[ $option =~ ^--[a-z-]+$ ]]; then
    words=$(sed -nE "s/^  $option ([a-z|]+\|[a-z]+).*/\1/p" <<<"$help" | tr '|' ' ')
  elif [ "$COMP_CWORD" -eq 2 ] && [ "$option" = bench ]; then
    words=$(sed -nE 's/^  ([a-z]+)  +[a-z].*/\1/p' <<<"$help")
  elif [ "$COMP_CWORD" -eq 2 ] && [ "$option" = completion ]; then
    words="bash zsh"
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _strata strata
)";

constexpr std::string_view kZsh = "autoload -U +X bashcompinit && bashcompinit\n";

std::string Words() {
  std::string words;
  for (const Command& command : Commands()) {
    if (!words.empty()) words += ' ';
    words += command.name;
  }
  return words;
}

}  // namespace

Result<Exit> RunCompletion(Args args) {
  std::string shell;
  Flags flags("completion", "prints a script that completes commands and options in a shell");
  flags.Positional("SHELL", &shell, "bash or zsh");
  flags.Example("source <(strata completion bash)");
  flags.Example("strata completion zsh >> ~/.zshrc");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (shell != "bash" && shell != "zsh") {
    return Error("unknown shell '{}': strata completion: bash and zsh are known", shell);
  }
  const std::string script = fmt::format(kBash, Words());
  STRATA_RETURN_IF_ERROR(WriteFile("-", shell == "zsh" ? std::string(kZsh) + script : script));
  return Exit::kOk;
}

}  // namespace strata::cli
