// What one run of a decoding program takes: where rows are few, launches count next to bytes.
#pragma once

#include "program/ir/program.h"
#include "program/kinds/kind.h"

namespace snug::plan {

struct TokenWork {
  double launches = 0;        // of kernels, copies from and to the host not among them
  double layer_launches = 0;  // of those a layer's, on average
  double bytes = 0;           // read and written by operations
};

TokenWork token_work(const program::Program& decode, const program::BatchBounds& bounds);

}  // namespace snug::plan
