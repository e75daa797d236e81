// What each kind needs of a card: whether it runs there, and its scratch. No CUDA header and no
// driver: the backend asks this of the card that is open, a plan of one that is not here.
//
// The defaults are everything and nothing; a kind with something to say declares an overload here
// and has a file of this folder.
#pragma once

#include <cstdint>

#include "backends/cuda/needs/card.h"
#include "program/program.h"
#include "program/target.h"

namespace snug::backends::cuda {

// Whether the operation runs on the card.
bool runs(const program::OperationView& view, const Card& card);
// Its attributes with what is decided for the card.
program::Attributes decide(const program::OperationView& view, const Card& card);
// Its scratch, exact, unless a library asks for less.
int64_t workspace_bytes(const program::OperationView& view, const Card& card);
// The same, as a target says it.
program::Workspace workspace(const program::OperationView& view, const Card& card);

using program::OperationView;

template <typename Attributes>
Attributes decide(const Attributes& attributes, const OperationView&, const Card&) {
  return attributes;
}
program::Attention decide(const program::Attention&, const OperationView&, const Card&);
program::AttentionGrad decide(const program::AttentionGrad&, const OperationView&, const Card&);
program::LinearCrossEntropy decide(const program::LinearCrossEntropy&, const OperationView&,
                                   const Card&);
program::LinearCrossEntropyTrain decide(const program::LinearCrossEntropyTrain&,
                                        const OperationView&, const Card&);

template <typename Attributes>
int64_t workspace_bytes(const Attributes&, const OperationView&, const Card&) {
  return 0;
}
int64_t workspace_bytes(const program::Attention&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::AttentionGrad&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::GlobalNorm&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::LinearCrossEntropy&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::LinearCrossEntropyTrain&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::Matmul&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::RmsNormGrad&, const OperationView&, const Card&);
int64_t workspace_bytes(const program::SumRows&, const OperationView&, const Card&);

// By default f32 and bf16 in any mix.
template <typename Attributes>
bool supports(const Attributes&, const OperationView&, const Card&) {
  return true;
}
bool supports(const program::AdamW&, const OperationView&, const Card&);
bool supports(const program::AdamW8bit&, const OperationView&, const Card&);
bool supports(const program::Attention&, const OperationView&, const Card&);
bool supports(const program::AttentionGrad&, const OperationView&, const Card&);
bool supports(const program::LinearCrossEntropy&, const OperationView&, const Card&);
bool supports(const program::LinearCrossEntropyTrain&, const OperationView&, const Card&);
bool supports(const program::Matmul&, const OperationView&, const Card&);
bool supports(const program::MatmulNf4&, const OperationView&, const Card&);
bool supports(const program::RmsNormGrad&, const OperationView&, const Card&);

}  // namespace snug::backends::cuda
