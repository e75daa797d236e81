// Tensors are cut into pieces of at most one slot. Two readers take pieces from one cursor, in the
// order of the transfers: while one waits for the disk, the other converts or quantises. What is
// rounded before it is quantised is narrowed within its slot. Scales of a double quantised weight
// need all of its absmax first: those gather in one of two buffers, and whoever ends the last piece
// stores them. A device that the host does not reach quantises itself, and gives all absmax back.
#include "runtime/read_tensors.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/checksums.h"
#include "formats/nf4.h"
#include "plan/storage_programs.h"
#include "program/tensor_names.h"
#include "runtime/check_finite.h"
#include "runtime/convert.h"
#include "runtime/weight_quantizer.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using formats::IndexedTensor;
using formats::TensorIndex;

// A second thread costs more than it brings below this.
constexpr int64_t kParallelBytes = int64_t{8} << 20;

// Read and looked at in steps that stay in a core's own cache (half a megabyte and more) in
// between.
constexpr int64_t kStepBytes = int64_t{128} << 10;

static_assert(plan::kSlotBytes % base::kChecksumPieceBytes == 0);
static_assert(base::kChecksumPieceBytes % kStepBytes == 0);

struct Piece {
  size_t transfer = 0;
  int64_t first_element = 0;
  int64_t elements = 0;
};

// What the two readers share: which piece is next, and what is left of each tensor.
class Work {
 public:
  Work(std::span<const Transfer> transfers, Executor& executor, program::ProgramName program)
      : transfers_(transfers) {
    left_.reserve(transfers.size());
    absmax_.reserve(transfers.size());
    size_t gathered = 0;
    for (const Transfer& transfer : transfers) {
      left_.push_back(transfer.destination.elements());
      absmax_.push_back(transfer.stored ? absmax_of(*transfer.stored, gathered, executor, program)
                                        : nullptr);
    }
  }

  const Transfer& transfer(const Piece& piece) const { return transfers_[piece.transfer]; }
  bool quantizes() const {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [](const Transfer& transfer) { return transfer.stored.has_value(); });
  }
  // Where the absmax of the transfer's blocks gather; null where they go to their place alone.
  float* absmax(const Piece& piece) const { return absmax_[piece.transfer]; }

  std::optional<Piece> next() {
    std::unique_lock lock(mutex_);
    while (!failure_ && index_ < transfers_.size()) {
      const Transfer& transfer = transfers_[index_];
      const int64_t capacity = plan::kSlotBytes / base::size_of(*transfer.source->info->dtype);
      const int64_t left = transfer.destination.elements() - element_;
      if (left > 0) {
        if (!is_absmax_free(index_)) {
          // While this one waits, the other may take the piece: look again.
          ended_.wait(lock);
          continue;
        }
        const Piece piece{index_, element_, std::min(left, capacity)};
        element_ += piece.elements;
        return piece;
      }
      ++index_;
      element_ = 0;
    }
    return std::nullopt;
  }

  // Whether this was the last piece of its tensor; whoever is told so finishes the tensor. `bytes`:
  // what was put in place.
  bool ends(const Piece& piece, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    add_bytes(piece, bytes);
    int64_t& left = left_[piece.transfer];
    left -= piece.elements;
    return left == 0;
  }
  void finished(const Piece& piece, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    add_bytes(piece, bytes);
    absmax_[piece.transfer] = nullptr;
    ended_.notify_all();
  }
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    ended_.notify_all();
  }
  void add(uint64_t digest) {
    const std::lock_guard lock(mutex_);
    digest_ += digest;
  }
  uint64_t digest() const {
    if (failure_) std::rethrow_exception(failure_);
    return digest_;
  }

 private:
  void add_bytes(const Piece& piece, int64_t bytes) {
    if (backends::Trace* trace = transfer(piece).trace; trace != nullptr) trace->bytes += bytes;
  }

  // Where the host does not reach the device it sees the absmax only here.
  static float* absmax_of(const StoredWeight& stored, size_t& gathered, Executor& executor,
                          program::ProgramName program) {
    if (!stored.nested() && executor.backend().host_reaches_device()) return nullptr;
    const auto slot = static_cast<int>(gathered++ % plan::kSlots);
    return executor.tensor(program, program::staging_absmax_name(slot)).as<float>();
  }

  // Of the two tensors before this one at least one has ended, so one waits for them at most.
  bool is_absmax_free(size_t index) const {
    const float* const wanted = absmax_[index];
    if (wanted == nullptr) return true;
    for (size_t i = 0; i < index; ++i)
      if (absmax_[i] == wanted) return false;
    return true;
  }

  std::span<const Transfer> transfers_;
  std::vector<int64_t> left_;   // elements of each transfer
  std::vector<float*> absmax_;  // of each transfer whose absmax gather, until it is finished
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t index_ = 0;
  int64_t element_ = 0;
  std::exception_ptr failure_;
  uint64_t digest_ = 0;
};

