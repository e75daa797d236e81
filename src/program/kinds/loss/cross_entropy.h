// Cross-entropy of a language model's head. Targets below 0 carry no loss. With `smoothing` e, the
// loss of a token is (1 - e) times -log p(target), plus e times the mean of -log p over the
// vocabulary. `inverse_tokens` f32 is
// what each token counts: one number (1), which is one over the trained tokens of the whole step,
// so losses and gradients of micro-batches just add up, or a number for each token (tokens), where
// another loss has decided it.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "base/words.h"
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/product/product_algorithm.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: logits (tokens, vocab), targets (tokens) i32, inverse_tokens (1) or (tokens).
// writes: losses (tokens) f32, of each token, 0 without loss; loss (1) f32 = sum(losses *
// inverse_tokens).
struct CrossEntropy {
  float smoothing = 0.0F;
  bool operator==(const CrossEntropy&) const = default;
  static constexpr auto kFields = std::tuple{Field{"smoothing", &CrossEntropy::smoothing}};
  static constexpr auto kLogits = read<CrossEntropy>(0, "logits");
  static constexpr auto kTargets = read<CrossEntropy>(1, "targets");
  static constexpr auto kInverseTokens = read<CrossEntropy>(2, "inverse_tokens");
  static constexpr auto kLosses = write<CrossEntropy>(3, "losses");
  static constexpr auto kLoss = write<CrossEntropy>(4, "loss");
  static constexpr std::array kOperands{kLogits, kTargets, kInverseTokens, kLosses, kLoss};
  static constexpr Traits kTraits{.loss_factors = {kInverseTokens.name},
                                  .extents = {ExtentOperand{kTargets.name}}};
};

// reads: logits, targets, inverse_tokens. writes: dlogits = (softmax - (1 - e) onehot - e / vocab)
// * inverse_tokens, the derivative of `loss`; zero rows without loss.
struct CrossEntropyGrad {
  float smoothing = 0.0F;
  bool operator==(const CrossEntropyGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"smoothing", &CrossEntropyGrad::smoothing}};
  static constexpr auto kLogits = read<CrossEntropyGrad>(0, "logits");
  static constexpr auto kTargets = read<CrossEntropyGrad>(1, "targets");
  static constexpr auto kInverseTokens = read<CrossEntropyGrad>(2, "inverse_tokens");
  static constexpr auto kDLogits = write<CrossEntropyGrad>(3, "dlogits");
  static constexpr std::array kOperands{kLogits, kTargets, kInverseTokens, kDLogits};
  static constexpr Traits kTraits{.extents = {ExtentOperand{kTargets.name}}};
};

// How a linear cross-entropy goes over its tokens. The target decides it. A chunk holds rows that
// carry loss; where it has more rows than there are, those are zeros that are computed all the
// same.
enum class LossAlgorithm : uint8_t {
  whole,          // all logits at once, whatever the rows carry: the reference, and what was not
                  // lowered
  chunks,         // logits of chunk_rows rows at once; the last chunk is what is left of all tokens
  halved_chunks,  // the same, but what is left goes through chunks of half, a quarter, ... the rows
  online,  // logits of a chunk for some of the vocabulary at a time, which sums follow; those
           // for the gradient of the weight are made again when the sums are known
};
constexpr auto words_of(LossAlgorithm /*type*/) {
  return base::words<LossAlgorithm>({{LossAlgorithm::whole, "whole"},
                                     {LossAlgorithm::chunks, "chunks"},
                                     {LossAlgorithm::halved_chunks, "halved_chunks"},
                                     {LossAlgorithm::online, "online"}});
}

// Half of a chunk of fewer rows than this twice saves nothing: a product of as many rows already
// takes as long as reading the weight.
inline constexpr int64_t kMinChunkRows = 64;

// The size of the halved chunk that comes next when `rows` rows are left. It is the smallest that
// takes all of them if at least three quarters of it are used, else the largest that is filled, so
// that many short rests cost no more than the rows they have.
int64_t next_halved_chunk(int64_t chunk_rows, int64_t rows);

// The rows of each chunk that is computed, in order, for `tokens` tokens of which `rows` carry
// loss. It holds for both linear kinds.
std::vector<int64_t> chunk_sizes(LossAlgorithm algorithm, int64_t chunk_rows, int64_t tokens,
                                 int64_t rows);

