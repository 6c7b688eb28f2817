#include "runtime/control/describe_tensor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "ir/type.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/profile.h"

namespace strata {
namespace {

using at::Tensor;
using QuestionKind = TensorQuestion::Kind;

constexpr int64_t kBins = 16, kMaxElements = 256, kImageRows = 32, kImageColumns = 64;

/// Of a complex tensor the parts, in a last dimension.
Tensor AsDoubles(const Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor)
      .to(at::kDouble)
      .contiguous();
}

std::span<const double> Elements(const Tensor& doubles) {
  return {doubles.const_data_ptr<double>(), static_cast<size_t>(doubles.numel())};
}

void WriteNumbers(std::span<const double> numbers, JsonWriter& json) {
  json.BeginArray();
  for (const double number : numbers)
    json.Double(number);
  json.EndArray();
}

/// `[0:4, 3, :]`, the text of one dimension at a time.
class SliceReader {
 public:
  SliceReader(std::string_view text, const Tensor& tensor) : text_(text), sliced_(tensor) {}

  Result<Tensor> Read() {
    std::string_view rest = TrimBlanks(text_);
    if (rest.size() < 2 || rest.front() != '[' || rest.back() != ']') return Malformed();
    rest = rest.substr(1, rest.size() - 2);
    while (true) {
      const size_t comma = std::min(rest.find(','), rest.size());
      STRATA_RETURN_IF_ERROR(TakeDimension(TrimBlanks(rest.substr(0, comma))));
      if (comma == rest.size()) return sliced_;
      rest.remove_prefix(comma + 1);
    }
  }

 private:
  Error Malformed() const { return Error("not a slice: {}: write [0:4, 3, :]", OneLine(text_)); }

  Result<std::optional<int64_t>> Number(std::string_view word) const {
    word = TrimBlanks(word);
    if (word.empty()) return std::optional<int64_t>();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return Malformed();
    return std::optional(number);
  }

  Status TakeDimension(std::string_view part) {
    if (dim_ == sliced_.dim()) {
      return Error("more dimensions than the value has: {}: leave out some", text_);
    }
    const int64_t size = sliced_.size(dim_);
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      STRATA_TRY(const std::optional<int64_t> index, Number(part));
      if (!index) return Malformed();
      const int64_t at = *index < 0 ? *index + size : *index;
      if (at < 0 || at >= size) {
        return Error("no such index: {}: the dimension has {} elements", *index, size);
      }
      sliced_ = sliced_.select(dim_, at);
      return Ok();
    }
    STRATA_TRY(const std::optional<int64_t> begin, Number(part.substr(0, colon)));
    STRATA_TRY(const std::optional<int64_t> end, Number(part.substr(colon + 1)));
    sliced_ = sliced_.slice(dim_++, begin.value_or(0), end.value_or(size));
    return Ok();
  }

  std::string_view text_;
  Tensor sliced_;
  int64_t dim_ = 0;
};

void AddRows(const Tensor& doubles, std::string& text) {
  const int64_t columns = doubles.dim() == 0 ? 1 : std::max<int64_t>(doubles.size(-1), 1);
  const std::span<const double> elements = Elements(doubles);
  for (size_t i = 0; i < elements.size(); ++i) {
    text += i % static_cast<size_t>(columns) == 0 ? "\n  " : "  ";
    text += fmt::format("{:>11.5g}", elements[i]);
  }
}

Status AddSlice(const Tensor& tensor, std::string_view slice, JsonWriter& json, std::string& text) {
  STRATA_TRY(const Tensor sliced, SliceReader(slice, tensor).Read());
  if (sliced.numel() > kMaxElements) {
    return Error("too many elements to print: {} of them: {}: take at most {}", sliced.numel(),
                 slice, kMaxElements);
  }
  const Tensor doubles = AsDoubles(sliced);
  AddRows(doubles, text);
  json.Key("slice").BeginObject();
  json.Key("sizes").BeginArray();
  for (const int64_t size : sliced.sizes())
    json.Int(size);
  json.EndArray().Key("values");
  WriteNumbers(Elements(doubles), json);
  json.EndObject();
  return Ok();
}

