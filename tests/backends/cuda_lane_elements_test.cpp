// A warp's elements: each is rounded by the bits that are its own, and what lies past the end of a
// row is neither read nor written.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/kernels/lane_elements.cuh"

namespace snug::backends::cuda {
namespace {

constexpr base::PhiloxKey kKey{0x12345678U, 0x9abcdef0U};
constexpr int64_t kFarBlock = int64_t{1} << 33;

__global__ void trade_kernel(int64_t block, uint32_t plane, uint32_t* bits) {
  __shared__ RoundingBits traded[1];
  // What an earlier plane left.
  trade_bits(kKey, plane + 1, block, traded[0]);
  const LaneBits lane = trade_bits(kKey, plane, block, traded[0]);
  for (int i = 0; i < kOfLane; ++i) bits[threadIdx.x * kOfLane + i] = lane.of(i);
}

TEST(LaneElements, AreRoundedByTheirOwnBits) {
  for (const int64_t block : {int64_t{0}, int64_t{3}, kFarBlock})
    for (const uint32_t plane : {0U, 2U}) {
      std::vector<uint32_t> bits(kOfWarp);
      launch(trade_kernel, {.grid = {}, .block = {kLanes}}, nullptr, block, plane, bits.data());
      for (int64_t i = 0; i < kOfWarp; ++i)
        ASSERT_EQ(bits[static_cast<size_t>(i)], rounding_bits(kKey, plane, block * kOfWarp + i))
            << "element " << i << " of block " << block << ", plane " << plane;
    }
}

__global__ void copy_kernel(DeviceRows from, DeviceRows to, int64_t elements, bool aligned) {
  const LanePlace place = place_of_lane(blockIdx.x, elements);
  const bool vectors = aligned && place.is_full();
  store_lane(to, place, vectors, load_lane(from, place, vectors));
}

// Rows that end within a lane's elements, whose first element may be read in a vector or not.
TEST(LaneElements, EndWithTheRow) {
  using enum ElementFormat;
  for (const ElementFormat format : {f32, bf16, f16})
    for (const int64_t elements : {1, 8, 255, 256, 300, 517})
      for (const bool aligned : {false, true}) {
        const int64_t shift = aligned ? 0 : 1;
        constexpr int64_t kMost = 600;
        alignas(16) uint32_t from[kMost];
        alignas(16) uint32_t to[kMost];
        for (int64_t i = 0; i < kMost; ++i) {
          from[i] = 0x3f800000U + static_cast<uint32_t>(i * 65537);
          to[i] = 0xffffffffU;
        }
        const int64_t bytes = element_bytes(format);
        const auto at = [&](uint32_t* data) {
          return DeviceRows{reinterpret_cast<std::byte*>(data) + shift * bytes, 0, format};
        };
        const auto blocks = static_cast<uint32_t>(ceil_div(elements, kOfWarp));
        launch(copy_kernel, {.grid = {blocks}, .block = {kLanes}}, nullptr, at(from), at(to),
               elements, aligned);
        const auto* read = reinterpret_cast<const std::byte*>(from);
        const auto* written = reinterpret_cast<const std::byte*>(to);
        for (int64_t byte = 0; byte < kMost * 4; ++byte) {
          const bool inside = byte >= shift * bytes && byte < (shift + elements) * bytes;
          ASSERT_EQ(written[byte], inside ? read[byte] : std::byte{0xff})
              << "byte " << byte << " of " << elements << " elements";
        }
      }
}

}  // namespace
}  // namespace snug::backends::cuda
