// What initial values are made of. A file of its own, since kernels of cards include it.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::program {

enum class FillForm : uint8_t { constant, normal, uniform };

constexpr auto words_of(FillForm /*type*/) {
  return base::words<FillForm>({{FillForm::constant, "constant"},
                                {FillForm::normal, "normal"},
                                {FillForm::uniform, "uniform"}});
}

}  // namespace snug::program
