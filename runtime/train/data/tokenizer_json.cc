#include "runtime/train/data/tokenizer_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <simdjson.h>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/train/data/normalize.h"

namespace strata {
namespace {

namespace dom = simdjson::dom;

std::string Utf8(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3fU))};
}

/// Byte-level vocabularies write each byte as a visible character: GPT-2's table.
std::unordered_map<std::string, char> BytesByCharacter() {
  std::unordered_map<std::string, char> bytes;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_visible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    bytes.emplace(Utf8(is_visible ? byte : next++), static_cast<char>(byte));
  }
  return bytes;
}

/// Errors hold only what is wrong.
class Loader {
 public:
  Result<LoadedTokenizer> Load(dom::element root) {
    STRATA_RETURN_IF_ERROR(ReadModel(root));
    STRATA_RETURN_IF_ERROR(ReadNormalizer(root["normalizer"]));
    STRATA_RETURN_IF_ERROR(ReadPreTokenizer(root["pre_tokenizer"]));
    STRATA_RETURN_IF_ERROR(ReadAddedTokens(root["added_tokens"]));
    STRATA_RETURN_IF_ERROR(ReadPostProcessor(root["post_processor"]));
    return LoadedTokenizer{.tokenizer = std::move(result_), .ids = std::move(names_)};
  }

 private:
  using Maybe = simdjson::simdjson_result<dom::element>;

  static std::string_view Text(const Maybe& value) {
    std::string_view text;
    return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
  }
  static bool Flag(const Maybe& value, bool fallback = false) {
    bool flag = fallback;
    return value.get(flag) == simdjson::SUCCESS ? flag : fallback;
  }
  static bool IsNone(const Maybe& value) {
    return value.error() != simdjson::SUCCESS || value.is_null();
  }
  static Error Unsupported(std::string_view what) {
    return Error(ErrorCode::kUnsupported, "{}", what);
  }
  static Error Bad(std::string_view what) { return Error(ErrorCode::kCorrupt, "{}", what); }

  /// Ids are 32 bits wide.
  static bool IsId(int64_t id) { return id >= 0 && id <= std::numeric_limits<uint32_t>::max(); }

  /// The bytes that a token of a byte-level vocabulary stands for; none when it is not written so.
  std::optional<std::string> ToBytes(std::string_view token) const {
    std::string bytes;
    while (!token.empty()) {
      const size_t length = (static_cast<unsigned char>(token[0]) & 0x80U) == 0 ? 1 : 2;
      const auto found = bytes_.find(std::string(token.substr(0, length)));
      if (found == bytes_.end()) return std::nullopt;
      bytes += found->second;
      token.remove_prefix(std::min(length, token.size()));
    }
    return bytes;
  }

