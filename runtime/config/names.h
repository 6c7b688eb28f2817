#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The key of the field that `name` names: torchtitan spells some fields in several ways, its
/// configurations in TOML (`[job]`, `training.local_batch_size`) others than later ones. A key that
/// has one name is returned as it is; one that says nothing about a run becomes empty.
std::string CanonicalKey(std::string_view name);

/// The names that `CanonicalKey` gives another key, for suggestions.
std::vector<std::string> OtherNames();

/// What to write instead of a name that torchtitan split into several keys; empty: it did not.
std::string_view AdviceFor(std::string_view name);

/// The key of a field that cannot be given together with `key`, which says the same in another
/// unit; empty: there is none.
std::string_view Alternative(std::string_view key);

}  // namespace strata
