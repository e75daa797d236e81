// One pass over a row, at the speed of memory: it computes the largest element of each block, and
// examines only the few blocks whose largest element exceeds the smallest one kept so far.
#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "program/kinds/expert/top_k.h"

namespace snug::backends::cpu {
namespace {

using program::TopK;

constexpr float kNone = -std::numeric_limits<float>::infinity();
// A block is a few vectors wide. Its maximum is computed lane by lane, which the compiler keeps in
// registers.
constexpr int64_t kLanes = 16;
constexpr int64_t kBlock = 64;

// Comparisons with NaN are false, so NaNs are ignored.
float larger(float a, float b) { return a > b ? a : b; }

float largest(const float* block, int64_t count) {
  std::array<float, kLanes> lanes;
  lanes.fill(kNone);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      float& most = lanes[static_cast<size_t>(lane)];
      most = larger(block[i + lane], most);
    }
  float most = kNone;
  for (; i < count; ++i) most = larger(block[i], most);
  for (const float lane : lanes) most = larger(lane, most);
  return most;
}

// The elements of a row that are kept, the largest first. Of equal elements the one in the earlier
// column comes first.
class Kept {
 public:
  Kept(float* values, int32_t* ids, int64_t k) : values_(values), ids_(ids), k_(k) {
    std::fill_n(values_, k_, kNone);
    std::fill_n(ids_, k_, -1);
  }
  float least() const { return values_[k_ - 1]; }
  void insert(float value, int64_t column) {
    int64_t at = k_ - 1;
    for (; at > 0 && value > values_[at - 1]; --at) {
      values_[at] = values_[at - 1];
      ids_[at] = ids_[at - 1];
    }
    values_[at] = value;
    ids_[at] = static_cast<int32_t>(column);
  }

 private:
  float* values_;
  int32_t* ids_;
  int64_t k_;
};

void find_largest(const float* row, int64_t columns, Kept kept) {
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, columns);
    if (!(largest(row + begin, end - begin) > kept.least())) continue;
    for (int64_t column = begin; column < end; ++column)
      if (row[column] > kept.least()) kept.insert(row[column], column);
  }
}

bool supports(const TopK&, const program::OperationView& view, const CpuContext&) {
  return view[TopK::kX].dtype == base::DType::f32 && !view[TopK::kValues].is_view();
}

void run(const TopK& top, const Invocation& invocation, CpuContext&) {
  const Rows x = rows_of(invocation[TopK::kX]);
  auto* values = invocation[TopK::kValues].as<float>();
  auto* ids = invocation[TopK::kIds].as<int32_t>();
  parallel_for(x.rows, [&](int64_t row) {
    find_largest(reinterpret_cast<const float*>(x.at(row)), x.columns,
                 Kept(values + row * top.k, ids + row * top.k, top.k));
  });
}

}  // namespace

SNUG_CPU_KIND(TopK, .supports = supports);

}  // namespace snug::backends::cpu
