#include "runtime/train/data/documents.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <simdjson.h>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/data/data_file.h"
#include "runtime/train/data/tokenizer.h"

namespace strata {
namespace {

/// `content of dataloader.dataset_path`: of one file its own, of several a hash of theirs.
DataTrait ContentTrait(const std::vector<std::string>& contents) {
  std::string value = contents.size() == 1 ? contents[0] : "";
  if (contents.size() > 1) {
    const std::string all = fmt::format("{}", fmt::join(contents, "\n"));
    value = fmt::format("{} files with hash {}", contents.size(),
                        SampledHash(std::as_bytes(std::span(all))));
  }
  return {.name = "content of dataloader.dataset_path", .value = std::move(value)};
}

/// A list of token ids in a file.
class TokenFile {
 public:
  static Result<TokenFile> Open(const std::string& path, std::string_view token_dtype,
                                bool keep_open) {
    STRATA_TRY(DataFile file, DataFile::Open(path, keep_open));
    TokenFile tokens(std::move(file));
    STRATA_RETURN_IF_ERROR(path.ends_with(".safetensors") ? tokens.FindTensor()
                                                          : tokens.TakeAll(token_dtype));
    STRATA_TRY(tokens.content_, tokens.file_.Content(tokens.begin_, tokens.end_));
    return tokens;
  }

  int64_t size() const { return (end_ - begin_) / width(); }
  TensorDtype dtype() const { return dtype_; }
  const std::string& path() const { return file_.path(); }
  const std::string& content() const { return content_; }

  Result<std::vector<int64_t>> Read(int64_t begin, int64_t end) const {
    std::vector<std::byte> bytes(static_cast<size_t>((end - begin) * width()));
    STRATA_RETURN_IF_ERROR(file_.Read(begin_ + begin * width(), bytes));
    std::vector<int64_t> ids;
    Decode(bytes, ids);
    return ids;
  }

  /// Calls `use(index)` for each token that is `id`.
  template <class Fn>
  Status ForEach(int64_t id, Fn use) const {
    std::vector<int64_t> ids;
    return file_.ForEachPiece(begin_, end_,
                              [&](int64_t offset, std::span<const std::byte> bytes) -> Status {
                                Decode(bytes, ids);
                                const int64_t first = (offset - begin_) / width();
                                for (int64_t i = 0; i < std::ssize(ids); ++i) {
                                  if (ids[static_cast<size_t>(i)] == id) use(first + i);
                                }
                                return Ok();
                              });
  }

 private:
  explicit TokenFile(DataFile file) : file_(std::move(file)), end_(file_.size()) {}

  int64_t width() const { return static_cast<int64_t>(ByteSize(dtype_)); }

  Status TakeAll(std::string_view token_dtype) {
    dtype_ = token_dtype == "uint16" ? TensorDtype::kU16 : TensorDtype::kU32;
    if (end_ % width() == 0) return Ok();
    return Error("not a file of {} tokens: {}: it has {} bytes; take another token_dtype",
                 token_dtype, path(), end_);
  }

  Status FindTensor() {
    STRATA_TRY(const MappedFile mapped, MappedFile::Open(path()));
    STRATA_TRY(const SafetensorsFile file, SafetensorsFile::Parse(mapped.bytes(), path()));
    const TensorView* tokens = file.Find("tokens");
    constexpr TensorDtype kIntegers[] = {TensorDtype::kI64, TensorDtype::kI32, TensorDtype::kU32,
                                         TensorDtype::kU16};
    if (tokens == nullptr || tokens->shape.size() != 1 ||
        std::ranges::find(kIntegers, tokens->dtype) == std::end(kIntegers)) {
      return Error(
          "no list of tokens: {}: store I64, I32, U32 or U16 [tokens] under the name 'tokens'",
          path());
    }
    dtype_ = tokens->dtype;
    begin_ = tokens->bytes.data() - mapped.bytes().data();
    end_ = begin_ + std::ssize(tokens->bytes);
    return Ok();
  }

