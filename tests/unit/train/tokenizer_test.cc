#include "runtime/train/data/tokenizer.h"

#include <simdjson.h>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "runtime/train/data/normalize.h"
#include "runtime/train/data/pretokenizer.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;
using Ids = std::vector<int64_t>;

Ids Encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  REQUIRE_OK(tokenizer.Encode(text, ids));
  return ids;
}

TEST_CASE("bytes are tokens") {
  const std::unique_ptr<Tokenizer> tokenizer = MakeByteTokenizer();
  CHECK_EQ(Encode(*tokenizer, "a\xc3\xa9"), Ids{97, 0xc3, 0xa9});
  CHECK_EQ(tokenizer->bos_id(), 256);
  CHECK_EQ(tokenizer->eos_id(), 257);
  CHECK_EQ(tokenizer->vocab_size(), 258);
}

TEST_CASE("texts have the ids that Hugging Face's library gives them") {
  for (const std::string name : {"gpt2", "llama3", "qwen", "deepseek", "digits"}) {
    INFO(name);
    const std::string folder = "tests/data/tokenizers/" + name;
    const Result<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder);
    REQUIRE_OK(tokenizer);
    CHECK_EQ((*tokenizer)->bos_id().has_value(), name != "qwen");
    CHECK((*tokenizer)->eos_id().has_value());
    simdjson::dom::parser parser;
    simdjson::dom::document_stream lines;
    const simdjson::padded_string expected(*ReadFile(folder + "/expected.jsonl"));
    REQUIRE_EQ(parser.parse_many(expected).get(lines), simdjson::SUCCESS);
    int64_t checked = 0;
    for (auto line : lines) {
      std::string_view text;
      simdjson::dom::array array;
      REQUIRE_EQ(line["text"].get(text), simdjson::SUCCESS);
      REQUIRE_EQ(line["ids"].get(array), simdjson::SUCCESS);
      Ids ids;
      for (const simdjson::dom::element id : array)
        ids.push_back(int64_t{id});
      INFO(text);
      CHECK_EQ(Encode(**tokenizer, text), ids);
      ++checked;
    }
    CHECK_GT(checked, 150);
  }
}

std::vector<std::string> Split(std::string_view pattern, std::string_view text) {
  const Result<RegexSplitter> splitter = RegexSplitter::Compile(pattern);
  REQUIRE_OK(splitter);
  std::vector<std::string_view> pieces;
  splitter->Split(text, pieces);
  return {pieces.begin(), pieces.end()};
}

TEST_CASE("the last blank before a word belongs to the word") {
  using Pieces = std::vector<std::string>;
  CHECK_EQ(Split(kGpt2Pattern, "a   b  "), Pieces{"a", "  ", " b", "  "});
  CHECK_EQ(Split(kGpt2Pattern, "a \u3000 b"), Pieces{"a", " \u3000", " b"});
  CHECK_EQ(Split(kGpt2Pattern, "a \u3000b"), Pieces{"a", " ", "\u3000", "b"});
  CHECK_EQ(Split("[0-9]{1,3}", "ab1234c"), Pieces{"ab", "123", "4", "c"});
}

TEST_CASE("expressions that cannot be split by are told") {
  CHECK_EQ(MessageOf(RegexSplitter::Compile("a(?=b)")), "a lookaround in the expression a(?=b)");
  CHECK_EQ(MessageOf(RegexSplitter::Compile("\\w+")), "\\w in the expression \\\\w+");
  CHECK_EQ(MessageOf(RegexSplitter::Compile("a++")),
           "bad repetition operator: ++ in the expression a++");
  // RE2 takes these and means something else.
  CHECK_EQ(MessageOf(RegexSplitter::Compile("[[:alpha:]]")),
           "a class within a class in the expression [[:alpha:]]");
  CHECK_EQ(MessageOf(RegexSplitter::Compile("[a-z&&[^b]]")),
           "a class within a class in the expression [a-z&&[^b]]");
  CHECK_EQ(MessageOf(RegexSplitter::Compile("(?m:a.)")),
           "an option of Oniguruma's in the expression (?m:a.)");
}

TEST_CASE("lines begin and end where Oniguruma has them") {
  using Pieces = std::vector<std::string>;
  CHECK_EQ(Split("^a|b$", "aab\nabb"), Pieces{"a", "a", "b", "\n", "a", "b", "b"});
}

