#include "runtime/train/data/packing.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "runtime/train/data/data_file.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;
using Ids = std::vector<int64_t>;

/// Document i is 10·i, 10·i + 1, ….
class Numbers final : public Documents {
 public:
  explicit Numbers(Ids lengths) : lengths_(std::move(lengths)) {}
  int64_t size() const override { return std::ssize(lengths_); }
  Result<Ids> Get(int64_t index) const override {
    Ids ids;
    for (int64_t i = 0; i < lengths_[static_cast<size_t>(index)]; ++i)
      ids.push_back(10 * index + i);
    return ids;
  }
  std::vector<DataTrait> Traits() const override { return {}; }

 private:
  Ids lengths_;
};

TrainConfig Config(int64_t batch_size, int64_t seq_len) {
  TrainConfig config;
  config.batch_size = batch_size;
  config.seq_len = seq_len;
  config.vocab_size = 300;
  config.dataloader.shuffle = false;
  config.dataloader.repeat = false;
  return config;
}

std::optional<Batch> NextOrDie(DataSource& source) {
  Result<std::optional<Batch>> batch = source.Next();
  REQUIRE_OK(batch);
  return *std::move(batch);
}

TEST_CASE("documents are concatenated and split") {
  const auto source = MakePackedSource(std::make_unique<Numbers>(Ids{4, 1, 3, 7}), Config(2, 4));
  const std::optional<Batch> batch = NextOrDie(*source);
  REQUIRE(batch);
  CHECK_EQ(batch->tokens, Ids{0, 1, 2, 20, 21, 30, 31, 32});
  CHECK_EQ(batch->labels, Ids{1, 2, 3, 21, 22, 31, 32, 33});
  CHECK_EQ(batch->positions, Ids{0, 1, 2, 0, 0, 0, 1, 2});
  // Three inputs are left, a batch needs eight.
  CHECK_FALSE(NextOrDie(*source));
}

TEST_CASE("first fit puts whole documents together and fills rows with labels that do not count") {
  TrainConfig config = Config(1, 4);
  config.dataloader.packing = PackingMode::kFirstFit;
  // Inputs: 3, 2, 5 (too long), 1, 2.
  const auto source = MakePackedSource(std::make_unique<Numbers>(Ids{4, 3, 6, 2, 3}), config);
  const std::optional<Batch> first = NextOrDie(*source);
  REQUIRE(first);
  CHECK_EQ(first->tokens, Ids{0, 1, 2, 30});
  CHECK_EQ(first->positions, Ids{0, 1, 2, 0});
  const std::optional<Batch> second = NextOrDie(*source);
  REQUIRE(second);
  CHECK_EQ(second->tokens, Ids{10, 11, 40, 41});
  CHECK_FALSE(NextOrDie(*source));

  const auto padded = MakePackedSource(std::make_unique<Numbers>(Ids{3}), config);
  const std::optional<Batch> row = NextOrDie(*padded);
  REQUIRE(row);
  CHECK_EQ(row->tokens, Ids{0, 1, 0, 0});
  CHECK_EQ(row->labels, Ids{1, 2, -100, -100});
}

TEST_CASE("each pass over the data has an order of its own, and every document once") {
  TrainConfig config = Config(1, 1);
  config.dataloader.shuffle = true;
  config.dataloader.repeat = true;
  const auto source = MakePackedSource(std::make_unique<Numbers>(Ids(20, 2)), config);
  std::vector<Ids> passes(2);
  for (Ids& pass : passes) {
    for (int i = 0; i < 20; ++i)
      pass.push_back(NextOrDie(*source)->tokens[0]);
  }
  CHECK_NE(passes[0], passes[1]);
  Ids sorted = passes[0];
  CHECK_FALSE(std::ranges::is_sorted(sorted));
  std::ranges::sort(sorted);
  std::ranges::sort(passes[1]);
  CHECK_EQ(sorted, passes[1]);
  CHECK_EQ(std::ranges::adjacent_find(sorted), sorted.end());
}

TEST_CASE("from any place the data go on as if they had been read from the start") {
  for (const PackingMode mode : {PackingMode::kConcatThenSplit, PackingMode::kFirstFit}) {
    TrainConfig config = Config(2, 9);
    config.dataloader.packing = mode;
    config.dataloader.shuffle = true;
    config.dataloader.repeat = true;
    const Ids lengths = {4, 9, 2, 1, 25, 3, 10, 6, 5, 7, 2};
    const auto make = [&] { return MakePackedSource(std::make_unique<Numbers>(lengths), config); };
    const auto whole = make();
    for (int i = 0; i < 40; ++i) {
      const std::string position = whole->Position();
      INFO(position);
      const auto resumed = make();
      REQUIRE_OK(resumed->Seek(position));
      CHECK_EQ(resumed->Position(), position);
      const std::optional<Batch> expected = NextOrDie(*whole), actual = NextOrDie(*resumed);
      CHECK_EQ(actual->tokens, expected->tokens);
      CHECK_EQ(actual->labels, expected->labels);
      CHECK_EQ(actual->positions, expected->positions);
    }
    for (const char* wrong :
         {"", "x", "0.99+0", "0.0+99", "0.0;0.99,", "0.0;0.11,", "0.0;x", "-1.0+0"})
      CHECK_FALSE(make()->Seek(wrong));
  }
}

