#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tlparse-export/exchange/exchange_import.h"
#include "tlparse-export/exchange/exchange_record.h"
#include "tlparse-export/torch_trace/read/byte_source.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMs = 100;

bool IsExchangeFile(const std::string& path) {
  constexpr size_t kHead = 4096;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return LooksLikeExchange(head);
}

/// A file that grows, and how far it was read.
struct Growing {
  std::string path;
  size_t number = 0;
  std::streamoff offset = 0;
};

/// True when something came.
Result<bool> ReadOn(Growing& file, ExchangeImporter& importer) {
  std::ifstream stream(file.path, std::ios::binary);
  stream.seekg(file.offset);
  std::string piece(ByteSource::kPiece, '\0');
  stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
  piece.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (piece.empty()) return false;
  file.offset += static_cast<std::streamoff>(piece.size());
  STRATA_RETURN_IF_ERROR(importer.Feed(file.number, piece));
  return true;
}

Error NothingCame(const std::vector<std::string>& words) {
  return Error("nothing to import: {}: no records came", fmt::join(words, ", "));
}

}  // namespace

bool IsExchangeInput(const std::string& path) {
  return IsExchangeFile(path) || !ExchangeFilesOf(path).empty();
}

std::vector<std::string> ExchangeFilesOf(const std::string& word) {
  std::error_code error;
  std::vector<std::string> files;
  if (!fs::is_directory(word, error)) {
    if (IsExchangeFile(word)) files.push_back(word);
    return files;
  }
  for (const auto& entry : fs::directory_iterator(word, error)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".jsonl") && IsExchangeFile(path)) files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

Status ImportExchange(const std::vector<std::string>& words, const ImportOptions& options,
                      TraceWriter& trace, ImportSummary& summary) {
  ExchangeImporter importer(options, trace, summary);
  for (const std::string& word : words) {
    const std::vector<std::string> files = ExchangeFilesOf(word);
    if (files.empty()) {
      return Error("not an exchange file: {}: import it apart from exchange files", word);
    }
    for (const std::string& file : files) {
      const size_t number = importer.AddFile(file);
      STRATA_TRY(const std::unique_ptr<ByteSource> bytes, OpenByteSource(file));
      STRATA_TRY(std::string_view piece, bytes->Read());
      while (!piece.empty()) {
        STRATA_RETURN_IF_ERROR(importer.Feed(number, piece));
        STRATA_TRY(piece, bytes->Read());
      }
    }
  }
  if (summary.records == 0) return NothingCame(words);
  return importer.Finish();
}

Status FollowExchange(const std::vector<std::string>& words, const ImportOptions& options,
                      std::optional<double> idle_s, const std::function<bool(int)>& wait,
                      TraceWriter& trace, ImportSummary& summary) {
  ExchangeImporter importer(options, trace, summary);
  std::vector<Growing> files;
  int idle_ms = 0;
  while (true) {
    for (const std::string& word : words) {
      for (const std::string& path : ExchangeFilesOf(word)) {
        if (std::ranges::find(files, path, &Growing::path) != files.end()) continue;
        files.push_back({path, importer.AddFile(path)});
      }
    }
    bool is_idle = true;
    for (Growing& file : files) {
      STRATA_TRY(const bool came, ReadOn(file, importer));
      is_idle = is_idle && !came;
    }
    idle_ms = is_idle ? idle_ms + kPollMs : 0;
    if (wait(is_idle ? kPollMs : 0)) break;
    if (idle_s && idle_ms >= *idle_s * 1000) break;
  }
  if (summary.records == 0) return NothingCame(words);
  return importer.Finish();
}

}  // namespace strata