// Narrows values where they lie, through a chunk that stays in the cache.
void round_in_place(std::byte* values, base::DType from, base::DType to, int64_t elements) {
  constexpr int64_t kChunkElements = 1024;
  const int64_t from_width = base::size_of(from);
  const int64_t width = base::size_of(to);
  SNUG_CHECK(width < from_width, "{} to {} in place", base::name_of(from), base::name_of(to));
  alignas(64) std::array<std::byte, kChunkElements * sizeof(float)> chunk;
  for (int64_t first = 0; first < elements; first += kChunkElements) {
    const int64_t count = std::min(kChunkElements, elements - first);
    convert(from, values + first * from_width, to, chunk.data(), count);
    std::memcpy(values + first * width, chunk.data(), static_cast<size_t>(count * width));
  }
}

// What one thread reads with.
struct Reader {
  Reader(Executor& executor, program::ProgramName program, int number, bool quantizes)
      : slot(executor.tensor(program, program::staging_slot_name(number)).data),
        window(executor, program, number) {
    if (quantizes) quantizer.emplace(executor, program, number);
  }
  std::byte* slot;
  HostWindow window;
  std::optional<WeightQuantizer> quantizer;
  base::ChecksumStream checksum;
  uint64_t digest = 0;  // of what it has read
};

void check_checksum(const TensorIndex& index, const Transfer& transfer, int64_t first_byte,
                    uint64_t checksum) {
  const auto piece = static_cast<size_t>(first_byte / base::kChecksumPieceBytes);
  if (!transfer.checksums || (*transfer.checksums)[piece] == checksum) return;
  throw base::DamagedFile(fmt::format(
      "{}: tensor '{}' does not hold what was written from its byte {} on, so the file is damaged; "
      "use an earlier or another copy",
      index.path_of(*transfer.source).string(), transfer.source->info->name, first_byte));
}

// Reads a piece as the file holds it.
void read_bytes(const TensorIndex& index, const Transfer& transfer, const Piece& piece,
                Reader& reader, std::byte* to) {
  const IndexedTensor& source = *transfer.source;
  const base::DType dtype = *source.info->dtype;
  const int64_t width = base::size_of(dtype);
  const int64_t end = (piece.first_element + piece.elements) * width;
  int64_t bytes = 0;
  for (int64_t first = piece.first_element * width; first < end; first += bytes, to += bytes) {
    bytes = std::min(end - first, kStepBytes);
    index.read_range(source, first, bytes, to);
    reader.checksum.add(to, bytes);
    if (transfer.holds_values && !transfer.stored)
      check_finite(index, source, {dtype, to, first / width, bytes / width});
    const int64_t done = first + bytes;
    if (done % base::kChecksumPieceBytes != 0 && done != end) continue;
    const int64_t piece_first = (done - 1) / base::kChecksumPieceBytes * base::kChecksumPieceBytes;
    const uint64_t checksum = reader.checksum.take();
    check_checksum(index, transfer, piece_first, checksum);
    reader.digest += digest_of(source.info->name, piece_first, checksum);
  }
}

// Rounds and quantises a slot's values to their place; returns the absmax of their blocks.
std::span<const float> quantize_piece(const Transfer& transfer, const Piece& piece, Work& work,
                                      Reader& reader) {
  const base::DType from = *transfer.source->info->dtype;
  const base::DType rounded = quantised_from(from, transfer.stored->compute);
  if (rounded != from) round_in_place(reader.slot, from, rounded, piece.elements);
  return reader.quantizer->quantize_slot(rounded, {piece.first_element, piece.elements},
                                         *transfer.stored, work.absmax(piece));
}

// Why a piece was quantised to scales that are no numbers: what the file holds, or its rounding.
[[noreturn]] void explain(const TensorIndex& index, const Piece& piece, const Transfer& transfer,
                          std::span<const float> absmax, Reader& reader) {
  const IndexedTensor& source = *transfer.source;
  const base::DType dtype = *source.info->dtype;
  const int64_t width = base::size_of(dtype);
  index.read_range(source, piece.first_element * width, piece.elements * width, reader.slot);
  check_finite(index, source, {dtype, reader.slot, piece.first_element, piece.elements});
  check_rounded_blocks(index, source, piece.first_element / program::kNf4BlockSize, absmax);
  SNUG_CHECK(false, "the scales of {} were finite", source.info->name);
}

