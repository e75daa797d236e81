// The one list of operation kinds. It feeds the enum, the names, the variant of attributes and
// every visitor; what a kind is and defines stands in program/kinds/<kind>.{h,cpp}, what it does in
// each backend's <kind>.cpp.
//
// X(Struct, name). Order is by area and has no meaning.
#pragma once

#include "program/kinds/adafactor.h"
#include "program/kinds/attention.h"
#include "program/kinds/attention_sinks.h"
#include "program/kinds/balance_loss.h"
#include "program/kinds/clamped_swiglu.h"
#include "program/kinds/collective.h"
#include "program/kinds/column_scale.h"
#include "program/kinds/cross_entropy.h"
#include "program/kinds/dpo.h"
#include "program/kinds/elementwise.h"
#include "program/kinds/embedding.h"
#include "program/kinds/expert_bias.h"
#include "program/kinds/expert_rows.h"
#include "program/kinds/gelu.h"
#include "program/kinds/gelu_mul.h"
#include "program/kinds/grouped_matmul.h"
#include "program/kinds/kto.h"
#include "program/kinds/layer_norm.h"
#include "program/kinds/lion.h"
#include "program/kinds/loss_scale.h"
#include "program/kinds/matmul.h"
#include "program/kinds/muon.h"
#include "program/kinds/nf4.h"
#include "program/kinds/optimizer.h"
#include "program/kinds/orpo.h"
#include "program/kinds/relu.h"
#include "program/kinds/rms_norm.h"
#include "program/kinds/rope.h"
#include "program/kinds/route.h"
#include "program/kinds/row_norms.h"
#include "program/kinds/segment_sums.h"
#include "program/kinds/silu_mul.h"
#include "program/kinds/softcap.h"
#include "program/kinds/storage.h"
#include "program/kinds/top_k.h"
#include "program/kinds/transfer.h"

#define SNUG_KINDS(X)                                    \
  X(Matmul, matmul)                                      \
  X(Add, add)                                            \
  X(Accumulate, accumulate)                              \
  X(AddBias, add_bias)                                   \
  X(SumRows, sum_rows)                                   \
  X(Scale, scale)                                        \
  X(Dropout, dropout)                                    \
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
  X(Write, write)
