#pragma once
#include <string>
#include <string_view>

namespace strata {

/// Quotes a word for a POSIX shell, for commands in messages: `out/x.txt`, `"a b"`, `'$x'`; a word
/// with invisible characters as bash and zsh write it: `$'a\x1b'`.
std::string ShellWord(std::string_view word);

}  // namespace strata
