// The 16 values of NF4 and the thresholds between them: Dettmers et al. 2023, as bitsandbytes has
// them.
#pragma once

#include <array>

namespace snug::base {

inline constexpr std::array<float, 16> kNf4Values{
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F};

}  // namespace snug::base
