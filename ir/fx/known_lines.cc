#include "ir/fx/known_lines.h"

namespace strata::fx {
namespace {

/// What a table of lines may take before it begins anew.
constexpr size_t kMaxBytes = size_t{16} << 20;

template <class T>
KnownLines::Row Append(const std::vector<T>& row, std::vector<T>& all) {
  const auto begin = static_cast<uint32_t>(all.size());
  all.insert(all.end(), row.begin(), row.end());
  return {begin, static_cast<uint32_t>(row.size())};
}

/// The entry of `id`, which is there after the call.
template <class T>
T& EntryOf(StrId id, std::vector<T>& entries) {
  const auto index = static_cast<size_t>(id.index);
  if (entries.size() <= index) entries.resize(index + index / 2 + 64);
  return entries[index];
}

Arg WithString(const Arg& arg, StrId string) {
  switch (arg.kind()) {
    case ArgKind::kString:
      return Arg::String(string);
    case ArgKind::kDevice:
      return Arg::Device(string);
    case ArgKind::kRaw:
      return Arg::Raw(string);
    default:
      return arg;
  }
}

bool HasString(const Arg& arg) {
  return arg.kind() == ArgKind::kString || arg.kind() == ArgKind::kDevice ||
         arg.kind() == ArgKind::kRaw;
}

}  // namespace

void KnownLines::Begin(Module& module) {
  if (kept_->bytes > kMaxBytes) kept_ = std::make_unique<Kept>();
  module_ = &module;
  last_ = -1;
  places_.clear();
  has_places_ = true;
  ids_.assign(ids_.size(), {});
  types_.assign(types_.size(), {});
}

const KnownLines::Line* KnownLines::Find(std::string_view text) {
  const int32_t guess = last_ < 0 ? -1 : kept_->lines[static_cast<size_t>(last_)].next;
  StrId found{guess};
  if (guess < 0 || kept_->texts[found] != text) {
    found = kept_->texts.Find(text);
    if (!found.valid()) return nullptr;
    if (last_ >= 0) kept_->lines[static_cast<size_t>(last_)].next = found.index;
  }
  last_ = found.index;
  return &kept_->lines[static_cast<size_t>(last_)];
}

StrId KnownLines::InModule(StrId known) {
  if (!known.valid()) return known;
  StrId& id = EntryOf(known, ids_);
  if (!id.valid()) id = module_->strings().Intern(kept_->strings, known);
  return id;
}

TypeId KnownLines::TypeInModule(StrId annotation) {
  if (!annotation.valid()) return {};
  TypeId& id = EntryOf(annotation, types_);
  if (!id.valid()) id = module_->types().Parse(kept_->strings[annotation]);
  return id;
}

Arg KnownLines::InModule(Arg known) {
  return HasString(known) ? WithString(known, InModule(known.str())) : known;
}

Arg KnownLines::Know(Arg arg) {
  return HasString(arg) ? WithString(arg, Know(arg.str())) : arg;
}

void KnownLines::Place(int32_t number) {
  if (!has_places_) return;
  places_.resize(static_cast<size_t>(number) + 1, -1);
  places_.back() = last_;
}

KnownLines::Line* KnownLines::At(int32_t number) {
  if (!has_places_ || number < 0 || static_cast<size_t>(number) >= places_.size()) return nullptr;
  const int32_t line = places_[static_cast<size_t>(number)];
  return line < 0 ? nullptr : &kept_->lines[static_cast<size_t>(line)];
}

std::string_view KnownLines::StatementOf(const Line& line) const {
  constexpr std::string_view kBegin = ";  ";
  const auto index = static_cast<int32_t>(&line - kept_->lines.data());
  const std::string_view text = kept_->texts[StrId{index}];
  const std::span<const Free> freed = frees(line);
  return freed.empty() ? text : text.substr(0, freed.front().offset - kBegin.size());
}

bool KnownLines::Add(std::string_view text, Line line, const Parts& parts) {
  if (kept_->bytes > kMaxBytes) return false;
  const StrId id = kept_->texts.Intern(text);
  if (static_cast<size_t>(id.index) < kept_->lines.size()) return false;
  Parts& all = kept_->parts;
  line.names = Append(parts.names, all.names);
  line.elements = Append(parts.elements, all.elements);
  line.kwargs = Append(parts.kwargs, all.kwargs);
  line.frees = Append(parts.frees, all.frees);
  kept_->bytes += text.size() + sizeof(Line) + parts.names.size() * sizeof(Name) +
                  parts.elements.size() * sizeof(Arg) + parts.kwargs.size() * sizeof(NamedArg) +
                  parts.frees.size() * sizeof(Free);
  kept_->lines.push_back(line);
  if (last_ >= 0) kept_->lines[static_cast<size_t>(last_)].next = id.index;
  last_ = id.index;
  return true;
}

}  // namespace strata::fx
