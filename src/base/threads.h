// How many threads a key of the recipe means.
#pragma once

#include <cstdint>

namespace snug::base {

// `wanted`, or one a core of this process where it is 0.
int thread_count(int64_t wanted);

}  // namespace snug::base
