// The collectives of a HostCommunicator over a transport: they block, and run one after another on
// the communicator's worker thread. Every sum of the host's communicators is made here.
//
// A reduction is an all-to-all exchange: each rank receives what all ranks contribute to its part,
// and adds it in fp32 in rank order: ((x0 + x1) + x2) + ... Consecutive parts of a call that have
// the same types are joined and cut into pieces, so many small tensors travel in few messages.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/part_ranges.h"
#include "comm/transport.h"

namespace snug::comm {

class Collectives {
 public:
  explicit Collectives(Transport& transport) : transport_(transport), pieces_(transport.size()) {}

  // Each of these throws Failed.
  void all_gather(std::span<const GatherPart> parts);
  void reduce_scatter(std::span<const ReducePart> parts, const SumPieces& pieces);
  // Each sum is rounded once, to the narrower of the tensor's type and the type that is sent.
  void all_reduce(std::span<const SumPart> parts, const SumPieces& pieces);
  std::vector<std::string> all_gather_text(std::string_view text);
  std::vector<std::string> gather_text(std::string_view text);

  // Bytes sent to other ranks; a text is preceded by 8 bytes with its length.
  int64_t bytes_sent() const { return bytes_sent_; }

  struct Failed {
    Failure failure;
  };

 private:
  // Sets ranges_ and chunk_count_ to the next piece of a sum. False when none is left.
  template <typename Part>
  bool next_piece(std::span<const Part> parts, const SumPieces& pieces, Cursor& cursor);
  void exchange_pieces(base::DType type, int64_t count, std::span<std::byte> received);

  void reduce_alone(const ReducePart& part);
  void reduce_chunk(std::span<const ReducePart> parts, std::span<std::byte> scratch);
  void reduce_range(const ReducePart& part, const PartRange& range, int64_t position);

  void sum_alone(const SumPart& part);
  void sum_chunk(std::span<const SumPart> parts, std::span<std::byte> scratch);
  void gather_sums(base::DType type, base::DType sum_type, int64_t slice, std::byte* sums);

  // Adds up, in rank order, elements [first, first + values.size()) of pieces_.
  void sum_pieces(base::DType type, int64_t first, std::span<float> values) const;
  void send(int peer, const void* data, int64_t bytes);
  void receive(int peer, void* data, int64_t bytes);
  // Exchanges the messages that send and receive collected.
  void exchange();

  Transport& transport_;
  std::atomic<int64_t> bytes_sent_ = 0;
  // These belong to the collective in progress; they are members so that their memory is reused.
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<PartRange> ranges_;
  int64_t chunk_count_ = 0;               // the number of elements in ranges_
  std::vector<const std::byte*> pieces_;  // by rank: the pieces to send, then the pieces to add up
};

}  // namespace snug::comm
