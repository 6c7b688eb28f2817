#include "runtime/train/files/checkpoint.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "runtime/train/files/checkpoint_folder.h"
#include "runtime/train/files/checkpoint_writer.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::MessageOf;
using testing::TempDir;

/// A model of two tensors and AdamW's two averages of each; every element is `value`.
class State {
 public:
  explicit State(float value)
      : small_(2, value), large_(6, value), first_(8, value + 1), step_(1, value) {}
  CheckpointTensors tensors() const {
    const auto view = [](std::string name, const std::vector<float>& values) {
      return TensorView{std::move(name),
                        TensorDtype::kF32,
                        {std::ssize(values)},
                        std::as_bytes(std::span(values))};
    };
    return {.model = {view("norm.weight", small_), view("lm_head.weight", large_)},
            .optimizer = {view("state.norm.weight.exp_avg", first_), view("state.step", step_)}};
  }

 private:
  std::vector<float> small_, large_, first_, step_;
};

CheckpointWriter OpenOrDie(const std::string& folder, const CheckpointWriter::Options& options) {
  Result<CheckpointWriter> writer = CheckpointWriter::Open(folder, options);
  REQUIRE_OK(writer);
  return *std::move(writer);
}

CheckpointInfo Info(int64_t step) {
  return {.step = step, .tokens_seen = step * 10, .data_position = std::to_string(step)};
}

float FirstValue(const TensorFiles& files, std::string_view name) {
  const TensorView* tensor = files.Find(name);
  REQUIRE(tensor != nullptr);
  std::vector<float> values(tensor->bytes.size() / sizeof(float));
  ReadFloats(*tensor, values);
  return values[0];
}

TEST_CASE("what was saved is loaded") {
  const TempDir dir;
  const std::string folder = dir / "a/b";
  for (const AsyncMode mode : {AsyncMode::kDisabled, AsyncMode::kAsync}) {
    CheckpointWriter writer = OpenOrDie(folder, {.mode = mode});
    {
      const State state(3.0F);
      REQUIRE_OK(writer.Save(Info(7), state.tensors()));
    }
    REQUIRE_OK(writer.Wait());
    CHECK_EQ(ListCheckpoints(folder), std::vector<int64_t>{7});
    const Result<Checkpoint> loaded = LoadCheckpoint(folder, 7);
    REQUIRE_OK(loaded);
    CHECK_EQ(loaded->info.step, 7);
    CHECK_EQ(loaded->info.tokens_seen, 70);
    CHECK_EQ(loaded->info.data_position, "7");
    CHECK_EQ(FirstValue(loaded->model, "lm_head.weight"), 3.0F);
    CHECK_EQ(FirstValue(*loaded->optimizer, "state.norm.weight.exp_avg"), 4.0F);
    // The folder of weights is what `--init` reads.
    CHECK_EQ(FirstValue(*TensorFiles::Open(CheckpointPath(folder, 7)), "norm.weight"), 3.0F);
  }
}

TEST_CASE("tensors are spread over shards of a size") {
  const TempDir dir;
  CheckpointWriter writer = OpenOrDie(dir.path(), {.shard_bytes = 24});
  REQUIRE_OK(writer.Save(Info(1), State(1.0F).tensors()));
  CHECK(fs::exists(dir / "step-1/model-00001-of-00002.safetensors"));
  CHECK(fs::exists(dir / "step-1/optimizer-00002-of-00002.safetensors"));
  CHECK_EQ(FirstValue(LoadCheckpoint(dir.path(), 1)->model, "norm.weight"), 1.0F);
}

TEST_CASE("the newest are kept, and a step may be saved again") {
  const TempDir dir;
  CheckpointWriter writer = OpenOrDie(dir.path(), {.keep_latest_k = 2});
  for (const int64_t step : {1, 2, 10, 9, 10})
    REQUIRE_OK(writer.Save(Info(step), State(static_cast<float>(step)).tensors()));
  CHECK_EQ(ListCheckpoints(dir.path()), std::vector<int64_t>{9, 10});
  CHECK_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2);
}

TEST_CASE("what a killed run left is no checkpoint, and goes") {
  const TempDir dir;
  fs::create_directories(dir / "step-3.partial");
  fs::create_directories(dir / "step-4");
  fs::create_directories(dir / "step-x");
  CHECK(ListCheckpoints(dir.path()).empty());
  OpenOrDie(dir.path(), {});
  CHECK_FALSE(fs::exists(dir / "step-3.partial"));
  CHECK(fs::exists(dir / "step-x"));
}

