// What a configuration file and its keys may not say.

#include "tests/unit/train/config_errors.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/config/config.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::ErrorWith;
using testing::ErrorWithSet;
using testing::ErrorWithSets;
using testing::MessageOf;
using testing::TempDir;

std::string TomlError(std::string_view text) {
  return MessageOf(ParseTrainConfig(text, ConfigFormat::kToml, "c.toml"));
}

TEST_CASE("a missing configuration and a folder are errors") {
  const TempDir dir;
  CHECK_EQ(MessageOf(LoadTrainConfig("/no/such.toml")),
           "no such file: /no/such.toml: check the path");
  CHECK_EQ(MessageOf(LoadTrainConfig(dir.path())),
           "is a directory: " + dir.path() + ": give a file");
}

TEST_CASE("text that is not JSON is told with its line") {
  CHECK_EQ(ErrorWith("\"n_layers\": 3,", "\"n_layers\" 3,"),
           "not valid JSON: c.json:4: unexpected '3'");
  CHECK_EQ(ErrorWith("\"steps\": 20\n}", "\"steps\": 20\n"),
           "not valid JSON: c.json:17: unexpected end");
  CHECK_EQ(MessageOf(ParseTrainConfig("[1]", ConfigFormat::kJson, "c.json")),
           "not valid JSON: c.json:1: begin with '{', a configuration is an object");
  CHECK_EQ(MessageOf(ParseTrainConfig("", ConfigFormat::kJson, "c.json")),
           "not valid JSON: c.json:1: Empty: no JSON found");
}

TEST_CASE("text that is not TOML is told with its line") {
  CHECK_EQ(TomlError("model = \"llama3\"\ndim 64\n"),
           "not valid TOML: c.toml:2: Error while parsing key-value pair: expected '=', saw '6'");
  CHECK_EQ(TomlError("dim = 1\ndim = 2\n"),
           "not valid TOML: c.toml:2: Error while parsing key-value pair: cannot redefine existing "
           "integer 'dim'");
  CHECK_EQ(TomlError("dim = n\n"),
           R"(not valid TOML: c.toml:1: Error while parsing floating-point: expected 'nan', )"
           R"(saw 'n\n')");
}

