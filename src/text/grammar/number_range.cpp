#include "text/grammar/number_range.h"

#include <algorithm>
#include <compare>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace snug::text {
namespace {

constexpr int64_t kMaxDigits = 400;  // more than a double has

// A magnitude's digits one after another, each next to those of the bounds: while all digits so far
// are those of a bound, the magnitude is held by it.
class Magnitudes {
 public:
  Magnitudes(GrammarBuilder& builder, const NumberBound& least,
             const std::optional<NumberBound>& most, std::optional<size_t> max_fraction,
             PlaceId next)
      : builder_(builder), least_(least), most_(most), max_fraction_(max_fraction), next_(next) {}

  PlaceId start() {
    const size_t shortest = least_.value.whole.size();
    PlaceId place = builder_.dead();
    if (!most_) {
      place = builder_.fork(whole({shortest, 0, true, false}), place);
      PlaceId rest = builder_.any_bytes('0', '9', after_whole({0, 0, false, false}));
      for (size_t i = 0; i < shortest; ++i) rest = builder_.bytes({{'0', '9', rest}});
      return builder_.fork(builder_.bytes({{'1', '9', rest}}), place);
    }
    const size_t longest = most_->value.whole.size();
    for (size_t size = shortest; size <= longest; ++size)
      place = builder_.fork(whole({size, 0, size == shortest, size == longest}), place);
    return place;
  }

 private:
  struct At {
    size_t size = 0;  // digits before the point
    size_t digit = 0;
    bool holds_least = false;
    bool holds_most = false;
    auto operator<=>(const At&) const = default;
  };

  static int digit_of(const std::string& digits, size_t at) {
    return at < digits.size() ? digits[at] - '0' : 0;
  }

  // The edges of a digit, with where each leads.
  template <typename Next>
  PlaceId digit(const At& at, int least, int most, Next next) {
    std::vector<ByteEdge> edges;
    for (int value = least; value <= most; ++value) {
      At then = at;
      ++then.digit;
      then.holds_least = at.holds_least && value == least;
      then.holds_most = at.holds_most && value == most;
      const auto byte = static_cast<uint8_t>('0' + value);
      edges.push_back({byte, byte, next(then)});
    }
    return builder_.bytes(edges);
  }

  PlaceId whole(const At& at) {
    if (at.digit == at.size) return after_whole({0, 0, at.holds_least, at.holds_most});
    if (const auto known = whole_.find(at); known != whole_.end()) return known->second;
    const int lowest = at.digit == 0 && at.size > 1 ? 1 : 0;
    const int least = at.holds_least ? digit_of(least_.value.whole, at.digit) : lowest;
    const int most = at.holds_most ? digit_of(most_->value.whole, at.digit) : 9;
    const PlaceId place = digit(at, least, most, [&](const At& then) { return whole(then); });
    return whole_[at] = place;
  }

  PlaceId after_whole(const At& at) {
    return builder_.fork(may_end(at) ? next_ : builder_.dead(),
                         builder_.byte('.', fraction_digit(at)));
  }

  bool may_end(const At& at) const {
    const bool is_at_least = at.digit >= least_.value.fraction.size() && !least_.is_excluded;
    if (at.holds_least && !is_at_least) return false;
    return !at.holds_most || at.digit < most_->value.fraction.size() || !most_->is_excluded;
  }

  PlaceId fraction_digit(const At& at) {
    if (max_fraction_ && at.digit >= *max_fraction_) return builder_.dead();
    const int least = at.holds_least ? digit_of(least_.value.fraction, at.digit) : 0;
    const int most = at.holds_most ? digit_of(most_->value.fraction, at.digit) : 9;
    return digit(at, least, most, [&](const At& then) { return fraction(then); });
  }

  // Digits after those of both bounds are all alike, unless they are counted.
  PlaceId fraction(At at) {
    size_t last = least_.value.fraction.size();
    if (most_) last = std::max(last, most_->value.fraction.size());
    if (!max_fraction_) at.digit = std::min(at.digit, last);
    if (const auto known = fraction_.find(at); known != fraction_.end()) return known->second;
    const PlaceId place = builder_.open();
    fraction_[at] = place;
    builder_.decide(place, may_end(at) ? next_ : builder_.dead(), fraction_digit(at));
    return place;
  }

