#include "runtime/train/data/tokenizer.h"

#include <filesystem>
#include <simdjson.h>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "runtime/train/data/bpe_tokenizer.h"
#include "runtime/train/data/tokenizer_json.h"
#include "runtime/train/data/traits.h"

namespace strata {
namespace {

namespace dom = simdjson::dom;

constexpr int64_t kByteBos = 256;
constexpr int64_t kByteEos = 257;

class ByteTokenizer final : public Tokenizer {
 public:
  Status Encode(std::string_view text, std::vector<int64_t>& ids) const override {
    for (const char c : text)
      ids.push_back(static_cast<unsigned char>(c));
    return Ok();
  }
  int64_t vocab_size() const override { return kByteEos + 1; }
  std::optional<int64_t> bos_id() const override { return kByteBos; }
  std::optional<int64_t> eos_id() const override { return kByteEos; }
  std::string Content() const override { return "bytes"; }
};

/// `bos_token` and `eos_token` of `tokenizer_config.json`, where it is.
Status ReadEnds(const std::string& path, const std::unordered_map<std::string, int64_t>& names,
                BpeTokenizer& tokenizer) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Ok();
  STRATA_TRY(const std::string text, ReadFile(path));
  dom::parser parser;
  const simdjson::padded_string padded(text);
  dom::element root;
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) {
    return Error(ErrorCode::kCorrupt, "not valid JSON: {}: make it anew", path);
  }
  for (const auto& [key, target] :
       {std::pair{"bos_token", &tokenizer.bos}, {"eos_token", &tokenizer.eos}}) {
    std::string_view name;
    if (root[key].get(name) != simdjson::SUCCESS &&
        root[key]["content"].get(name) != simdjson::SUCCESS) {
      continue;
    }
    const auto found = names.find(std::string(name));
    if (found == names.end()) {
      return Error(ErrorCode::kCorrupt, "no token '{}': {}: its {} is not in tokenizer.json",
                   OneLine(name), path, key);
    }
    *target = found->second;
  }
  return Ok();
}

}  // namespace

std::unique_ptr<Tokenizer> MakeByteTokenizer() {
  return std::make_unique<ByteTokenizer>();
}

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& name) {
  if (name == "bytes") return MakeByteTokenizer();
  std::error_code error;
  std::filesystem::path path = name;
  if (std::filesystem::is_directory(path, error)) path /= "tokenizer.json";
  STRATA_TRY(const std::string text, ReadFile(path.string()));
  STRATA_TRY(LoadedTokenizer loaded, ParseTokenizer(text, path.string()));
  BpeTokenizer& tokenizer = *loaded.tokenizer;
  STRATA_RETURN_IF_ERROR(
      ReadEnds(path.replace_filename("tokenizer_config.json").string(), loaded.ids, tokenizer));
  tokenizer.content = ContentOf(std::as_bytes(std::span(text)));
  return std::unique_ptr<Tokenizer>(std::move(loaded.tokenizer));
}

}  // namespace strata
