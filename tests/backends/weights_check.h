// What a backend does next to single operations, against the reference, bit for bit: values of
// weights, their quantisation, and lists of optimizer steps. Record failures of the current test.
#pragma once

#include <cstdint>
#include <functional>

#include "backends/backend.h"

namespace snug::backends::test {

// Values of all forms and types, whole vectors and odd counts, from the first element of a weight
// and from one beyond 2^34.
void check_fill(Backend& backend);

// Codes and absmax of all types and counts, with blocks of zeros, of numbers next to nothing, of
// midpoints between codes, and of what is not finite.
void check_quantize_nf4(Backend& backend);

// A list of steps of AdamW in all forms and of Lion gives what its operations give one by one;
// calls `before` and `after` around run_list.
void check_list_of_steps(Backend& backend, const std::function<void()>& before,
                         const std::function<void()>& after);
// All cases of these kinds give on both backends the same bits.
void check_same_bits(Backend& one, Backend& other, std::initializer_list<program::Kind> kinds);
inline constexpr std::initializer_list<program::Kind> kUpdates{
    program::Kind::adamw, program::Kind::adamw_8bit, program::Kind::lion};
// Launches that a backend with lists of 56, 56, 24 and 56 tensors needs for it.
int64_t launches_of_steps();

}  // namespace snug::backends::test
