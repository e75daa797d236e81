// The part of its owner's bytes that a tensor covers, as a rectangle in the owner seen as a matrix.
// The matrix has the owner's last dimension as columns, or fewer columns where a view takes a part
// of each group of columns (projections stored head by head). Slices of rows and of columns (fused
// projections, gradient buckets) are rectangles. Any other view is not exact, and counts as
// everything that it might cover.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace snug::program {

// Rows [row_begin, row_end) and columns [column_begin, column_end).
struct Rectangle {
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t column_begin = 0;
  int64_t column_end = 0;
  bool operator==(const Rectangle&) const = default;
  bool empty() const { return row_begin >= row_end || column_begin >= column_end; }
};

struct Region {
  TensorId owner = kNone;
  bool exact = true;
  int64_t columns = 1;  // of the matrix as which the owner is seen
  Rectangle rectangle;  // valid if exact
  int64_t begin = 0;    // range of elements of the owner, end exclusive
  int64_t end = 0;
};

// The tensor must be a valid view, or own its bytes.
Region region_of(const Program& program, TensorId id);

// Whether the regions may share an element.
bool overlap(const Region& a, const Region& b);

// The elements of one owner that have been written so far.
class WrittenRegions {
 public:
  void add(const Region& region);
  // False only if some element of the region has certainly not been written.
  bool covers(const Region& region) const;

 private:
  std::vector<Region> regions_;
  bool inexact_ = false;
};

}  // namespace snug::program
