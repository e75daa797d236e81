// Numbers between two bounds, digit by digit, as JSON writes them without an exponent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "text/grammar/byte_grammar.h"

namespace snug::text {

// A number with all its digits: none of them is zero at the end of the fraction, or at the
// beginning unless it is alone.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";
  std::string fraction{};
};

// Throws std::invalid_argument for numbers of more than 400 digits.
Decimal decimal_of(const nlohmann::ordered_json& number);

struct NumberBound {
  Decimal value;
  bool is_excluded = false;
};

struct NumberRange {
  std::optional<NumberBound> least{};
  std::optional<NumberBound> most{};
  std::optional<size_t> max_fraction{};  // digits after the point; 0: integers
};

PlaceId add_number(GrammarBuilder& builder, const NumberRange& range, PlaceId next);

}  // namespace snug::text
