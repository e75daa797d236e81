// A worker reads and quantises the next piece into its own slots, and waits until all earlier
// pieces have been handed in (ordered_pieces.h). At most kPieceWorkers pieces, and so at most
// kPieceWorkers tensors, are in progress, so as many absmax buffers are used in turn.
#include "convert/folder/quantize_pieces.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/dynamic_map.h"
#include "base/error.h"
#include "convert/folder/ordered_pieces.h"
#include "formats/quantization/nf4.h"
#include "runtime/conversion/convert.h"
#include "runtime/loading/read_transposed.h"
#include "runtime/storage/check_finite.h"

namespace snug::convert {
namespace {

using base::DType;
using formats::QuantState;
using formats::SafetensorsWriter;
using formats::TensorIndex;

// Large enough for sequential disk reads, small enough that it and its results stay in a core's
// cache.
constexpr int64_t kReadBytes = int64_t{1} << 20;
constexpr int64_t kConvertedBytes = kReadBytes / 2;  // when 64 bits become 32 or 32 become 16
constexpr int64_t kCodeBytes = kReadBytes / 4;       // when 16-bit elements become 4-bit codes
constexpr int64_t kAlignment = 64;

struct Sizes {
  int64_t blocks = 0;  // blocks of the largest linear
  int64_t nested = 0;  // scales of its absmax, when double quantised
  int64_t absmax_bytes() const { return aligned(blocks * int64_t{sizeof(float)}); }
  int64_t nested_codes_bytes() const { return nested == 0 ? 0 : aligned(blocks); }
  int64_t nested_absmax_bytes() const { return aligned(nested * int64_t{sizeof(float)}); }

  static int64_t aligned(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
};

Sizes sizes_of(std::span<const StreamedTensor> tensors, bool double_quant) {
  Sizes sizes;
  for (const StreamedTensor& tensor : tensors)
    if (tensor.quantised)
      sizes.blocks = std::max(sizes.blocks, formats::nf4_blocks(tensor.source->info->elements()));
  if (double_quant) sizes.nested = formats::nested_blocks(sizes.blocks);
  return sizes;
}

// One allocation for all data.
class Buffers {
 public:
  Buffers(const Sizes& sizes, int64_t bytes)
      : sizes_(sizes), memory_(static_cast<size_t>(bytes + kAlignment)) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = memory_.data() + (kAlignment - address % kAlignment) % kAlignment;
  }
  std::byte* read(size_t worker) const { return slot(worker); }
  std::byte* converted(size_t worker) const { return slot(worker) + kReadBytes; }
  uint8_t* codes(size_t worker) const {
    return reinterpret_cast<uint8_t*>(slot(worker) + kReadBytes + kConvertedBytes);
  }
  float* absmax(size_t turn) const {
    return reinterpret_cast<float*>(
        slot(kPieceWorkers) + static_cast<int64_t>(turn % kPieceWorkers) * sizes_.absmax_bytes());
  }
  uint8_t* nested_codes() const {
    return reinterpret_cast<uint8_t*>(slot(kPieceWorkers) +
                                      int64_t{kPieceWorkers} * sizes_.absmax_bytes());
  }
  float* nested_absmax() const {
    return reinterpret_cast<float*>(nested_codes() + sizes_.nested_codes_bytes());
  }

 private:
  std::byte* slot(size_t worker) const {
    return start_ + static_cast<int64_t>(worker) * (kReadBytes + kConvertedBytes + kCodeBytes);
  }
  Sizes sizes_;
  std::vector<std::byte> memory_;
  std::byte* start_ = nullptr;
};

struct QuantizerPiece {
  size_t tensor = 0;
  size_t turn = 0;  // its number among the quantised tensors, which picks the absmax buffer
  int64_t first = 0;
  int64_t elements = 0;
  bool is_last = false;
};

// The pieces of all tensors, one after the other.
class Pieces {
 public:
  explicit Pieces(std::span<const StreamedTensor> tensors) : tensors_(tensors) {}

  std::optional<QuantizerPiece> take() {
    if (next_.tensor == tensors_.size()) return std::nullopt;
    const StreamedTensor& tensor = tensors_[next_.tensor];
    const int64_t total = tensor.source->info->elements();
    QuantizerPiece piece = next_;
    piece.elements =
        std::min(total - piece.first, kReadBytes / base::size_of(*tensor.source->info->dtype));
    piece.is_last = piece.first + piece.elements == total;
    next_.first = piece.is_last ? 0 : piece.first + piece.elements;
    if (piece.is_last) {
      ++next_.tensor;
      if (tensor.quantised) ++next_.turn;
    }
    return piece;
  }

 private:
  std::span<const StreamedTensor> tensors_;
  QuantizerPiece next_;
};

class Streaming {
 public:
  Streaming(const TensorIndex& index, std::span<const StreamedTensor> tensors, bool double_quant,
            const OpenFile& open_file)
      : index_(index),
        tensors_(tensors),
        double_quant_(double_quant),
        open_file_(open_file),
        buffers_(sizes_of(tensors, double_quant), streaming_buffer_bytes(tensors, double_quant)),
        pieces_(tensors) {}