TEST_CASE("letters and their accents become one, in canonical order") {
  CHECK_EQ(NormalizeNfc("plain"), "plain");
  CHECK_EQ(NormalizeNfc("e\u0301"), "\u00e9");
  CHECK_EQ(NormalizeNfc("q\u0307\u0323"), "q\u0323\u0307");        // order by class
  CHECK_EQ(NormalizeNfc("a\u0327\u0301"), "\u00e1\u0327");         // over a mark of another class
  CHECK_EQ(NormalizeNfc("\u1100\u1161\u11a8"), "\uac01");          // Hangul
  CHECK_EQ(NormalizeNfc("\uac00\u11a7"), "\uac00\u11a7");          // no trailing consonant
  CHECK_EQ(NormalizeNfc("\u212b \u0958"), "\u00c5 \u0915\u093c");  // singletons, exclusions
  CHECK_EQ(NormalizeNfc("\xff\xcc"), "\xff\xcc");
  CHECK_EQ(NormalizeNfc("e\u0301\xff\u0301"), "\u00e9\xff\u0301");
}

TEST_CASE("characters that Unicode 9 does not have keep their place") {
  CHECK_EQ(NormalizeNfc("a\u0338\u0898"), "a\u0338\u0898");
  CHECK_EQ(NormalizeNfc("\U00011935\U00011930"), "\U00011935\U00011930");
}

TEST_CASE("other tokenizers are refused by what they need") {
  const TempDir dir;
  const auto message = [&](std::string_view json) {
    REQUIRE_OK(WriteFile(dir / "tokenizer.json", json));
    std::string text = MessageOf(LoadTokenizer(dir.path()));
    const size_t at = text.find(dir.path());
    REQUIRE_NE(at, std::string::npos);
    return text.replace(at, dir.path().size(), "d");
  };
  const auto refused = [](std::string_view why) {
    return fmt::format("cannot use the tokenizer: d/tokenizer.json: {}; take another", why);
  };
  CHECK_EQ(message("{"), "not valid JSON: d/tokenizer.json: make it anew");
  CHECK_EQ(message("{}"), refused("it has no 'model'"));
  CHECK_EQ(message(R"({"model": {"type": "Unigram"}})"), refused("its model is Unigram, not BPE"));
  CHECK_EQ(message(R"({"model": {"type": "BPE", "byte_fallback": true}})"),
           refused("its model has byte_fallback"));
  CHECK_EQ(message(R"({"model": {"type": "BPE", "dropout": 0.1}})"),
           refused("its model has dropout, which gives a text other tokens each time"));
  CHECK_EQ(message(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
           refused("merge 1 is of tokens that are not in the vocabulary"));
  // 2^63 - 1: one more does not fit.
  CHECK_EQ(
      message(R"({"model": {"type": "BPE", "vocab": {"a": 9223372036854775807}, "merges": []}})"),
      refused("token 'a' has no id"));
  constexpr std::string_view kModel =
      R"("model": {"type": "BPE", "vocab": {"a": 0}, "merges": []})";
  CHECK_EQ(message(fmt::format("{{{}}}", kModel)), refused("it has no pre_tokenizer"));
  CHECK_EQ(message(fmt::format(R"({{{}, "pre_tokenizer": {{"type": "Metaspace"}}}})", kModel)),
           refused("its pre_tokenizer is Metaspace"));
  CHECK_EQ(message(fmt::format(R"({{{}, "normalizer": {{"type": "Lowercase"}}}})", kModel)),
           refused("its normalizer is Lowercase"));
  constexpr std::string_view kBytes = R"("pre_tokenizer": {"type": "ByteLevel"})";
  CHECK_EQ(message(fmt::format(R"({{{}, {}, "post_processor": {{"type": "BertProcessing"}}}})",
                               kModel, kBytes)),
           refused("its post_processor is BertProcessing"));
  CHECK_EQ(
      message(fmt::format(R"({{{}, {}, "added_tokens": [{{"content": "b", "id": 4294967296}}]}})",
                          kModel, kBytes)),
      refused("an added token has no id or content"));
  constexpr std::string_view kTemplate =
      R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "b"}}]})";
  CHECK_EQ(message(fmt::format("{{{}, {}, {}}}", kModel, kBytes, kTemplate)),
           refused("its template puts 'b' around a text"));

  const std::string good = fmt::format(
      R"({{{}, "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false}}}})", kModel);
  REQUIRE_OK(WriteFile(dir / "tokenizer.json", good));
  Ids ids;
  CHECK_EQ(MessageOf((*LoadTokenizer(dir.path()))->Encode("ab", ids)),
           "no token for byte 0x62 of 'ab'");
}

TEST_CASE("of a merge that is there twice, the last counts") {
  const TempDir dir;
  REQUIRE_OK(WriteFile(dir / "tokenizer.json", R"({"model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4}, "merges": ["a b", "b c", "a b"]},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})"));
  CHECK_EQ(Encode(**LoadTokenizer(dir.path()), "abc"), Ids{0, 4});
}

}  // namespace
}  // namespace strata