TEST_CASE("a missing and a damaged checkpoint are told") {
  const TempDir dir;
  CheckpointWriter writer = OpenOrDie(dir.path(), {});
  CHECK_EQ(MessageOf(LoadCheckpoint(dir.path(), 3)),
           "no checkpoint of step 3: " + dir.path() + ": there are none");
  REQUIRE_OK(writer.Save(Info(1), State(1.0F).tensors()));
  CHECK_EQ(MessageOf(LoadCheckpoint(dir.path(), 3)),
           "no checkpoint of step 3: " + dir.path() + ": there are those of 1");

  const auto damaged = [&](const std::string& why) {
    return "damaged checkpoint: " + dir.path() + "/step-1: " + why +
           "; remove the folder and resume from the one before";
  };
  const std::string shard = dir / "step-1/model-00001-of-00001.safetensors";
  const std::string bytes = *ReadFile(shard);
  std::string changed = bytes;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  REQUIRE_OK(WriteFile(shard, changed));
  CHECK_EQ(MessageOf(LoadCheckpoint(dir.path(), 1)),
           damaged("model-00001-of-00001.safetensors is not what was written"));
  fs::remove(shard);
  CHECK_EQ(MessageOf(LoadCheckpoint(dir.path(), 1)),
           damaged("model-00001-of-00001.safetensors is missing"));
  for (const auto& [text, why] :
       {std::pair{"{", "it is not valid JSON"},
        {"{}", "its schema is not strata.checkpoint/1"},
        {R"({"schema": "strata.checkpoint/1", "step": 1})", "a field is missing"}}) {
    REQUIRE_OK(WriteFile(dir / "step-1/checkpoint.json", text));
    CHECK_EQ(MessageOf(LoadCheckpoint(dir.path(), 1)),
             damaged("checkpoint.json: " + std::string(why)));
  }
}

TEST_CASE("a checkpoint that has no room leaves nothing") {
  const TempDir dir;
  CheckpointWriter writer = OpenOrDie(dir.path(), {});
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 200, .rlim_max = 200};  // bytes of a file
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(writer.Save(Info(1), State(1.0F).tensors()) ? 1 : 0);
  }
  int status = 0;
  REQUIRE_EQ(::waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("a folder that cannot be made is told before the first step") {
  const TempDir dir;
  REQUIRE_OK(WriteFile(dir / "file", "x"));
  CHECK(MessageOf(CheckpointWriter::Open(dir / "file", {})).starts_with("cannot make a folder: "));
}

TEST_CASE("killed at any moment, the complete checkpoints are complete") {
  for (int round = 0; round < 10; ++round) {
    const TempDir dir;
    const pid_t child = ::fork();
    if (child == 0) {
      CheckpointWriter writer = OpenOrDie(
          dir.path(),
          {.mode = round % 2 == 0 ? AsyncMode::kAsync : AsyncMode::kDisabled, .keep_latest_k = 2});
      for (int64_t step = 1;; ++step) {
        if (!writer.Save(Info(step), State(static_cast<float>(step)).tensors())) std::_Exit(1);
      }
    }
    ::usleep(static_cast<useconds_t>(20'000 + 3'000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    for (const int64_t step : ListCheckpoints(dir.path())) {
      const Result<Checkpoint> loaded = LoadCheckpoint(dir.path(), step);
      REQUIRE_OK(loaded);
      CHECK_EQ(FirstValue(loaded->model, "norm.weight"), static_cast<float>(step));
    }
  }
}

TEST_CASE("a run that is killed while it saves its only checkpoint again has one") {
  const TempDir names;
  fs::create_directories(names / "a");
  fs::create_directories(names / "b");
  if (::renameat2(AT_FDCWD, (names / "a").c_str(), AT_FDCWD, (names / "b").c_str(),
                  RENAME_EXCHANGE) != 0) {
    MESSAGE("skipped: this file system cannot exchange names");
    return;
  }
  const TempDir dir;
  {
    CheckpointWriter first = OpenOrDie(dir.path(), {.keep_latest_k = 1});
    REQUIRE_OK(first.Save(Info(5), State(5.0F).tensors()));
  }
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      CheckpointWriter writer = OpenOrDie(dir.path(), {.keep_latest_k = 1});
      while (writer.Save(Info(5), State(5.0F).tensors())) {
      }
      std::_Exit(1);
    }
    ::usleep(static_cast<useconds_t>(4'000 + 700 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    const Result<Checkpoint> loaded = LoadCheckpoint(dir.path(), 5);
    REQUIRE_OK(loaded);
    CHECK_EQ(FirstValue(loaded->model, "norm.weight"), 5.0F);
  }
}

}  // namespace
}  // namespace strata
