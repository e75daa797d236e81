// The matrix products of a training step, each shape once: the multiplications that a library would
// have to do for the same step.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/product/onednn_matmul.h"
#include "plan/job/job.h"

namespace snug::bench {

struct JobProduct {
  backends::cpu::MatmulSpec spec;  // has no gaps between rows
  int64_t count = 0;               // how often a step computes it
  bool is_narrow = false;          // has an adapter's small rank as a dimension
  double flops() const { return 2.0 * static_cast<double>(spec.m * spec.n * spec.k); }
};

// The products of the programs micro_first, micro_next (as often as the step runs it) and update,
// in the order of their first use. A linear cross-entropy counts as the products of its chunks: the
// logits, the gradient of the hidden states, and the gradient of the weight where there is one.
// Attention's products are left out, since no library's matrix product computes them.
std::vector<JobProduct> job_products(const plan::Job& job, const plan::TrainingSpec& spec);

}  // namespace snug::bench
