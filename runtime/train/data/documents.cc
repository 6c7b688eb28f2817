#include "runtime/train/data/documents.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <simdjson.h>
#include <string>
#include <utility>

#include "base/file.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/data/tokenizer.h"

namespace strata {
namespace {

/// Begin and end of a document in its file.
struct Range {
  int64_t begin = 0, end = 0;
};

class TokenDocuments final : public Documents {
 public:
  static Result<std::unique_ptr<Documents>> Open(const TrainConfig& config) {
    auto documents = std::make_unique<TokenDocuments>();
    documents->path_ = config.dataloader.dataset_path;
    documents->vocab_size_ = config.vocab_size;
    STRATA_RETURN_IF_ERROR(documents->Map(config.dataloader));
    documents->end_ = config.dataloader.end_of_document;
    documents->piece_ = config.seq_len;
    if (documents->end_) {
      documents->FindEnds(*documents->end_);
    } else {
      documents->CutInto(documents->piece_);
    }
    return std::unique_ptr<Documents>(std::move(documents));
  }

  int64_t size() const override { return std::ssize(ranges_); }

  Result<std::vector<int64_t>> Get(int64_t index) const override {
    const auto [begin, end] = ranges_[static_cast<size_t>(index)];
    std::vector<int64_t> ids;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = At(i);
      if (id < 0 || id >= vocab_size_) {
        return Error(
            "token {} is not in the vocabulary: {}: tokens[{}] must be in [0, {}); use tokens of "
            "this vocabulary or another vocab_size",
            id, path_, i, vocab_size_);
      }
      ids.push_back(id);
    }
    return ids;
  }

  std::vector<DataTrait> Traits() const override {
    std::vector<DataTrait> traits = {
        {.name = "source of the data", .value = "tokens"},
        {.name = "content of dataloader.dataset_path", .value = ContentOf(bytes_)},
        {.name = "type of a token", .value = std::string(Name(dtype_))},
        {.name = "dataloader.end_of_document", .value = end_ ? std::to_string(*end_) : "none"}};
    // Pieces of this length are the documents.
    if (!end_) traits.push_back({.name = "seq_len", .value = std::to_string(piece_)});
    return traits;
  }

 private:
  Status Map(const DataloaderConfig& config) {
    if (path_.ends_with(".safetensors")) return MapTensor();
    STRATA_TRY(mapped_, MappedFile::Open(path_));
    dtype_ = config.token_dtype == "uint16" ? TensorDtype::kU16 : TensorDtype::kU32;
    bytes_ = mapped_->bytes();
    if (bytes_.size() % ByteSize(dtype_) == 0) return Ok();
    return Error("not a file of {} tokens: {}: it has {} bytes; take another token_dtype",
                 config.token_dtype, path_, bytes_.size());
  }

  Status MapTensor() {
    STRATA_TRY(file_, SafetensorsFile::Open(path_));
    const TensorView* tokens = file_->Find("tokens");
    constexpr TensorDtype kIntegers[] = {TensorDtype::kI64, TensorDtype::kI32, TensorDtype::kU32,
                                         TensorDtype::kU16};
    if (tokens == nullptr || tokens->shape.size() != 1 ||
        std::ranges::find(kIntegers, tokens->dtype) == std::end(kIntegers)) {
      return Error(
          "no list of tokens: {}: store I64, I32, U32 or U16 [tokens] under the name 'tokens'",
          path_);
    }
    dtype_ = tokens->dtype;
    bytes_ = tokens->bytes;
    return Ok();
  }

  int64_t Count() const { return static_cast<int64_t>(bytes_.size() / ByteSize(dtype_)); }

  template <class T>
  int64_t As(int64_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return static_cast<int64_t>(value);
  }
  int64_t At(int64_t index) const {
    switch (dtype_) {
      case TensorDtype::kU16:
        return As<uint16_t>(index);
      case TensorDtype::kU32:
        return As<uint32_t>(index);
      case TensorDtype::kI32:
        return As<int32_t>(index);
      default:
        return As<int64_t>(index);
    }
  }

  void FindEnds(int64_t end_of_document) {
    int64_t begin = 0;
    for (int64_t i = 0; i < Count(); ++i) {
      if (At(i) != end_of_document) continue;
      ranges_.push_back({begin, i + 1});
      begin = i + 1;
    }
    if (begin < Count()) ranges_.push_back({begin, Count()});
  }

