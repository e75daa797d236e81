// Which part of its owner's bytes a tensor covers, as a rectangle of the owner seen as a matrix:
// with the owner's last dimension as columns, or with fewer, where a view takes a part of each
// group of columns (projections that lie head by head). Slices of rows and of columns (fused
// projections, gradient buckets) are rectangles; any other view is not exact and is taken for all
// that it might be.
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
  int64_t columns = 1;  // of the matrix that the owner is seen as
  Rectangle rectangle;  // when exact
  int64_t begin = 0;    // elements of the owner, from the first to after the last
  int64_t end = 0;
};

// The tensor must be a valid view, or none.
Region region_of(const Program& program, TensorId id);

// Whether they may share an element.
bool overlap(const Region& a, const Region& b);

// The elements of one owner that have been written.
class WrittenRegions {
 public:
  void add(const Region& region);
  // False only when some element of the region was certainly never written.
  bool covers(const Region& region) const;

 private:
  std::vector<Region> regions_;
  bool inexact_ = false;
};

}  // namespace snug::program