TEST_CASE("data without a document to learn from are told, not read for ever") {
  TrainConfig config = Config(1, 2);
  config.dataloader.repeat = true;
  config.dataloader.dataset_path = {"d.jsonl"};
  CHECK_EQ(MessageOf(MakePackedSource(std::make_unique<Numbers>(Ids{1, 0}), config)->Next()),
           "no document of two tokens or more: d.jsonl: give another dataset");
  CHECK_EQ(MessageOf(MakePackedSource(std::make_unique<Numbers>(Ids{}), config)->Next()),
           "no document of two tokens or more: d.jsonl: give another dataset");
}

TEST_CASE("lines of JSON are documents with a beginning and an end") {
  const TempDir dir;
  TrainConfig config = Config(1, 4);
  config.dataloader.dataset = DatasetKind::kText;
  config.dataloader.dataset_path = {dir / "d.jsonl"};
  REQUIRE_OK(WriteFile(dir / "d.jsonl", "{\"text\": \"ab\"}\n\n{\"text\": \"\\u00e9\", \"n\": 1}"));
  const auto documents = OpenDocuments(config);
  REQUIRE_OK(documents);
  REQUIRE_EQ((*documents)->size(), 2);
  CHECK_EQ(*(*documents)->Get(0), Ids{256, 'a', 'b', 257});
  CHECK_EQ(*(*documents)->Get(1), Ids{256, 0xc3, 0xa9, 257});

  REQUIRE_OK(WriteFile(dir / "d.jsonl", "\n{\"text\": 1}\n{\n"));
  const auto bad = OpenDocuments(config);
  REQUIRE_OK(bad);
  CHECK_EQ(MessageOf((*bad)->Get(0)), "no string 'text': " + config.dataloader.dataset_path[0] +
                                          ":2: mend the line, or take another dataloader.text_key");
  CHECK(MessageOf((*bad)->Get(1))
            .starts_with("not valid JSON: " + config.dataloader.dataset_path[0] + ":3: "));
  REQUIRE_OK(WriteFile(dir / "d.jsonl", "\xef\xbb\xbf{\"text\": \"ab\"}\r\n"));
  const auto marked = OpenDocuments(config);
  REQUIRE_OK(marked);
  REQUIRE_EQ((*marked)->size(), 1);
  CHECK_EQ(*(*marked)->Get(0), Ids{256, 'a', 'b', 257});

  config.vocab_size = 257;
  CHECK_EQ(MessageOf(OpenDocuments(config)),
           "tokenizer larger than the model: bytes: it has 258 tokens; take vocab_size 258");
}

TEST_CASE("token files are documents by their ends, or pieces of a row's length") {
  const TempDir dir;
  TrainConfig config = Config(1, 2);
  config.dataloader.dataset = DatasetKind::kTokens;
  const std::vector<uint16_t> tokens = {5, 6, 0, 7, 0, 8, 299};
  const std::string bytes(reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size());
  REQUIRE_OK(WriteFile(dir / "t.bin", bytes));
  REQUIRE_OK(
      WriteSafetensors(dir / "t.safetensors",
                       {{"tokens", TensorDtype::kU16, {7}, std::as_bytes(std::span(tokens))}}));
  for (const char* name : {"t.bin", "t.safetensors"}) {
    config.dataloader.dataset_path = {dir / name};
    config.dataloader.end_of_document = 0;
    const auto by_end = OpenDocuments(config);
    REQUIRE_OK(by_end);
    REQUIRE_EQ((*by_end)->size(), 3);
    CHECK_EQ(*(*by_end)->Get(0), Ids{5, 6, 0});
    CHECK_EQ(*(*by_end)->Get(2), Ids{8, 299});
    config.dataloader.end_of_document = std::nullopt;
    const auto pieces = OpenDocuments(config);
    REQUIRE_OK(pieces);
    REQUIRE_EQ((*pieces)->size(), 3);
    CHECK_EQ(*(*pieces)->Get(0), Ids{5, 6, 0});
    CHECK_EQ(*(*pieces)->Get(1), Ids{0, 7, 0});
    CHECK_EQ(*(*pieces)->Get(2), Ids{0, 8, 299});
  }
  config.vocab_size = 299;
  CHECK_EQ(MessageOf((*OpenDocuments(config))->Get(2)),
           "token 299 is not in the vocabulary: " + config.dataloader.dataset_path[0] +
               ": tokens[6] must be in [0, 299); use tokens of this vocabulary or another "
               "vocab_size");
  REQUIRE_OK(WriteFile(dir / "t.bin", "abc"));
  config.dataloader.dataset_path = {dir / "t.bin"};
  CHECK_EQ(MessageOf(OpenDocuments(config)),
           "not a file of uint16 tokens: " + dir.path() +
               "/t.bin: it has 3 bytes; take another token_dtype");
}

