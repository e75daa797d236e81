// The one list of operation kinds, by name alone. It feeds the enumeration, the words and every
// dispatch; what a kind is and defines stands in program/kinds/<area>/<file>.{h,cpp}, what it does
// in a file of the same area in each backend. The structs are declared here and defined in those
// headers, all of which all_kinds.h includes.
//
// X(Struct, name). Order is by area and has no meaning.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/words.h"

#define SNUG_KINDS(X)                                    \
  X(Matmul, matmul)                                      \
  X(Add, add)                                            \
  X(Accumulate, accumulate)                              \
  X(AddBias, add_bias)                                   \
  X(SumRows, sum_rows)                                   \
  X(Scale, scale)                                        \
  X(Dropout, dropout)                                    \
  X(AddNoise, add_noise)                                 \
  X(Cast, cast)                                          \
  X(Zeros, zeros)                                        \
  X(Embedding, embedding)                                \
  X(EmbeddingGrad, embedding_grad)                       \
  X(RmsNorm, rms_norm)                                   \
  X(RmsNormGrad, rms_norm_grad)                          \
  X(LayerNorm, layer_norm)                               \
  X(LayerNormGrad, layer_norm_grad)                      \
  X(RotaryTable, rotary_table)                           \
  X(Rope, rope)                                          \
  X(SiluMul, silu_mul)                                   \
  X(SiluMulGrad, silu_mul_grad)                          \
  X(GeluMul, gelu_mul)                                   \
  X(GeluMulGrad, gelu_mul_grad)                          \
  X(ClampedSwiglu, clamped_swiglu)                       \
  X(ClampedSwigluGrad, clamped_swiglu_grad)              \
  X(Gelu, gelu)                                          \
  X(GeluGrad, gelu_grad)                                 \
  X(Relu, relu)                                          \
  X(ReluGrad, relu_grad)                                 \
  X(ScaleColumns, scale_columns)                         \
  X(ColumnGainGrad, column_gain_grad)                    \
  X(RowNorms, row_norms)                                 \
  X(Softcap, softcap)                                    \
  X(SoftcapGrad, softcap_grad)                           \
  X(Route, route)                                        \
  X(RouteGrad, route_grad)                               \
  X(BalanceLoss, balance_loss)                           \
  X(BalanceLossTrain, balance_loss_train)                \
  X(Permute, permute)                                    \
  X(Combine, combine)                                    \
  X(ScaleRows, scale_rows)                               \
  X(ScaleRowsGrad, scale_rows_grad)                      \
  X(AddExpertBias, add_expert_bias)                      \
  X(ExpertBiasGrad, expert_bias_grad)                    \
  X(ExpertBiasWeightsGrad, expert_bias_weights_grad)     \
  X(GroupedMatmul, grouped_matmul)                       \
  X(GroupedMatmulGrad, grouped_matmul_grad)              \
  X(Attention, attention)                                \
  X(AttentionGrad, attention_grad)                       \
  X(AttentionSinkGrad, attention_sink_grad)              \
  X(CacheWrite, cache_write)                             \
  X(CrossEntropy, cross_entropy)                         \
  X(CrossEntropyGrad, cross_entropy_grad)                \
  X(LinearCrossEntropy, linear_cross_entropy)            \
  X(LinearCrossEntropyTrain, linear_cross_entropy_train) \
  X(SumSegments, sum_segments)                           \
  X(SpreadSegments, spread_segments)                     \
  X(WeighRows, weigh_rows)                               \
  X(Dpo, dpo)                                            \
  X(DpoGrad, dpo_grad)                                   \
  X(Orpo, orpo)                                          \
  X(OrpoGrad, orpo_grad)                                 \
  X(KlEstimate, kl_estimate)                             \
  X(Kto, kto)                                            \
  X(KtoGrad, kto_grad)                                   \
  X(TopK, top_k)                                         \
  X(GlobalNorm, global_norm)                             \
  X(ClipFactor, clip_factor)                             \
  X(ScaleBy, scale_by)                                   \
  X(ScaledClipFactor, scaled_clip_factor)                \
  X(AdamW, adamw)                                        \
  X(AdamW8bit, adamw_8bit)                               \
  X(Lion, lion)                                          \
  X(Adafactor, adafactor)                                \
  X(Muon, muon)                                          \
  X(MuonMomentum, muon_momentum)                         \
  X(Normalize, normalize)                                \
  X(MuonStep, muon_step)                                 \
  X(DequantizeNf4, dequantize_nf4)                       \
  X(MatmulNf4, matmul_nf4)                               \
  X(Copy, copy)                                          \
  X(Transfer, transfer)                                  \
  X(Await, await)                                        \
  X(AllGather, all_gather)                               \
  X(ReduceScatter, reduce_scatter)                       \
  X(AllReduce, all_reduce)                               \
  X(Read, read)                                          \
  X(ReadNf4, read_nf4)                                   \
  X(Fill, fill)                                          \
  X(FillNf4, fill_nf4)                                   \
  X(EncodeScales, encode_scales)                         \
  X(Put, put)                                            \
  X(PutBounds, put_bounds)                               \
  X(Write, write)                                        \
  X(Grpo, grpo)                                          \
  X(GrpoGrad, grpo_grad)                                 \
  X(SigmoidMul, sigmoid_mul)                             \
  X(SigmoidMulGrad, sigmoid_mul_grad)                    \
  X(CausalConvolution, causal_convolution)               \
  X(CausalConvolutionGrad, causal_convolution_grad)      \
  X(DeltaGates, delta_gates)                             \
  X(DeltaGatesGrad, delta_gates_grad)                    \
  X(GatedDeltaRule, gated_delta_rule)                    \
  X(GatedDeltaRuleGrad, gated_delta_rule_grad)           \
  X(Xielu, xielu)                                        \
  X(XieluGrad, xielu_grad)                               \
  X(XieluSlope, xielu_slope)                             \
  X(Multiply, multiply)                                  \
  X(MultiplyGrad, multiply_grad)

namespace snug::program {

#define SNUG_KIND(Struct, name) struct Struct;
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

enum class Kind : uint8_t {
#define SNUG_KIND(Struct, name) name,
  SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
};

constexpr auto words_of(Kind /*type*/) {
  return base::words<Kind>({
#define SNUG_KIND(Struct, name) {Kind::name, #name},
      SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  });
}
constexpr std::string_view name_of(Kind kind) { return base::word_of(kind); }
inline constexpr int kKindCount = static_cast<int>(base::kWordsOf<Kind>.size());
// What an operation has before it is given a kind; a program with such an operation is refused.
inline constexpr Kind kNoKind = static_cast<Kind>(kKindCount);

// The kind whose attributes a struct holds.
template <typename Struct>
inline constexpr Kind kKindOf = kNoKind;
#define SNUG_KIND(Struct, name) \
  template <>                   \
  inline constexpr Kind kKindOf<Struct> = Kind::name;
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

}  // namespace snug::program
