#include "models/gguf/gguf_part.h"

#include <algorithm>

#include "base/error.h"

namespace snug::models {
namespace {

int64_t product_from(const std::vector<int64_t>& sizes, size_t axis) {
  int64_t product = 1;
  for (; axis < sizes.size(); ++axis) product *= sizes[axis];
  return product;
}

// The number of elements of the source from the first to the last that axes from `axis` on touch.
int64_t reach_from(const GgufPart& part, size_t axis) {
  int64_t reach = 1;
  for (; axis < part.sizes.size(); ++axis) reach += (part.sizes[axis] - 1) * part.steps[axis];
  return reach;
}

// Calls run(element of the source, number of elements, step between them) for the rows along the
// last axis, in order.
template <typename Run>
void for_each_row(const GgufPart& part, size_t axis, int64_t element, const Run& run) {
  if (axis + 1 == part.sizes.size()) return run(element, part.sizes[axis], part.steps[axis]);
  for (int64_t i = 0; i < part.sizes[axis]; ++i)
    for_each_row(part, axis + 1, element + i * part.steps[axis], run);
}

// The part that consists of these slabs.
GgufPart slab_range(const GgufPart& part, int64_t first, int64_t count) {
  const GgufSlabs slabs = slabs_of(part);
  SNUG_CHECK(first >= 0 && first + count <= slabs.count, "slabs {} to {} of {}", first,
             first + count, slabs.count);
  GgufPart range = part;
  if (slabs.count == 1) return range;
  range.first += first * part.steps[0];
  range.sizes[0] = count;
  return range;
}

}  // namespace

int64_t GgufPart::elements() const { return product_from(sizes, 0); }

GgufSlabs slabs_of(const GgufPart& part) {
  const int64_t reach = reach_from(part, 1);
  if (part.steps[0] < reach) return {1, part.elements(), 0, reach_from(part, 0)};
  return {part.sizes[0], product_from(part.sizes, 1), part.steps[0], reach};
}

void gather_slabs(const GgufPart& part, int64_t first, int64_t count, std::span<const float> source,
                  int64_t source_begin, std::span<float> values) {
  const GgufPart range = slab_range(part, first, count);
  SNUG_CHECK(std::ssize(values) == range.elements(), "room for {} values of {}", values.size(),
             range.elements());
  float* to = values.data();
  for_each_row(range, 0, range.first - source_begin,
               [&](int64_t element, int64_t size, int64_t step) {
                 const float* from = source.data() + element;
                 if (step == 1)
                   to = std::copy_n(from, size, to);
                 else
                   for (int64_t i = 0; i < size; ++i) *to++ = from[i * step];
               });
}

void scatter_part(const GgufPart& part, std::span<const float> values, std::span<float> source) {
  SNUG_CHECK(std::ssize(values) == part.elements(), "{} values of {}", values.size(),
             part.elements());
  const float* from = values.data();
  for_each_row(part, 0, part.first, [&](int64_t element, int64_t size, int64_t step) {
    float* to = source.data() + element;
    for (int64_t i = 0; i < size; ++i) to[i * step] = *from++;
  });
}

}  // namespace snug::models
