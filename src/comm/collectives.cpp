#include "comm/collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "comm/elements.h"

namespace snug::comm {
namespace {

using base::DType;

// The most messages in one exchange, which bounds the length of their list.
constexpr int64_t kMessagesAtOnce = 512;

std::span<float> block_of(std::array<float, kBlockElements>& block, int64_t done, int64_t count) {
  return std::span(block).first(std::min(kBlockElements, count - done));
}

DType result_type(const SumPart& part) { return narrower(part.type, part.sent_type); }

// Writes the sums to the shard, starting at element `first`.
void store_sums(const ReducePart& part, int64_t first, std::span<float> sums) {
  std::byte* shard = element(part.shard, part.shard_type, first);
  if (part.add) add(sums, shard, part.shard_type);
  const int64_t valid = std::clamp<int64_t>(part.valid - first, 0, std::ssize(sums));
  std::fill(sums.begin() + valid, sums.end(), 0.0F);
  store(sums, shard, part.shard_type);
}

void check_in_place(const ReducePart& part, int rank) {
  const std::byte* own = element(part.whole, part.whole_type, rank * part.elements);
  SNUG_CHECK(part.shard != own || base::size_of(part.shard_type) <= base::size_of(part.whole_type),
             "a wider shard lies in its whole");
}

}  // namespace

void Collectives::send(int peer, const void* data, int64_t bytes) {
  if (bytes > 0) outgoing_.push_back({peer, data, bytes});
}

void Collectives::receive(int peer, void* data, int64_t bytes) {
  if (bytes > 0) incoming_.push_back({peer, data, bytes});
}

void Collectives::exchange() {
  const auto failure = transport_.exchange(outgoing_, incoming_);
  int64_t bytes = 0;
  for (const Outgoing& message : outgoing_) bytes += message.bytes;
  outgoing_.clear();
  incoming_.clear();
  if (failure) throw Failed{*failure};
  bytes_sent_ += bytes;
}

void Collectives::all_gather(std::span<const GatherPart> parts) {
  const int ranks = transport_.size();
  const int rank = transport_.rank();
  for (const GatherPart& part : parts) {
    auto* whole = static_cast<std::byte*>(part.whole);
    std::byte* own = whole + rank * part.bytes;
    if (own != part.shard && part.bytes > 0) std::memcpy(own, part.shard, part.bytes);
    for (int step = 1; step < ranks; ++step) {
      const int from = (rank + ranks - step) % ranks;
      send((rank + step) % ranks, own, part.bytes);
      receive(from, whole + from * part.bytes, part.bytes);
    }
    if (std::ssize(outgoing_) >= kMessagesAtOnce) exchange();
  }
  if (!outgoing_.empty()) exchange();
}

// Takes two exchanges: first the lengths, then the texts.
std::vector<std::string> Collectives::all_gather_text(std::string_view text) {
  const int ranks = transport_.size();
  const int rank = transport_.rank();
  const int64_t own_length = std::ssize(text);
  std::vector<int64_t> lengths(ranks, own_length);
  for (int step = 1; step < ranks; ++step) {
    const int from = (rank + ranks - step) % ranks;
    send((rank + step) % ranks, &own_length, sizeof own_length);
    receive(from, &lengths[from], sizeof own_length);
  }
  if (ranks > 1) exchange();
  std::vector<std::string> texts(ranks, std::string(text));
  for (int step = 1; step < ranks; ++step) {
    const int from = (rank + ranks - step) % ranks;
    texts[from].assign(lengths[from], '\0');
    send((rank + step) % ranks, text.data(), own_length);
    receive(from, texts[from].data(), lengths[from]);
  }
  if (!outgoing_.empty() || !incoming_.empty()) exchange();
  return texts;
}

// Takes two exchanges as well.
std::vector<std::string> Collectives::gather_text(std::string_view text) {
  const int ranks = transport_.size();
  const int64_t own_length = std::ssize(text);
  if (transport_.rank() > 0) {
    send(0, &own_length, sizeof own_length);
    exchange();
    send(0, text.data(), own_length);
    if (!outgoing_.empty()) exchange();
    return {};
  }
  std::vector<int64_t> lengths(ranks, own_length);
  for (int from = 1; from < ranks; ++from) receive(from, &lengths[from], sizeof own_length);
  if (ranks > 1) exchange();
  std::vector<std::string> texts(ranks);
  texts.front() = text;
  for (int from = 1; from < ranks; ++from) {
    texts[from].assign(lengths[from], '\0');
    receive(from, texts[from].data(), lengths[from]);
  }
  if (!incoming_.empty()) exchange();
  return texts;
}

template <typename Part>
bool Collectives::next_piece(std::span<const Part> parts, const SumPieces& pieces, Cursor& cursor) {
  if (cursor.part == parts.size()) return false;
  const int ranks = transport_.size();
  const int64_t room = room_of(parts.front(), pieces.elements, ranks);
  chunk_count_ = next_ranges(parts, cursor, room, ranges_);
  if (chunk_count_ == 0) return false;
  const int64_t elements = sent_elements(parts.front(), chunk_count_, ranks);
  const DType sent_type = parts[ranges_.front().part].sent_type;
  SNUG_CHECK(std::ssize(pieces.scratch) >= scratch_bytes(ranks, elements, sent_type),
             "a piece of {} elements has {} bytes of scratch", elements, pieces.scratch.size());
  if (pieces.done != nullptr) pieces.done->push_back(elements);
  return true;
}

void Collectives::reduce_scatter(std::span<const ReducePart> parts, const SumPieces& pieces) {
  const int ranks = transport_.size();
  for (const ReducePart& part : parts) check_in_place(part, transport_.rank());
  if (ranks == 1) {
    for (const ReducePart& part : parts) reduce_alone(part);
    return;
  }
  Cursor cursor;
  while (next_piece(parts, pieces, cursor)) reduce_chunk(parts, pieces.scratch);
}

void Collectives::reduce_alone(const ReducePart& part) {
  std::array<float, kBlockElements> block;
  for (int64_t first = 0; first < part.elements; first += kBlockElements) {
    const auto sums = block_of(block, first, part.elements);
    load(sums, element(part.whole, part.whole_type, first), part.whole_type);
    round_to(sums, part.sent_type);
    store_sums(part, first, sums);
  }
}

void Collectives::reduce_chunk(std::span<const ReducePart> parts, std::span<std::byte> scratch) {
  const ReducePart& front = parts[ranges_.front().part];
  const DType type = front.sent_type;
  const bool packed = ranges_.size() > 1 || front.whole_type != type;
  const int64_t piece_bytes = chunk_count_ * base::size_of(type);
  for (int peer = 0; peer < transport_.size(); ++peer) {
    std::byte* piece = scratch.data() + peer * piece_bytes;
    pieces_[peer] = piece;
    if (!packed)
      pieces_[peer] = element(front.whole, type, peer * front.elements + ranges_.front().first);
    for (const PartRange& range : ranges_) {
      if (!packed) break;
      const ReducePart& part = parts[range.part];
      const int64_t first = peer * part.elements + range.first;
      convert(element(part.whole, part.whole_type, first), part.whole_type, piece, type,
              range.count);
      piece += range.count * base::size_of(type);
    }
  }
  exchange_pieces(type, chunk_count_, scratch.last(scratch.size() / 2));
  int64_t done = 0;
  for (const PartRange& range : ranges_) {
    reduce_range(parts[range.part], range, done);
    done += range.count;
  }
}

// `position` is the offset of the range in each piece.
void Collectives::reduce_range(const ReducePart& part, const PartRange& range, int64_t position) {
  std::array<float, kBlockElements> block;
  for (int64_t done = 0; done < range.count; done += kBlockElements) {
    const auto sums = block_of(block, done, range.count);
    sum_pieces(part.sent_type, position + done, sums);
    store_sums(part, range.first + done, sums);
  }
}

// Sends pieces_[r], of `count` elements, to each rank r. Afterwards pieces_ holds the pieces that
// this rank received from each rank.
void Collectives::exchange_pieces(DType type, int64_t count, std::span<std::byte> received) {
  const int ranks = transport_.size();
  const int rank = transport_.rank();
  const int64_t bytes = count * base::size_of(type);
  for (int step = 1; step < ranks; ++step) {
    const int to = (rank + step) % ranks;
    const int from = (rank + ranks - step) % ranks;
    send(to, pieces_[to], bytes);
    receive(from, received.data() + from * bytes, bytes);
  }
  exchange();
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != rank) pieces_[peer] = received.data() + peer * bytes;
}