TEST_CASE("several files and folders are one list of documents") {
  const TempDir dir;
  TrainConfig config = Config(1, 4);
  config.dataloader.dataset = DatasetKind::kText;
  std::filesystem::create_directory(dir / "more");
  REQUIRE_OK(WriteFile(dir / "a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}"));
  REQUIRE_OK(WriteFile(dir / "more/2.jsonl", "{\"text\": \"d\"}\n{"));
  REQUIRE_OK(WriteFile(dir / "more/1.jsonl", "\n{\"text\": \"c\"}\n"));
  REQUIRE_OK(WriteFile(dir / "more/README", "not data"));
  REQUIRE_OK(WriteFile(dir / "more/.hidden.jsonl", "not data"));
  config.dataloader.dataset_path = {dir / "a.jsonl", dir / "more"};
  const auto documents = OpenDocuments(config);
  REQUIRE_OK(documents);
  REQUIRE_EQ((*documents)->size(), 5);
  for (int64_t i = 0; i < 4; ++i)
    CHECK_EQ(*(*documents)->Get(i), Ids{256, 'a' + i, 257});
  CHECK(MessageOf((*documents)->Get(4))
            .starts_with("not valid JSON: " + (dir / "more/2.jsonl") + ":2: "));
  const std::vector<DataTrait> traits = (*documents)->Traits();
  CHECK_EQ(traits[1].name, "content of dataloader.dataset_path");
  CHECK(traits[1].value.starts_with("3 files with hash "));

  std::filesystem::create_directory(dir / "empty");
  config.dataloader.dataset_path = {dir / "empty"};
  CHECK_EQ(MessageOf(OpenDocuments(config)),
           "no data in the folder: " + (dir / "empty") + ": give one with files *.jsonl or *.json");
}

TEST_CASE("tokens of several files do not run into each other") {
  const TempDir dir;
  TrainConfig config = Config(1, 2);
  config.dataloader.dataset = DatasetKind::kTokens;
  config.dataloader.token_dtype = "uint32";
  const auto write = [&](const std::string& name, std::vector<uint32_t> ids) {
    REQUIRE_OK(
        WriteFile(dir / name, std::string(reinterpret_cast<const char*>(ids.data()),  // NOLINT
                                          4 * ids.size())));
  };
  for (uint32_t i = 0; i < kMaxOpenDataFiles + 10; ++i)
    write(fmt::format("{:03}.bin", i), {i % 7, 1, 9, 2});
  config.dataloader.dataset_path = {dir.path()};
  config.dataloader.end_of_document = 9;
  const auto documents = OpenDocuments(config);
  REQUIRE_OK(documents);
  REQUIRE_EQ((*documents)->size(), 2 * (kMaxOpenDataFiles + 10));
  CHECK_EQ(*(*documents)->Get(10), Ids{5, 1, 9});
  CHECK_EQ(*(*documents)->Get(11), Ids{2});
}

TEST_CASE("data that become shorter are an error of the next read") {
  const TempDir dir;
  TrainConfig config = Config(1, 2);
  config.dataloader.dataset = DatasetKind::kTokens;
  const std::string path = dir / "t.bin";
  REQUIRE_OK(WriteFile(path, std::string(size_t{1} << 16U, '\1')));
  config.vocab_size = 300;
  config.dataloader.dataset_path = {path};
  const auto documents = OpenDocuments(config);
  REQUIRE_OK(documents);
  CHECK_OK((*documents)->Get((*documents)->size() - 1));
  std::filesystem::resize_file(path, 4096);
  CHECK_OK((*documents)->Get(0));
  CHECK_EQ(MessageOf((*documents)->Get((*documents)->size() - 1)),
           "data became shorter while they are in use: " + path +
               ": 4 bytes are there no more; restore the file, and continue from a checkpoint with "
               "--resume");
}

TEST_CASE("first_fit says what it leaves out") {
  TrainConfig config = Config(1, 4);
  config.dataloader.packing = PackingMode::kFirstFit;
  const auto source = MakePackedSource(std::make_unique<Numbers>(Ids{3, 50, 4, 45}), config);
  CHECK_EQ(source->Warning(), "");
  while (NextOrDie(*source)) {
  }
  CHECK_EQ(source->Warning(),
           "dataloader.packing = 'first_fit' left out 2 of 4 documents, with 93.1 % of the tokens, "
           "which are longer than seq_len 4: take a longer seq_len, or concat_then_split");
}

}  // namespace
}  // namespace strata
