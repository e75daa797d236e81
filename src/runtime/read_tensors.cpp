// Tensors are cut into pieces of at most one slot. Two readers take pieces from one cursor, in the
// order of the transfers: while one waits for the disk, the other converts.
#include "runtime/read_tensors.h"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "methods/update.h"
#include "runtime/convert.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using formats::IndexedTensor;
using formats::TensorIndex;

// A second thread costs more than it brings below this.
constexpr int64_t kParallelBytes = int64_t{8} << 20;

struct Piece {
  const Transfer* transfer = nullptr;
  int64_t first_element = 0;
  int64_t elements = 0;
};

class Cursor {
 public:
  explicit Cursor(std::span<const Transfer> transfers) : transfers_(transfers) {}

  std::optional<Piece> next() {
    const std::lock_guard lock(mutex_);
    while (!failure_ && index_ < transfers_.size()) {
      const Transfer& transfer = transfers_[index_];
      const int64_t capacity = plan::kLoadSlotBytes / base::size_of(*transfer.source->info->dtype);
      const int64_t left = transfer.destination.elements() - element_;
      if (left > 0) {
        const Piece piece{&transfer, element_, std::min(left, capacity)};
        element_ += piece.elements;
        return piece;
      }
      ++index_;
      element_ = 0;
    }
    return std::nullopt;
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::span<const Transfer> transfers_;
  std::mutex mutex_;
  size_t index_ = 0;
  int64_t element_ = 0;
  std::exception_ptr failure_;
};

void read_piece(const TensorIndex& index, const Piece& piece, std::byte* slot) {
  const IndexedTensor& source = *piece.transfer->source;
  const Buffer& destination = piece.transfer->destination;
  const base::DType from = *source.info->dtype;
  const int64_t width = base::size_of(from);
  std::byte* to = destination.data + piece.first_element * base::size_of(destination.dtype);
  const bool straight = from == destination.dtype;
  index.read_range(source, piece.first_element * width, piece.elements * width,
                   straight ? to : slot);
  if (!straight) convert(from, slot, destination.dtype, to, piece.elements);
}

void read_pieces(const TensorIndex& index, Cursor& cursor, std::byte* slot) {
  try {
    while (const auto piece = cursor.next()) read_piece(index, *piece, slot);
  } catch (...) {
    cursor.fail(std::current_exception());
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

const Buffer& original_of(const Executor& executor, const std::string& name) {
  const std::string master = methods::master_name(name);
  return executor.tensor(executor.has(master) ? master : name);
}

void check_transfer(const TensorIndex& index, const Transfer& transfer, const std::string& reason) {
  const formats::TensorInfo& info = *transfer.source->info;
  const std::string file = index.path_of(*transfer.source).string();
  if (!same_shape(info.shape, transfer.destination.shape))
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, {}", file, info.name,
                           formats::shape_text(info.shape), shape_text(transfer.destination.shape),
                           reason);
  if (!info.dtype || !base::is_float(*info.dtype))
    base::throw_user_error(
        "{}: tensor '{}' is stored as {}; expected F32, BF16, F16 or F64. Use a folder with the "
        "weights in 16 or 32 bits",
        file, info.name, info.stored_dtype);
  SNUG_CHECK(is_contiguous(transfer.destination), "{} is not contiguous", info.name);
}

int64_t read_tensors(const TensorIndex& index, std::span<const Transfer> transfers,
                     Executor& executor) {
  int64_t bytes = 0;
  for (const Transfer& transfer : transfers) bytes += transfer.source->info->bytes();
  std::array<std::byte*, plan::kLoadSlots> slots{};
  for (size_t i = 0; i < slots.size(); ++i)
    slots[i] = executor.tensor("load", fmt::format("load.slot.{}", i)).data;
  executor.backend().synchronise();
  Cursor cursor(transfers);
  if (bytes < kParallelBytes) {
    read_pieces(index, cursor, slots[0]);
  } else {
    std::thread other([&] { read_pieces(index, cursor, slots[1]); });
    read_pieces(index, cursor, slots[0]);
    other.join();
  }
  cursor.rethrow();
  return bytes;
}

}  // namespace snug::runtime
