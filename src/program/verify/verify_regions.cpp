#include "program/verify/verify_regions.h"

#include <algorithm>
#include <optional>

namespace snug::program {
namespace {

Rectangle intersection(const Rectangle& a, const Rectangle& b) {
  return {std::max(a.row_begin, b.row_begin), std::min(a.row_end, b.row_end),
          std::max(a.column_begin, b.column_begin), std::min(a.column_end, b.column_end)};
}

// Appends the parts of `whole` outside `cut`.
void subtract(const Rectangle& whole, const Rectangle& cut, std::vector<Rectangle>& rest) {
  const Rectangle hole = intersection(whole, cut);
  if (hole.empty()) {
    rest.push_back(whole);
    return;
  }
  const auto add = [&](const Rectangle& piece) {
    if (!piece.empty()) rest.push_back(piece);
  };
  add({whole.row_begin, hole.row_begin, whole.column_begin, whole.column_end});
  add({hole.row_end, whole.row_end, whole.column_begin, whole.column_end});
  add({hole.row_begin, hole.row_end, whole.column_begin, hole.column_begin});
  add({hole.row_begin, hole.row_end, hole.column_end, whole.column_end});
}

// The region as a rectangle in a matrix with this number of columns; nothing if it is not one.
std::optional<Rectangle> in_columns(const Region& region, int64_t columns) {
  if (region.columns == columns) return region.rectangle;
  const Rectangle& part = region.rectangle;
  const bool has_gaps =
      part.row_end - part.row_begin > 1 && part.column_end - part.column_begin < region.columns;
  if (has_gaps) return {};
  if (region.begin % columns == 0 && region.end % columns == 0)
    return Rectangle{region.begin / columns, region.end / columns, 0, columns};
  const int64_t row = region.begin / columns;
  if ((region.end - 1) / columns != row) return {};
  return Rectangle{row, row + 1, region.begin % columns, (region.end - 1) % columns + 1};
}

// The regions as rectangles in a common matrix, which has the columns of one of them; nothing if
// there is no matrix in which all are rectangles.
std::optional<std::vector<Rectangle>> in_one_matrix(const std::vector<Region>& regions) {
  for (const Region& chosen : regions) {
    std::vector<Rectangle> rectangles;
    for (const Region& region : regions)
      if (const auto rectangle = in_columns(region, chosen.columns))
        rectangles.push_back(*rectangle);
    if (rectangles.size() == regions.size()) return rectangles;
  }
  return {};
}

// A view as `count` runs of `length` contiguous elements, whose starts are `stride` apart.
struct Runs {
  bool regular = true;
  int64_t length = 1;
  int64_t count = 1;
  int64_t stride = 0;
};

Runs runs_of(const Tensor& tensor) {
  Runs runs;
  for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
    const int64_t size = tensor.shape[axis];
    const int64_t stride = tensor.view.strides[static_cast<size_t>(axis)];
    if (size == 1) continue;
    if (runs.count == 1 && stride == runs.length) {
      runs.length *= size;
    } else if (runs.count == 1) {
      runs.count = size;
      runs.stride = stride;
    } else {
      runs.regular = runs.regular && stride == runs.stride * runs.count;
      runs.count *= size;
    }
  }
  return runs;
}

}  // namespace

Region region_of(const Program& program, TensorId id) {
  const Tensor& tensor = program.tensor(id);
  Region region;
  region.owner = program.owner(id);
  const Shape& whole = program.tensor(region.owner).shape;
  int64_t columns = whole.columns();
  region.columns = columns;
  if (whole.elements() == 0 || tensor.shape.elements() == 0) return region;
  if (!tensor.is_view()) {
    region.end = whole.elements();
    region.rectangle = {0, whole.rows(), 0, columns};
    // Padding holds no values, so it does not count.
    if (tensor.whole && tensor.rank_step == 0 && whole.rank() == 1) {
      region.end = std::min(region.end, tensor.whole->elements());
      region.rectangle.column_end = region.end;
    }
    return region;
  }
  // The part of any rank.
  if (tensor.view.rank_step > 0) {
    region.end = whole.elements();
    region.exact = false;
    return region;
  }
  const Runs runs = runs_of(tensor);
  // The view is a part of every group of columns into which the owner's rows are divided.
  if (runs.count > 1 && runs.stride > 0 && runs.stride < columns && columns % runs.stride == 0)
    region.columns = columns = runs.stride;
  region.begin = tensor.view.offset;
  region.end = region.begin + 1;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis)
    region.end += (tensor.shape[axis] - 1) * tensor.view.strides[static_cast<size_t>(axis)];
  const int64_t row = region.begin / columns;
  const int64_t column = region.begin % columns;
  const bool within_row = column + runs.length <= columns;
  if (runs.regular && within_row && (runs.count == 1 || runs.stride == columns))
    region.rectangle = {row, row + runs.count, column, column + runs.length};
  else if (runs.count == 1 && column == 0 && runs.length % columns == 0)
    region.rectangle = {row, row + runs.length / columns, 0, columns};
  else
    region.exact = false;
  return region;
}

bool overlap(const Region& a, const Region& b) {
  if (a.owner != b.owner || a.begin == a.end || b.begin == b.end) return false;
  if (a.exact && b.exact)
    if (const auto both = in_one_matrix({a, b}))
      return !intersection(both->front(), both->back()).empty();
  return a.begin < b.end && b.begin < a.end;
}

void WrittenRegions::add(const Region& region) {
  if (!region.exact)
    inexact_ = true;
  else if (std::none_of(regions_.begin(), regions_.end(), [&](const Region& known) {
             return known.columns == region.columns && known.rectangle == region.rectangle;
           }))
    regions_.push_back(region);
}

bool WrittenRegions::covers(const Region& region) const {
  if (region.begin == region.end || inexact_) return true;
  if (!region.exact) return !regions_.empty();
  std::vector<Region> all = regions_;
  all.push_back(region);
  const auto rectangles = in_one_matrix(all);
  if (!rectangles) return true;
  std::vector<Rectangle> left{rectangles->back()};
  for (size_t i = 0; i + 1 < rectangles->size(); ++i) {
    const Rectangle& written = (*rectangles)[i];
    std::vector<Rectangle> rest;
    for (const Rectangle& piece : left) subtract(piece, written, rest);
    left = std::move(rest);
    if (left.empty()) return true;
  }
  return false;
}

}  // namespace snug::program
