// Forms and sizes that the rate keys of several kinds are made of.
#pragma once

#include <algorithm>
#include <cstdint>

#include "program/ir/program.h"
#include "program/work/rate_key.h"

namespace snug::program {

// A size as a rate key has it: positive.
inline double rate_size(int64_t value) { return static_cast<double>(std::max<int64_t>(1, value)); }

// "rms_norm bf16 bf16 > bf16": the kind and the types of its operands.
RateForm typed_form(const OperationView& view);

// The key of a kind whose rate depends on the bytes that it moves.
RateKey key_of_bytes(const OperationView& view, const Cost& work);

}  // namespace snug::program
