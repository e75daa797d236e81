// Stages: give run and step tensors their offsets, the same in every program; find the live
// interval of each program tensor (with its views); place each program's tensors above them.
#include "passes/memory/layout.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "passes/memory/layout_sizes.h"
#include "passes/memory/place.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

class LayoutBuilder {
 public:
  // `places`: tensors of programs get offsets.
  LayoutBuilder(std::span<const Program> programs, int64_t alignment, bool places)
      : programs_(programs), alignment_(alignment), places_(places) {}

  Layout run() {
    place_shared(Lifetime::run);
    place_shared(Lifetime::step);
    for (const Program& program : programs_) place_program(program);
    for (SpaceLayout& space : layout_.spaces)
      space.arena_bytes = space.run_bytes + space.step_bytes + space.program_bytes;
    return std::move(layout_);
  }

 private:
  struct Shared {
    int64_t offset;
    const Tensor* tensor;
  };

  int64_t aligned(int64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  SpaceLayout& space_of(const Tensor& tensor) {
    return layout_.spaces[static_cast<size_t>(tensor.space)];
  }

  void place_shared(Lifetime lifetime) {
    for (const Program& program : programs_)
      for (const Tensor& tensor : program.tensors) {
        if (tensor.lifetime != lifetime || tensor.is_view()) continue;
        SpaceLayout& space = space_of(tensor);
        int64_t& used = lifetime == Lifetime::run ? space.run_bytes : space.step_bytes;
        const int64_t below = lifetime == Lifetime::run ? 0 : space.run_bytes;
        const auto [found, added] = shared_.try_emplace(tensor.name, Shared{below + used, &tensor});
        if (added) {
          used += aligned(tensor.bytes());
          continue;
        }
        const Tensor& known = *found->second.tensor;
        SNUG_CHECK(known.shape == tensor.shape && known.dtype == tensor.dtype &&
                       known.lifetime == tensor.lifetime && known.space == tensor.space,
                   "programs disagree about {}", tensor.name);
      }
  }

  void place_program(const Program& program) {
    std::vector<int64_t> offsets(program.tensors.size(), 0);
    const std::vector<Interval> intervals = live_intervals(program);
    for (size_t space = 0; space < layout_.spaces.size(); ++space)
      place_in_space(program, intervals, static_cast<Space>(space), offsets);
    if (!places_) return;
    for (size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      if (tensor.is_view())
        offsets[id] = offsets[static_cast<size_t>(tensor.view.base)] +
                      tensor.view.offset * base::size_of(tensor.dtype);
    }
    layout_.offsets.push_back(std::move(offsets));
  }

  void place_in_space(const Program& program, const std::vector<Interval>& intervals, Space space,
                      std::vector<int64_t>& offsets) {
    SpaceLayout& result = layout_.spaces[static_cast<size_t>(space)];
    std::vector<LiveRange> blocks;
    std::vector<size_t> ids;
    for (size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      if (tensor.is_view() || tensor.space != space) continue;
      if (tensor.lifetime != Lifetime::program) {
        offsets[id] = shared_.at(tensor.name).offset;
      } else if (tensor.bytes() > 0 && intervals[id].first <= intervals[id].last) {
        blocks.push_back({aligned(tensor.bytes()), intervals[id].first, intervals[id].last});
        ids.push_back(id);
      }
    }
    result.live_bytes.push_back(peak_live_bytes(blocks));
    result.program_bytes = std::max(result.program_bytes, result.live_bytes.back());
    if (!places_ || blocks.empty()) return;
    const Placement placement = place(blocks);
    for (size_t i = 0; i < ids.size(); ++i)
      offsets[ids[i]] = result.run_bytes + result.step_bytes + placement.offsets[i];
    result.program_bytes = std::max(result.program_bytes, placement.bytes);
  }

  std::span<const Program> programs_;
  int64_t alignment_;
  bool places_;
  Layout layout_;
  std::unordered_map<std::string, Shared> shared_;
};

}  // namespace

int64_t SpaceLayout::lower_bound_bytes() const {
  const auto largest = std::ranges::max_element(live_bytes);
  return run_bytes + step_bytes + (largest == live_bytes.end() ? 0 : *largest);
}

std::vector<Interval> live_intervals(const Program& program) {
  const auto end = static_cast<int32_t>(program.operations.size());
  std::vector<Interval> intervals(program.tensors.size(), Interval{end, -1});
  for (int32_t i = 0; i < end; ++i) {
    const auto together = done_with(program, static_cast<size_t>(i));
    const auto first = static_cast<int32_t>(together.first);
    const auto last = static_cast<int32_t>(together.last);
    for_each_tensor(program.operations[static_cast<size_t>(i)], [&](TensorId id) {
      Interval& interval = intervals[static_cast<size_t>(program.owner(id))];
      interval.first = std::min(interval.first, first);
      interval.last = std::max(interval.last, last);
    });
  }
  for (size_t id = 0; id < intervals.size(); ++id)
    if (intervals[id].last < 0 && program.tensors[id].role == Role::staging)
      intervals[id] = {0, std::max(0, end - 1)};
  return intervals;
}

Layout layout(std::span<const Program> programs, int64_t alignment_bytes) {
  return LayoutBuilder(programs, alignment_bytes, true).run();
}

Layout layout_sizes(std::span<const Program> programs, int64_t alignment_bytes) {
  return LayoutBuilder(programs, alignment_bytes, false).run();
}

}  // namespace snug::passes
