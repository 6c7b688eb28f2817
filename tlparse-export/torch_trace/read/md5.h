#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The MD5 of `bytes` (RFC 1321) as 32 lower-case hex digits: the checksum that TORCH_TRACE writes
/// beside each payload. Own code, as no library that Strata uses has it and a cryptographic one
/// would be a dependency for a checksum alone. Not for anything that must resist an attacker.
std::string Md5Hex(std::string_view bytes);

/// The same of each text. Several texts at once take a fraction of the time that they take one by
/// one.
std::vector<std::string> Md5HexOfAll(std::span<const std::string_view> texts);

}  // namespace strata
