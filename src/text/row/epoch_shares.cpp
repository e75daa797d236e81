#include "text/row/epoch_shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/error.h"

namespace snug::text {
namespace {

void check_share(const EntryShare& entry, bool has_weights) {
  SNUG_CHECK(entry.groups >= 0, "{} groups", entry.groups);
  SNUG_CHECK(std::isfinite(entry.weight) && (entry.weight > 0) == has_weights, "weight {}",
             entry.weight);
  SNUG_CHECK(std::isfinite(entry.repeats) && entry.repeats >= 0, "repeats {}", entry.repeats);
}

int64_t repeated(const EntryShare& entry) {
  if (entry.groups == 0 || entry.repeats == 0) return 0;
  const double taken = entry.repeats * static_cast<double>(entry.groups);
  // Where it is too much, one part alone says so.
  return std::max<int64_t>(1, std::llround(std::min(taken, 2.0 * kMostGroups)));
}

// The groups of each entry in proportion to its weight, not rounded.
std::vector<double> exact_shares(std::span<const EntryShare> entries, int64_t total) {
  // In parts of the largest, since the sum of large numbers is not finite.
  double largest = 0;
  for (const EntryShare& entry : entries)
    if (entry.groups > 0) largest = std::max(largest, entry.weight);
  double sum = 0;
  std::vector<double> shares;
  for (const EntryShare& entry : entries) {
    shares.push_back(entry.groups > 0 ? entry.weight / largest : 0);
    sum += shares.back();
  }
  for (double& share : shares) share *= static_cast<double>(total) / sum;
  return shares;
}

// Rounds down, but to no less than 1, and then gives what is left to those which lack most of their
// share, or takes what is too much from those which have most above it.
void share_by_weight(std::span<const EntryShare> entries, std::vector<EpochPart>& parts) {
  int64_t left = 0;
  for (const EntryShare& entry : entries) left += entry.groups;
  if (left == 0) return;
  const std::vector<double> shares = exact_shares(entries, left);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].groups == 0) continue;
    parts[i].taken = std::max<int64_t>(1, static_cast<int64_t>(shares[i]));
    left -= parts[i].taken;
  }
  for (const int64_t one = left > 0 ? 1 : -1; left != 0; left -= one) {
    EpochPart* chosen = nullptr;
    double most = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].groups == 0 || (one < 0 && parts[i].taken == 1)) continue;
      const double lacks =
          (shares[i] - static_cast<double>(parts[i].taken)) * static_cast<double>(one);
      if (chosen != nullptr && lacks <= most) continue;
      chosen = &parts[i];
      most = lacks;
    }
    chosen->taken += one;
  }
}

}  // namespace

std::vector<EpochPart> epoch_shares(std::span<const EntryShare> entries) {
  const bool has_weights =
      std::ranges::any_of(entries, [](const EntryShare& entry) { return entry.weight > 0; });
  std::vector<EpochPart> parts;
  for (const EntryShare& entry : entries) {
    check_share(entry, has_weights);
    parts.push_back({entry.groups, has_weights ? 0 : repeated(entry)});
  }
  if (has_weights) share_by_weight(entries, parts);
  int64_t taken = 0;
  for (const EpochPart& part : parts) taken += part.taken;
  if (taken > kMostGroups)
    base::throw_user_error(
        "an epoch would take more than {} records, which is the most that it can; lower repeats, "
        "and train for more epochs",
        kMostGroups);
  return parts;
}

// As many as there are cycles from which an epoch takes some place. It begins in a cycle at a
// multiple of the greatest common divisor, at most at the last one.
int64_t most_times(std::span<const EpochPart> parts) {
  int64_t most = 1;
  for (const EpochPart& part : parts) {
    if (part.taken == 0) continue;
    const int64_t latest = part.groups - std::gcd(part.groups, part.taken);
    most = std::max(most, (latest + part.taken + part.groups - 1) / part.groups);
  }
  return most;
}

}  // namespace snug::text
