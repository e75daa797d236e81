// Reads a matrix in the order of its transpose: bitsandbytes quantises linears as (out, in), even
// where files hold them as (in, out).
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/folder/tensor_index.h"

namespace snug::runtime {

// Reads elements [first, first + count) of the transpose of a matrix, in the element type of the
// file. Reads no other bytes of the file, and needs no memory except `to`.
void read_transposed(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                     int64_t first, int64_t count, std::byte* to);

// The index in the file of an element of the transpose.
int64_t element_in_file(const formats::TensorInfo& matrix, int64_t element);

}  // namespace snug::runtime
