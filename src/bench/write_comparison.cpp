#include "bench/write_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/ir/operation.h"

namespace snug::bench {
namespace {

// How often a program writes a tensor, and its shape.
struct Writes {
  int64_t count = 0;
  program::Shape shape;
};

std::map<std::string, Writes> writes_of(const program::Program& program) {
  std::map<std::string, Writes> written;
  for (const program::Operation& operation : program.operations)
    for (const auto* ids : {&operation.writes, &operation.updates})
      for (const program::TensorId id : *ids) {
        Writes& each = written[program.tensor(id).name];
        ++each.count;
        each.shape = program.tensor(id).shape;
      }
  return written;
}

WriteDifference difference_of(const Written& a, const Written& b) {
  WriteDifference result;
  double apart = 0;
  double norm = 0;
  double most = -1;
  for (size_t i = 0; i < b.values.size(); ++i) {
    const double delta = std::abs(a.values[i] - b.values[i]);
    apart += delta * delta;
    norm += b.values[i] * b.values[i];
    // A NaN counts as further off than any number.
    const double distance = std::isnan(delta) ? std::numeric_limits<double>::infinity() : delta;
    if (distance <= most) continue;
    most = distance;
    result.element = static_cast<int64_t>(i);
    result.value_a = a.values[i];
    result.value_b = b.values[i];
  }
  result.relative = norm > 0 ? std::sqrt(apart / norm) : std::sqrt(apart);
  return result;
}

bool is_zero(const Written& written) {
  return std::ranges::all_of(written.values, [](double value) { return value == 0; });
}

}  // namespace

void WriteComparison::expect(const program::Program& a, const program::Program& b) {
  const std::map<std::string, Writes> of_b = writes_of(b);
  for (const auto& [tensor, writes] : writes_of(a)) {
    const auto other = of_b.find(tensor);
    is_common_[{a.name, tensor}] = other != of_b.end() && other->second.count == writes.count &&
                                   other->second.shape == writes.shape;
  }
}

void WriteComparison::keep(const std::string& program, const std::string& tensor, Written written) {
  const auto common = is_common_.find({program, tensor});
  if (common != is_common_.end() && common->second)
    kept_[{program, tensor}].push_back(std::move(written));
  else
    ++only_b_;
}

void WriteComparison::compare(const program::Program& a, size_t index, const std::string& tensor,
                              const Written& written) {
  const auto kept = kept_.find({a.name, tensor});
  if (kept == kept_.end() || kept->second.empty()) {
    ++only_a_;
    return;
  }
  const Written other = std::move(kept->second.front());
  kept->second.pop_front();
  ++compared_;
  if (is_zero(written) && is_zero(other)) ++zeros_;
  WriteDifference found = difference_of(written, other);
  found.program = a.name;
  found.operation = index;
  found.kind = program::name_of(a.operations[index].kind());
  found.tensor = tensor;
  is_in_16_bits_ =
      is_in_16_bits_ || base::size_of(written.type) == 2 || base::size_of(other.type) == 2;
  double tolerance = is_in_16_bits_ ? kTolerance16 : kTolerance;
  if (!base::is_float(written.type)) tolerance = 0;
  // A NaN counts as a difference.
  if (!(found.relative <= tolerance) && !first_) first_ = found;
  WriteDifference& largest = by_kind_[found.kind];
  if (largest.kind.empty() || !(found.relative <= largest.relative)) largest = std::move(found);
}

}  // namespace snug::bench