  template <class T>
  static void DecodeAs(std::span<const std::byte> bytes, std::vector<int64_t>& ids) {
    ids.resize(bytes.size() / sizeof(T));
    for (size_t i = 0; i < ids.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      ids[i] = static_cast<int64_t>(value);
    }
  }
  void Decode(std::span<const std::byte> bytes, std::vector<int64_t>& ids) const {
    switch (dtype_) {
      case TensorDtype::kU16:
        return DecodeAs<uint16_t>(bytes, ids);
      case TensorDtype::kU32:
        return DecodeAs<uint32_t>(bytes, ids);
      case TensorDtype::kI32:
        return DecodeAs<int32_t>(bytes, ids);
      default:
        return DecodeAs<int64_t>(bytes, ids);
    }
  }

  DataFile file_;
  int64_t begin_ = 0, end_ = 0;  // of the tokens, in bytes
  TensorDtype dtype_ = TensorDtype::kU16;
  std::string content_;
};

class TokenDocuments final : public Documents {
 public:
  static Result<std::unique_ptr<Documents>> Open(const TrainConfig& config) {
    constexpr std::string_view kEndings[] = {".bin", ".safetensors"};
    auto documents = std::make_unique<TokenDocuments>();
    documents->vocab_size_ = config.vocab_size;
    documents->end_ = config.dataloader.end_of_document;
    documents->piece_ = config.seq_len;
    STRATA_TRY(const auto paths, DataPaths(config.dataloader.dataset_path, kEndings));
    for (const std::string& path : paths) {
      STRATA_TRY(TokenFile file, TokenFile::Open(path, config.dataloader.token_dtype,
                                                 paths.size() <= kMaxOpenDataFiles));
      documents->files_.push_back(std::move(file));
      STRATA_RETURN_IF_ERROR(documents->AddRanges(documents->files_.size() - 1));
    }
    return std::unique_ptr<Documents>(std::move(documents));
  }

  int64_t size() const override { return std::ssize(ranges_); }

  Result<std::vector<int64_t>> Get(int64_t index) const override {
    const auto [file_index, begin, end] = ranges_[static_cast<size_t>(index)];
    const TokenFile& file = files_[file_index];
    STRATA_TRY(std::vector<int64_t> ids, file.Read(begin, end));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = ids[static_cast<size_t>(i - begin)];
      if (id >= 0 && id < vocab_size_) continue;
      return Error(
          "token {} is not in the vocabulary: {}: tokens[{}] must be in [0, {}); use tokens of "
          "this vocabulary or another vocab_size",
          id, file.path(), i, vocab_size_);
    }
    return ids;
  }

  std::vector<DataTrait> Traits() const override {
    std::vector<std::string> contents;
    for (const TokenFile& file : files_)
      contents.push_back(file.content());
    std::vector<DataTrait> traits = {
        {.name = "source of the data", .value = "tokens"},
        ContentTrait(contents),
        {.name = "type of a token", .value = std::string(Name(files_[0].dtype()))},
        {.name = "dataloader.end_of_document", .value = end_ ? std::to_string(*end_) : "none"}};
    // Pieces of this length are the documents.
    if (!end_) traits.push_back({.name = "seq_len", .value = std::to_string(piece_)});
    return traits;
  }

 private:
  /// A document: its tokens in a file.
  struct Range {
    size_t file = 0;
    int64_t begin = 0, end = 0;
  };

  Status AddRanges(size_t index) {
    const TokenFile& file = files_[index];
    int64_t begin = 0;
    if (end_) {
      STRATA_RETURN_IF_ERROR(file.ForEach(*end_, [&](int64_t i) {
        ranges_.push_back({index, begin, i + 1});
        begin = i + 1;
      }));
      if (begin < file.size()) ranges_.push_back({index, begin, file.size()});
      return Ok();
    }
    for (; begin + 1 < file.size(); begin += piece_)
      ranges_.push_back({index, begin, std::min(begin + piece_ + 1, file.size())});
    return Ok();
  }

  int64_t vocab_size_ = 0;
  std::optional<int64_t> end_;  // the id that ends a document
  int64_t piece_ = 0;           // without one: inputs of a document
  std::vector<TokenFile> files_;
  std::vector<Range> ranges_;
};

class TextDocuments final : public Documents {
 public:
  static Result<std::unique_ptr<Documents>> Open(const TrainConfig& config) {
    constexpr std::string_view kEndings[] = {".jsonl", ".json"};
    auto documents = std::make_unique<TextDocuments>();
    documents->key_ = config.dataloader.text_key;
    STRATA_TRY(documents->tokenizer_, LoadTokenizer(config.dataloader.tokenizer));
    if (documents->tokenizer_->vocab_size() > config.vocab_size) {
      return Error("tokenizer larger than the model: {}: it has {} tokens; take vocab_size {}",
                   config.dataloader.tokenizer, documents->tokenizer_->vocab_size(),
                   documents->tokenizer_->vocab_size());
    }
    STRATA_TRY(const auto paths, DataPaths(config.dataloader.dataset_path, kEndings));
    for (const std::string& path : paths) {
      STRATA_TRY(DataFile file, DataFile::Open(path, paths.size() <= kMaxOpenDataFiles));
      documents->files_.push_back(std::move(file));
      STRATA_RETURN_IF_ERROR(documents->FindLines(documents->files_.size() - 1));
    }
    return std::unique_ptr<Documents>(std::move(documents));
  }