TEST_CASE("nesting without end is refused") {
  std::string dotted = "a";
  std::string tables;
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    dotted += ".a";
    tables += "{a=";
    objects += "{\"a\":";
  }
  CHECK_EQ(TomlError("\n" + dotted + " = 1"),
           "not valid TOML: c.toml:2: line of more than 4096 characters");
  CHECK_EQ(
      TomlError("a = [\n" + tables.substr(0, 4000)),
      "not valid TOML: c.toml:2: Error while parsing value: exceeded maximum nested value depth "
      "of 256 (TOML_MAX_NESTED_VALUES)");
  CHECK_EQ(MessageOf(ParseTrainConfig(objects, ConfigFormat::kJson, "c.json")),
           "not valid JSON: c.json:1: nested too deeply");
  CHECK_EQ(MessageOf(ParseTrainConfig("{\"_a\":" + std::string(100'000, '['), ConfigFormat::kJson,
                                      "c.json")),
           "not valid JSON: c.json:1: nested too deeply");
}

TEST_CASE("a key that occurs twice is an error") {
  CHECK_EQ(ErrorWith("\"head_dim\": 16", "\"dim\": 32"),
           "key 'dim' occurs twice: c.json:7: remove one");
}

TEST_CASE("an unknown key is told with its line and the closest known one") {
  CHECK_EQ(ErrorWith("\"n_layers\"", "\"n_layer\""),
           "unknown key 'n_layer': c.json:4: did you mean 'n_layers'?");
  CHECK_EQ(ErrorWith("\"theta\"", "\"thetta\""),
           "unknown key 'rope.thetta': c.json:10: did you mean 'rope.theta'?");
  CHECK_EQ(ErrorWith("\"seq_len\": 32,", "\"seq_len\": 32, \"colour\": 1,"),
           "unknown key 'colour': c.json:14: remove it, or begin its name with '_'");
  CHECK_EQ(ErrorWith("\"seq_len\": 32,", "\"seq_len\": 32, \"lr\": 1,"),
           "unknown key 'lr': c.json:14: did you mean 'optimizer.lr'?");
  CHECK_EQ(ErrorWith("\"theta\"", "\"steps\""),
           "unknown key 'rope.steps': c.json:10: did you mean 'steps'?");
  CHECK_EQ(ErrorWithSet("nlayers=2"),
           "unknown key 'nlayers': --set nlayers=2: did you mean 'n_layers'?");
  CHECK_EQ(TomlError("model = \"llama3\"\n\n[optimizer]\nmomentum = 1\n"),
           "unknown key 'optimizer.momentum': c.toml:4: remove it, or begin its name with '_'");
}

TEST_CASE("of several unknown keys the first in the file is told") {
  CHECK_EQ(TomlError("zeta = 1\nalpha = 2\n"),
           "unknown key 'zeta': c.toml:1: remove it, or begin its name with '_'");
}

TEST_CASE("a wrong type is told with what was found") {
  CHECK_EQ(ErrorWith("\"dim\": 64", "\"dim\": \"64\""),
           "wrong type for 'dim': c.json:3: expected an integer, found the string '64'");
  CHECK_EQ(ErrorWith("\"dim\": 64", "\"dim\": 64.0"),
           "wrong type for 'dim': c.json:3: expected an integer, found the number 64");
  CHECK_EQ(ErrorWith("\"dim\": 64", "\"dim\": 99999999999999999999"),
           "wrong type for 'dim': c.json:3: expected an integer, found the number 1e+20");
  CHECK_EQ(ErrorWith("\"dim\": 64", "\"dim\": [64]"),
           "wrong type for 'dim': c.json:3: expected an integer, found an array");
  CHECK_EQ(ErrorWith("\"theta\": 500000.0", "\"theta\": true"),
           "wrong type for 'rope.theta': c.json:10: expected a finite number, found true");
  CHECK_EQ(ErrorWith("\"lr\": 0.001", "\"lr\": {}"),
           "wrong type for 'optimizer.lr': c.json:13: expected a finite number, found a table");
  CHECK_EQ(ErrorWith("{\"lr\": 0.001}", "\"AdamW\""),
           "wrong type for 'optimizer': c.json:13: expected a table, found the string 'AdamW'");
  CHECK_EQ(ErrorWith("\"llama3\"", "3"),
           "wrong type for 'model': c.json:2: expected one of the words llama3, qwen3, "
           "deepseek_v3, program, library, found the integer 3");
  CHECK_EQ(ErrorWithSet("enable_weight_tying=1"),
           "wrong type for 'enable_weight_tying': --set enable_weight_tying=1: expected true or "
           "false, found the integer 1");
  CHECK_EQ(ErrorWithSet("seed=-1"),
           "wrong type for 'seed': --set seed=-1: expected an integer of at least 0, found the "
           "integer -1");
  CHECK_EQ(TomlError("model = 1979-05-27\n"),
           "wrong type for 'model': c.toml:1: expected one of the words llama3, qwen3, "
           "deepseek_v3, program, library, found a date or time");
  CHECK_EQ(TomlError("model = \"llama3\"\nnorm_eps = inf\n"),
           "wrong type for 'norm_eps': c.toml:2: expected a finite number, found the number inf");
}

TEST_CASE("a word that is none of the known ones lists them") {
  CHECK_EQ(ErrorWith("\"llama3\"", "\"lama3\""),
           "unknown model: c.json:2: found the string 'lama3', choose one of llama3, qwen3, "
           "deepseek_v3, program, library, did you mean 'llama3'");
  CHECK_EQ(ErrorWithSet("rope.scaling=linear"),
           "unknown rope.scaling: --set rope.scaling=linear: found the string 'linear', choose one "
           "of none, llama, "
           "yarn");
  CHECK_EQ(ErrorWithSet("optimizer.name=SGD"),
           "unknown optimizer.name: --set optimizer.name=SGD: found the string 'SGD', choose one "
           "of AdamW");
}

TEST_CASE("an error is one line of bounded length whatever the text holds") {
  CHECK_EQ(ErrorWith("\"dim\": 64", R"("dim": "a\nb")"),
           R"(wrong type for 'dim': c.json:3: expected an integer, found the string 'a\nb')");
  CHECK_EQ(ErrorWith("\"dim\"", R"("d\nm")"),
           R"(unknown key 'd\nm': c.json:3: remove it, or begin its name with '_')");
  CHECK_EQ(ErrorWithSet("dim=" + std::string(100, 'x')),
           "wrong type for 'dim': --set dim=" + std::string(56, 'x') +
               "…: expected an integer, found the string '" + std::string(60, 'x') + "…'");
}

TEST_CASE("a missing key is told") {
  CHECK_EQ(ErrorWith("\"vocab_size\": 256,", ""),
           "missing key 'vocab_size': c.json: give it a value");
  CHECK_EQ(ErrorWithSet("steps=null"), "missing key 'steps': c.json: give it a value");
  CHECK_EQ(TomlError(""), "missing key 'model': c.toml: give it a value");
}

TEST_CASE("sizes are positive and of this world") {
  for (const char* key : {"dim", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "hidden_dim",
                          "multiple_of", "seq_len", "batch_size", "steps", "rope.max_seq_len",
                          "rope.original_max_position_embeddings"}) {
    for (const char* value : {"0", "-4", "2147483648"}) {
      const std::string assignment = fmt::format("{}={}", key, value);
      CHECK_EQ(ErrorWithSet(assignment),
               fmt::format("impossible value for '{}': --set {}: {} must be from 1 to 2147483647",
                           key, assignment, value));
    }
  }
  CHECK_EQ(ErrorWithSet("n_layers=10001"),
           "impossible value for 'n_layers': --set n_layers=10001: 10001 must be from 1 to 10000");
  CHECK_EQ(ErrorWithSet("vocab_size=1"),
           "impossible value for 'vocab_size': --set vocab_size=1: with one token there is nothing "
           "to learn, take more");
  CHECK_EQ(ErrorWithSet("dim=400000000"),
           "model too large: c.json: 3.8e+18 parameters, at most 1.1e+12 can be trained");
  CHECK_EQ(ErrorWithSet("batch_size=2147483647"),
           "step too large: c.json: lower batch_size, seq_len or vocab_size");
}

TEST_CASE("an optimizer that cannot work is refused") {
  CHECK_EQ(ErrorWith("\"lr\": 0.001", "\"lr\": -0.001"),
           "impossible value for 'optimizer.lr': c.json:13: -0.001 must be at least 0");
  CHECK_EQ(
      ErrorWithSet("optimizer.weight_decay=-1"),
      "impossible value for 'optimizer.weight_decay': --set optimizer.weight_decay=-1: -1 must "
      "be at least 0");
  CHECK_EQ(ErrorWithSet("optimizer.beta1=1"),
           "impossible value for 'optimizer.beta1': --set optimizer.beta1=1: 1 must be at least 0 "
           "and less than 1");
  CHECK_EQ(ErrorWithSet("optimizer.beta2=-0.1"),
           "impossible value for 'optimizer.beta2': --set optimizer.beta2=-0.1: -0.1 must be at "
           "least 0 and less than 1");
  CHECK_EQ(ErrorWithSet("optimizer.eps=0"),
           "impossible value for 'optimizer.eps': --set optimizer.eps=0: 0 must be more than 0");
  CHECK_EQ(
      ErrorWithSet("optimizer.max_grad_norm=0"),
      "impossible value for 'optimizer.max_grad_norm': --set optimizer.max_grad_norm=0: 0 must "
      "be more than 0");
}

TEST_CASE("an override without key or value says how to write it") {
  CHECK_EQ(ErrorWithSet("dim"), "no key and value: --set dim: write --set key=value");
  CHECK_EQ(ErrorWithSet("=3"), "no key and value: --set =3: write --set key=value");
}

TEST_CASE("devices and what they may do") {
  CHECK_EQ(ErrorWithSet("device=cuda"), "");  // training checks that there is one
  CHECK_EQ(ErrorWithSet("device=gpu"),
           "unknown device: --set device=gpu: found the string 'gpu', choose one of cpu, cuda, did "
           "you mean 'cpu'");
  CHECK_EQ(ErrorWithSet("training.float32_matmul_precision=medium"),
           "unknown training.float32_matmul_precision: --set "
           "training.float32_matmul_precision=medium: found the string 'medium', choose one of "
           "highest, high");
  CHECK_EQ(ErrorWithSet("debug.deterministic=true"), "");
}

TEST_CASE("what several ranks would do is accepted where one rank does it, else refused") {
  for (const char* fits :
       {"parallelism.data_parallel_shard_degree=-1", "parallelism.data_parallel_replicate_degree=1",
        "parallelism.tensor_parallel_degree=1", "parallelism.fsdp_reshard_after_forward=never",
        "parallelism.enable_sequence_parallel=true", "activation_checkpoint.mode=none",
        "activation_checkpoint.mode=selective", "training.enable_cpu_offload=false",
        "compile.memory_policy=default"}) {
    CHECK_EQ(ErrorWithSet(fits), "");
  }
  const auto refusal = [](const std::string& key, const std::string& value) {
    const std::string message = ErrorWithSet(key + "=" + value);
    const std::string where =
        "impossible value for '" + key + "': --set " + key + "=" + value + ": ";
    REQUIRE(message.starts_with(where));
    return message.substr(where.size());
  };
  for (const char* axis : {"tensor", "pipeline", "context", "expert", "data_parallel_shard"}) {
    const std::string word(axis);
    const std::string key =
        "parallelism." + word + (word == "data_parallel_shard" ? "" : "_parallel") + "_degree";
    CHECK_EQ(refusal(key, "0"), "0 must be at least 1");
  }
  CHECK_EQ(refusal("parallelism.num_pp_microbatches", "2"), "a rank has all layers, remove it");
  CHECK_EQ(refusal("training.enable_cpu_offload", "true"),
           "parameters stay where the run is, take false");
  CHECK_EQ(refusal("compile.enable_autoparallel", "true"),
           "there is nothing to place on one rank, take false");
  CHECK_EQ(ErrorWithSet("activation_checkpoint.selective_ac_option=2"), "");  // of no mode
  CHECK_EQ(
      ErrorWithSet("float8.recipe_name=rowwise"),
      "table 'float8' is for other builds: --set float8.recipe_name=rowwise: models compute in "
      "float32 or bfloat16: remove it, training.mixed_precision_param chooses");
}

TEST_CASE("the tokens of a batch are whole sequences") {
  CHECK_EQ(ErrorWith("\"batch_size\": 4",
                     "\"training\": {\"num_tokens_per_microbatch_per_dp_rank\": 100}"),
           "impossible value for 'training.num_tokens_per_microbatch_per_dp_rank': c.json:15: 100 "
           "tokens are no multiple of the 32 of a sequence");
}

TEST_CASE("what a resumed run leaves out must leave it something to go on from") {
  const std::string key = "checkpoint.exclude_from_loading";
  const auto refusal = [&](const std::string& words) {
    const std::string message = ErrorWithSet(key + "=" + words);
    return message.substr(message.rfind(": ") + 2);
  };
  CHECK_EQ(ErrorWithSet(key + "=optimizer,lr_scheduler,dataloader"), "");
  CHECK_EQ(ErrorWithSet(key + "=lr_scheduler"), "");
  CHECK_EQ(refusal("model"), "a run that goes on needs the model, begin another with --init");
  CHECK_EQ(refusal("dataloader,train_state"),
           "a run that goes on needs the number of its step, begin another with --init");
  CHECK_EQ(refusal("optimizer"), "a new optimizer begins with the warm-up, name lr_scheduler, too");
  CHECK_EQ(refusal("weights"),
           "found 'weights', name some of optimizer, lr_scheduler, dataloader, with commas between "
           "them");
}

TEST_CASE("words may stand in an array, as torchtitan writes them") {
  const auto with = [](std::string_view line) {
    return ErrorWith("\"batch_size\": 4", fmt::format("\"batch_size\": 4, {}", line));
  };
  CHECK_EQ(with(R"("checkpoint": {"exclude_from_loading": ["lr_scheduler", "dataloader"]})"), "");
  CHECK_EQ(with(R"("checkpoint": {"exclude_from_loading": []})"), "");
  CHECK_EQ(with(R"("compile": {"disable_passes": ["fuse"], "components": ["model", "loss"],
                               "passes": []})"),
           "");
  CHECK_EQ(with(R"("checkpoint": {"exclude_from_loading": ["optimizer"]})"),
           "impossible value for 'checkpoint.exclude_from_loading': c.json:15: a new optimizer "
           "begins with the warm-up, name lr_scheduler, too");
  for (const std::string_view other : {"[1]", "[\"a\", 2]", "[[\"a\"]]", "[{\"a\": \"b\"}]"}) {
    CHECK_EQ(with(fmt::format(R"("checkpoint": {{"exclude_from_loading": {}}})", other)),
             "wrong type for 'checkpoint.exclude_from_loading': c.json:15: expected words, found "
             "an array");
  }
}