  void run() {
    std::array<const std::byte*, kPieceWorkers> made{};
    OrderedPieces<QuantizerPiece>().run(
        [&] { return pieces_.take(); },
        [&](const QuantizerPiece& piece, size_t worker) { made[worker] = make(piece, worker); },
        [&](const QuantizerPiece& piece, size_t worker) { write(piece, made[worker]); });
  }

 private:
  // Reads and converts a piece, and quantises it if its tensor is quantised; returns the bytes to
  // write.
  const std::byte* make(const QuantizerPiece& piece, size_t worker) const {
    const StreamedTensor& tensor = tensors_[piece.tensor];
    const DType from = *tensor.source->info->dtype;
    const int64_t width = base::size_of(from);
    const std::byte* values = buffers_.read(worker);
    if (tensor.transposed)
      runtime::read_transposed(index_, *tensor.source, piece.first, piece.elements,
                               buffers_.read(worker));
    else
      index_.read_range(*tensor.source, piece.first * width, piece.elements * width,
                        buffers_.read(worker));
    runtime::check_finite(index_, *tensor.source,
                          {from, values, piece.first, piece.elements, tensor.transposed});
    if (from != tensor.stored) {
      runtime::convert(from, values, tensor.stored, buffers_.converted(worker), piece.elements);
      values = buffers_.converted(worker);
    }
    if (!tensor.quantised) {
      runtime::check_rounded(index_, *tensor.source,
                             {tensor.stored, values, piece.first, piece.elements});
      return values;
    }
    float* absmax = buffers_.absmax(piece.turn) + piece.first / formats::kNf4BlockSize;
    formats::quantize_nf4(tensor.stored, values, piece.elements, buffers_.codes(worker), absmax);
    runtime::check_rounded_blocks(
        index_, *tensor.source, piece.first / formats::kNf4BlockSize,
        {absmax, static_cast<size_t>(formats::nf4_blocks(piece.elements))}, tensor.transposed);
    return reinterpret_cast<const std::byte*>(buffers_.codes(worker));
  }

  void write(const QuantizerPiece& piece, const std::byte* values) {
    const StreamedTensor& tensor = tensors_[piece.tensor];
    if (writer_ == nullptr || tensor.source->file != file_) {
      file_ = tensor.source->file;
      writer_ = &open_file_(file_);
    }
    const int64_t bytes = tensor.quantised ? formats::nf4_code_bytes(piece.elements)
                                           : piece.elements * base::size_of(tensor.stored);
    writer_->write(tensor.source->info->name, values, bytes);
    if (tensor.quantised && piece.is_last) write_scales(tensor, buffers_.absmax(piece.turn));
  }

  void write_scales(const StreamedTensor& tensor, const float* absmax) {
    const auto put = [&](std::string_view suffix, const void* data, int64_t bytes) {
      writer_->write(fmt::format("{}{}", tensor.source->info->name, suffix), data, bytes);
    };
    const int64_t blocks = formats::nf4_blocks(tensor.source->info->elements());
    QuantState state = state_of(tensor);
    put(formats::kMapSuffix, formats::kNf4Codes.data(), sizeof(formats::kNf4Codes));
    if (double_quant_) {
      state.nested_offset = formats::quantize_absmax(absmax, blocks, buffers_.nested_codes(),
                                                     buffers_.nested_absmax());
      const base::DynamicMap& map = base::signed_dynamic_map();
      put(formats::kAbsmaxSuffix, buffers_.nested_codes(), blocks);
      put(formats::kNestedAbsmaxSuffix, buffers_.nested_absmax(),
          formats::nested_blocks(blocks) * int64_t{sizeof(float)});
      put(formats::kNestedMapSuffix, map.data(), sizeof(map));
    } else {
      put(formats::kAbsmaxSuffix, absmax, blocks * int64_t{sizeof(float)});
    }
    writer_->write_late(fmt::format("{}{}", tensor.source->info->name, formats::kStateSuffix),
                        formats::to_json(state));
  }

  const TensorIndex& index_;
  std::span<const StreamedTensor> tensors_;
  bool double_quant_;
  const OpenFile& open_file_;
  Buffers buffers_;
  Pieces pieces_;
  SafetensorsWriter* writer_ = nullptr;  // the writer of the current file
  size_t file_ = 0;
};

}  // namespace

QuantState state_of(const StreamedTensor& tensor) {
  QuantState state;
  state.dtype = tensor.stored;
  state.shape = tensor.source->info->shape;
  if (tensor.transposed) std::swap(state.shape[0], state.shape[1]);
  return state;
}

int64_t streaming_buffer_bytes(std::span<const StreamedTensor> tensors, bool double_quant) {
  const Sizes sizes = sizes_of(tensors, double_quant);
  return int64_t{kPieceWorkers} *
             (kReadBytes + kConvertedBytes + kCodeBytes + sizes.absmax_bytes()) +
         sizes.nested_codes_bytes() + sizes.nested_absmax_bytes();
}

void stream_tensors(const TensorIndex& index, std::span<const StreamedTensor> tensors,
                    bool double_quant, const OpenFile& open_file) {
  Streaming(index, tensors, double_quant, open_file).run();
}

}  // namespace snug::convert
