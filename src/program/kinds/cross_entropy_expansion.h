// The linear cross-entropies in operations that every target runs, with all logits at once.
#pragma once

#include "program/builder.h"
#include "program/kinds/cross_entropy.h"
#include "program/operands.h"

namespace snug::program {

void expand_loss(const LinearCrossEntropy& loss, const OperationView& view, Builder& builder);
void expand_loss(const LinearCrossEntropyTrain& loss, const OperationView& view, Builder& builder);

}  // namespace snug::program