void AddHistogram(const Tensor& tensor, const ValueStatistics& values, JsonWriter& json,
                  std::string& text) {
  const Tensor doubles = AsDoubles(tensor);
  const Tensor counts =
      at::histc(doubles.masked_select(at::isfinite(doubles)), kBins, values.min, values.max);
  const std::span<const double> bins = Elements(counts);
  const double most = std::max(1.0, *std::ranges::max_element(bins));
  const double width = (values.max - values.min) / static_cast<double>(kBins);
  for (size_t i = 0; i < bins.size(); ++i) {
    text += fmt::format("\n  {:>11.4g} {:>9} {:#<{}}", values.min + width * static_cast<double>(i),
                        static_cast<int64_t>(bins[i]), "",
                        static_cast<int>(std::lround(40.0 * bins[i] / most)));
  }
  json.Key("histogram").BeginObject().Field("min", values.min).Field("max", values.max);
  json.Key("counts").BeginArray();
  for (const double count : bins)
    json.Int(static_cast<int64_t>(count));
  json.EndArray().EndObject();
}

Status AddImage(const Tensor& tensor, const ValueStatistics& values, JsonWriter& json,
                std::string& text) {
  if (tensor.dim() < 2 || tensor.numel() == 0 || tensor.is_complex()) {
    return Error("not a matrix: sizes [{}]: an image needs two dimensions of real numbers",
                 fmt::join(tensor.sizes(), ", "));
  }
  Tensor matrix = AsDoubles(tensor);
  matrix = matrix.reshape({-1, matrix.size(-1)});
  const int64_t rows = std::min(matrix.size(0), kImageRows);
  const int64_t columns = std::min(matrix.size(1), kImageColumns);
  const Tensor pooled = at::adaptive_avg_pool2d(matrix.unsqueeze(0), {rows, columns}).contiguous();
  const std::span<const double> elements = Elements(pooled);
  constexpr std::string_view kShades = " .:-=+*#%@";
  const double width = std::max(values.max - values.min, 1e-300);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i % static_cast<size_t>(columns) == 0) text += "\n  ";
    const double share = (elements[i] - values.min) / width;
    text += std::isfinite(share) ? kShades[static_cast<size_t>(std::clamp(share, 0.0, 0.999) * 10)]
                                 : '!';
  }
  json.Key("image").BeginObject().Field("rows", rows).Field("columns", columns).Key("values");
  WriteNumbers(elements, json);
  json.EndObject();
  return Ok();
}

}  // namespace

Result<TensorQuestion> ParseTensorQuestion(std::string_view text) {
  text = TrimBlanks(text);
  if (text.empty() || text == "statistics") return TensorQuestion();
  if (text == "histogram") return TensorQuestion{.kind = QuestionKind::kHistogram, .slice = {}};
  if (text == "image") return TensorQuestion{.kind = QuestionKind::kImage, .slice = {}};
  if (text.front() == '[')
    return TensorQuestion{.kind = QuestionKind::kSlice, .slice = std::string(text)};
  return Error("not a view of a value: {}: write statistics, histogram, image or [0:4, 3, :]",
               OneLine(text));
}

Result<TensorDescription> DescribeTensor(const Tensor& tensor, const TensorQuestion& question) {
  const ValueStatistics values = Measure(tensor);
  TensorDescription out;
  JsonWriter json(out.json);
  const std::string_view dtype = ShortName(ToDType(tensor.scalar_type()));
  json.BeginObject().Field("dtype", dtype).Key("sizes").BeginArray();
  for (const int64_t size : tensor.sizes())
    json.Int(size);
  json.EndArray().Key("statistics").BeginObject();
  json.Field("elements", values.elements).Field("min", values.min).Field("max", values.max);
  json.Field("mean", values.mean).Field("nan", values.nan_count).Field("inf", values.inf_count);
  json.EndObject();
  out.text = fmt::format("{} [{}]  min {:.6g}  max {:.6g}  mean {:.6g}  NaN {}  Inf {}", dtype,
                         fmt::join(tensor.sizes(), ", "), values.min, values.max, values.mean,
                         values.nan_count, values.inf_count);
  switch (question.kind) {
    case QuestionKind::kStatistics:
      break;
    case QuestionKind::kHistogram:
      AddHistogram(tensor, values, json, out.text);
      break;
    case QuestionKind::kSlice:
      STRATA_RETURN_IF_ERROR(AddSlice(tensor, question.slice, json, out.text));
      break;
    case QuestionKind::kImage:
      STRATA_RETURN_IF_ERROR(AddImage(tensor, values, json, out.text));
      break;
  }
  json.EndObject();
  return out;
}

}  // namespace strata