// The chunks of rows in which the logits of a loss are made.
struct LossChunks {
  LossAlgorithm algorithm = LossAlgorithm::whole;
  int64_t rows = 0;  // of the largest chunk; 0 until lowered
  bool operator==(const LossChunks&) const = default;
  // Priced alike: an online loss has a name of its own, and its other forms are the same products
  // of more or fewer rows, which the key's shape has.
  static constexpr std::tuple kParts{
      Part{"algorithm", Priced::alike, &LossChunks::algorithm},
      Part{"chunk_rows", {Priced::alike, Noted::in_pieces}, &LossChunks::rows}};
};

// What computes the products of every chunk: the logits and, in the training form, the gradients of
// hidden and weight; loops where there is no such product. Of the rows of a chunk at most
// dweight_step are summed before the gradient of the weight is read and written again; 0: all.
struct LossAlgorithms {
  ProductAlgorithm logits = ProductAlgorithm::loops;
  ProductAlgorithm dhidden = ProductAlgorithm::loops;
  ProductAlgorithm dweight = ProductAlgorithm::loops;
  int64_t dweight_step = 0;
  bool operator==(const LossAlgorithms&) const = default;
};

// The same of blocks of so many columns of the vocabulary, and of the last one, where it is
// narrower. 0: it is not divided.
struct LossProducts {
  int64_t block_columns = 0;
  LossAlgorithms main = {};
  LossAlgorithms rest = {};
  bool operator==(const LossProducts&) const = default;
  // Priced alike: blocks and steps follow from the key's shape, and what they read again is in the
  // cost.
  static constexpr std::tuple kParts{
      Part{"block_columns", Priced::alike, &LossProducts::block_columns},
      Part{"logits_algorithm", Priced::by_kind, &LossProducts::main, &LossAlgorithms::logits},
      Part{"rest_logits_algorithm", Priced::by_word, &LossProducts::rest, &LossAlgorithms::logits},
      Part{"dhidden_algorithm", Priced::by_word, &LossProducts::main, &LossAlgorithms::dhidden},
      Part{"rest_dhidden_algorithm", Priced::by_word, &LossProducts::rest,
           &LossAlgorithms::dhidden},
      Part{"dweight_algorithm", Priced::by_word, &LossProducts::main, &LossAlgorithms::dweight},
      Part{"rest_dweight_algorithm", Priced::by_word, &LossProducts::rest,
           &LossAlgorithms::dweight},
      Part{"dweight_step", Priced::alike, &LossProducts::main, &LossAlgorithms::dweight_step},
      Part{"rest_dweight_step", Priced::alike, &LossProducts::rest, &LossAlgorithms::dweight_step}};
};

// Fused: matmul (transpose_b) then cross_entropy, in chunks of rows that carry loss, so that at
// most chunk_rows x vocab logits exist. reads: hidden (tokens, d), weight (vocab, d), targets,
// inverse_tokens, then bias (vocab) if `bias` and gain (vocab) if `gain`. writes: losses, loss.
// Logits are `scale` hidden weight^T, or (hidden weight^T [+ bias]) [* gain], which has no scale;
// with softcap c > 0 each is then c tanh(logit / c), as the kind softcap has it.
struct LinearCrossEntropy {
  LossChunks chunks = {};
  int32_t chunk_launches = 0;  // that each chunk takes, besides those of the operation
  LossProducts products = {};
  float scale = 1.0F;
  float softcap = 0.0F;
  bool bias = false;
  bool gain = false;
  float smoothing = 0.0F;
  bool operator==(const LinearCrossEntropy&) const = default;
  static constexpr auto kFields =
      std::tuple{Decision{"algorithm", &LinearCrossEntropy::chunks},
                 Field{"chunk_launches", &LinearCrossEntropy::chunk_launches},
                 Decision{"products", &LinearCrossEntropy::products},
                 Field{"scale", &LinearCrossEntropy::scale},
                 Field{"softcap", &LinearCrossEntropy::softcap},
                 Field{"bias", &LinearCrossEntropy::bias},
                 Field{"gain", &LinearCrossEntropy::gain},
                 Field{"smoothing", &LinearCrossEntropy::smoothing}};
  static constexpr auto kHidden = read<LinearCrossEntropy>(0, "hidden");
  static constexpr auto kWeight = read<LinearCrossEntropy>(1, "weight");
  static constexpr auto kTargets = read<LinearCrossEntropy>(2, "targets");
  static constexpr auto kInverseTokens = read<LinearCrossEntropy>(3, "inverse_tokens");
  static constexpr auto kBias = read<LinearCrossEntropy>(4, "bias", &LinearCrossEntropy::bias);
  static constexpr auto kGain = read<LinearCrossEntropy>(5, "gain", &LinearCrossEntropy::gain);
  static constexpr auto kLosses = write<LinearCrossEntropy>(6, "losses");
  static constexpr auto kLoss = write<LinearCrossEntropy>(7, "loss");
  static constexpr std::array kOperands{kHidden, kWeight, kTargets, kInverseTokens,
                                        kBias,   kGain,   kLosses,  kLoss};
  static constexpr Traits kTraits{.has_training_form = true,
                                  .loss_factors = {kInverseTokens.name},
                                  .extents = {ExtentOperand{kTargets.name}}};
};

