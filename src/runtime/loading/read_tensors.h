// Streams tensors from files into the executor's arenas. A tensor of the same element type is read
// straight to its place; others pass piece by piece through the two slots of the program, where one
// thread reads while the other converts, or rounds and quantises. No heap memory is used for data.
// Must not be called while a program runs, since the slots share bytes with other programs'
// tensors. While the data is in the cache, its checksums are computed and floats are checked to be
// finite.
//
// Of a sharded tensor, each rank reads its range. A checksum piece may extend beyond that range and
// is then read whole: for the digest by the rank that has the first byte of the piece, so that each
// piece counts once and the digest does not depend on the number of ranks; for verification by
// every rank that has some of the piece. No byte is read more than twice for digests.
#pragma once

#include <cstdint>
#include <span>

#include "formats/folder/tensor_index.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {

struct ReadReport {
  int64_t bytes = 0;  // bytes of the ranges that were asked for
  // A digest of all bytes that were read and of their positions in their tensors. It does not
  // depend on order, threads or files; the digests of ranges add up to the digest of the whole.
  uint64_t digest = 0;
  // Bytes read outside of the ranges, since a checksum covers a whole piece
  // (base::kChecksumPieceBytes).
  int64_t bytes_around = 0;
};

// Reads all of them through the staging memory of `program`. Throws UserError, with tensor and
// position, when a file ends early or holds an infinity or NaN, and base::DamagedFile where
// checksums are known and differ.
ReadReport read_tensors(const formats::TensorIndex& index, std::span<const TensorRead> tensor_reads,
                        Executor& executor, program::ProgramName program);

}  // namespace snug::runtime
