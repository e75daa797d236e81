// What the ranks of a job send to each other. A communicator connects the ranks of one group: all
// ranks, those that hold the shards of one replica, or those that hold the same shard.
//
// Collectives are begun and waited for, and go on next to what the caller does meanwhile. They run
// one after the other in the order in which they are begun, which is the same on all ranks, and so
// are their sizes. Sums are made in fp32 in the order of the ranks, so a number of ranks always
// gives the same bits, and the same on each of them. One thread begins and waits.
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

// A tensor that is sharded flat: rank r has elements [r * elements, (r + 1) * elements) of
// `whole`, which has room for all of them. `shard` may be this rank's part of `whole` itself.
struct GatherPart {
  const void* shard = nullptr;
  void* whole = nullptr;
  int64_t bytes = 0;  // of a shard
};

// The sum over the ranks of this rank's part of `whole`. `shard` may be that part itself.
struct ReducePart {
  const void* whole = nullptr;
  void* shard = nullptr;
  int64_t elements = 0;                       // of a shard
  base::DType whole_type = base::DType::f32;  // f32 or bf16
  base::DType shard_type = base::DType::f32;
  base::DType sent_type = base::DType::f32;  // elements are rounded to it before they travel
  bool add = false;                          // to what the shard holds
  int64_t valid = 0;  // elements of this rank's shard that belong to the tensor; the rest becomes 0
};

// The sum over the ranks, on all of them.
struct SumPart {
  void* values = nullptr;
  int64_t elements = 0;
  base::DType type = base::DType::f32;       // f32 or bf16
  base::DType sent_type = base::DType::f32;  // elements are rounded to it before they travel
};

// The pieces of a sum, which are exchanged and summed one after the other: the same on all ranks.
struct SumPieces {
  // The most that a rank sends another one in a piece, of parts that travel alike (part_ranges.h);
  // 0: all of them.
  int64_t elements = 0;
  std::span<std::byte> scratch = {};     // scratch_bytes() of the largest piece
  std::vector<int64_t>* done = nullptr;  // null, or where each piece's elements are noted
};

using Ticket = int64_t;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "local" or "mpi"

  // Memory that is handed over belongs to the collective until its ticket was waited for. `what`
  // names the collective in errors and must last as long.
  virtual Ticket begin_all_gather(std::span<const GatherPart> parts, std::string_view what) = 0;
  virtual Ticket begin_reduce_scatter(std::span<const ReducePart> parts, const SumPieces& pieces,
                                      std::string_view what) = 0;
  virtual Ticket begin_all_reduce(std::span<const SumPart> parts, const SumPieces& pieces,
                                  std::string_view what) = 0;
  // Returns when it is done on this rank. Throws UserError that names the rank that is missing, the
  // collective and the step, when another rank stopped or does not come within the time limit.
  virtual void wait(Ticket ticket) = 0;

  // Small and done at once, in the same order. What each rank gives, by rank; lengths may differ.
  virtual std::vector<std::string> all_gather_text(std::string_view text) = 0;
  virtual void barrier() = 0;

  // Of the step that is under way, for errors.
  virtual void set_step(int64_t step) = 0;
  virtual std::optional<int64_t> step() const = 0;
  // Bytes that this rank has sent so far.
  virtual int64_t bytes_sent() const = 0;
  // Lets all other ranks fail too, with this reason. Never throws.
  virtual void abort(std::string_view reason) = 0;
};

// Scratch of a piece in which a rank sends so many elements of a type to each other one: what is
// sent, then what is received. Nothing for a rank alone.
constexpr int64_t scratch_bytes(int ranks, int64_t piece_elements, base::DType sent_type) {
  // Each half begins where vectors of any type may.
  constexpr int64_t kAlignment = 16;
  if (ranks == 1) return 0;
  const int64_t sent = ranks * piece_elements * base::size_of(sent_type);
  return 2 * ((sent + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace snug::comm
