// causal_convolution: each column of a document's rows, convolved along the tokens with a filter of
// its own, and then silu: the short convolution before the states of a gated delta net (Yang et al.
// 2024) and of Mamba (Gu and Dao 2023).
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// The most tokens that a filter may see.
inline constexpr int64_t kMostConvolutionWidth = 8;

// reads: x (tokens, n), w (n, 1, width), bounds (segments, 2) i32 = [begin, end) of each segment;
// unused segments are (0, 0), and no two have a token in common. writes: y (tokens, n): with s[t,
// c] the sum over k of w[c, 0, width - 1 - k] x[t - k, c], as far as token t - k is in the segment
// of t, it is s sigmoid(s), or with `plain` s itself. A token in no segment gives zeros.
//
// With `cached` a segment goes on with a sequence: reads slots (segments, 2) i32 = the sequence's
// place, and how many of its tokens came before the segment; updates state (places, (width - 1) *
// n), the rows of x of the place's last width - 1 tokens, the oldest first, which stand before the
// segment's tokens. What a place holds counts as zeros where no tokens came before. No two segments
// with tokens have the same place.
struct CausalConvolution {
  bool cached = false;
  bool plain = false;
  bool operator==(const CausalConvolution&) const = default;
  static constexpr auto kFields = std::tuple{Field{"cached", &CausalConvolution::cached},
                                             Field{"plain", &CausalConvolution::plain}};
  static constexpr auto kX = read<CausalConvolution>(0, "x");
  static constexpr auto kW = read<CausalConvolution>(1, "w");
  static constexpr auto kBounds = read<CausalConvolution>(2, "bounds");
  static constexpr auto kSlots = read<CausalConvolution>(3, "slots", &CausalConvolution::cached);
  static constexpr auto kY = write<CausalConvolution>(4, "y");
  static constexpr auto kState = update<CausalConvolution>(5, "state", &CausalConvolution::cached);
  static constexpr std::array kOperands{kX, kW, kBounds, kSlots, kY, kState};
};

// reads: dy, x (tokens, n), w (n, 1, width), bounds. writes: dx (tokens, n), zero for tokens in no
// segment, and dw (n, 1, width) if `weight_gradient`. The sums before silu are made again.
struct CausalConvolutionGrad {
  bool weight_gradient = false;
  bool plain = false;
  bool operator==(const CausalConvolutionGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"weight_gradient", &CausalConvolutionGrad::weight_gradient},
                 Field{"plain", &CausalConvolutionGrad::plain}};
  static constexpr auto kDY = read<CausalConvolutionGrad>(0, "dy");
  static constexpr auto kX = read<CausalConvolutionGrad>(1, "x");
  static constexpr auto kW = read<CausalConvolutionGrad>(2, "w");
  static constexpr auto kBounds = read<CausalConvolutionGrad>(3, "bounds");
  static constexpr auto kDX = write<CausalConvolutionGrad>(4, "dx");
  static constexpr auto kDW =
      write<CausalConvolutionGrad>(5, "dw", &CausalConvolutionGrad::weight_gradient);
  static constexpr std::array kOperands{kDY, kX, kW, kBounds, kDX, kDW};
};

}  // namespace snug::program
