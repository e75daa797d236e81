// What every kind defines, one overload a kind in kinds/<file>.cpp; program/kind.cpp dispatches to
// them. Internal to program/.
//
// Every kind has a shape rule and a cost. Only the kinds listed below have a derivative, an
// expansion or outputs that may share the bytes of an input; a call for another one is a bug.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "program/kind.h"
#include "program/rate_key.h"

namespace snug::program {

#define SNUG_KIND(Struct, name)                                                            \
  std::string shape_error(const Struct& attributes, const OperationView& view); /* rule */ \
  Cost cost(const Struct& attributes, const OperationView& view, const Load& load);
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

// Derivatives. Each asks the tape for the gradient of the operation's output, does nothing when
// none flows, and writes a contribution for every input that wants one.
void differentiate(const Matmul& matmul, const Operation& operation, Tape& tape);
void differentiate(const Add& add, const Operation& operation, Tape& tape);
void differentiate(const AddBias& add_bias, const Operation& operation, Tape& tape);
void differentiate(const Dropout& dropout, const Operation& operation, Tape& tape);
void differentiate(const Cast& cast, const Operation& operation, Tape& tape);
void differentiate(const Embedding& embedding, const Operation& operation, Tape& tape);
void differentiate(const RmsNorm& norm, const Operation& operation, Tape& tape);
void differentiate(const Rope& rope, const Operation& operation, Tape& tape);
void differentiate(const SiluMul& silu_mul, const Operation& operation, Tape& tape);
void differentiate(const Attention& attention, const Operation& operation, Tape& tape);
void differentiate(const CrossEntropy& loss, const Operation& operation, Tape& tape);
// Emits the training form: the losses of the operation are written by it.
void differentiate(const LinearCrossEntropy& loss, const Operation& operation, Tape& tape);

// What the rate of a kind depends on, where that is not the bytes that it moves.
RateKey rate_key(const Matmul& matmul, const OperationView& view, const Load& load);
RateKey rate_key(const Attention& attention, const OperationView& view, const Load& load);
RateKey rate_key(const AttentionGrad& grad, const OperationView& view, const Load& load);
RateKey rate_key(const LinearCrossEntropy& loss, const OperationView& view, const Load& load);
RateKey rate_key(const LinearCrossEntropyTrain& loss, const OperationView& view, const Load& load);
RateKey rate_key(const GlobalNorm& norm, const OperationView& view, const Load& load);
RateKey rate_key(const Transfer& transfer, const OperationView& view, const Load& load);

void expand(const LinearCrossEntropy& loss, const OperationView& view, Builder& builder);
void expand(const LinearCrossEntropyTrain& loss, const OperationView& view, Builder& builder);
void expand(const MatmulNf4& matmul, const OperationView& view, Builder& builder);

// (index into writes, index into reads).
using InPlacePairs = std::vector<std::pair<int, int>>;

// Of the pairs of an output and an input, those that an operation with these attributes has.
template <typename Struct>
InPlacePairs in_place(const Struct& attributes,
                      std::initializer_list<std::pair<Operand<Struct>, Operand<Struct>>> pairs) {
  InPlacePairs result;
  for (const auto& [output, input] : pairs) {
    const Slot to = slot_of(attributes, output);
    const Slot from = slot_of(attributes, input);
    if (to.present && from.present && to.access == Access::write)
      result.emplace_back(static_cast<int>(to.index), static_cast<int>(from.index));
  }
  return result;
}

InPlacePairs in_place_pairs(const Matmul& matmul);
InPlacePairs in_place_pairs(const Add& add);
InPlacePairs in_place_pairs(const AddBias& add_bias);
InPlacePairs in_place_pairs(const Dropout& dropout);
InPlacePairs in_place_pairs(const RmsNormGrad& norm);
InPlacePairs in_place_pairs(const Rope& rope);
InPlacePairs in_place_pairs(const SiluMul& silu_mul);
InPlacePairs in_place_pairs(const SiluMulGrad& silu_mul);
InPlacePairs in_place_pairs(const RmsNorm& norm);

}  // namespace snug::program
