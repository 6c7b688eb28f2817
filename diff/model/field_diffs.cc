#include "diff/model/field_diffs.h"

#include <cstring>

namespace strata {
namespace {

/// The sizes of the texts that follow it.
struct Head {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t path, before, after;
  bool derived;

  static uint32_t SizeOf(const std::optional<std::string_view>& text) {
    return text ? static_cast<uint32_t>(text->size()) : kNone;
  }
  static uint32_t Bytes(uint32_t size) { return size == kNone ? 0 : size; }
};

/// Not aligned: texts stand before it.
Head HeadAt(const char* at) {
  Head head;
  std::memcpy(&head, at, sizeof head);
  return head;
}

}  // namespace

FieldDiff FieldDiffs::Iterator::operator*() const {
  const Head head = HeadAt(at_);
  const char* text = at_ + sizeof(Head);
  const auto next = [&](uint32_t size) -> std::optional<std::string_view> {
    if (size == Head::kNone) return std::nullopt;
    const std::string_view view(text, size);
    text += size;
    return view;
  };
  FieldDiff field;
  field.path = *next(head.path);
  field.before = next(head.before);
  field.after = next(head.after);
  field.derived = head.derived;
  return field;
}

FieldDiffs::Iterator& FieldDiffs::Iterator::operator++() {
  const Head head = HeadAt(at_);
  at_ += sizeof(Head) + head.path + Head::Bytes(head.before) + Head::Bytes(head.after);
  return *this;
}

void FieldDiffs::Add(const FieldDiff& field) {
  Head head{};
  head.path = static_cast<uint32_t>(field.path.size());
  head.before = Head::SizeOf(field.before);
  head.after = Head::SizeOf(field.after);
  head.derived = field.derived;
  bytes_.MakeRoom(sizeof head + head.path + Head::Bytes(head.before) + Head::Bytes(head.after));
  const auto append = [&](const char* bytes, size_t size) { bytes_.Append(bytes, bytes + size); };
  append(reinterpret_cast<const char*>(&head), sizeof head);
  append(field.path.data(), field.path.size());
  if (field.before) append(field.before->data(), field.before->size());
  if (field.after) append(field.after->data(), field.after->size());
}

}  // namespace strata
