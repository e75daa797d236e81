// A time as rates give it, and how much of it no sample of the very operation stands behind. Rates
// of a machine that were measured (its links, the host's memory, files) count as samples of what
// moves bytes at them.
#pragma once

namespace snug::plan {

struct Estimate {
  double seconds = 0;
  // Of these: by samples of the operation as another algorithm does it.
  double other_algorithm_seconds = 0;
  // And those without a sample: by the best rates of the machine, by a data sheet, or assumed.
  double unsampled_seconds = 0;

  static Estimate by_sample(double seconds) { return {seconds, 0, 0}; }
  static Estimate by_other_algorithm(double seconds) { return {seconds, seconds, 0}; }
  static Estimate unsampled(double seconds) { return {seconds, 0, seconds}; }

  Estimate& operator+=(const Estimate& other) {
    seconds += other.seconds;
    other_algorithm_seconds += other.other_algorithm_seconds;
    unsampled_seconds += other.unsampled_seconds;
    return *this;
  }
  Estimate operator*(double factor) const {
    return {seconds * factor, other_algorithm_seconds * factor, unsampled_seconds * factor};
  }
};

// The one that takes longer; of equal ones the first.
inline Estimate longer(const Estimate& a, const Estimate& b) {
  return a.seconds >= b.seconds ? a : b;
}

}  // namespace snug::plan
