// The tensors with which the loss of a program ends, as far as a program has them: each micro-batch
// adds to them, and the host reads them after a step.
#pragma once

#include <array>
#include <string_view>

#include "program/ir/tensor_names.h"

namespace snug::program {

// What an objective measures of the training pass next to that of the model that made the answers,
// where training drops something (methods/grpo.cpp).
inline constexpr std::string_view kDropoutMeasuresName = "dropout_measures";

inline constexpr std::array kResultNames{kLossName, kRouterLossName, kMeasuresName,
                                         kDropoutMeasuresName};

}  // namespace snug::program
