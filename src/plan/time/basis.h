// What a figure of a plan rests on.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/words.h"

namespace snug::plan {

enum class Basis : uint8_t {
  unknown,
  assumed,             // rates or bytes of a typical machine
  data_sheet,          // shares of what the maker of a card states
  calibrated_quickly,  // rates that a first run measured in seconds
  calibrated,          // rates that `snug bench calibrate` measured
  measured
};

// Whether rates are by samples, of which an operation may have none.
constexpr bool has_samples(Basis basis) {
  return basis == Basis::calibrated || basis == Basis::calibrated_quickly;
}

constexpr auto words_of(Basis) {
  return base::words<Basis>({{Basis::unknown, "unknown"},
                             {Basis::assumed, "assumed"},
                             {Basis::data_sheet, "data sheet"},
                             {Basis::calibrated_quickly, "calibrated quickly"},
                             {Basis::calibrated, "calibrated"},
                             {Basis::measured, "measured"}});
}

}  // namespace snug::plan