TEST_CASE("a validator needs data, steps and a frequency") {
  const std::string on = "validator.enable=true";
  CHECK_EQ(ErrorWithSets({on, "validator.steps=3"}), "");
  CHECK_EQ(ErrorWithSets({on}),
           "impossible value for 'validator.steps': c.json: synthetic data have no end, give a "
           "number");
  CHECK_EQ(ErrorWithSets({on, "validator.steps=0"}),
           "impossible value for 'validator.steps': --set validator.steps=0: 0 must be at least 1, "
           "or -1 for all the data");
  CHECK_EQ(ErrorWithSets({on, "validator.freq=0"}),
           "impossible value for 'validator.freq': --set validator.freq=0: 0 must be from 1 to "
           "2147483647");
  CHECK_EQ(ErrorWithSets({on, "dataloader.dataset=text", "dataloader.dataset_path=x"}),
           "missing key 'validator.dataset_path': --set validator.enable=true: name the file to "
           "validate on");
}

TEST_CASE("settings of parameter groups are checked as those of the optimizer") {
  CHECK_EQ(ErrorWithSets({"optimizer.param_groups.a.lr=1"}),
           "missing key 'optimizer.param_groups.a.pattern': c.json: give it a value");
  CHECK_EQ(
      ErrorWithSets({"optimizer.param_groups.a.pattern=norm", "optimizer.param_groups.a.beta1=1"}),
      "impossible value for 'optimizer.param_groups.a.beta1': --set "
      "optimizer.param_groups.a.beta1=1: 1 must be at least 0 and less than 1");
}

}  // namespace
}  // namespace strata
