#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "operation_case.h"
#include "program/kinds/optimizer/lion.h"
#include "program/kinds/optimizer/optimizer.h"
#include "weights_check.h"

namespace snug::backends::test {
namespace {

using base::DType;
using program::AdamW;
using program::AdamW8bit;

struct Stepped {
  program::Attributes attributes;
  std::vector<Buffer> reads;
  std::vector<Buffer> updates;
};

enum class Form : uint8_t { f32, master, stochastic, coded, lion };

struct Wanted {
  Form form;
  int64_t elements;
  bool other_constants = false;
};

// Sizes around those of vectors, of a thread's items, of blocks and of a coded block.
constexpr int64_t kSizes[]{1, 8, 250, 256, 1000, 2048, 4096, 8200, 8192, 16};

// More of each form than a launch has room for, once interrupted by other constants.
std::vector<Wanted> wanted_steps() {
  std::vector<Wanted> steps;
  const auto add = [&](Form form, int count, bool other_constants = false) {
    for (int i = 0; i < count; ++i)
      steps.push_back({form, kSizes[static_cast<size_t>(i) % std::size(kSizes)], other_constants});
  };
  add(Form::master, 30);
  add(Form::f32, 30);
  add(Form::stochastic, 60);
  add(Form::stochastic, 2, true);
  add(Form::coded, 30);
  add(Form::lion, 60);
  add(Form::lion, 1, true);
  add(Form::master, 1);
  return steps;
}

// Steps whose tensors lie in one arena, with gaps between them.
class Steps {
 public:
  Steps(Backend& backend, uint64_t seed)
      : backend_(backend),
        random_(seed),
        arena_(backend.allocate(program::Space::device, kArenaBytes)),
        image_(static_cast<size_t>(kArenaBytes), std::byte{0xa5}) {
    scalars_ = {scalar(1.0F, DType::f32), scalar(1e-2F, DType::f32),
                scalar(int32_t{3}, DType::i32)};
    for (const Wanted& wanted : wanted_steps()) add(wanted);
    // The last tensor again: its second step needs what its first has made.
    add(wanted_steps().back());
    steps_.back().updates = steps_[steps_.size() - 2].updates;
    for (const Stepped& step : steps_) {
      Invocation invocation;
      invocation.attributes = &step.attributes;
      invocation.reads = step.reads;
      invocation.updates = step.updates;
      invocations_.push_back(invocation);
    }
    join();
    backend.copy(arena_->data(), image_.data(), kArenaBytes);
  }

  std::span<const Invocation> invocations() const { return invocations_; }
  // The arena before any step, and now.
  const std::vector<std::byte>& start() const { return image_; }
  std::vector<std::byte> now() const {
    std::vector<std::byte> bytes(image_.size());
    backend_.copy(bytes.data(), arena_->data(), kArenaBytes);
    return bytes;
  }

 private:
  static constexpr int64_t kArenaBytes = 16 << 20;

  // Marks what the target does in one launch, as lower does in a program of these steps.
  void join() {
    program::Program program;
    std::map<const std::byte*, program::TensorId> ids;
    const auto ids_of = [&](const std::vector<Buffer>& buffers) {
      std::vector<program::TensorId> found;
      for (const Buffer& buffer : buffers) {
        const auto id = static_cast<program::TensorId>(program.tensors.size());
        const auto [entry, is_new] = ids.try_emplace(buffer.data, id);
        if (is_new) {
          program::Tensor tensor;
          tensor.name = std::to_string(id);
          tensor.shape = buffer.shape;
          tensor.dtype = buffer.dtype;
          program.tensors.push_back(std::move(tensor));
        }
        found.push_back(entry->second);
      }
      return found;
    };
    for (const Stepped& step : steps_) {
      program::Operation operation;
      operation.attributes = step.attributes;
      operation.reads = ids_of(step.reads);
      operation.updates = ids_of(step.updates);
      program.operations.push_back(std::move(operation));
    }
    for (size_t first = 0; first < steps_.size();) {
      const size_t end = first + backend_.launched_together(program, first);
      while (++first < end) invocations_[first].joined = true;
    }
  }

  // The next place of the arena, and of its image.
  Buffer place(DType dtype, int64_t count, const void* bytes) {
    constexpr int64_t kGap = 64;
    const Buffer buffer{arena_->data() + used_, dtype, {count}, {1, 0, 0, 0}};
    std::memcpy(image_.data() + used_, bytes, static_cast<size_t>(buffer.bytes()));
    used_ += (buffer.bytes() + 2 * kGap) / kGap * kGap;
    EXPECT_LE(used_, kArenaBytes);
    return buffer;
  }

