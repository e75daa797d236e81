// The pass that lets the inputs of layers wait on the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../program/moved_awaits.h"
#include "passes/memory/layout.h"
#include "passes/memory/offload.h"
#include "program/verify/verify.h"
#include "test_target.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Program;

class RemoteTarget final : public TestTarget {
 public:
  RemoteTarget() : TestTarget([](const program::OperationView&) { return true; }) {}
  bool host_reaches_device() const override { return false; }
};

// Three layers of one linear each. The backward pass reads each layer's input.
constexpr std::string_view kBefore = R"(program micro
tensor a (8, 4) f32 batch step
tensor w (4, 4) f32 weight run
x0 (8, 4) f32 checkpoint layer 0 = add(a, a) layer none
x1 (8, 4) f32 checkpoint layer 1 = matmul(x0, w) layer 0
x2 (8, 4) f32 checkpoint layer 2 = matmul(x1, w) layer 1
x3 (8, 4) f32 checkpoint layer none = matmul(x2, w) layer 2
d3 (8, 4) f32 = add(x3, x3) backward
d2 (8, 4) f32 layer 2 = add(d3, x2) backward layer 2
d1 (8, 4) f32 layer 1 = add(d2, x1) backward layer 1
d0 (8, 4) f32 layer 0 = add(d1, x0) backward layer 0
)";

constexpr std::string_view kBehind = R"(program micro
tensor a (8, 4) f32 batch step
tensor w (4, 4) f32 weight run
x0 (8, 4) f32 checkpoint layer 0 = add(a, a) layer none
x0.offloaded (8, 4) f32 checkpoint pinned_host layer 0 = transfer(x0) channel device_to_host layer none
x1 (8, 4) f32 checkpoint layer 1 = matmul(x0, w) layer 0
await(x0) updates (x0.offloaded) layer 0
x1.offloaded (8, 4) f32 checkpoint pinned_host layer 1 = transfer(x1) channel device_to_host layer 0
x2 (8, 4) f32 checkpoint layer 2 = matmul(x1, w) layer 1
await(x1) updates (x1.offloaded) layer 1
x3 (8, 4) f32 checkpoint layer none = matmul(x2, w) layer 2
d3 (8, 4) f32 = add(x3, x3) backward
x1.fetched (8, 4) f32 checkpoint layer 1 = transfer(x1.offloaded) backward channel host_to_device layer 2
d2 (8, 4) f32 layer 2 = add(d3, x2) backward layer 2
await(x1.offloaded) updates (x1.fetched) backward layer 1
x0.fetched (8, 4) f32 checkpoint layer 0 = transfer(x0.offloaded) backward channel host_to_device layer 1
d1 (8, 4) f32 layer 1 = add(d2, x1.fetched) backward layer 1
await(x0.offloaded) updates (x0.fetched) backward layer 0
d0 (8, 4) f32 layer 0 = add(d1, x0.fetched) backward layer 0
)";

TEST(Offload, LayerInputsWaitOnTheHost) {
  const Program result = offload(parse(kBefore), RemoteTarget());
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  EXPECT_EQ(print(result), print(parse(kBehind)));
}

// What reads a view of a checkpoint in the backward pass reads the same view of what came back.
TEST(Offload, ViewsAreThoseOfWhatCameBack) {
  std::string before(kBefore);
  const std::string read = "add(d2, x1) backward";
  before.replace(before.find(read), read.size(), "add(d2, x1.rows) backward");
  const std::string made = "x2 (8, 4)";
  before.insert(before.find(made),
                "tensor x1.rows (8, 4) f32 checkpoint layer 1 view of x1 at 0 strides (4, 1)\n");
  const Program result = offload(parse(before), RemoteTarget());
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const program::TensorId view = result.find("x1.rows.fetched");
  ASSERT_NE(view, program::kNone);
  EXPECT_EQ(result.tensor(result.owner(view)).name, "x1.fetched");
  EXPECT_TRUE(std::ranges::any_of(result.operations, [&](const program::Operation& operation) {
    return std::ranges::count(operation.reads, view) == 1;
  }));
}

TEST(Offload, OneChannelWhereTheHostReachesTheDevice) {
  const TestTarget near([](const program::OperationView&) { return true; });
  const Program result = offload(parse(kBefore), near);
  EXPECT_EQ(
      std::ranges::count(result.operations, program::Kind::transfer, &program::Operation::kind), 4);
  for (const program::Operation& operation : result.operations)
    EXPECT_EQ(operation.channel, program::Channel::compute);
}

TEST(Offload, WithoutCheckpointsNothingChanges) {
  std::string text(kBefore);
  for (size_t at = 0; (at = text.find(" checkpoint", at)) != std::string::npos;)
    text.erase(at, std::string_view(" checkpoint").size());
  EXPECT_EQ(offload(parse(text), RemoteTarget()), parse(text));
}

TEST(Offload, TheVerifierSeesEachAwaitThatIsNotInItsPlace) {
  EXPECT_EQ(testing::expect_awaits_in_place(offload(parse(kBefore), RemoteTarget())), 4);
}

// Of any number of layers the device holds as many bytes, the host one more checkpoint each.
TEST(Offload, TheDeviceHoldsNoMoreWithMoreLayers) {
  const auto spaces_of = [](int layers) {
    std::string text =
        "program micro\ntensor a (64, 64) f32 batch step\n"
        "tensor w (64, 64) f32 weight run\n"
        "x0 (64, 64) f32 checkpoint layer 0 = add(a, a) layer none\n";
    for (int i = 0; i < layers; ++i)
      text += fmt::format("x{} (64, 64) f32 checkpoint layer {} = matmul(x{}, w) layer {}\n", i + 1,
                          i + 1 < layers ? std::to_string(i + 1) : "none", i, i);
    text += fmt::format("d{0} (64, 64) f32 = add(x{0}, x{0}) backward\n", layers);
    for (int i = layers - 1; i >= 0; --i)
      text += fmt::format("d{0} (64, 64) f32 = add(d{1}, x{0}) backward layer {0}\n", i, i + 1);
    const std::vector<Program> programs{offload(parse(text), RemoteTarget())};
    EXPECT_EQ(program::verify(programs[0]), std::vector<std::string>{});
    const Layout placed = layout(programs, 64);
    EXPECT_EQ(program::verify_offsets(programs[0], placed.offsets[0]), std::vector<std::string>{});
    return placed.spaces;
  };
  const auto program_bytes = [](const SpaceLayout& space) {
    return space.of(program::Stage::training).program_bytes;
  };
  constexpr int64_t kBytes = 64 * 64 * 4;
  const auto few = spaces_of(4);
  const auto more = spaces_of(9);
  EXPECT_EQ(program_bytes(few[0]), program_bytes(more[0]));
  EXPECT_EQ(program_bytes(more[1]) - program_bytes(few[1]), 5 * kBytes);
}

}  // namespace
}  // namespace snug::passes
