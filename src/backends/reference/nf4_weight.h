// A weight stored as NF4 (program/kinds/product/nf4.h), element by element.
#pragma once

#include "backends/reference/elements.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::reference {

// Refers to the buffers of the invocation, which must outlive it.
template <typename T>
class Nf4Weight {
 public:
  template <typename Kind>
  Nf4Weight(const Kind& kind, const Invocation& invocation)
      : codes_(invocation[Kind::kCodes]), absmax_(invocation[Kind::kAbsmax]) {
    if (!kind.nested) return;
    nested_absmax_ = &invocation[Kind::kNestedAbsmax];
    nested_map_ = &invocation[Kind::kNestedMap];
    nested_offset_ = &invocation[Kind::kNestedOffset];
  }

  T operator[](int64_t element) const {
    const uint8_t byte = codes_.as<const uint8_t>()[element / 2];
    const int code = element % 2 == 0 ? byte >> 4 : byte & 15;
    return static_cast<T>(formats::kNf4Codes[static_cast<size_t>(code)]) *
           scale(element / program::kNf4BlockSize);
  }

 private:
  T scale(int64_t block) const {
    if (nested_map_ == nullptr) return Floats<T>(absmax_)[block];
    const Floats<T> nested_absmax(*nested_absmax_);
    const Floats<T> map(*nested_map_);
    const Floats<T> offset(*nested_offset_);
    const T product =
        map[absmax_.as<const uint8_t>()[block]] * nested_absmax[block / formats::kNestedBlockSize];
    return product + offset[0];
  }

  const Buffer& codes_;
  const Buffer& absmax_;
  // These are null where the scales are not nested.
  const Buffer* nested_absmax_ = nullptr;
  const Buffer* nested_map_ = nullptr;
  const Buffer* nested_offset_ = nullptr;
};

}  // namespace snug::backends::reference
