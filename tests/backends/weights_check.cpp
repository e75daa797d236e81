#include "weights_check.h"

#include <cmath>
#include <limits>
#include <string>

#include "backends/reference/reference_backend.h"
#include "device_arrays.h"
#include "formats/quantization/nf4.h"
#include "operation_case.h"

namespace snug::backends::test {
namespace {

using base::DType;
using program::Shape;

std::vector<std::byte> filled(Backend& backend, const Shape& shape, DType dtype,
                              const RandomValues& values, int64_t first) {
  const DeviceArray<std::byte> array(backend, shape.elements() * base::size_of(dtype));
  backend.fill(array.buffer(dtype, shape), values, first);
  return array.values();
}

// Values of every kind of block that quantisation tells apart.
std::vector<float> blocks_of_all_kinds(Random& random, int64_t count) {
  constexpr int64_t kKinds = 8;
  const Values normals = normal(random, count);
  std::vector<float> values(normals.begin(), normals.end());
  for (int64_t i = 0; i < count; ++i) {
    float& value = values[static_cast<size_t>(i)];
    const int64_t place = i % formats::kNf4BlockSize;
    const auto threshold = formats::kNf4Thresholds[static_cast<size_t>(place % 15)];
    switch (i / formats::kNf4BlockSize % kKinds) {
      case 0:
        value = 0.0F;
        break;
      case 1:
        value *= 1e-41F;  // the absmax counts as 1e-38
        break;
      case 2:
        value = place == 0 ? -2.0F : 2.0F * threshold;
        break;
      case 3:
        if (place == 17) value = std::numeric_limits<float>::infinity();
        break;
      case 4:
        if (place == 63) value = std::numeric_limits<float>::quiet_NaN();
        break;
      case 5:  // where a product with the reciprocal and a quotient round to different sides
        value = place == 0 ? -3.3F : 3.3F * threshold;
        break;
      default:
        break;
    }
  }
  return values;
}

// As a file or a program holds them.
std::vector<std::byte> stored_as(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(base::size_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f32) {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
      continue;
    }
    const uint16_t bits =
        dtype == DType::bf16 ? base::to_bfloat16(values[i]).bits : base::to_float16(values[i]).bits;
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

void check_quantize_nf4(Backend& backend, DType dtype, int64_t elements, Random& random) {
  SCOPED_TRACE(
      fmt::format("{} of {}, SNUG_TEST_SEED={}", elements, base::name_of(dtype), test_seed()));
  const std::vector<std::byte> values = stored_as(dtype, blocks_of_all_kinds(random, elements));
  std::vector<uint8_t> codes(static_cast<size_t>(formats::nf4_code_bytes(elements)));
  std::vector<float> absmax(static_cast<size_t>(formats::nf4_blocks(elements)));
  formats::quantize_nf4(dtype, values.data(), elements, codes.data(), absmax.data());
  const DeviceArray<std::byte> source(backend, values);
  const DeviceArray<uint8_t> codes_there(backend, std::ssize(codes));
  const DeviceArray<float> absmax_there(backend, std::ssize(absmax));
  backend.quantize_nf4(source.buffer(dtype, {elements}), codes_there.data(), absmax_there.data());
  EXPECT_EQ(codes_there.values(), codes);
  const std::vector<float> found = absmax_there.values();
  EXPECT_EQ(std::memcmp(found.data(), absmax.data(), absmax.size() * sizeof(float)), 0);
}

}  // namespace

void check_fill(Backend& backend) {
  reference::ReferenceBackend reference({});
  const base::PhiloxKey key{0x12345678U, 0x9abcdef0U};
  for (const program::FillForm form :
       {program::FillForm::constant, program::FillForm::normal, program::FillForm::uniform})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const Shape& shape : {Shape{1}, Shape{7}, Shape{8}, Shape{3, 5}, Shape{64, 72}})
        for (const int64_t first : {int64_t{0}, int64_t{12}, (int64_t{1} << 34) + 4}) {
          SCOPED_TRACE(fmt::format("form {}, {}, {} elements from {}", static_cast<int>(form),
                                   base::name_of(dtype), shape.elements(), first));
          const RandomValues values{form, key, 0.02F};
          EXPECT_TRUE(filled(backend, shape, dtype, values, first) ==
                      filled(reference, shape, dtype, values, first));
        }
}

void check_quantize_nf4(Backend& backend) {
  Random random(test_seed());
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t elements : {1, 2, 7, 63, 64, 65, 130, 370, 8 * 64, 895, 2000, 8191, 8192})
      check_quantize_nf4(backend, dtype, elements, random);
}

}  // namespace snug::backends::test
