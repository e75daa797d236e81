// Streams tensors from files to their place in the executor's arenas: a tensor of the same element
// type is read straight to its place, others pass through the two slots of the program,
// piece by piece, one thread reading while the other converts, or rounds and quantises. No heap
// memory is used for data. Not to be called while a program runs, since the slots share bytes with
// other programs' tensors.
// What is read is looked at while it is in the cache: its checksums, and that floats are finite.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "backends/backend.h"
#include "formats/tensor_index.h"
#include "runtime/executor.h"
#include "runtime/stored_weight.h"

namespace snug::runtime {

// One tensor of an index and where it goes: the same number of elements, contiguous. A weight that
// is quantised on the way goes to `stored`; its destination has the weight's shape and no data. One
// without either is read and looked at, no more.
struct Transfer {
  const formats::IndexedTensor* source = nullptr;
  backends::Buffer destination;
  std::optional<StoredWeight> stored{};
  bool holds_values = true;  // false: bytes, whatever type the file views them as
  std::optional<std::span<const uint64_t>> checksums{};  // of its pieces, where they are known
  backends::Trace* trace = nullptr;  // where bytes that are put in place are added; null: nowhere
};

// Of a tensor that is only verified.
Transfer without_destination(const formats::IndexedTensor& source);

struct ReadReport {
  int64_t bytes = 0;
  // Of every byte that was read and where in its tensor it belongs: the same whatever the order,
  // the threads and the files; those of parts add up to that of the whole.
  uint64_t digest = 0;
};

// What a piece of a tensor, from this byte on, adds to a digest.
uint64_t digest_of(std::string_view tensor, int64_t first_byte, uint64_t checksum);

// Throws UserError unless the file holds this tensor in a float type and in the buffer's shape.
// `reason` says where the expected shape comes from: "as config.json says".
void check_transfer(const formats::TensorIndex& index, const Transfer& transfer,
                    const std::string& reason);

// Reads all of them, through the staging memory of `program`. Throws UserError when a file ends
// early or holds an infinity or NaN, naming tensor and position, and base::DamagedFile where
// checksums are known and differ.
ReadReport read_tensors(const formats::TensorIndex& index, std::span<const Transfer> transfers,
                        Executor& executor, program::ProgramName program);

}  // namespace snug::runtime
