#include "runtime/train/data/packing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"
#include "base/text.h"

namespace strata {
namespace {

constexpr size_t kOpenRows = 8;
constexpr int64_t kIgnored = -100;

/// A document in the order of reading: number `ordinal` of pass `epoch` over the data.
struct Place {
  int64_t epoch = 0, ordinal = 0;
};

/// Documents in the order of reading, without those that teach nothing.
class Reader {
 public:
  Reader(std::unique_ptr<Documents> documents, const TrainConfig& config)
      : documents_(std::move(documents)), config_(config) {}

  /// The next document of at least two tokens; nothing at the end of the data.
  Result<std::optional<std::vector<int64_t>>> Next() {
    int64_t useless = 0;
    while (true) {
      if (next_.ordinal == documents_->size()) {
        if (!config_.dataloader.repeat) return std::optional<std::vector<int64_t>>();
        next_ = {.epoch = next_.epoch + 1, .ordinal = 0};
      }
      if (useless++ > documents_->size()) {
        return Error("no document of two tokens or more: {}: give another dataset",
                     fmt::join(config_.dataloader.dataset_path, ", "));
      }
      if (documents_->size() == 0) continue;
      last_ = next_;
      STRATA_TRY(std::vector<int64_t> ids, Read(next_));
      ++next_.ordinal;
      if (ids.size() >= 2) return std::optional(std::move(ids));
    }
  }

  Result<std::vector<int64_t>> Read(Place place) {
    if (order_.empty() || order_epoch_ != place.epoch) Shuffle(place.epoch);
    return documents_->Get(order_[static_cast<size_t>(place.ordinal)]);
  }

  std::vector<DataTrait> Traits() const {
    std::vector<DataTrait> traits = documents_->Traits();
    const DataloaderConfig& data = config_.dataloader;
    traits.push_back({.name = "dataloader.shuffle", .value = data.shuffle ? "true" : "false"});
    if (data.shuffle) {
      traits.push_back({.name = "dataloader.seed", .value = std::to_string(data.seed)});
    }
    return traits;
  }

  bool Has(Place place) const {
    return place.epoch >= 0 && place.ordinal >= 0 && place.ordinal <= documents_->size();
  }
  bool HasDocument(Place place) const { return Has(place) && place.ordinal < documents_->size(); }
  Place next() const { return next_; }
  Place last() const { return last_; }
  void Seek(Place place) { next_ = place; }

 private:
  /// Fisher-Yates, from bits that depend on seed and epoch alone.
  void Shuffle(int64_t epoch) {
    order_.resize(static_cast<size_t>(documents_->size()));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    order_epoch_ = epoch;
    if (!config_.dataloader.shuffle) return;
    const uint64_t key = Mix(config_.dataloader.seed) ^ Mix(static_cast<uint64_t>(epoch));
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[RandomBits(key, i) % i]);
  }

  std::unique_ptr<Documents> documents_;
  TrainConfig config_;
  Place next_, last_;
  std::vector<int64_t> order_;
  int64_t order_epoch_ = -1;
};

/// Numbers with separators: what is left of the text after each `Take`.
class NumberReader {
 public:
  explicit NumberReader(std::string_view text) : rest_(text) {}
  std::optional<int64_t> Take() {
    int64_t number = 0;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (read.ec != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(read.ptr - rest_.data()));
    return number;
  }
  bool Skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<Place> TakePlace() {
    const auto epoch = Take();
    const auto ordinal = epoch && Skip('.') ? Take() : std::nullopt;
    if (!ordinal) return std::nullopt;
    return Place{.epoch = *epoch, .ordinal = *ordinal};
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

Error NoPlace(std::string_view position) {
  return Error("no place of the data: '{}': resume with the dataset that the run began with",
               OneLine(position));
}

/// Adds inputs and labels of a document's part to a row.
void Append(std::span<const int64_t> ids, Batch& row) {
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    row.tokens.push_back(ids[i]);
    row.labels.push_back(ids[i + 1]);
    row.positions.push_back(static_cast<int64_t>(i));
  }
}

void AppendRow(const Batch& row, Batch& batch) {
  batch.tokens.insert(batch.tokens.end(), row.tokens.begin(), row.tokens.end());
  batch.labels.insert(batch.labels.end(), row.labels.begin(), row.labels.end());
  batch.positions.insert(batch.positions.end(), row.positions.begin(), row.positions.end());
  ++batch.rows;
}

/// Makes batches of rows.
class RowSource : public DataSource {
 public:
  RowSource(std::unique_ptr<Documents> documents, const TrainConfig& config)
      : reader_(std::move(documents), config),
        rows_(config.batch_size),
        takes_fewer_(config.compile.symbolic_batch),
        seq_len_(static_cast<size_t>(config.seq_len)) {}

