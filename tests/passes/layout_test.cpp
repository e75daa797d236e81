// Placement and layout: against the lower bound, and against the verifier, which shares no code
// with it.
#include <gtest/gtest.h>

#include "base/random.h"
#include "passes/memory/layout.h"
#include "passes/memory/layout_sizes.h"
#include "passes/memory/place.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

std::vector<LiveRange> random_blocks(uint32_t seed, size_t count) {
  std::vector<LiveRange> blocks;
  for (uint32_t i = 0; i < count; ++i) {
    const auto bits = base::philox({i, seed, 0, 0}, {1, 2});
    const auto first = static_cast<int32_t>(bits[0] % 200);
    blocks.push_back({64 * static_cast<int64_t>(1 + bits[1] % 100), first,
                      first + static_cast<int32_t>(bits[2] % 40)});
  }
  return blocks;
}

TEST(Place, BlocksThatMeetInTimeAreApart) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto blocks = random_blocks(seed, 120);
    const Placement placement = place(blocks);
    EXPECT_GE(placement.bytes, peak_live_bytes(blocks));
    for (size_t a = 0; a < blocks.size(); ++a)
      for (size_t b = 0; b < a; ++b) {
        const bool meet = blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last;
        const bool apart = placement.offsets[a] + blocks[a].bytes <= placement.offsets[b] ||
                           placement.offsets[b] + blocks[b].bytes <= placement.offsets[a];
        EXPECT_TRUE(!meet || apart) << "blocks " << a << " and " << b << ", seed " << seed;
      }
  }
}

TEST(Place, AStackReachesTheBound) {
  std::vector<LiveRange> blocks;
  for (int32_t i = 0; i < 50; ++i) blocks.push_back({64 * (1 + i % 7), i, 100 - i});
  EXPECT_EQ(place(blocks).bytes, peak_live_bytes(blocks));
}