// The training form: makes the gradient in the forward pass. reads as LinearCrossEntropy. writes:
// losses, loss, dhidden, then dweight (vocab, d) if `weight_gradient`; with `accumulate` dweight is
// updated instead; then dbias (vocab) if `bias_gradient` and dgain (vocab) if `gain_gradient`.
// Expansion: matmul, [add_bias,] [scale_columns,] [softcap,] cross_entropy, cross_entropy_grad,
// [softcap_grad,] [column_gain_grad,] [scale_columns,] matmul, matmul, [sum_rows].
struct LinearCrossEntropyTrain {
  LossChunks chunks = {};
  int32_t chunk_launches = 0;
  LossProducts products = {};
  bool weight_gradient = false;
  bool accumulate = false;
  float scale = 1.0F;
  float softcap = 0.0F;
  bool bias = false;
  bool bias_gradient = false;
  bool gain = false;
  bool gain_gradient = false;
  float smoothing = 0.0F;
  bool operator==(const LinearCrossEntropyTrain&) const = default;
  static constexpr auto kFields =
      std::tuple{Decision{"algorithm", &LinearCrossEntropyTrain::chunks},
                 Field{"chunk_launches", &LinearCrossEntropyTrain::chunk_launches},
                 Decision{"products", &LinearCrossEntropyTrain::products},
                 Field{"weight_gradient", &LinearCrossEntropyTrain::weight_gradient},
                 Field{"accumulate", &LinearCrossEntropyTrain::accumulate},
                 Field{"scale", &LinearCrossEntropyTrain::scale},
                 Field{"softcap", &LinearCrossEntropyTrain::softcap},
                 Field{"bias", &LinearCrossEntropyTrain::bias},
                 Field{"bias_gradient", &LinearCrossEntropyTrain::bias_gradient},
                 Field{"gain", &LinearCrossEntropyTrain::gain},
                 Field{"gain_gradient", &LinearCrossEntropyTrain::gain_gradient},
                 Field{"smoothing", &LinearCrossEntropyTrain::smoothing}};
  static constexpr auto kHidden = read<LinearCrossEntropyTrain>(0, "hidden");
  static constexpr auto kWeight = read<LinearCrossEntropyTrain>(1, "weight");
  static constexpr auto kTargets = read<LinearCrossEntropyTrain>(2, "targets");
  static constexpr auto kInverseTokens = read<LinearCrossEntropyTrain>(3, "inverse_tokens");
  static constexpr auto kBias =
      read<LinearCrossEntropyTrain>(4, "bias", &LinearCrossEntropyTrain::bias);
  static constexpr auto kGain =
      read<LinearCrossEntropyTrain>(5, "gain", &LinearCrossEntropyTrain::gain);
  static constexpr auto kLosses = write<LinearCrossEntropyTrain>(6, "losses");
  static constexpr auto kLoss = write<LinearCrossEntropyTrain>(7, "loss");
  static constexpr auto kDHidden = write<LinearCrossEntropyTrain>(8, "dhidden");
  static constexpr auto kDWeight =
      write_or_update<LinearCrossEntropyTrain>(9, "dweight", &LinearCrossEntropyTrain::accumulate,
                                               &LinearCrossEntropyTrain::weight_gradient);
  static constexpr auto kDBias =
      write<LinearCrossEntropyTrain>(10, "dbias", &LinearCrossEntropyTrain::bias_gradient);
  static constexpr auto kDGain =
      write<LinearCrossEntropyTrain>(11, "dgain", &LinearCrossEntropyTrain::gain_gradient);
  static constexpr std::array kOperands{kHidden, kWeight, kTargets, kInverseTokens, kBias,  kGain,
                                        kLosses, kLoss,   kDHidden, kDWeight,       kDBias, kDGain};
  static constexpr Traits kTraits{.extents = {ExtentOperand{kTargets.name}}};
};

}  // namespace snug::program