  int64_t size() const override { return std::ssize(lines_); }

  Result<std::vector<int64_t>> Get(int64_t index) const override {
    const Line& line = lines_[static_cast<size_t>(index)];
    const DataFile& file = files_[line.file];
    STRATA_TRY(const std::string json, file.ReadText(line.begin, line.end));
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(json);
    simdjson::dom::element root;
    if (const auto error = parser.parse(padded).get(root)) {
      std::string_view why = simdjson::error_message(error);
      if (why.ends_with('.')) why.remove_suffix(1);
      return Error(ErrorCode::kCorrupt, "not valid JSON: {}:{}: {}; mend or remove the line",
                   file.path(), line.number, why);
    }
    std::string_view text;
    if (root[key_].get(text) != simdjson::SUCCESS) {
      return Error(ErrorCode::kCorrupt,
                   "no string '{}': {}:{}: mend the line, or take another "
                   "dataloader.text_key",
                   key_, file.path(), line.number);
    }
    std::vector<int64_t> ids;
    if (const auto bos = tokenizer_->bos_id()) ids.push_back(*bos);
    if (const Status encoded = tokenizer_->Encode(text, ids); !encoded) {
      return Error("{}: {}:{}: take another tokenizer", encoded.error().message(), file.path(),
                   line.number);
    }
    if (const auto eos = tokenizer_->eos_id()) ids.push_back(*eos);
    return ids;
  }

  std::vector<DataTrait> Traits() const override {
    return {{.name = "source of the data", .value = "text"},
            ContentTrait(contents_),
            {.name = "dataloader.text_key", .value = key_},
            {.name = "content of the tokenizer", .value = tokenizer_->Content()}};
  }

 private:
  struct Line {
    size_t file = 0;
    int64_t begin = 0, end = 0;
    int64_t number = 0;
  };

  /// Adds the lines of a file that are not blank.
  Status FindLines(size_t index) {
    const DataFile& file = files_[index];
    STRATA_TRY(contents_.emplace_back(), file.Content(0, file.size()));
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of some editors
    int64_t first = 0;
    if (file.size() >= std::ssize(kByteOrderMark)) {
      STRATA_TRY(const std::string beginning, file.ReadText(0, std::ssize(kByteOrderMark)));
      if (beginning == kByteOrderMark) first = std::ssize(kByteOrderMark);
    }
    Line line{.file = index, .begin = first, .end = first, .number = 1};
    bool is_blank = true;
    STRATA_RETURN_IF_ERROR(file.ForEachPiece(
        first, file.size(), [&](int64_t offset, std::span<const std::byte> bytes) -> Status {
          const std::string_view text(reinterpret_cast<const char*>(bytes.data()),  // NOLINT: chars
                                      bytes.size());
          for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find('\n', at), text.size());
            is_blank &= text.substr(at, end - at).find_first_not_of(" \t\r") == std::string::npos;
            if (end == text.size()) break;
            line.end = offset + static_cast<int64_t>(end);
            if (!std::exchange(is_blank, true)) lines_.push_back(line);
            line.begin = line.end + 1;
            ++line.number;
            at = end + 1;
          }
          return Ok();
        }));
    line.end = file.size();
    if (!is_blank) lines_.push_back(line);
    return Ok();
  }

  std::string key_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<DataFile> files_;
  std::vector<std::string> contents_;
  std::vector<Line> lines_;
};

}  // namespace

Result<std::unique_ptr<Documents>> OpenDocuments(const TrainConfig& config) {
  return config.dataloader.dataset == DatasetKind::kText ? TextDocuments::Open(config)
                                                         : TokenDocuments::Open(config);
}

}  // namespace strata
