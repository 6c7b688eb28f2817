// Stands in for libFuzzer where the compiler has none: runs LLVMFuzzerTestOneInput over a corpus,
// then over mutations of it made from a seed, so that every ordinary test run exercises the parsers
// with hostile bytes.
//
// usage: PROGRAM [--runs=N] [--seed=S] [FILE|FOLDER]…

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;
using Random = std::mt19937_64;

size_t Below(Random& random, size_t bound) {
  return bound == 0 ? 0 : static_cast<size_t>(random() % bound);
}

std::vector<std::filesystem::path> FilesBelow(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Input Read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  return Input(std::istreambuf_iterator<char>(stream), {});
}

/// A piece of `input`, at most 64 bytes.
Input Piece(const Input& input, Random& random) {
  const size_t begin = Below(random, input.size());
  const size_t size = std::min(1 + Below(random, 64), input.size() - begin);
  const auto first = input.begin() + static_cast<std::ptrdiff_t>(begin);
  return Input(first, first + static_cast<std::ptrdiff_t>(size));
}

Input Mutate(Input input, const Input& other, Random& random) {
  for (size_t edits = 1 + Below(random, 4); edits > 0; --edits) {
    const size_t at = Below(random, input.size());
    const auto where = input.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t rest = input.size() - at;
    switch (Below(random, 6)) {
      case 0:
        if (rest > 0) input[at] ^= static_cast<uint8_t>(1U << Below(random, 8));
        break;
      case 1:
        if (rest > 0) input[at] = static_cast<uint8_t>(random());
        break;
      case 2:
        input.erase(where,
                    where + static_cast<std::ptrdiff_t>(std::min(rest, 1 + Below(random, 16))));
        break;
      case 3: {
        const Input piece = Piece(input, random);
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
        break;
      }
      case 4: {
        const Input piece = Piece(other, random);
        input.insert(where, piece.begin(), piece.end());
        break;
      }
      default:
        input.resize(at);
        break;
    }
  }
  return input;
}

void Run(const Input& input) {
  // A copy of its exact size on the heap lets AddressSanitizer see reads past the end. As with
  // libFuzzer, no input is at a null pointer.
  const auto copy = std::make_unique<uint8_t[]>(input.size());
  std::ranges::copy(input, copy.get());
  LLVMFuzzerTestOneInput(copy.get(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  size_t runs = 0;
  Random random(1);
  std::vector<Input> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--runs=")) {
      runs = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (argument.starts_with("--seed=")) {
      random.seed(std::strtoull(argv[i] + 7, nullptr, 10));
    } else {
      for (const auto& file : FilesBelow(argument))
        corpus.push_back(Read(file));
    }
  }
  corpus.emplace_back();
  for (const Input& input : corpus)
    Run(input);
  for (size_t i = 0; i < runs; ++i) {
    const Input& input = corpus[Below(random, corpus.size())];
    Run(Mutate(input, corpus[Below(random, corpus.size())], random));
  }
  std::printf("%zu inputs, %zu mutations\n", corpus.size(), runs);
}
