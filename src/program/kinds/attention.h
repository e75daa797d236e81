// attention: softmax(scale q k^T) v a head, within segments, in flash style: scores are never
// stored (Dao et al. 2022). Grouped heads: query head h reads key head h / (heads / kv_heads).
#pragma once

#include <cstdint>

#include "program/kinds/field.h"

namespace snug::program {

// reads: q (q_tokens, heads * head_dim), k, v (k_tokens, kv_heads * head_dim), q_bounds and
// k_bounds (segments, 2) i32 = [begin, end) of each segment's queries and keys; unused segments are
// (0, 0). writes: o like q; lse (heads, q_tokens) f32, the log-sum-exp of the scaled scores.
// Causal: with nq queries and nk keys in a segment, query i sees keys j <= i + nk - nq; `window` w
// > 0 further demands j > i + nk - nq - w. Queries outside all segments give zeros (lse 0).
// With segment_tokens > 0 no segment is longer, and each begins where the one before it has ended,
// or later. A target may answer a gradient that need not be deterministic with sums in any order.
// by_library, which lower sets, says that the target gives it to a library and not to its own
// kernels. It changes no result; how long it takes depends on it.
struct Attention {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  int64_t segment_tokens = 0;
  bool deterministic = true;
  bool by_library = false;
  bool operator==(const Attention&) const = default;
  static constexpr auto kFields = std::tuple{Field{"heads", &Attention::heads},
                                             Field{"kv_heads", &Attention::kv_heads},
                                             Field{"head_dim", &Attention::head_dim},
                                             Field{"scale", &Attention::scale},
                                             Field{"causal", &Attention::causal},
                                             Field{"window", &Attention::window},
                                             Field{"segment_tokens", &Attention::segment_tokens},
                                             Field{"deterministic", &Attention::deterministic},
                                             Field{"by_library", &Attention::by_library}};
};

// reads: do, q, k, v, o, lse, q_bounds, k_bounds. writes: dq, dk, dv (zero outside segments).
struct AttentionGrad {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  int64_t segment_tokens = 0;
  bool deterministic = true;
  bool by_library = false;
  bool operator==(const AttentionGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"heads", &AttentionGrad::heads},
                 Field{"kv_heads", &AttentionGrad::kv_heads},
                 Field{"head_dim", &AttentionGrad::head_dim},
                 Field{"scale", &AttentionGrad::scale},
                 Field{"causal", &AttentionGrad::causal},
                 Field{"window", &AttentionGrad::window},
                 Field{"segment_tokens", &AttentionGrad::segment_tokens},
                 Field{"deterministic", &AttentionGrad::deterministic},
                 Field{"by_library", &AttentionGrad::by_library}};
};

// reads: x (tokens, width), slots (tokens) i32. updates: cache (capacity, width): row slots[t]
// becomes x[t]; a negative slot is skipped.
struct CacheWrite {
  bool operator==(const CacheWrite&) const = default;
  static constexpr std::tuple<> kFields{};
};

}  // namespace snug::program
