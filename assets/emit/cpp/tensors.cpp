#include "tensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "call.h"

namespace {

const std::string kComplex = "#complex";

struct Type {
  const char* name;
  at::ScalarType type;
};
const Type kTypes[] = {{"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf},  {"BF16", at::kBFloat16},
                       {"I64", at::kLong},   {"I32", at::kInt},   {"I16", at::kShort}, {"I8", at::kChar},
                       {"U8", at::kByte},    {"BOOL", at::kBool}};

// Reads the header, JSON of a fixed form: {"name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, …}.
class Header {
 public:
  Header(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  bool Next(char mark) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != mark) return false;
    ++at_;
    return true;
  }
  void Want(char mark) {
    if (!Next(mark)) Fail();
  }
  std::string Text() {
    Want('"');
    std::string text;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ == text_.size()) Fail();
      text += text_[at_++];
    }
    Want('"');
    return text;
  }
  std::vector<int64_t> Numbers() {
    std::vector<int64_t> numbers;
    Want('[');
    while (!Next(']')) {
      Skip();
      const size_t begin = at_;
      int64_t number = 0;
      for (; at_ < text_.size() && at_ < begin + 18 && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        number = 10 * number + (text_[at_] - '0');
      if (at_ == begin) Fail();
      numbers.push_back(number);
      Next(',');
    }
    return numbers;
  }
  [[noreturn]] void Fail() const { throw std::runtime_error(path_ + ": not a safetensors file, or a damaged one"); }

 private:
  void Skip() {
    while (at_ < text_.size() && std::strchr(" \n\r\t", text_[at_]) != nullptr)
      ++at_;
  }
  const std::string& path_;
  const std::string& text_;
  size_t at_ = 0;
};

// The number of bytes of a tensor; -1: more than a file has.
int64_t BytesOf(const std::vector<int64_t>& shape, at::ScalarType type) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(type));
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  return bytes;
}

}  // namespace

std::map<std::string, at::Tensor> LoadTensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  file.seekg(0, std::ios::end);
  const int64_t file_size = file.tellg();
  file.seekg(0);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof(length));
  std::string text;
  Header header(path, text);
  if (!file || length > static_cast<uint64_t>(file_size - 8)) header.Fail();
  text.resize(length);
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) throw std::runtime_error(path + ": cannot be read");
  const int64_t data = 8 + static_cast<int64_t>(length);
  std::map<std::string, at::Tensor> tensors;
  header.Want('{');
  while (!header.Next('}')) {
    std::string name = header.Text(), dtype;
    std::vector<int64_t> shape, offsets;
    header.Want(':');
    header.Want('{');
    while (!header.Next('}')) {
      const std::string key = header.Text();
      header.Want(':');
      if (key == "shape") {
        shape = header.Numbers();
      } else if (key == "data_offsets") {
        offsets = header.Numbers();
      } else {
        dtype = header.Text();
      }
      header.Next(',');
    }
    header.Next(',');
    if (name == "__metadata__") continue;
    for (const Type& type : kTypes) {
      if (dtype != type.name) continue;
      const bool fits = offsets.size() == 2 && BytesOf(shape, type.type) == offsets[1] - offsets[0] &&
                        offsets[0] <= offsets[1] && offsets[1] <= file_size - data;
      if (!fits) {
        throw std::runtime_error(path + ": damaged: " + name +
                                 " has not the type, the sizes or the bytes that the header says");
      }
      at::Tensor tensor = Call("aten::empty", "memory_format", {shape}, {{"dtype", type.type}});
      file.seekg(data + offsets[0]);
      file.read(static_cast<char*>(tensor.mutable_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
      if (!file) throw std::runtime_error(path + ": cannot be read");
      const size_t end = name.size() - std::min(name.size(), kComplex.size());
      const bool is_complex = name.compare(end, std::string::npos, kComplex) == 0;
      tensors[is_complex ? name.substr(0, end) : name] = is_complex ? Call("aten::view_as_complex", "", {tensor}) : tensor;
    }
  }
  return tensors;
}

void SaveTensors(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::string header = "{";
  std::vector<at::Tensor> stored;
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const bool is_complex = tensor.is_complex();
    const at::Tensor rows = (is_complex ? Call("aten::view_as_real", "", {tensor.resolve_conj()}) : tensor).contiguous();
    std::string dtype = "U8", shape;
    for (const Type& type : kTypes)
      if (type.type == rows.scalar_type()) dtype = type.name;
    for (const int64_t size : rows.sizes())
      shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    header += (header.size() > 1 ? ", " : "") + ('"' + name) + (is_complex ? kComplex : "") + "\": {\"dtype\": \"" +
              dtype + "\", \"shape\": [" + shape + "], \"data_offsets\": [" + std::to_string(offset) + ", " +
              std::to_string(offset + rows.nbytes()) + "]}";
    offset += rows.nbytes();
    stored.push_back(rows);
  }
  header += "}";
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << header;
  for (const at::Tensor& tensor : stored)
    file.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}
