// A part of a tensor in a GGUF file: elements of one tensor of the folder in another order, such as
// the rows of each head in llama.cpp's order of rotary pairs, a transpose, or every second column.
// Both directions use it: an export gathers parts, an import scatters them. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace snug::models {

// The element with the indices (i, j, ...) within `sizes` is the source's element
// first + i * steps[0] + j * steps[1] + ...; the part's elements are in row-major order of the
// indices.
struct GgufPart {
  std::string source;  // the folder's tensor
  int64_t first = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> steps;

  int64_t elements() const;
};

// A part is read in slabs: the largest number of equal consecutive pieces of which each comes from
// a range of the source's elements that no other piece touches. A row of an unchanged matrix; a
// head's rows; a whole matrix that is transposed.
struct GgufSlabs {
  int64_t count = 0;
  int64_t elements = 0;  // of a slab
  int64_t step = 0;      // from the first element of a slab in the source to that of the next
  int64_t reach = 0;     // elements of the source from a slab's first to its last, inclusive
};
GgufSlabs slabs_of(const GgufPart& part);

// Fills `values` with `count` slabs of the part from slab `first` on. `source` holds the source's
// elements from element `source_begin` on.
void gather_slabs(const GgufPart& part, int64_t first, int64_t count, std::span<const float> source,
                  int64_t source_begin, std::span<float> values);

// The inverse of gathering the whole part: writes its values to their elements of the whole source.
void scatter_part(const GgufPart& part, std::span<const float> values, std::span<float> source);

}  // namespace snug::models