  void CutInto(int64_t seq_len) {
    for (int64_t begin = 0; begin + 1 < Count(); begin += seq_len)
      ranges_.push_back({begin, std::min(begin + seq_len + 1, Count())});
  }

  std::string path_;
  int64_t vocab_size_ = 0;
  std::optional<int64_t> end_;  // the id that ends a document
  int64_t piece_ = 0;           // without one: inputs of a document
  std::optional<MappedFile> mapped_;
  std::optional<SafetensorsFile> file_;
  std::span<const std::byte> bytes_;
  TensorDtype dtype_ = TensorDtype::kU16;
  std::vector<Range> ranges_;  // in tokens
};

class TextDocuments final : public Documents {
 public:
  static Result<std::unique_ptr<Documents>> Open(const TrainConfig& config) {
    auto documents = std::make_unique<TextDocuments>();
    documents->path_ = config.dataloader.dataset_path;
    documents->key_ = config.dataloader.text_key;
    STRATA_TRY(documents->tokenizer_, LoadTokenizer(config.dataloader.tokenizer));
    if (documents->tokenizer_->vocab_size() > config.vocab_size) {
      return Error("tokenizer larger than the model: {}: it has {} tokens; take vocab_size {}",
                   config.dataloader.tokenizer, documents->tokenizer_->vocab_size(),
                   documents->tokenizer_->vocab_size());
    }
    STRATA_TRY(documents->mapped_, MappedFile::Open(documents->path_));
    documents->FindLines();
    return std::unique_ptr<Documents>(std::move(documents));
  }

  int64_t size() const override { return std::ssize(lines_); }

  Result<std::vector<int64_t>> Get(int64_t index) const override {
    const Line& line = lines_[static_cast<size_t>(index)];
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(Text().substr(line.begin, line.end - line.begin));
    simdjson::dom::element root;
    if (const auto error = parser.parse(padded).get(root)) {
      std::string_view why = simdjson::error_message(error);
      if (why.ends_with('.')) why.remove_suffix(1);
      return Error(ErrorCode::kCorrupt, "not valid JSON: {}:{}: {}; mend or remove the line", path_,
                   line.number, why);
    }
    std::string_view text;
    if (root[key_].get(text) != simdjson::SUCCESS) {
      return Error(ErrorCode::kCorrupt,
                   "no string '{}': {}:{}: mend the line, or take another "
                   "dataloader.text_key",
                   key_, path_, line.number);
    }
    std::vector<int64_t> ids;
    if (const auto bos = tokenizer_->bos_id()) ids.push_back(*bos);
    if (const Status encoded = tokenizer_->Encode(text, ids); !encoded) {
      return Error("{}: {}:{}: take another tokenizer", encoded.error().message(), path_,
                   line.number);
    }
    if (const auto eos = tokenizer_->eos_id()) ids.push_back(*eos);
    return ids;
  }

  std::vector<DataTrait> Traits() const override {
    return {{.name = "source of the data", .value = "text"},
            {.name = "content of dataloader.dataset_path", .value = ContentOf(mapped_->bytes())},
            {.name = "dataloader.text_key", .value = key_},
            {.name = "content of the tokenizer", .value = tokenizer_->Content()}};
  }

 private:
  struct Line {
    size_t begin = 0, end = 0;
    int64_t number = 0;
  };

  std::string_view Text() const {
    const std::span<const std::byte> bytes = mapped_->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT: bytes as chars
  }

  void FindLines() {
    const std::string_view text = Text();
    int64_t number = 0;
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of some editors
    for (size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
         begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      ++number;
      const bool is_blank =
          text.substr(begin, end - begin).find_first_not_of(" \t\r") == std::string_view::npos;
      if (!is_blank) lines_.push_back({begin, end, number});
      begin = end + 1;
    }
  }

  std::string path_, key_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<MappedFile> mapped_;
  std::vector<Line> lines_;
};

}  // namespace

Result<std::unique_ptr<Documents>> OpenDocuments(const TrainConfig& config) {
  return config.dataloader.dataset == DatasetKind::kText ? TextDocuments::Open(config)
                                                         : TokenDocuments::Open(config);
}

}  // namespace strata
