// What initial values are made of. A file of its own, since kernels of cards include it.
#pragma once

#include <cstdint>

namespace snug::program {

enum class FillForm : uint8_t { constant, normal, uniform };

}  // namespace snug::program