void Collectives::sum_pieces(DType type, int64_t first, std::span<float> values) const {
  load(values, element(pieces_[0], type, first), type);
  for (size_t peer = 1; peer < pieces_.size(); ++peer)
    add(values, element(pieces_[peer], type, first), type);
}

void Collectives::all_reduce(std::span<const SumPart> parts, const SumPieces& pieces) {
  const int ranks = transport_.size();
  if (ranks == 1) {
    for (const SumPart& part : parts) sum_alone(part);
    return;
  }
  Cursor cursor;
  while (next_piece(parts, pieces, cursor)) sum_chunk(parts, pieces.scratch);
}

void Collectives::sum_alone(const SumPart& part) {
  std::array<float, kBlockElements> block;
  for (int64_t first = 0; first < part.elements; first += kBlockElements) {
    const auto values = block_of(block, first, part.elements);
    std::byte* place = element(part.values, part.type, first);
    load(values, place, part.type);
    round_to(values, part.sent_type);
    store(values, place, part.type);
  }
}

// Splits the elements of the chunk into one slice per rank, padded with zeros at the end.
void Collectives::sum_chunk(std::span<const SumPart> parts, std::span<std::byte> scratch) {
  const int ranks = transport_.size();
  const SumPart& front = parts[ranges_.front().part];
  const DType type = front.sent_type;
  const int64_t slice = (chunk_count_ + ranks - 1) / ranks;
  const int64_t slice_bytes = slice * base::size_of(type);
  std::byte* packed = scratch.data();
  int64_t done = 0;
  for (const PartRange& range : ranges_) {
    const SumPart& part = parts[range.part];
    convert(element(part.values, part.type, range.first), part.type, element(packed, type, done),
            type, range.count);
    done += range.count;
  }
  std::memset(element(packed, type, done), 0, (slice * ranks - done) * base::size_of(type));
  for (int peer = 0; peer < ranks; ++peer) pieces_[peer] = packed + peer * slice_bytes;
  exchange_pieces(type, slice, scratch.last(scratch.size() / 2));
  gather_sums(type, result_type(front), slice, packed);
  done = 0;
  for (const PartRange& range : ranges_) {
    const SumPart& part = parts[range.part];
    convert(element(packed, result_type(part), done), result_type(part),
            element(part.values, part.type, range.first), part.type, range.count);
    done += range.count;
  }
}

// Adds up the pieces of this rank's slice, then gathers the sums of all slices on all ranks. The
// sums overwrite the pieces that were sent; this rank's own piece is one of them, and is read
// before it is overwritten.
void Collectives::gather_sums(DType type, DType sum_type, int64_t slice, std::byte* sums) {
  const int ranks = transport_.size();
  const int rank = transport_.rank();
  const int64_t bytes = slice * base::size_of(sum_type);
  std::array<float, kBlockElements> block;
  std::byte* own = sums + rank * bytes;
  for (int64_t done = 0; done < slice; done += kBlockElements) {
    const auto values = block_of(block, done, slice);
    sum_pieces(type, done, values);
    store(values, element(own, sum_type, done), sum_type);
  }
  for (int step = 1; step < ranks; ++step) {
    const int from = (rank + ranks - step) % ranks;
    send((rank + step) % ranks, own, bytes);
    receive(from, sums + from * bytes, bytes);
  }
  exchange();
}

}  // namespace snug::comm
