// How fast a library's attention is, for a card that was not measured: shares of the card's bf16
// peak that cuDNN was measured with elsewhere. Says nothing of own kernels.
//
// Pure functions.
#pragma once

namespace snug::plan {

// Causal, in segments of the same length; neither is zero.
struct LibraryAttention {
  bool is_gradient = false;
  double segment_tokens = 0;
  double head_dim = 0;
};

// Of 1. The work is as program::cost counts it: no masked pair, five products in the gradient.
double share_of_peak(const LibraryAttention& attention);

}  // namespace snug::plan
