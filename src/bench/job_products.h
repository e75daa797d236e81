// The matrix products of a training step, each shape once: what a library would have to multiply to
// do the step's work.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/product/onednn_matmul.h"
#include "plan/job/job.h"

namespace snug::bench {

struct JobProduct {
  backends::cpu::MatmulSpec spec;  // without gaps between rows
  int64_t count = 0;               // a step has of it
  bool is_narrow = false;  // through an adapter's few columns; others belong to linears or the head
  double flops() const { return 2.0 * static_cast<double>(spec.m * spec.n * spec.k); }
};

// The products of the programs micro_first, micro_next (as often as the step runs it) and update,
// in the order of their first use. A linear cross-entropy counts as the products of its chunks: the
// logits, the gradient of the hidden states and that of the weight where it is made. Attention's
// products are not among them: no library product does them.
std::vector<JobProduct> job_products(const plan::Job& job, const plan::TrainingSpec& spec);

}  // namespace snug::bench