// A weight that is quantised on the way. The largest of each block tells whether all are finite.
void read_to_quantize(const TensorIndex& index, const Piece& piece, Work& work, Reader& reader) {
  const Transfer& transfer = work.transfer(piece);
  read_bytes(index, transfer, piece, reader, reader.slot);
  const std::span<const float> absmax = quantize_piece(transfer, piece, work, reader);
  if (base::first_not_finite(base::DType::f32, absmax.data(), std::ssize(absmax)))
    explain(index, piece, transfer, absmax, reader);
  const int64_t scales =
      transfer.stored->nested() ? 0 : std::ssize(absmax) * int64_t{sizeof(float)};
  if (!work.ends(piece, formats::nf4_code_bytes(piece.elements) + scales)) return;
  work.finished(piece, store_scales(work.absmax(piece), transfer.destination.elements(),
                                    *transfer.stored, reader.window));
}

void read_piece(const TensorIndex& index, const Piece& piece, Work& work, Reader& reader) {
  const Transfer& transfer = work.transfer(piece);
  if (transfer.stored) return read_to_quantize(index, piece, work, reader);
  const Buffer& destination = transfer.destination;
  if (destination.data == nullptr) return read_bytes(index, transfer, piece, reader, reader.slot);
  const base::DType from = *transfer.source->info->dtype;
  const int64_t width = base::size_of(destination.dtype);
  const bool straight = from == destination.dtype;
  std::byte* const to =
      reader.window.open(destination.data + piece.first_element * width, piece.elements * width);
  read_bytes(index, transfer, piece, reader, straight ? to : reader.slot);
  if (!straight) {
    convert(from, reader.slot, destination.dtype, to, piece.elements);
    if (width < base::size_of(from))
      check_rounded(index, *transfer.source,
                    {destination.dtype, to, piece.first_element, piece.elements});
  }
  reader.window.close();
  work.ends(piece, piece.elements * width);
}

void read_pieces(const TensorIndex& index, Work& work, Executor& executor,
                 program::ProgramName program, int number) {
  try {
    Reader reader(executor, program, number, work.quantizes());
    while (const auto piece = work.next()) read_piece(index, *piece, work, reader);
    work.add(reader.digest);
  } catch (...) {
    work.fail(std::current_exception());
  }
}

bool is_contiguous(const Buffer& buffer) {
  int64_t stride = 1;
  for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
    if (buffer.shape[axis] != 1 && buffer.strides[static_cast<size_t>(axis)] != stride)
      return false;
    stride *= buffer.shape[axis];
  }
  return true;
}

bool same_shape(const std::vector<int64_t>& stored, const program::Shape& shape) {
  if (static_cast<int>(stored.size()) != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (stored[static_cast<size_t>(axis)] != shape[axis]) return false;
  return true;
}

std::string shape_text(const program::Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return formats::shape_text(dims);
}

}  // namespace

void check_transfer(const TensorIndex& index, const Transfer& transfer, const std::string& reason) {
  const formats::TensorInfo& info = *transfer.source->info;
  const std::string file = index.path_of(*transfer.source).string();
  if (!same_shape(info.shape, transfer.destination.shape))
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, {}", file, info.name,
                           formats::shape_text(info.shape), shape_text(transfer.destination.shape),
                           reason);
  const bool is_stored = !transfer.stored && info.dtype == transfer.destination.dtype;
  if (!is_stored && (!info.dtype || !base::is_float(*info.dtype)))
    base::throw_user_error(
        "{}: tensor '{}' is stored as {}; expected F32, BF16, F16 or F64. Use a folder with the "
        "weights in 16 or 32 bits",
        file, info.name, info.stored_dtype);
  SNUG_CHECK(is_contiguous(transfer.destination), "{} is not contiguous", info.name);
}

Transfer without_destination(const IndexedTensor& source) {
  Transfer transfer{&source, {}};
  transfer.destination.dtype = *source.info->dtype;
  transfer.destination.shape = {source.info->elements()};
  return transfer;
}

uint64_t digest_of(std::string_view tensor, int64_t first_byte, uint64_t checksum) {
  const std::array<uint64_t, 3> place{base::checksum(tensor), static_cast<uint64_t>(first_byte),
                                      checksum};
  return base::checksum(place.data(), sizeof place);
}

ReadReport read_tensors(const TensorIndex& index, std::span<const Transfer> transfers,
                        Executor& executor, program::ProgramName program) {
  int64_t bytes = 0;
  for (const Transfer& transfer : transfers) bytes += transfer.source->info->bytes();
  executor.backend().synchronise();
  Work work(transfers, executor, program);
  if (bytes < kParallelBytes) {
    read_pieces(index, work, executor, program, 0);
  } else {
    std::thread other([&] { read_pieces(index, work, executor, program, 1); });
    read_pieces(index, work, executor, program, 0);
    other.join();
  }
  return {bytes, work.digest()};
}

}  // namespace snug::runtime
