#include "backends/cuda/transfer/card_sums.h"

#include <algorithm>

#include "backends/cuda/device/cuda_check.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "comm/elements.h"

namespace snug::backends::cuda {
namespace {

using base::DType;
using comm::element;
using comm::PartRange;
using comm::ReducePart;
using comm::SumPart;

DeviceRows operand(const void* data, DType type, int64_t stride = 0) {
  SNUG_CHECK(type == DType::f32 || type == DType::bf16, "ranks do not sum {}", base::name_of(type));
  return {const_cast<void*>(data), stride, format_of(type)};
}

RankSum sum_of(const ReducePart& part, const PartRange& range, int64_t position) {
  return {.to = operand(element(part.shard, part.shard_type, range.first), part.shard_type),
          .position = position,
          .count = range.count,
          .valid = std::clamp<int64_t>(part.valid - range.first, 0, range.count),
          .adds = part.add};
}

// A single rank's values in the form of one piece. Each tensor has its own launch.
RankPieces alone(const void* values, DType type, DType sent_type) {
  return {
      .received = operand(values, type), .own = operand(values, type), .rounds = sent_type != type};
}

void reduce_alone(const ReducePart& part, cudaStream_t stream) {
  const RankSum sum = sum_of(part, {.part = 0, .first = 0, .count = part.elements}, 0);
  sum_pieces(alone(part.whole, part.whole_type, part.sent_type), {&sum, 1}, stream);
}

void sum_alone(const SumPart& part, cudaStream_t stream) {
  if (part.sent_type == part.type) return;
  const RankSum sum{
      .to = operand(part.values, part.type), .count = part.elements, .valid = part.elements};
  sum_pieces(alone(part.values, part.type, part.sent_type), {&sum, 1}, stream);
}

}  // namespace

void CardSums::all_gather(std::span<const comm::GatherPart> parts, CardGroup* group,
                          cudaStream_t stream) {
  if (group != nullptr) return group->all_gather(parts, stream);
  for (const comm::GatherPart& part : parts)
    if (part.shard != part.whole && part.bytes > 0)
      CUDA_CHECK(cudaMemcpyAsync(part.whole, part.shard, static_cast<size_t>(part.bytes),
                                 cudaMemcpyDefault, stream));
}

template <typename Part>
int64_t CardSums::next_piece(std::span<const Part> parts, const comm::SumPieces& pieces, int ranks,
                             comm::Cursor& cursor) {
  if (cursor.part == parts.size()) return 0;
  const int64_t room = comm::room_of(parts.front(), pieces.elements, ranks);
  const int64_t count = comm::next_ranges(parts, cursor, room, ranges_);
  if (count == 0) return 0;
  const int64_t elements = comm::sent_elements(parts.front(), count, ranks);
  const DType sent_type = parts[ranges_.front().part].sent_type;
  SNUG_CHECK(std::ssize(pieces.scratch) >= comm::scratch_bytes(ranks, elements, sent_type),
             "a piece of {} elements has {} bytes of scratch", elements, pieces.scratch.size());
  if (pieces.done != nullptr) pieces.done->push_back(elements);
  return count;
}

void CardSums::reduce_scatter(std::span<const ReducePart> parts, const comm::SumPieces& pieces,
                              CardGroup* group, cudaStream_t stream) {
  if (group == nullptr || group->size() == 1) {
    for (const ReducePart& part : parts) reduce_alone(part, stream);
    return;
  }
  comm::Cursor cursor;
  while (const int64_t count = next_piece(parts, pieces, group->size(), cursor))
    reduce_chunk(parts, count, pieces.scratch, *group, stream);
}

void CardSums::reduce_chunk(std::span<const ReducePart> parts, int64_t count,
                            std::span<std::byte> scratch, CardGroup& group, cudaStream_t stream) {
  const int ranks = group.size();
  const ReducePart& front = parts[ranges_.front().part];
  const DType type = front.sent_type;
  const bool packed = ranges_.size() > 1 || front.whole_type != type;
  const int64_t piece_bytes = count * base::size_of(type);
  pieces_.assign(static_cast<size_t>(ranks), nullptr);
  roundings_.clear();
  for (int peer = 0; peer < ranks; ++peer) {
    std::byte* piece = scratch.data() + peer * piece_bytes;
    pieces_[static_cast<size_t>(peer)] =
        packed ? piece : element(front.whole, type, peer * front.elements + ranges_.front().first);
    for (const PartRange& range : ranges_) {
      if (!packed) break;
      const ReducePart& part = parts[range.part];
      const int64_t first = peer * part.elements + range.first;
      roundings_.push_back(
          {.from = operand(element(part.whole, part.whole_type, first), part.whole_type),
           .to = operand(piece, type),
           .count = range.count});
      piece += range.count * base::size_of(type);
    }
  }
  round_elements(roundings_, stream);
  std::byte* const received = scratch.last(scratch.size() / 2).data();
  exchange_pieces(piece_bytes, received, group, stream);
  sums_.clear();
  int64_t done = 0;
  for (const PartRange& range : ranges_) {
    const ReducePart& part = parts[range.part];
    SNUG_CHECK(packed || part.shard != element(part.whole, type, group.rank() * part.elements) ||
                   base::size_of(part.shard_type) == base::size_of(type),
               "a shard of another type lies in its whole");
    sums_.push_back(sum_of(part, range, done));
    done += range.count;
  }
  sum_pieces({.received = operand(received, type, count),
              .own = operand(pieces_[static_cast<size_t>(group.rank())], type),
              .ranks = ranks,
              .own_rank = group.rank()},
             sums_, stream);
}

// Sends pieces_[r] to each rank r; afterwards `received` has the piece from rank r at r * bytes.
void CardSums::exchange_pieces(int64_t bytes, std::byte* received, CardGroup& group,
                               cudaStream_t stream) {
  const int ranks = group.size();
  const int rank = group.rank();
  outgoing_.clear();
  incoming_.clear();
  for (int step = 1; step < ranks; ++step) {
    const int to = (rank + step) % ranks;
    const int from = (rank + ranks - step) % ranks;
    outgoing_.push_back({to, pieces_[static_cast<size_t>(to)], bytes});
    incoming_.push_back({from, received + from * bytes, bytes});
  }
  group.exchange(outgoing_, incoming_, stream);
}

void CardSums::all_reduce(std::span<const SumPart> parts, const comm::SumPieces& pieces,
                          CardGroup* group, cudaStream_t stream) {
  if (group == nullptr || group->size() == 1) {
    for (const SumPart& part : parts) sum_alone(part, stream);
    return;
  }
  comm::Cursor cursor;
  while (const int64_t count = next_piece(parts, pieces, group->size(), cursor))
    sum_chunk(parts, count, pieces.scratch, *group, stream);
}

// Splits the elements of the chunk into one slice per rank, padded with zeros at the end. The sums
// of this rank's slice overwrite its own piece, so that all slices can be gathered in place.
void CardSums::sum_chunk(std::span<const SumPart> parts, int64_t count,
                         std::span<std::byte> scratch, CardGroup& group, cudaStream_t stream) {
  const int ranks = group.size();
  const SumPart& front = parts[ranges_.front().part];
  const DType type = front.sent_type;
  SNUG_CHECK(comm::narrower(front.type, type) == type, "sums of {} travel as {}",
             base::name_of(front.type), base::name_of(type));
  const int64_t slice = (count + ranks - 1) / ranks;
  const int64_t slice_bytes = slice * base::size_of(type);
  std::byte* const packed = scratch.data();
  roundings_.clear();
  int64_t done = 0;
  for (const PartRange& range : ranges_) {
    const SumPart& part = parts[range.part];
    roundings_.push_back({.from = operand(element(part.values, part.type, range.first), part.type),
                          .to = operand(element(packed, type, done), type),
                          .count = range.count});
    done += range.count;
  }
  round_elements(roundings_, stream);
  if (const int64_t rest = slice * ranks - done; rest > 0)
    CUDA_CHECK(cudaMemsetAsync(element(packed, type, done), 0,
                               static_cast<size_t>(rest * base::size_of(type)), stream));
  pieces_.assign(static_cast<size_t>(ranks), nullptr);
  for (int peer = 0; peer < ranks; ++peer)
    pieces_[static_cast<size_t>(peer)] = packed + peer * slice_bytes;
  std::byte* const received = scratch.last(scratch.size() / 2).data();
  exchange_pieces(slice_bytes, received, group, stream);
  std::byte* const own = packed + group.rank() * slice_bytes;
  const RankSum sum{.to = operand(own, type), .count = slice, .valid = slice};
  sum_pieces({.received = operand(received, type, slice),
              .own = operand(own, type),
              .ranks = ranks,
              .own_rank = group.rank()},
             {&sum, 1}, stream);
  const comm::GatherPart all{.shard = own, .whole = packed, .bytes = slice_bytes};
  group.all_gather({&all, 1}, stream);
  for (Rounding& rounding : roundings_) std::swap(rounding.from, rounding.to);
  round_elements(roundings_, stream);
}

}  // namespace snug::backends::cuda
