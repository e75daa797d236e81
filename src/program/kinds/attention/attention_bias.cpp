#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "program/kinds/attention/attention.h"

namespace snug::program {

// `relative` is the key's position minus the query's. In causal attention, 0 is the key on the
// query's diagonal (as in ALiBi, so that queries after a cache have the right position); otherwise
// it is the key at the same distance from the start of its segment. Buckets for more than one
// distance: the n-th begins at exact * (max_distance / exact)^(n / wide). Computed in double and
// rounded down, this gives the same bucket as transformers for every distance of the tables in use.
int64_t bucket_of(int64_t relative, bool causal, int64_t buckets, int64_t max_distance) {
  const int64_t in_one_direction = causal ? buckets : buckets / 2;
  const int64_t first = !causal && relative > 0 ? in_one_direction : 0;
  const int64_t distance = causal ? std::max<int64_t>(-relative, 0) : std::abs(relative);
  const int64_t exact = in_one_direction / 2;
  if (distance < exact) return first + distance;
  const double part = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                      std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  const auto further = static_cast<int64_t>(part * static_cast<double>(in_one_direction - exact));
  return first + std::min(exact + further, in_one_direction - 1);
}

}  // namespace snug::program
