// `snug bench compare`: two backends side by side on the first step of a job.
#pragma once

#include <string>

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Runs the recipe's step on both backends, with the model's weights (or random ones, init=random),
// a full batch of random tokens and, where the adapter is new, random values in all of its tensors;
// in fp32 unless the recipe sets a type. Compares what each operation writes, tensor by tensor, in
// the order in which backend `a` runs them (write_comparison.h). Prints the first tensor that
// differs and the largest difference of each kind of operation. Counts tensors that only one of the
// two programs has, since one backend may fuse operations that the other runs separately. Keeps
// everything that was written until it is compared, so this is for small jobs. Returns 0, or 1
// where a tensor differs. Throws UserError, also for encoder-decoders, objectives other than
// next-token prediction and several devices, for which it makes no batches.
int compare_backends(const formats::Recipe& recipe, const std::string& a, const std::string& b,
                     bool json);

}  // namespace snug::bench
