#include "text/row/held_out.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json_parser.h"
#include "text/source/record_file.h"

namespace snug::text {
namespace {

constexpr int64_t kHashedBytes = int64_t{64} << 10;  // of a record that is not held

// The record as text that is the same for equal records.
std::string canonical_text(const RawRecord& record) {
  if (record.is_long) {
    std::string begin(static_cast<size_t>(std::min(kHashedBytes, record.end - record.begin)), '\0');
    record.file->read_at(record.begin, begin.data(), std::ssize(begin));
    return fmt::format("{} {}", record.end - record.begin, begin);
  }
  try {
    return base::parse_json_value(
               record.text,
               [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); })
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } catch (const base::UserError&) {
    return record.text;  // plain text, or a record that is left out
  }
}

}  // namespace

uint64_t record_hash(const RawRecord& record, uint64_t seed) {
  return base::checksum(fmt::format("{} {}", seed, canonical_text(record)));
}

HeldOut held_out_share(double share, uint64_t seed) {
  constexpr double kAll = 0x1p64;
  const double most = std::floor(share * kAll);
  return {.seed = seed,
          .most = most >= kAll ? std::numeric_limits<uint64_t>::max()
                               : static_cast<uint64_t>(std::max(most, 1.0)) - 1};
}

void HeldOutCount::add(const RawRecord& record) {
  ++added_;
  least_.push(record_hash(record, seed_));
  if (std::ssize(least_) > records_ + 1) least_.pop();
}

HeldOut HeldOutCount::take_bound() {
  if (added_ <= records_) return {.seed = seed_, .most = std::numeric_limits<uint64_t>::max()};
  const uint64_t next = least_.top();  // of the first record that is not held out
  while (!least_.empty() && least_.top() == next) least_.pop();
  return {.seed = seed_, .most = least_.empty() ? next : least_.top()};
}

}  // namespace snug::text
