// gated_delta_rule: linear attention whose state is a matrix a head that decays, and that each
// token corrects towards its value (Yang et al. 2024, "Gated Delta Networks"). Value head h reads
// the queries and keys of key head h / (value_heads / key_heads).
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// The tokens that targets process at once, by products instead of one after another (the chunked
// form of the paper). Chunks begin at multiples of this and where a segment begins. States between
// chunks are all that a target may keep of them in memory; none is kept for the backward pass,
// which makes them again.
inline constexpr int64_t kDeltaChunkTokens = 64;

// Added to the sum of squares of a query or key before the root, as in transformers.
inline constexpr float kDeltaNormEpsilon = 1e-6F;

// reads: q, k (tokens, key_heads * dk), v (tokens, value_heads * dv), g, beta (tokens, value_heads)
// f32, bounds (segments, 2) i32 = [begin, end) of each segment; unused segments are (0, 0), and no
// two have a token in common. writes: o like v.
//
// With q' = q / sqrt(|q|^2 + epsilon) / sqrt(dk) and k' = k / sqrt(|k|^2 + epsilon) of a head, the
// state S (dk, dv) is zeros where a segment begins, and for each of its tokens in turn
//
//   S = exp(g) S;   S = S + k' (beta (v - S^T k'))^T;   o = S^T q'
//
// A token in no segment gives zeros. g is at most 0.
//
// With `cached` a segment goes on with a sequence: reads slots (segments, 2) i32 = the sequence's
// place, and how many of its tokens came before the segment; updates state (places, value_heads *
// dk * dv) f32, which is S of each head after the place's last token. A segment before which no
// tokens came begins with zeros, whatever its place holds. No two segments with tokens have the
// same place.
struct GatedDeltaRule {
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  bool cached = false;
  bool operator==(const GatedDeltaRule&) const = default;
  static constexpr auto kFields = std::tuple{Field{"key_heads", &GatedDeltaRule::key_heads},
                                             Field{"value_heads", &GatedDeltaRule::value_heads},
                                             Field{"cached", &GatedDeltaRule::cached}};
  static constexpr auto kQ = read<GatedDeltaRule>(0, "q");
  static constexpr auto kK = read<GatedDeltaRule>(1, "k");
  static constexpr auto kV = read<GatedDeltaRule>(2, "v");
  static constexpr auto kG = read<GatedDeltaRule>(3, "g");
  static constexpr auto kBeta = read<GatedDeltaRule>(4, "beta");
  static constexpr auto kBounds = read<GatedDeltaRule>(5, "bounds");
  static constexpr auto kSlots = read<GatedDeltaRule>(6, "slots", &GatedDeltaRule::cached);
  static constexpr auto kO = write<GatedDeltaRule>(7, "o");
  static constexpr auto kState = update<GatedDeltaRule>(8, "state", &GatedDeltaRule::cached);
  static constexpr std::array kOperands{kQ, kK, kV, kG, kBeta, kBounds, kSlots, kO, kState};
};

// reads: do, q, k, v, g, beta, bounds. writes: dq, dk, dv, dg, dbeta; zeros for tokens in no
// segment.
struct GatedDeltaRuleGrad {
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  bool operator==(const GatedDeltaRuleGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"key_heads", &GatedDeltaRuleGrad::key_heads},
                 Field{"value_heads", &GatedDeltaRuleGrad::value_heads}};
  static constexpr auto kDO = read<GatedDeltaRuleGrad>(0, "do");
  static constexpr auto kQ = read<GatedDeltaRuleGrad>(1, "q");
  static constexpr auto kK = read<GatedDeltaRuleGrad>(2, "k");
  static constexpr auto kV = read<GatedDeltaRuleGrad>(3, "v");
  static constexpr auto kG = read<GatedDeltaRuleGrad>(4, "g");
  static constexpr auto kBeta = read<GatedDeltaRuleGrad>(5, "beta");
  static constexpr auto kBounds = read<GatedDeltaRuleGrad>(6, "bounds");
  static constexpr auto kDQ = write<GatedDeltaRuleGrad>(7, "dq");
  static constexpr auto kDK = write<GatedDeltaRuleGrad>(8, "dk");
  static constexpr auto kDV = write<GatedDeltaRuleGrad>(9, "dv");
  static constexpr auto kDG = write<GatedDeltaRuleGrad>(10, "dg");
  static constexpr auto kDBeta = write<GatedDeltaRuleGrad>(11, "dbeta");
  static constexpr std::array kOperands{kDO,     kQ,  kK,  kV,  kG,  kBeta,
                                        kBounds, kDQ, kDK, kDV, kDG, kDBeta};
};

// The sizes of a rule, of operands by name: those of an OperationView or of an Invocation.
struct DeltaShape {
  int64_t tokens = 0;
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t dk = 0;
  int64_t dv = 0;

  int64_t heads_per_key() const { return value_heads / key_heads; }
  // The places for states between chunks: one for each multiple of kDeltaChunkTokens.
  int64_t chunks() const { return (tokens + kDeltaChunkTokens - 1) / kDeltaChunkTokens; }
};
template <typename Struct, typename Operands>
DeltaShape delta_shape(const Struct& rule, const Operands& operands) {
  const auto& keys = operands[Struct::kK].shape;
  return {keys[0], rule.key_heads, rule.value_heads, keys[1] / rule.key_heads,
          operands[Struct::kV].shape[1] / rule.value_heads};
}

}  // namespace snug::program
