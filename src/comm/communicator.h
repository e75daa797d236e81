// How the ranks of a job communicate. A communicator connects the ranks of one group: all ranks,
// those that hold the shards of one replica, or those that hold the same shard.
//
// Collectives are asynchronous: they are begun, run next to the caller's other work, and are waited
// for. They run one after another in the order in which they are begun; the order and the sizes
// must be the same on all ranks. Sums are made in fp32 in rank order, so for a given number of
// ranks they have the same bits in every run and on every rank. One thread begins and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace snug::comm {

// An all-gather of a flat sharded tensor: rank r has elements [r * elements, (r + 1) * elements) of
// `whole`, which has room for all of them. `shard` may be this rank's part of `whole` itself.
struct GatherPart {
  const void* shard = nullptr;
  void* whole = nullptr;
  int64_t bytes = 0;  // the size of one shard
};

// A reduce-scatter: the sum over all ranks of this rank's part of `whole`. `shard` may be that part
// itself.
struct ReducePart {
  const void* whole = nullptr;
  void* shard = nullptr;
  int64_t elements = 0;                       // the number of elements in one shard
  base::DType whole_type = base::DType::f32;  // f32 or bf16
  base::DType shard_type = base::DType::f32;
  base::DType sent_type = base::DType::f32;  // elements are rounded to this type to be sent
  bool add = false;                          // adds to what the shard holds instead of replacing it
  int64_t valid = 0;  // elements of this rank's shard that belong to the tensor; the rest becomes 0
};

// An all-reduce: every rank gets the sum over all ranks.
struct SumPart {
  void* values = nullptr;
  int64_t elements = 0;
  base::DType type = base::DType::f32;       // f32 or bf16
  base::DType sent_type = base::DType::f32;  // elements are rounded to this type to be sent
};

// How a sum is cut into pieces, which are exchanged and summed one after another. The same on all
// ranks.
struct SumPieces {
  // The most elements that a rank sends each other rank in one piece, of parts with the same types
  // (part_ranges.h); 0 means no limit.
  int64_t elements = 0;
  std::span<std::byte> scratch = {};     // at least scratch_bytes() of the largest piece
  std::vector<int64_t>* done = nullptr;  // receives the number of elements of each piece; or null
};

using Ticket = int64_t;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "local" or "mpi"

  // Memory that is handed over belongs to the collective until its ticket has been waited for.
  // `what` names the collective in errors and must live as long.
  virtual Ticket begin_all_gather(std::span<const GatherPart> parts, std::string_view what) = 0;
  virtual Ticket begin_reduce_scatter(std::span<const ReducePart> parts, const SumPieces& pieces,
                                      std::string_view what) = 0;
  virtual Ticket begin_all_reduce(std::span<const SumPart> parts, const SumPieces& pieces,
                                  std::string_view what) = 0;
  // Returns when the collective is done on this rank. When another rank stopped or does not arrive
  // within the time limit, throws a UserError that names the rank, the collective and the step.
  virtual void wait(Ticket ticket) = 0;

  // These block until they are done, and take their place in the same order. all_gather_text
  // returns the text of each rank, by rank; lengths may differ.
  virtual std::vector<std::string> all_gather_text(std::string_view text) = 0;
  virtual void barrier() = 0;

  // The training step in progress, for errors.
  virtual void set_step(int64_t step) = 0;
  virtual std::optional<int64_t> step() const = 0;
  // Bytes that this rank has sent so far.
  virtual int64_t bytes_sent() const = 0;
  // Makes all other ranks fail as well, with this reason. Never throws.
  virtual void abort(std::string_view reason) = 0;
};

// Bytes of scratch for a piece in which a rank sends `piece_elements` elements to each other rank:
// a send half, then a receive half. 0 for a single rank.
constexpr int64_t scratch_bytes(int ranks, int64_t piece_elements, base::DType sent_type) {
  // Each half is aligned for vectors of any type.
  constexpr int64_t kAlignment = 16;
  if (ranks == 1) return 0;
  const int64_t sent = ranks * piece_elements * base::size_of(sent_type);
  return 2 * ((sent + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace snug::comm
