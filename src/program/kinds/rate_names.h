// Names and sizes that the rate keys of several kinds are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"
#include "program/work/rate_key.h"

namespace snug::program {

// A size as a rate key has it: positive.
inline double rate_size(int64_t value) { return static_cast<double>(std::max<int64_t>(1, value)); }

// "rms_norm bf16 bf16 > bf16": the types of what it reads, writes and updates tell the forms of a
// kind apart. Integers are the same in all.
std::string typed_name(const OperationView& view);

// The key of a kind whose rate depends on the bytes that it moves.
RateKey key_of_bytes(const OperationView& view, const Cost& work);

// What a rate key adds to the name of a product: " by thin", or nothing for the library and for
// what was not lowered.
std::string suffix_of(ProductAlgorithm algorithm);

}  // namespace snug::program
