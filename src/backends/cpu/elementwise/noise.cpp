#include "program/kinds/elementwise/noise.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/embedding_noise.h"
#include "backends/formulas/random_bits.h"

namespace snug::backends::cpu {
namespace {

using program::AddNoise;

void run(const AddNoise& noise, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[AddNoise::kX]);
  const Rows y = rows_of(invocation[AddNoise::kY]);
  const int32_t* bounds = integers_of(invocation[AddNoise::kBounds]);
  const int64_t segments = invocation[AddNoise::kBounds].shape[0];
  const int32_t* random = integers_of(invocation[AddNoise::kRandom]);
  const base::PhiloxKey key = noise_key({noise.seed, noise.site, random[0]});
  const auto apply = context.kernels.elementwise->add_noise[x.element][y.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    NoiseStream stream{.key = {key[0], key[1]}, .row = 0, .position = 0, .scale = 0};
    for (int64_t token = begin; token < end; ++token) {
      stream.row = static_cast<uint32_t>(random[1] + token / noise.row_length);
      stream.position = static_cast<uint32_t>(token % noise.row_length);
      stream.scale =
          noise_scale(noise.alpha, segment_length_at(bounds, segments, token), x.columns);
      apply(x.at(token), y.at(token), x.columns, stream);
    }
  });
}

}  // namespace

SNUG_CPU_KIND(AddNoise);

}  // namespace snug::backends::cpu
