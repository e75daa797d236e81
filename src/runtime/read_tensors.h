// Streams tensors from files to their place in the executor's arenas: a tensor of the same element
// type is read straight to its place, others pass through the two slots of the program `load`,
// piece by piece, one thread reading while the other converts, or rounds and quantises. No heap
// memory is used for data. Not to be called while a program runs, since the slots share bytes with
// other programs' tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "backends/backend.h"
#include "formats/tensor_index.h"
#include "runtime/executor.h"
#include "runtime/stored_weight.h"

namespace snug::runtime {

// One tensor of an index and where it goes: the same number of elements, contiguous. A weight that
// is quantised on the way goes to `stored`; its destination has the weight's shape and no data.
struct Transfer {
  const formats::IndexedTensor* source = nullptr;
  backends::Buffer destination;
  std::optional<StoredWeight> stored{};
};

// Where a trainable or frozen tensor's file contents belong: its f32 master where it has one, else
// the tensor itself.
const backends::Buffer& original_of(const Executor& executor, const std::string& name);

// Throws UserError unless the file holds this tensor in a float type and in the buffer's shape.
// `reason` says where the expected shape comes from: "as config.json says".
void check_transfer(const formats::TensorIndex& index, const Transfer& transfer,
                    const std::string& reason);

// Reads all of them; returns the bytes read. Throws UserError when a file ends early.
int64_t read_tensors(const formats::TensorIndex& index, std::span<const Transfer> transfers,
                     Executor& executor);

}  // namespace snug::runtime
