#include "tlparse-export/torch_trace/read/byte_source.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include <zstd.h>

#include "base/file.h"

namespace strata {
namespace {

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}

  Result<std::string_view> ReadPiece() override {
    const std::string_view piece = rest_.substr(0, kPiece);
    rest_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view rest_;
};

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, std::string path, int64_t size)
      : descriptor_(descriptor), size_(size), path_(std::move(path)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }

  Result<std::string_view> ReadPiece() override {
    buffer_.resize(kPiece);
    size_t used = 0;
    while (used < kPiece) {
      const ssize_t got = ::read(descriptor_, buffer_.data() + used, kPiece - used);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ReadError(path_, errno);
      if (got == 0) break;
      used += static_cast<size_t>(got);
    }
    read_ += static_cast<int64_t>(used);
    return std::string_view(buffer_).substr(0, used);
  }

  Position position() const override { return {read_, size_}; }

 private:
  int descriptor_;
  int64_t size_, read_ = 0;
  std::string path_, buffer_;
};

Error Damaged(std::string_view path) {
  return Error(ErrorCode::kCorrupt, "damaged: {}: the compressed data is cut or changed", path);
}

/// Feeds a decompressor from another source and fills pieces.
class DecompressingSource : public ByteSource {
 public:
  DecompressingSource(std::unique_ptr<ByteSource> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}

  Result<std::string_view> ReadPiece() final {
    buffer_.resize(kPiece);
    size_t used = 0;
    while (used < kPiece) {
      if (in_.empty()) {
        STRATA_TRY(in_, source_->Read());
        if (in_.empty() && is_between_) break;
        if (in_.empty()) return Damaged(path_);
      }
      const size_t before = in_.size();
      const std::optional<size_t> made = Step(buffer_.data() + used, kPiece - used);
      if (!made || (*made == 0 && in_.size() == before && !is_between_)) return Damaged(path_);
      used += *made;
    }
    return std::string_view(buffer_).substr(0, used);
  }

  Position position() const final {
    const Position below = source_->position();
    return {below.read - static_cast<int64_t>(in_.size()), below.size};
  }

 protected:
  /// Takes bytes off `in_` and writes up to `size`; none: they are damaged.
  virtual std::optional<size_t> Step(char* out, size_t size) = 0;

  std::string_view in_;
  bool is_between_ = true;  ///< two streams: the content may end here

 private:
  std::unique_ptr<ByteSource> source_;
  std::string path_, buffer_;
};

class GzipSource final : public DecompressingSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> source, std::string path)
      : DecompressingSource(std::move(source), std::move(path)) {
    // 16: a gzip header is expected.
    STRATA_CHECK(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }

 private:
  std::optional<size_t> Step(char* out, size_t size) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in_.data()));
    stream_.avail_in = static_cast<uInt>(in_.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    in_.remove_prefix(in_.size() - stream_.avail_in);
    is_between_ = status == Z_STREAM_END;
    if (status == Z_STREAM_END && inflateReset(&stream_) != Z_OK) return std::nullopt;
    if (status != Z_OK && status != Z_STREAM_END) return std::nullopt;
    return size - stream_.avail_out;
  }

  z_stream stream_{};
};

class ZstdSource final : public DecompressingSource {
 public:
  using DecompressingSource::DecompressingSource;

 private:
  std::optional<size_t> Step(char* out, size_t size) override {
    ZSTD_inBuffer in{in_.data(), in_.size(), 0};
    ZSTD_outBuffer buffer{out, size, 0};
    const size_t left = ZSTD_decompressStream(context_.get(), &buffer, &in);
    if (ZSTD_isError(left)) return std::nullopt;
    in_.remove_prefix(in.pos);
    is_between_ = left == 0;
    return buffer.pos;
  }

  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

}  // namespace

std::unique_ptr<ByteSource> SourceOf(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source,
                                                 std::string path) {
  STRATA_TRY(const std::string_view first, source->Peek());
  if (first.starts_with("\x1f\x8b")) {
    return std::unique_ptr<ByteSource>(
        std::make_unique<GzipSource>(std::move(source), std::move(path)));
  }
  if (first.starts_with("\x28\xb5\x2f\xfd")) {
    return std::unique_ptr<ByteSource>(
        std::make_unique<ZstdSource>(std::move(source), std::move(path)));
  }
  return source;
}

Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path) {
  if (path == "-") {
    return Decompressed(std::make_unique<FileSource>(STDIN_FILENO, "standard input", 0),
                        "standard input");
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ReadError(path, errno);
  struct stat info{};
  const bool is_known = ::fstat(descriptor, &info) == 0;
  auto source = std::make_unique<FileSource>(descriptor, path,
                                             is_known && S_ISREG(info.st_mode) ? info.st_size : 0);
  if (is_known && S_ISDIR(info.st_mode)) {
    return Error(ErrorCode::kIo, "is a directory: {}: give a file", path);
  }
  return Decompressed(std::move(source), path);
}

}  // namespace strata
