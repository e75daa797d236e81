// The linear cross-entropies in operations that every target runs, with all logits at once.
#pragma once

#include "program/ir/builder.h"
#include "program/ir/operands.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::program {

void expand_loss(const LinearCrossEntropy& loss, const OperationView& view, Builder& builder);
void expand_loss(const LinearCrossEntropyTrain& loss, const OperationView& view, Builder& builder);

}  // namespace snug::program
