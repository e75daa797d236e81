// Attributes of an operation: the struct of one kind, kept in place with the kind that says which.
// Whoever looks into it has to see that kind's struct alone; what works on any kind dispatches
// (dispatch.h). A value: copies are independent, and equal where kind and struct are.
//
//   Attributes attributes = Struct{.member = 128};
//   attributes.is<Struct>()           attributes.kind() == kKindOf<Struct>
//   attributes.get<Struct>().member   if (const auto* values = attributes.get_if<Struct>()) ...
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "program/kinds/kinds.h"

namespace snug::program {

// The struct of a kind. Its definition need not be known.
template <typename Struct>
concept KindStruct = (kKindOf<Struct> != kNoKind);

class Attributes {
 public:
  // Bytes and alignment that the struct of a kind may have.
  static constexpr size_t kCapacity = 104;
  static constexpr size_t kAlignment = 8;

  // Of no kind.
  Attributes() = default;
  template <KindStruct Struct>
  Attributes(const Struct& values) : kind_(kKindOf<Struct>) {  // NOLINT: a struct is such
    check<Struct>();
    ::new (static_cast<void*>(bytes_)) Struct(values);
  }

  // The kind's struct is carried over with the bytes that it is made of.
  Attributes(const Attributes& other) : kind_(other.kind_) { copy_bytes(other); }
  Attributes& operator=(const Attributes& other) {
    kind_ = other.kind_;
    copy_bytes(other);
    return *this;
  }
  ~Attributes() = default;

  Kind kind() const { return kind_; }
  template <KindStruct Struct>
  bool is() const {
    return kind_ == kKindOf<Struct>;
  }

  // Null where they are of another kind.
  template <KindStruct Struct>
  const Struct* get_if() const {
    return is<Struct>() ? &values<Struct>() : nullptr;
  }
  template <KindStruct Struct>
  Struct* get_if() {
    return is<Struct>() ? &values<Struct>() : nullptr;
  }

  // Fails a CHECK where they are of another kind.
  template <KindStruct Struct>
  const Struct& get() const {
    if (!is<Struct>()) fail_kind(kKindOf<Struct>);
    return values<Struct>();
  }
  template <KindStruct Struct>
  Struct& get() {
    if (!is<Struct>()) fail_kind(kKindOf<Struct>);
    return values<Struct>();
  }

  // By the equality of the kind's struct.
  friend bool operator==(const Attributes& a, const Attributes& b) { return a.equals(b); }

 private:
  // What the storage relies on; the struct has to be defined where it is asked for.
  template <typename Struct>
  static constexpr void check() {
    static_assert(sizeof(Struct) <= kCapacity && alignof(Struct) <= kAlignment,
                  "the struct of a kind is larger than what attributes hold");
    static_assert(std::is_trivially_copyable_v<Struct>,
                  "attributes are numbers, flags and words of enumerations");
  }
  template <typename Struct>
  const Struct& values() const {
    check<Struct>();
    return *std::launder(reinterpret_cast<const Struct*>(bytes_));
  }
  template <typename Struct>
  Struct& values() {
    check<Struct>();
    return *std::launder(reinterpret_cast<Struct*>(bytes_));
  }
  // memmove() begins the life of the struct whose bytes it copies.
  void copy_bytes(const Attributes& other) { std::memmove(bytes_, other.bytes_, kCapacity); }
  bool equals(const Attributes& other) const;
  void fail_kind(Kind asked) const;

  alignas(kAlignment) std::byte bytes_[kCapacity]{};
  Kind kind_ = kNoKind;
};

// Attributes of a kind with default values.
Attributes default_attributes(Kind kind);

}  // namespace snug::program