  GrammarBuilder& builder_;
  NumberBound least_;
  std::optional<NumberBound> most_;
  std::optional<size_t> max_fraction_;
  PlaceId next_;
  std::map<At, PlaceId> whole_;
  std::map<At, PlaceId> fraction_;
};

bool is_zero(const Decimal& value) { return value.whole == "0" && value.fraction.empty(); }

std::strong_ordering compare_magnitudes(const Decimal& a, const Decimal& b) {
  return std::tuple(a.whole.size(), a.whole, a.fraction) <=>
         std::tuple(b.whole.size(), b.whole, b.fraction);
}

// Numbers of one sign.
PlaceId add_magnitudes(GrammarBuilder& builder, const NumberBound& least,
                       const std::optional<NumberBound>& most,
                       const std::optional<size_t>& max_fraction, PlaceId next) {
  if (most) {
    const auto order = compare_magnitudes(least.value, most->value);
    if (order > 0 || (order == 0 && (least.is_excluded || most->is_excluded)))
      return builder.dead();
  }
  return Magnitudes(builder, least, most, max_fraction, next).start();
}

}  // namespace

Decimal decimal_of(const nlohmann::ordered_json& number) {
  const std::string text = number.dump();
  Decimal decimal{.is_negative = text.starts_with('-')};
  const size_t power_at = text.find_first_of("eE");
  std::string mantissa = text.substr(decimal.is_negative ? 1 : 0, power_at);
  if (power_at != std::string::npos && decimal.is_negative) mantissa = text.substr(1, power_at - 1);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string digits = mantissa.substr(0, point);
  if (point < mantissa.size()) digits += mantissa.substr(point + 1);
  int64_t power = power_at == std::string::npos ? 0 : std::stoll(text.substr(power_at + 1));
  power += static_cast<int64_t>(point);  // digits before the point
  if (power > kMaxDigits || power < -kMaxDigits)
    throw std::invalid_argument("it has a number with more than 400 digits");
  if (power < 0) digits.insert(0, static_cast<size_t>(-power), '0');
  const auto whole = static_cast<size_t>(std::max<int64_t>(power, 0));
  if (digits.size() < whole) digits.resize(whole, '0');
  decimal.whole = digits.substr(0, whole);
  decimal.fraction = digits.substr(whole);
  decimal.whole.erase(0, std::min(decimal.whole.find_first_not_of('0'), decimal.whole.size()));
  if (decimal.whole.empty()) decimal.whole.push_back('0');
  decimal.fraction.resize(decimal.fraction.find_last_not_of('0') + 1);
  return decimal;
}

PlaceId add_number(GrammarBuilder& builder, const NumberRange& range, PlaceId next) {
  const NumberBound zero{};
  const NumberBound above_zero{.value = {}, .is_excluded = true};
  PlaceId place = builder.dead();
  const bool has_negative = !range.least || range.least->value.is_negative;
  const bool most_is_negative =
      range.most && range.most->value.is_negative && !is_zero(range.most->value);
  const bool has_others = !most_is_negative;
  if (has_others) {
    NumberBound least = range.least.value_or(zero);
    if (least.value.is_negative) least = zero;
    std::optional<NumberBound> most = range.most;
    if (most) most->value.is_negative = false;
    place = builder.fork(add_magnitudes(builder, least, most, range.max_fraction, next), place);
  }
  if (!has_negative) return place;
  // Magnitudes of what is below zero are bounded the other way round.
  const NumberBound least = most_is_negative ? *range.most : above_zero;
  const bool goes_below = !range.most || most_is_negative || !range.most->value.is_negative;
  const PlaceId magnitudes =
      goes_below ? add_magnitudes(builder, least, range.least, range.max_fraction, next)
                 : builder.dead();
  return builder.fork(builder.byte('-', magnitudes), place);
}

}  // namespace snug::text