TEST(Layout, SizesAreThoseOfTheLayoutWithoutOffsets) {
  const std::vector<program::Program> programs{parse(R"(program p
tensor x (8, 4) bf16 batch step
tensor w (4, 4) bf16 weight run
a (8, 4) bf16 = matmul(x, w)
b (8, 4) bf16 = add(a, x)
c (8, 4) bf16 = add(b, b)
)"),
                                               parse(R"(program q
tensor w (4, 4) bf16 weight run
d (4, 4) bf16 = add(w, w)
)")};
  const Layout whole = layout(programs, 64);
  const Layout sizes = layout_sizes(programs, 64);
  EXPECT_TRUE(sizes.offsets.empty());
  for (size_t i = 0; i < whole.spaces.size(); ++i) {
    EXPECT_EQ(sizes.spaces[i].run_bytes, whole.spaces[i].run_bytes);
    for (size_t stage = 0; stage < program::kStageCount; ++stage)
      EXPECT_EQ(sizes.spaces[i].stages[stage].step_bytes, whole.spaces[i].stages[stage].step_bytes);
    EXPECT_EQ(sizes.spaces[i].live_bytes, whole.spaces[i].live_bytes);
    EXPECT_EQ(sizes.spaces[i].arena_bytes, whole.spaces[i].lower_bound_bytes());
  }
  EXPECT_EQ(sizes.spaces[0].arena_bytes, 64 + 64 + 128);
}

TEST(Layout, WhatIsJoinedLivesAsLongAsTheFirstAndTheLastOfIt) {
  const program::Program program = parse(R"(program p
tensor x (8, 4) bf16 batch step
tensor w (4, 4) bf16 weight run
a (8, 4) bf16 = add(x, x)
b (8, 4) bf16 = matmul(a, w)
c (8, 4) bf16 = silu_mul(b, x) joined
d (8, 4) bf16 = add(c, x)
)");
  const auto intervals = live_intervals(program);
  const auto of = [&](const char* name) {
    const Interval& interval = intervals[static_cast<size_t>(program.find(name))];
    return std::pair{interval.first, interval.last};
  };
  EXPECT_EQ(of("a"), (std::pair{0, 2}));
  EXPECT_EQ(of("b"), (std::pair{1, 2}));
  EXPECT_EQ(of("c"), (std::pair{1, 3}));
}

TEST(Layout, RunAndStepTensorsHaveOneOffsetAndProgramsOverlay) {
  const std::vector<program::Program> programs{parse(R"(program one
tensor w (64, 4) f32 weight run
tensor x (8, 4) f32 batch step
y (8, 64) f32 = matmul(x, w) {transpose_b}
)"),
                                               parse(R"(program two
tensor x (8, 4) f32 batch step
tensor w (64, 4) f32 weight run
z (8, 64) f32 = matmul(x, w) {transpose_b}
u (8, 64) f32 = add(z, z)
)")};
  const Layout result = layout(programs, 64);
  const auto offset = [&](size_t p, const char* name) {
    return result.offsets[p][static_cast<size_t>(programs[p].find(name))];
  };
  EXPECT_EQ(offset(0, "w"), offset(1, "w"));
  EXPECT_EQ(offset(0, "x"), offset(1, "x"));
  EXPECT_EQ(result.spaces[0].run_bytes, 1024);
  EXPECT_EQ(result.spaces[0].of(program::Stage::training).step_bytes, 128);
  EXPECT_EQ(result.spaces[0].of(program::Stage::training).program_bytes, 2 * 2048);
  EXPECT_EQ(result.spaces[0].arena_bytes, 1024 + 128 + 2 * 2048);
  EXPECT_EQ(offset(0, "y"), 1024 + 128);
  for (size_t p = 0; p < programs.size(); ++p)
    EXPECT_EQ(program::verify_offsets(programs[p], result.offsets[p]), std::vector<std::string>{});
}

// What a stage keeps between its programs lies where another one has its own.
TEST(Layout, StagesTakeTurnsInTheSameBytes) {
  const std::vector<program::Program> programs{parse(R"(program micro_first
tensor w (64, 4) f32 weight run
tensor x (8, 4) f32 batch step
y (8, 64) f32 = matmul(x, w) {transpose_b}
)"),
                                               parse(R"(program update
tensor w (64, 4) f32 weight run
tensor x (8, 4) f32 batch step
z (8, 64) f32 = matmul(x, w) {transpose_b}
)"),
                                               parse(R"(program decode.2
tensor w (64, 4) f32 weight run
tensor c (32, 4) f32 kv_cache step
tensor d (16, 4) f32 kv_cache step
u (16, 64) f32 = matmul(d, w) {transpose_b}
)"),
                                               parse(R"(program decode
tensor d (16, 4) f32 kv_cache step
tensor w (64, 4) f32 weight run
v (16, 64) f32 = matmul(d, w) {transpose_b}
)"),
                                               parse(R"(program save
tensor w (64, 4) f32 weight run
s (64, 4) f32 = add(w, w)
)")};
  using program::Stage;
  const Layout result = layout(programs, 64);
  EXPECT_EQ(result.stages, (std::vector{Stage::training, Stage::training, Stage::generation,
                                        Stage::generation, Stage::training}));
  const auto offset = [&](size_t p, const char* name) {
    return result.offsets[p][static_cast<size_t>(programs[p].find(name))];
  };
  const SpaceLayout& space = result.spaces[0];
  EXPECT_EQ(space.run_bytes, 1024);
  EXPECT_EQ(space.of(Stage::training).step_bytes, 128);
  EXPECT_EQ(space.of(Stage::training).program_bytes, 2048);
  EXPECT_EQ(space.of(Stage::generation).step_bytes, 512 + 256);
  EXPECT_EQ(space.of(Stage::generation).program_bytes, 4096);
  EXPECT_EQ(space.arena_bytes, 1024 + 512 + 256 + 4096);
  EXPECT_EQ(space.lower_bound_bytes(), space.arena_bytes);
  for (size_t p = 0; p < programs.size(); ++p) EXPECT_EQ(offset(p, "w"), 0);
  EXPECT_EQ(offset(0, "x"), 1024);
  EXPECT_EQ(offset(1, "x"), 1024);
  EXPECT_EQ(offset(2, "c"), 1024);
  EXPECT_EQ(offset(2, "d"), 1024 + 512);
  EXPECT_EQ(offset(3, "d"), 1024 + 512);
  EXPECT_EQ(offset(0, "y"), 1024 + 128);
  EXPECT_EQ(offset(3, "v"), 1024 + 512 + 256);
  EXPECT_EQ(offset(4, "s"), 1024 + 128);
}

}  // namespace
}  // namespace snug::passes
