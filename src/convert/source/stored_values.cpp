#include "convert/source/stored_values.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/finite.h"
#include "formats/quantization/nf4.h"
#include "runtime/conversion/convert.h"
#include "runtime/storage/check_finite.h"

namespace snug::convert {
namespace {

using base::DType;
using formats::IndexedTensor;
using formats::Nf4Parts;
using formats::TensorIndex;

constexpr int64_t kBufferBytes = int64_t{64} << 10;
// A multiple of what shares one nested scale.
constexpr int64_t kNf4Piece = 2 * formats::kNf4BlockSize * formats::kNestedBlockSize;

// The scales of the blocks that hold `elements` elements from `first` on.
class Scales {
 public:
  Scales(const TensorIndex& index, const Nf4Parts& parts, int64_t first, int64_t elements) {
    first_block_ = first / formats::kNf4BlockSize;
    const int64_t blocks = formats::nf4_blocks(first + elements) - first_block_;
    if (parts.nested_absmax == nullptr) {
      read(index, *parts.absmax, first_block_, blocks, scales_.data());
      return;
    }
    std::array<uint8_t, kBlocks> codes;
    index.read_range(*parts.absmax, first_block_, blocks, codes.data());
    std::array<float, kNestedBlocks> nested;
    const int64_t first_nested = first_block_ / formats::kNestedBlockSize;
    read(index, *parts.nested_absmax, first_nested,
         formats::nested_blocks(first_block_ + blocks) - first_nested, nested.data());
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t of = (first_block_ + i) / formats::kNestedBlockSize - first_nested;
      const float product = parts.nested_map[codes[i]] * nested[of];
      scales_[i] = product + *parts.state.nested_offset;
    }
  }
  float of(int64_t element) const {
    return scales_[element / formats::kNf4BlockSize - first_block_];
  }

 private:
  static constexpr size_t kBlocks = kNf4Piece / formats::kNf4BlockSize + 1;
  static constexpr size_t kNestedBlocks = kBlocks / formats::kNestedBlockSize + 2;

  static void read(const TensorIndex& index, const IndexedTensor& part, int64_t first,
                   int64_t count, float* to) {
    constexpr int64_t kWidth = sizeof(float);
    index.read_range(part, first * kWidth, count * kWidth, to);
  }

  int64_t first_block_ = 0;
  std::array<float, kBlocks> scales_;
};

void check_nf4(const TensorIndex& index, const Nf4Parts& parts, std::span<const float> values) {
  if (base::first_not_finite(DType::f32, values.data(), std::ssize(values)))
    base::throw_user_error(
        "{}: the scales of '{}' hold an infinity or NaN, with which nothing can be computed. Is "
        "the file whole? Download or copy it again",
        index.path_of(*parts.codes).string(), parts.codes->info->name);
}

void decode_piece(const TensorIndex& index, const Nf4Parts& parts, int64_t first,
                  std::span<float> values) {
  const Scales scales(index, parts, first, std::ssize(values));
  std::array<uint8_t, kNf4Piece / 2 + 1> codes;
  const int64_t first_byte = first / 2;
  index.read_range(*parts.codes, first_byte,
                   formats::nf4_code_bytes(first + std::ssize(values)) - first_byte, codes.data());
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    const int64_t element = first + i;
    const uint8_t pair = codes[element / 2 - first_byte];
    const size_t code = element % 2 == 0 ? pair >> 4 : pair & 0xfU;
    values[i] = formats::kNf4Codes[code] * scales.of(element);
  }
  check_nf4(index, parts, values);
}

}  // namespace

void read_values(const TensorIndex& index, const IndexedTensor& tensor, int64_t first,
                 std::span<float> values) {
  const DType from = *tensor.info->dtype;
  const int64_t width = base::size_of(from);
  alignas(64) std::array<std::byte, kBufferBytes> buffer;
  for (int64_t done = 0; done < std::ssize(values);) {
    const int64_t count = std::min(std::ssize(values) - done, kBufferBytes / width);
    float* to = values.data() + done;
    void* stored = from == DType::f32 ? static_cast<void*>(to) : buffer.data();
    index.read_range(tensor, (first + done) * width, count * width, stored);
    runtime::check_finite(index, tensor, {from, stored, first + done, count});
    if (from != DType::f32) runtime::convert(from, stored, DType::f32, to, count);
    if (from == DType::f64)
      runtime::check_finite(index, tensor, {DType::f32, to, first + done, count});
    done += count;
  }
}

void read_values(const TensorIndex& index, const Nf4Parts& parts, int64_t first,
                 std::span<float> values) {
  for (int64_t done = 0; done < std::ssize(values); done += kNf4Piece) {
    const int64_t count = std::min(std::ssize(values) - done, kNf4Piece);
    decode_piece(index, parts, first + done,
                 values.subspan(static_cast<size_t>(done), static_cast<size_t>(count)));
  }
}

int64_t Mxfp4Expert::read_bytes() const {
  return block_bytes() + scale_bytes() + out * in * base::size_of(DType::bf16);
}

void read_values(const TensorIndex& index, const Mxfp4Expert& expert, std::span<float> values) {
  std::vector<uint8_t> blocks(static_cast<size_t>(expert.block_bytes()));
  std::vector<uint8_t> scales(static_cast<size_t>(expert.scale_bytes()));
  std::vector<base::BFloat16> decoded(values.size());
  index.read_range(*expert.parts.blocks, expert.expert * expert.block_bytes(), std::ssize(blocks),
                   blocks.data());
  index.read_range(*expert.parts.scales, expert.expert * expert.scale_bytes(), std::ssize(scales),
                   scales.data());
  formats::decode_transposed(
      {.blocks = blocks.data(), .scales = scales.data(), .out = expert.out, .in = expert.in},
      decoded.data());
  if (base::first_not_finite(DType::bf16, decoded.data(), std::ssize(decoded)))
    base::throw_user_error(
        "{}: expert {} of '{}' has a value that is not finite. Is the file whole? Download or copy "
        "it again",
        index.path_of(*expert.parts.scales).string(), expert.expert,
        expert.parts.scales->info->name);
  runtime::convert(DType::bf16, decoded.data(), DType::f32, values.data(), std::ssize(values));
}

}  // namespace snug::convert