  template <typename T>
  Buffer scalar(T value, DType dtype) {
    return place(dtype, 1, &value);
  }
  Buffer floats(int64_t count, DType dtype, double mean, double deviation) {
    const Values values = normal(random_, count, mean, deviation);
    std::vector<float> wide(values.begin(), values.end());
    if (dtype == DType::f32) return place(dtype, count, wide.data());
    std::vector<base::BFloat16> narrow;
    for (const float value : wide) narrow.push_back(base::to_bfloat16(value));
    return place(dtype, count, narrow.data());
  }
  Buffer codes(int64_t count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_() % 256);
    return place(DType::u8, count, bytes.data());
  }

  void add(const Wanted& wanted) {
    const auto site = static_cast<int32_t>(steps_.size());
    const float decay = site % 3 == 0 ? 0.0F : 0.1F;
    const float beta1 = wanted.other_constants ? 0.8F : 0.9F;
    Stepped& step = steps_.emplace_back();
    if (wanted.form == Form::lion)
      step.attributes = program::Lion{.beta1 = beta1, .weight_decay = decay, .has_master = true};
    else if (wanted.form == Form::coded)
      step.attributes = AdamW8bit{.beta1 = beta1, .weight_decay = decay, .seed = 5, .site = site};
    else
      step.attributes = AdamW{.beta1 = beta1,
                              .weight_decay = decay,
                              .stochastic = wanted.form == Form::stochastic,
                              .has_master = wanted.form == Form::master,
                              .seed = 5,
                              .site = site};
    const int64_t count = wanted.elements;
    const bool is_odd = site % 2 == 1;
    step.reads = {floats(count, is_odd ? DType::bf16 : DType::f32, 0.0, 1.0)};
    const bool counts = wanted.form != Form::lion;  // steps
    step.reads.insert(step.reads.end(), scalars_.begin(), scalars_.end() - (counts ? 0 : 1));
    step.updates = {floats(count, wanted.form == Form::f32 ? DType::f32 : DType::bf16, 0.0, 1.0)};
    if (wanted.form == Form::coded) {
      for (int k = 0; k < 2; ++k) step.updates.push_back(codes(count));
      for (int k = 0; k < 2; ++k)
        step.updates.push_back(floats(program::state_blocks(count), DType::f32, 1.0, 0.01));
      return;
    }
    if (wanted.form == Form::lion) {
      for (int k = 0; k < 2; ++k) step.updates.push_back(floats(count, DType::f32, 0.0, 1.0));
      return;
    }
    const DType moments = wanted.form == Form::stochastic ? DType::bf16 : DType::f32;
    step.updates.push_back(floats(count, moments, 0.0, 0.1));
    step.updates.push_back(floats(count, moments, 1.0, 0.01));
    if (wanted.form == Form::master) step.updates.push_back(floats(count, DType::f32, 0.0, 1.0));
  }

  Backend& backend_;
  Random random_;
  std::unique_ptr<Arena> arena_;
  std::vector<std::byte> image_;
  int64_t used_ = 0;
  std::vector<Buffer> scalars_;
  std::vector<Stepped> steps_;
  std::vector<Invocation> invocations_;
};

}  // namespace

void check_list_of_steps(Backend& backend, const std::function<void()>& before,
                         const std::function<void()>& after) {
  const uint64_t seed = test_seed();
  const Steps one_by_one(backend, seed);
  const Steps together(backend, seed);
  ASSERT_TRUE(one_by_one.start() == together.start());
  for (const Invocation& invocation : one_by_one.invocations()) backend.run(invocation);
  backend.synchronise();
  before();
  backend.run_list(together.invocations());
  backend.synchronise();
  after();
  const std::vector<std::byte> found = together.now();
  EXPECT_FALSE(found == together.start());
  EXPECT_TRUE(found == one_by_one.now()) << "SNUG_TEST_SEED=" << seed;
}

// 60 with an f32 master; 60 and 2 stochastic; 30 coded; 60 and 1 of Lion; one, and the same one
// again.
int64_t launches_of_steps() { return 2 + 2 + 1 + 2 + 2 + 1 + 1 + 1; }

}  // namespace snug::backends::test