  std::vector<DataTrait> Traits() const final {
    std::vector<DataTrait> traits = reader_.Traits();
    traits.push_back({.name = "dataloader.packing", .value = packing()});
    traits.push_back({.name = "seq_len",
                      .value = std::to_string(seq_len_),
                      .keeps_place = rows_have_any_length()});
    traits.push_back({.name = "batch_size", .value = std::to_string(rows_), .keeps_place = true});
    return traits;
  }

  Result<std::optional<Batch>> Next() final {
    Batch batch;
    for (int64_t row = 0; row < rows_; ++row) {
      STRATA_TRY(const std::optional<Batch> next, NextRow());
      if (!next) {
        if (!takes_fewer_ || batch.rows == 0) return std::optional<Batch>();
        break;
      }
      AppendRow(*next, batch);
    }
    return std::optional(std::move(batch));
  }

 protected:
  virtual Result<std::optional<Batch>> NextRow() = 0;
  virtual std::string packing() const = 0;
  /// Whether a place means the same for rows of another length.
  virtual bool rows_have_any_length() const = 0;

  Reader reader_;
  int64_t rows_;
  bool takes_fewer_;
  size_t seq_len_;
};

class ConcatenatedSource final : public RowSource {
 public:
  using RowSource::RowSource;

  std::string Position() const override {
    const Place place = offset_ > 0 ? reader_.last() : reader_.next();
    return fmt::format("{}.{}+{}", place.epoch, place.ordinal, offset_);
  }

  Status Seek(std::string_view position) override {
    NumberReader numbers(position);
    const auto place = numbers.TakePlace();
    const auto offset = place && numbers.Skip('+') ? numbers.Take() : std::nullopt;
    if (!offset || !numbers.at_end() || !reader_.Has(*place) || *offset < 0) {
      return NoPlace(position);
    }
    reader_.Seek(*place);
    document_.clear();
    offset_ = 0;
    if (*offset == 0) return Ok();
    STRATA_TRY(auto document, reader_.Next());
    if (!document || static_cast<size_t>(*offset) + 1 >= document->size()) return NoPlace(position);
    document_ = *std::move(document);
    offset_ = static_cast<size_t>(*offset);
    return Ok();
  }

 protected:
  std::string packing() const override { return "concat_then_split"; }
  bool rows_have_any_length() const override { return true; }

  Result<std::optional<Batch>> NextRow() override {
    Batch row;
    while (row.tokens.size() < seq_len_) {
      if (offset_ == 0) {
        STRATA_TRY(auto document, reader_.Next());
        if (!document) return std::optional<Batch>();
        document_ = *std::move(document);
      }
      const size_t room = seq_len_ - row.tokens.size();
      const size_t left = document_.size() - 1 - offset_;
      const size_t taken = std::min(room, left);
      Append(std::span(document_).subspan(offset_, taken + 1), row);
      offset_ = taken == left ? 0 : offset_ + taken;
    }
    return std::optional(std::move(row));
  }

 private:
  std::vector<int64_t> document_;
  size_t offset_ = 0;  // inputs of the document that are in rows already; 0: none is begun
};

class FirstFitSource final : public RowSource {
 public:
  using RowSource::RowSource;

  /// `<next document>;<documents of the open rows>`.
  std::string Position() const override {
    const Place next = reader_.next();
    std::string text = fmt::format("{}.{}", next.epoch, next.ordinal);
    for (const Open& row : open_) {
      text += ';';
      for (const Place& place : row.places)
        text += fmt::format("{}.{},", place.epoch, place.ordinal);
    }
    return text;
  }

