#include "program/kinds/product/nf4.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

// The weight of an operation in its stored form.
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

template <typename T>
void run(const program::DequantizeNf4& dequantize, const Invocation& invocation) {
  const Nf4Weight<T> weight(dequantize, invocation);
  const Floats<T> w(invocation[program::DequantizeNf4::kW]);
  for (int64_t i = 0; i < w.count(); ++i) w.set(i, weight[i]);
}

template <typename T>
void run(const program::MatmulNf4& matmul, const Invocation& invocation) {
  const Floats<T> x(invocation[program::MatmulNf4::kX]);
  const Nf4Weight<T> weight(matmul, invocation);
  const Floats<T> y(invocation[program::MatmulNf4::kY]);
  const int64_t k = x.columns();
  for (int64_t row = 0; row < y.rows(); ++row)
    for (int64_t column = 0; column < y.columns(); ++column) {
      T sum{};
      for (int64_t i = 0; i < k; ++i) sum += x.at(row, i) * weight[column * k + i];
      if (matmul.addend) sum += Floats<T>(invocation[program::MatmulNf4::kAddend]).at(row, column);
      y.set(row, column, sum);
    }
}

}  // namespace

SNUG_REFERENCE_KIND(DequantizeNf4);
SNUG_REFERENCE_KIND(MatmulNf4);

}  // namespace snug::backends::reference