  Status ReadModel(dom::element root) {
    dom::element model;
    if (root["model"].get(model) != simdjson::SUCCESS) return Bad("it has no 'model'");
    const std::string_view type = Text(model["type"]);
    if (type != "BPE" && !type.empty()) {
      return Unsupported(fmt::format("its model is {}, not BPE", OneLine(type)));
    }
    if (Flag(model["byte_fallback"])) return Unsupported("its model has byte_fallback");
    if (double share = 0.0; model["dropout"].get(share) == simdjson::SUCCESS && share != 0.0) {
      return Unsupported("its model has dropout, which gives a text other tokens each time");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!Text(model[key]).empty()) return Unsupported(fmt::format("its model has {}", key));
    }
    dom::object vocab;
    if (model["vocab"].get(vocab) != simdjson::SUCCESS) return Bad("its model has no 'vocab'");
    std::unordered_map<std::string, int64_t> ids;
    for (const auto& [token, value] : vocab) {
      int64_t id = -1;
      if (value.get(id) != simdjson::SUCCESS || !IsId(id)) {
        return Bad(fmt::format("token '{}' has no id", OneLine(token)));
      }
      Note(token, id);
      if (const auto bytes = ToBytes(token)) ids.emplace(*bytes, id);
    }
    STRATA_TRY(const auto merges, ReadMerges(model["merges"]));
    STRATA_TRY(result_->encoder,
               BytePairEncoder::Create(std::move(ids), merges, Flag(model["ignore_merges"])));
    return Ok();
  }

  Result<std::vector<std::pair<std::string, std::string>>> ReadMerges(const Maybe& value) const {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return Bad("its model has no 'merges'");
    std::vector<std::pair<std::string, std::string>> merges;
    for (const dom::element item : array) {
      std::string_view left, right;
      dom::array pair;
      if (item.get(left) == simdjson::SUCCESS) {  // "a b"
        const size_t blank = left.find(' ');
        if (blank == std::string_view::npos) return Bad("a merge is not two tokens");
        right = left.substr(blank + 1);
        left = left.substr(0, blank);
      } else if (item.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
                 pair.at(0).get(left) != simdjson::SUCCESS ||
                 pair.at(1).get(right) != simdjson::SUCCESS) {
        return Bad("a merge is not two tokens");
      }
      const auto left_bytes = ToBytes(left), right_bytes = ToBytes(right);
      if (!left_bytes || !right_bytes) {
        return Unsupported(fmt::format("its tokens are not byte-level: '{}'", OneLine(left)));
      }
      merges.emplace_back(*left_bytes, *right_bytes);
    }
    return merges;
  }

  Status ReadNormalizer(const Maybe& value) {
    if (IsNone(value)) return Ok();
    const std::string_view type = Text(value["type"]);
    if (type == "NFC") {
      result_->is_nfc = true;
      return Ok();
    }
    if (type == "Sequence") {
      dom::array parts;
      if (value["normalizers"].get(parts) != simdjson::SUCCESS) return Bad("a Sequence is empty");
      for (dom::element part : parts)
        STRATA_RETURN_IF_ERROR(ReadNormalizer(Maybe(std::move(part))));
      return Ok();
    }
    return Unsupported(fmt::format("its normalizer is {}", OneLine(type)));
  }

  Status ReadPreTokenizer(const Maybe& value) {
    if (IsNone(value)) return Unsupported("it has no pre_tokenizer");
    const std::string_view type = Text(value["type"]);
    if (type == "Sequence") {
      dom::array parts;
      if (value["pretokenizers"].get(parts) != simdjson::SUCCESS) return Bad("a Sequence is empty");
      for (dom::element part : parts)
        STRATA_RETURN_IF_ERROR(ReadPreTokenizer(Maybe(std::move(part))));
      return Ok();
    }
    if (type == "Split") return ReadSplit(value);
    if (type == "Digits") {
      return AddSplitter(Flag(value["individual_digits"]) ? R"(\p{N})" : R"(\p{N}+)");
    }
    if (type == "ByteLevel") {
      if (Flag(value["add_prefix_space"], true)) {
        result_->steps.push_back({.adds_space = true, .splitter = {}});
      }
      if (!Flag(value["use_regex"], true)) return Ok();
      return AddSplitter(kGpt2Pattern);
    }
    return Unsupported(fmt::format("its pre_tokenizer is {}", OneLine(type)));
  }

  Status ReadSplit(const Maybe& value) {
    const std::string_view pattern = Text(value["pattern"]["Regex"]);
    if (pattern.empty()) return Unsupported("a Split is not by a Regex");
    if (Text(value["behavior"]) != "Isolated" || Flag(value["invert"])) {
      return Unsupported("a Split is not Isolated");
    }
    return AddSplitter(pattern);
  }

  Status AddSplitter(std::string_view pattern) {
    STRATA_TRY(RegexSplitter splitter, RegexSplitter::Compile(pattern));
    result_->steps.push_back({.adds_space = false, .splitter = std::move(splitter)});
    return Ok();
  }

  Status ReadAddedTokens(const Maybe& value) {
    dom::array tokens;
    if (value.get(tokens) != simdjson::SUCCESS) return Ok();
    for (const dom::element token : tokens) {
      int64_t id = -1;
      const std::string_view content = Text(token["content"]);
      if (token["id"].get(id) != simdjson::SUCCESS || !IsId(id) || content.empty()) {
        return Bad("an added token has no id or content");
      }
      for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
        if (Flag(token[flag])) {
          return Unsupported(fmt::format("added token '{}' has {}", OneLine(content), flag));
        }
      }
      Note(content, id);
      if (!Flag(token["normalized"])) {
        result_->raw_tokens.Add(std::string(content), id);
      } else {
        result_->normal_tokens.Add(result_->is_nfc ? NormalizeNfc(content) : std::string(content),
                                   id);
      }
    }
    return Ok();
  }

  /// The tokens that it puts around a text begin and end a document.
  Status ReadPostProcessor(const Maybe& value) {
    if (IsNone(value)) return Ok();
    const std::string_view type = Text(value["type"]);
    if (type == "ByteLevel") return Ok();  // Of places in the text only.
    dom::array parts;
    if (type == "Sequence") {
      if (value["processors"].get(parts) != simdjson::SUCCESS) return Bad("a Sequence is empty");
      for (dom::element part : parts)
        STRATA_RETURN_IF_ERROR(ReadPostProcessor(Maybe(std::move(part))));
      return Ok();
    }
    if (type != "TemplateProcessing") {
      return Unsupported(fmt::format("its post_processor is {}", OneLine(type)));
    }
    if (value["single"].get(parts) != simdjson::SUCCESS) return Bad("a template is empty");
    bool is_after = false;
    for (const dom::element part : parts) {
      const std::string_view name = Text(part["SpecialToken"]["id"]);
      if (name.empty()) {
        is_after = true;
        continue;
      }
      const auto found = names_.find(std::string(name));
      std::optional<int64_t>& end = is_after ? result_->eos : result_->bos;
      if (found == names_.end() || end) {
        return Unsupported(fmt::format("its template puts '{}' around a text", OneLine(name)));
      }
      end = found->second;
    }
    return Ok();
  }

  void Note(std::string_view token, int64_t id) {
    names_.insert_or_assign(std::string(token), id);
    result_->size = std::max(result_->size, id + 1);
  }

  std::unordered_map<std::string, char> bytes_ = BytesByCharacter();
  std::unordered_map<std::string, int64_t> names_;
  std::unique_ptr<BpeTokenizer> result_ = std::make_unique<BpeTokenizer>();
};

}  // namespace

Result<LoadedTokenizer> ParseTokenizer(const std::string& text, const std::string& path) {
  dom::parser parser;
  const simdjson::padded_string padded(text);
  dom::element root;
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) {
    return Error(ErrorCode::kCorrupt, "not valid JSON: {}: make it anew", path);
  }
  Result<LoadedTokenizer> loaded = Loader().Load(root);
  if (!loaded) {
    return Error(loaded.error().code(), "cannot use the tokenizer: {}: {}; take another", path,
                 loaded.error().message());
  }
  return loaded;
}

}  // namespace strata