  Status Seek(std::string_view position) override {
    NumberReader numbers(position);
    const auto next = numbers.TakePlace();
    if (!next || !reader_.Has(*next)) return NoPlace(position);
    std::vector<Open> open;
    while (numbers.Skip(';')) {
      open.emplace_back();
      while (const auto place = numbers.TakePlace()) {
        if (!reader_.HasDocument(*place) || !numbers.Skip(',')) return NoPlace(position);
        STRATA_TRY(const std::vector<int64_t> ids, reader_.Read(*place));
        Append(ids, open.back().row);
        open.back().places.push_back(*place);
      }
    }
    if (!numbers.at_end()) return NoPlace(position);
    reader_.Seek(*next);
    open_ = std::move(open);
    return Ok();
  }

  std::string Warning() const override {
    if (left_out_.documents == 0) return {};
    return fmt::format(
        "dataloader.packing = 'first_fit' left out {} of {} documents, with {:.3g} % of the "
        "tokens, "
        "which are longer than seq_len {}: take a longer seq_len, or concat_then_split",
        left_out_.documents, read_.documents,
        100.0 * static_cast<double>(left_out_.tokens) / static_cast<double>(read_.tokens),
        seq_len_);
  }

 protected:
  std::string packing() const override { return "first_fit"; }
  bool rows_have_any_length() const override { return false; }

  Result<std::optional<Batch>> NextRow() override {
    int64_t too_long = 0;
    while (true) {
      STRATA_TRY(const auto document, reader_.Next());
      if (!document) return open_.empty() ? std::optional<Batch>() : TakeFullest();
      const size_t size = document->size() - 1;
      read_.Add(*document);
      if (size > seq_len_) {
        left_out_.Add(*document);
        if (++too_long > kPatience) {
          return Error(
              "{} documents in a row are longer than seq_len {}: dataloader.packing: take "
              "concat_then_split",
              too_long, seq_len_);
        }
        continue;
      }
      const auto fits = [&](const Open& row) { return row.row.tokens.size() + size <= seq_len_; };
      auto row = std::ranges::find_if(open_, fits);
      std::optional<Batch> done;
      if (row == open_.end()) {
        if (open_.size() == kOpenRows) done = TakeFullest();
        open_.emplace_back();
        row = open_.end() - 1;
      }
      Append(*document, row->row);
      row->places.push_back(reader_.last());
      if (done) return done;
    }
  }

 private:
  static constexpr int64_t kPatience = 100'000;
  struct Open {
    Batch row;
    std::vector<Place> places;
  };

  std::optional<Batch> TakeFullest() {
    const auto fullest =
        std::ranges::max_element(open_, {}, [](const Open& row) { return row.row.tokens.size(); });
    Batch row = std::move(fullest->row);
    open_.erase(fullest);
    row.tokens.resize(seq_len_, 0);
    row.labels.resize(seq_len_, kIgnored);
    row.positions.resize(seq_len_, 0);
    return row;
  }

  struct Count {
    int64_t documents = 0, tokens = 0;
    void Add(const std::vector<int64_t>& ids) {
      ++documents;
      tokens += std::ssize(ids);
    }
  };

  std::vector<Open> open_;
  Count read_, left_out_;
};

}  // namespace

std::unique_ptr<DataSource> MakePackedSource(std::unique_ptr<Documents> documents,
                                             const TrainConfig& config) {
  if (config.dataloader.packing == PackingMode::kFirstFit) {
    return std::make_unique<FirstFitSource>(std::move(documents), config);
  }
  return std::make_unique<ConcatenatedSource>(std::move(documents), config);
}

Result<std::unique_ptr<DataSource>> OpenDataSource(const TrainConfig& config) {
  if (config.dataloader.dataset == DatasetKind::kSynthetic) {
    return MakeTokenSource(TokenData::Synthetic(config));
  }
  STRATA_TRY(std::unique_ptr<Documents> documents, OpenDocuments(config));
  return MakePackedSource(std::move(documents), config);
}

Result<std::unique_ptr<DataSource>> OpenValidationData(const TrainConfig& config) {
  TrainConfig other = config;
  other.dataloader.dataset_path = config.validator.dataset_path;
  other.dataloader.repeat = false;
  other.dataloader.shuffle = false;
  other.seed = Mix(config.seed);
  other.steps = config.validator.steps;
  other.accumulation_steps = 1;
  return OpenDataSource(other);
}

}  // namespace strata
