#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

// A stored weight: its operands, from the first on.
template <typename T>
class StoredWeight {
 public:
  StoredWeight(std::span<const Buffer> operands, bool nested)
      : operands_(operands), nested_(nested) {}

  T operator[](int64_t element) const {
    const uint8_t byte = operands_[0].as<const uint8_t>()[element / 2];
    const int code = element % 2 == 0 ? byte >> 4 : byte & 15;
    return static_cast<T>(formats::kNf4Codes[static_cast<size_t>(code)]) *
           scale(element / program::kNf4BlockSize);
  }

 private:
  T scale(int64_t block) const {
    if (!nested_) return Floats<T>(operands_[1])[block];
    const Floats<T> nested_absmax(operands_[2]);
    const Floats<T> map(operands_[3]);
    const Floats<T> offset(operands_[4]);
    const T product = map[operands_[1].as<const uint8_t>()[block]] *
                      nested_absmax[block / formats::kNestedBlockSize];
    return product + offset[0];
  }

  std::span<const Buffer> operands_;
  bool nested_;
};

}  // namespace

template <typename T>
void run(const program::DequantizeNf4& dequantize, const Invocation& invocation) {
  const StoredWeight<T> weight(invocation.reads, dequantize.nested);
  const Floats<T> w(invocation.writes[0]);
  for (int64_t i = 0; i < w.count(); ++i) w.set(i, weight[i]);
}

template <typename T>
void run(const program::MatmulNf4& matmul, const Invocation& invocation) {
  const Floats<T> x(invocation.reads[0]);
  const StoredWeight<T> weight(invocation.reads.subspan(1), matmul.nested);
  const Floats<T> y(invocation.writes[0]);
  const int64_t k = x.columns();
  for (int64_t row = 0; row < y.rows(); ++row)
    for (int64_t column = 0; column < y.columns(); ++column) {
      T sum{};
      for (int64_t i = 0; i < k; ++i) sum += x.at(row, i) * weight[column * k + i];
      y.set(row, column, sum);
    }
}

SNUG_INSTANTIATE(DequantizeNf4);
SNUG_INSTANTIATE(MatmulNf4);

}  // namespace snug::backends::reference
