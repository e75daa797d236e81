#include "backends/cpu/attention/distance_biases.h"

#include <cmath>

#include "backends/cpu/rows.h"

namespace snug::backends::cpu {

std::unique_ptr<Prepared> prepare_biases(const BiasForm& form) {
  if (form.alibi_scale == 0.0F && form.buckets == 0) return nullptr;
  auto biases = std::make_unique<DistanceBiases>();
  if (form.alibi_scale != 0.0F)
    for (int64_t head = 0; head < form.heads; ++head)
      biases->slopes.push_back(
          static_cast<float>(static_cast<double>(form.alibi_scale) *
                             std::exp2(-program::alibi_exponent(form.heads, head))));
  if (form.buckets == 0) return biases;
  const int64_t reach = form.table.reach;
  const int64_t side = distance_table_side(reach);
  for (int64_t x = -side; x <= side; ++x)
    biases->buckets.push_back(static_cast<int32_t>(program::bucket_of(
        std::clamp(-x, -reach, reach), form.causal, form.buckets, form.max_distance)));
  return biases;
}

void make_tables(const TableShape& shape, const DistanceBiases& prepared, const Buffer& bias,
                 float* tables) {
  constexpr float kLog2OfE = 1.4426950408889634F;
  const Rows rows = rows_of(bias);
  parallel_for(shape.heads, [&](int64_t head) {
    float* table = tables + head * shape.step();
    int32_t bucket = -1;
    float number = 0.0F;
    for (size_t place = 0; place < prepared.buckets.size(); ++place) {
      if (prepared.buckets[place] != bucket) {
        bucket = prepared.buckets[place];
        number = value_at(rows.at(bucket, head), rows.element, 0) * kLog2OfE;
      }
      table[place] = number;
    }
  });
}

void add_to_buckets(const TableShape& shape, const DistanceBiases& prepared, const float* table,
                    float* buckets) {
  const float* first = table - distance_table_side(shape.reach);
  for (size_t place = 0; place < prepared.buckets.size(); ++place)
    buckets[prepared.buckets[place]] += first[place];
}

}  // namespace snug::backends::cpu
