// Steps: give run tensors offsets that are the same in every program, and step tensors offsets that
// are the same in every program of a stage; find the live interval of each program tensor (with its
// views); place each program's tensors above them.
#include "passes/memory/layout.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "passes/memory/layout_sizes.h"
#include "passes/memory/place.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

std::optional<Stage> own_stage(const Program& program) {
  const std::optional<ProgramKey> key = program_key(program.name);
  return key ? stage_of(key->name) : std::nullopt;
}

// A program that belongs to no stage is laid out with the job's first stage.
std::vector<Stage> stages_of(std::span<const Program> programs) {
  Stage first = Stage::training;
  for (const Program& program : programs)
    if (const std::optional<Stage> own = own_stage(program)) {
      first = *own;
      break;
    }
  std::vector<Stage> stages;
  for (const Program& program : programs) stages.push_back(own_stage(program).value_or(first));
  return stages;
}

class LayoutBuilder {
 public:
  // `places`: whether tensors of lifetime program get offsets.
  LayoutBuilder(std::span<const Program> programs, int64_t alignment, bool places)
      : programs_(programs), alignment_(alignment), places_(places) {}

  Layout run() {
    layout_.stages = stages_of(programs_);
    if (places_) layout_.offsets.resize(programs_.size());
    for (SpaceLayout& space : layout_.spaces) space.live_bytes.resize(programs_.size());
    const auto run_bytes = [](SpaceLayout& space) -> int64_t& { return space.run_bytes; };
    for (const Program& program : programs_) share(program, Lifetime::run, run_tensors_, run_bytes);
    for (size_t stage = 0; stage < kStageCount; ++stage) place_stage(static_cast<Stage>(stage));
    for (SpaceLayout& space : layout_.spaces)
      for (const StageLayout& stage : space.stages)
        space.arena_bytes =
            std::max(space.arena_bytes, space.run_bytes + stage.step_bytes + stage.program_bytes);
    return std::move(layout_);
  }

 private:
  // A tensor that programs share, and its offset among the tensors of its lifetime.
  struct Shared {
    int64_t offset;
    const Tensor* tensor;
  };
  using SharedTensors = std::unordered_map<std::string, Shared>;

  int64_t aligned(int64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  SpaceLayout& space_of(const Tensor& tensor) {
    return layout_.spaces[static_cast<size_t>(tensor.space)];
  }

  // Adds the program's tensors of this lifetime to the known ones. `used_in(space)`: the bytes that
  // these take.
  template <typename UsedIn>
  void share(const Program& program, Lifetime lifetime, SharedTensors& shared,
             const UsedIn& used_in) {
    for (const Tensor& tensor : program.tensors) {
      if (tensor.lifetime != lifetime || tensor.is_view()) continue;
      int64_t& used = used_in(space_of(tensor));
      const auto [found, added] = shared.try_emplace(tensor.name, Shared{used, &tensor});
      if (added) {
        used += aligned(tensor.bytes());
        continue;
      }
      const Tensor& known = *found->second.tensor;
      SNUG_CHECK(
          known.shape == tensor.shape && known.dtype == tensor.dtype && known.space == tensor.space,
          "programs disagree about {}", tensor.name);
    }
  }

  void place_stage(Stage stage) {
    SharedTensors step_tensors;
    const auto step_bytes = [&](SpaceLayout& space) -> int64_t& {
      return space.of(stage).step_bytes;
    };
    for (size_t i = 0; i < programs_.size(); ++i)
      if (layout_.stages[i] == stage) share(programs_[i], Lifetime::step, step_tensors, step_bytes);
    for (size_t i = 0; i < programs_.size(); ++i)
      if (layout_.stages[i] == stage) place_program(i, step_tensors);
  }

  void place_program(size_t index, const SharedTensors& step_tensors) {
    const Program& program = programs_[index];
    std::vector<int64_t> offsets(program.tensors.size(), 0);
    const std::vector<Interval> intervals = live_intervals(program);
    for (size_t id = 0; id < program.tensors.size(); ++id)
      if (const Tensor& tensor = program.tensors[id]; !tensor.is_view())
        offsets[id] = shared_offset(tensor, step_tensors);
    for (size_t space = 0; space < layout_.spaces.size(); ++space)
      place_in_space(index, intervals, static_cast<Space>(space), offsets);
    if (!places_) return;
    for (size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      if (tensor.is_view())
        offsets[id] = offsets[static_cast<size_t>(tensor.view.base)] +
                      tensor.view.offset * base::size_of(tensor.dtype);
    }
    layout_.offsets[index] = std::move(offsets);
  }

  // The offset of a shared tensor; 0 for a tensor of lifetime program.
  int64_t shared_offset(const Tensor& tensor, const SharedTensors& step_tensors) {
    switch (tensor.lifetime) {
      case Lifetime::run:
        return run_tensors_.at(tensor.name).offset;
      case Lifetime::step:
        return space_of(tensor).run_bytes + step_tensors.at(tensor.name).offset;
      case Lifetime::program:
        break;
    }
    return 0;
  }

  void place_in_space(size_t index, const std::vector<Interval>& intervals, Space space,
                      std::vector<int64_t>& offsets) {
    const Program& program = programs_[index];
    SpaceLayout& result = layout_.spaces[static_cast<size_t>(space)];
    StageLayout& stage = result.of(layout_.stages[index]);
    std::vector<LiveRange> blocks;
    std::vector<size_t> ids;
    for (size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      if (tensor.is_view() || tensor.space != space || tensor.lifetime != Lifetime::program)
        continue;
      if (tensor.bytes() == 0 || intervals[id].first > intervals[id].last) continue;
      blocks.push_back({aligned(tensor.bytes()), intervals[id].first, intervals[id].last});
      ids.push_back(id);
    }
    const int64_t live = peak_live_bytes(blocks);
    result.live_bytes[index] = live;
    stage.live_bytes = std::max(stage.live_bytes, live);
    stage.program_bytes = std::max(stage.program_bytes, live);
    if (!places_ || blocks.empty()) return;
    const Placement placement = place(blocks);
    for (size_t i = 0; i < ids.size(); ++i)
      offsets[ids[i]] = result.run_bytes + stage.step_bytes + placement.offsets[i];
    stage.program_bytes = std::max(stage.program_bytes, placement.bytes);
  }

  std::span<const Program> programs_;
  int64_t alignment_;
  bool places_;
  Layout layout_;
  SharedTensors run_tensors_;
};

}  // namespace

int64_t SpaceLayout::lower_bound_bytes() const {
  int64_t most = 0;
  for (const StageLayout& stage : stages)
    most = std::max(most, stage.step_bytes + stage.live_bytes);
  return run_bytes + most;
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
