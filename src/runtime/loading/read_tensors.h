// Streams tensors from files to their place in the executor's arenas: a tensor of the same element
// type is read straight to its place, others pass through the two slots of the program,
// piece by piece, one thread reading while the other converts, or rounds and quantises. No heap
// memory is used for data. Not to be called while a program runs, since the slots share bytes with
// other programs' tensors.
// What is read is looked at while it is in the cache: its checksums, and that floats are finite.
//
// A range of a tensor that is sharded over ranks is read. Pieces of checksums that reach beyond it
// are looked at to their ends: for the digest by the rank that has the first byte of the piece, so
// that each counts once and a digest does not depend on the number of ranks; where the range is
// verified by every rank that has some of the piece. No byte is read more than twice for digests.
#pragma once

#include <cstdint>
#include <span>

#include "formats/folder/tensor_index.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {

struct ReadReport {
  int64_t bytes = 0;  // of the ranges that were to be read
  // The digest of every byte that was read and where in its tensor it belongs: the same whatever
  // the order, the threads and the files; those of ranges add up to that of the whole.
  uint64_t digest = 0;
  // Read next to the ranges, since a checksum is of a whole piece (base::kChecksumPieceBytes).
  int64_t bytes_around = 0;
};

// Reads all of them, through the staging memory of `program`. Throws UserError when a file ends
// early or holds an infinity or NaN, naming tensor and position, and base::DamagedFile where
// checksums are known and differ.
ReadReport read_tensors(const formats::TensorIndex& index, std::span<const TensorRead> tensor_reads,
                        Executor& executor, program::ProgramName program);

}  // namespace snug::runtime
