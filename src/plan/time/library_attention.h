// How fast a library's attention is on a card that was not measured: the share of a card's bf16
// peak that public measurements of cuDNN show. It says nothing of Snug's own kernels.
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

// The share, from 0 to 1, of work as program::cost counts it: no masked pair, five products in the
// gradient.
double share_of_peak(const LibraryAttention& attention);

}  // namespace snug::plan
