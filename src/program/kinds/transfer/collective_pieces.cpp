#include "program/kinds/transfer/collective_pieces.h"

#include <algorithm>

#include "comm/part_ranges.h"
#include "program/kinds/transfer/collective.h"

namespace snug::program {
namespace {

// The smallest slice of a rank in a piece: with many ranks, sending a message should still take
// longer than starting it.
constexpr int64_t kLeastSliceBytes = int64_t{16} << 10;
// Pieces begin at multiples of this number of elements, since kernels read vectors.
constexpr int64_t kSliceElements = 256;

base::DType sent_type(bool in_bf16, base::DType type) { return in_bf16 ? base::DType::bf16 : type; }

// The properties of the tensors on which pieces depend, without their addresses.
std::vector<comm::ReducePart> parts_of(const ReduceScatter& reduce, const OperationView& view) {
  std::vector<comm::ReducePart> parts;
  for (const TensorId id : reduce.in_place ? view.operation.updates : view.operation.reads) {
    const Tensor& whole = view.program.tensor(id);
    parts.push_back({.elements = whole.shape.elements() / reduce.ranks,
                     .whole_type = whole.dtype,
                     .sent_type = sent_type(reduce.sent_bf16, whole.dtype)});
  }
  return parts;
}

std::vector<comm::SumPart> parts_of(const AllReduce& reduce, const OperationView& view) {
  std::vector<comm::SumPart> parts;
  for (const TensorId id : view.operation.updates) {
    const Tensor& values = view.program.tensor(id);
    parts.push_back({.elements = values.shape.elements(),
                     .type = values.dtype,
                     .sent_type = sent_type(reduce.sent_bf16, values.dtype)});
  }
  return parts;
}

// An all_reduce always packs its pieces: each rank writes its sums to where its slice was.
bool is_packed(const comm::ReducePart& front, size_t ranges) {
  return ranges > 1 || front.whole_type != front.sent_type;
}
bool is_packed(const comm::SumPart& /*front*/, size_t /*ranges*/) { return true; }

template <typename Part>
std::vector<SumPiece> pieces(const std::vector<Part>& parts, int64_t piece_elements, int ranks) {
  std::vector<SumPiece> result;
  if (ranks == 1 || parts.empty()) return result;
  const int64_t room = comm::room_of(parts.front(), piece_elements, ranks);
  comm::Cursor cursor;
  std::vector<comm::PartRange> ranges;
  while (cursor.part < parts.size()) {
    const int64_t count = comm::next_ranges(std::span<const Part>(parts), cursor, room, ranges);
    if (count == 0) break;
    const Part& front = parts[ranges.front().part];
    result.push_back({.elements = comm::sent_elements(front, count, ranks),
                      .ranges = static_cast<int64_t>(ranges.size()),
                      .is_packed = is_packed(front, ranges.size()),
                      .sent_type = front.sent_type});
  }
  return result;
}

template <typename Sum>
int64_t elements_within(int64_t bytes, Sum sum, const OperationView& view) {
  sum.piece_elements = 0;
  int64_t width = 1;
  int64_t largest = 0;
  for (const SumPiece& piece : pieces_of_sum(sum, view)) {
    width = std::max(width, base::size_of(piece.sent_type));
    largest = std::max(largest, piece.elements);
  }
  const int64_t slice = std::max(bytes / sum.ranks, kLeastSliceBytes) / width;
  return std::min(largest, slice / kSliceElements * kSliceElements);
}

template <typename Sum>
int64_t largest_scratch(const Sum& sum, const OperationView& view) {
  int64_t bytes = 0;
  for (const SumPiece& piece : pieces_of_sum(sum, view))
    bytes = std::max(bytes, comm::scratch_bytes(sum.ranks, piece.elements, piece.sent_type));
  return bytes;
}

}  // namespace

std::vector<SumPiece> pieces_of_sum(const ReduceScatter& reduce, const OperationView& view) {
  return pieces(parts_of(reduce, view), reduce.piece_elements, reduce.ranks);
}

std::vector<SumPiece> pieces_of_sum(const AllReduce& reduce, const OperationView& view) {
  return pieces(parts_of(reduce, view), reduce.piece_elements, reduce.ranks);
}

int64_t piece_elements_within(int64_t bytes, const ReduceScatter& reduce,
                              const OperationView& view) {
  return elements_within(bytes, reduce, view);
}

int64_t piece_elements_within(int64_t bytes, const AllReduce& reduce, const OperationView& view) {
  return elements_within(bytes, reduce, view);
}

int64_t scratch_bytes(const ReduceScatter& reduce, const OperationView& view) {
  return largest_scratch(reduce, view);
}

int64_t scratch_bytes(const AllReduce& reduce, const OperationView& view) {
  return largest_scratch(reduce, view);
}

}  // namespace snug::program
