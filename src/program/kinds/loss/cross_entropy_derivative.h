// The derivative of the head's loss, which its training form makes.
#pragma once

#include "program/ir/program.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::program {

class Tape;

// Emits the training form in the place of the loss where the loss is that of the program. Where
// what follows reads the losses of rows, it decides what each of them counts, which is known only
// in the backward pass. A frozen head makes each row's gradient from that row alone, so that its
// training form still runs in the forward pass and the rows are weighed later
// (weigh_rows_later). The gradient of a head that trains is a sum over rows, so that the losses
// alone are made first, and the training form runs in the backward pass, from logits that are made
// again.
void differentiate_linear_loss(const LinearCrossEntropy& loss, const Operation& operation,
                               Tape& tape);

}  // namespace snug::program
