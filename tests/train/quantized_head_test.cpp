// A head in 4 bits: the loss, the gradients and the memory of a job whose head is stored as NF4,
// next to those of a head in 16 or 32 bits that has the same values.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/quantization/nf4.h"
#include "golden_case.h"

namespace snug::test {
namespace {

constexpr const char* kHead = "lm_head.weight";

LoadedCase load(const std::string& backend, const std::string& head, program::DType compute) {
  plan::TrainingSpec spec;
  spec.compute = compute;
  spec.rows = 1;
  spec.row_tokens = 24;
  spec.lora.row_tokens = 24;
  spec.evaluate = true;
  spec.quantization = passes::QuantizeOptions{.nested = false, .kept = {}, .head = head};
  return {backend, golden_folder("phi3/model"), golden_folder("lora_phi3/adapter"), spec};
}

struct Step {
  float loss = 0;
  float evaluated = 0;
  std::vector<std::vector<float>> gradients;
};

Step step_of(LoadedCase& loaded) {
  runtime::Executor& executor = loaded.executor();
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 24; ++i) ids.push_back((7 * i + 3) % 50);
  const std::vector<int32_t> targets(ids.begin(), ids.end());
  Step step;
  for (const auto program : {program::ProgramName::micro_first, program::ProgramName::evaluate}) {
    loaded.put_batch(program, ids, targets);
    executor.set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(targets)));
    executor.run(program);
    (program == program::ProgramName::evaluate ? step.evaluated : step.loss) =
        values_of(executor, "loss")[0];
  }
  for (const auto& trainable : executor.job().trainables)
    step.gradients.push_back(values_of(executor, "gradient." + trainable.name));
  return step;
}

template <typename T>
std::vector<T> head_bytes_of(runtime::Executor& executor, const std::string& name) {
  const backends::Buffer& buffer = executor.tensor(name);
  std::vector<T> values(static_cast<size_t>(buffer.bytes()) / sizeof(T));
  executor.backend().copy(values.data(), buffer.data, buffer.bytes());
  executor.backend().synchronise();
  return values;
}

// What the stored head stands for.
std::vector<float> head_values(runtime::Executor& executor) {
  const auto codes = head_bytes_of<uint8_t>(executor, kHead);
  const auto absmax = head_bytes_of<float>(executor, std::string(kHead) + ".absmax");
  std::vector<float> values(codes.size() * 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
    values[i] = formats::kNf4Codes[static_cast<size_t>(code)] *
                absmax[i / static_cast<size_t>(formats::kNf4BlockSize)];
  }
  return values;
}

class QuantizedHead : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  }
};

TEST_P(QuantizedHead, TrainsAsAHeadOfItsValuesDoes) {
  LoadedCase stored = load(GetParam(), kHead, program::DType::f32);
  LoadedCase plain = load(GetParam(), "", program::DType::f32);
  const Step of_files = step_of(plain);
  std::vector<float> values = head_values(stored.executor());
  const backends::Buffer& head = plain.executor().tensor(kHead);
  ASSERT_EQ(head.dtype, program::DType::f32);
  ASSERT_LE(head.elements(), static_cast<int64_t>(values.size()));
  plain.executor().backend().copy(head.data, values.data(), head.bytes());
  plain.executor().backend().synchronise();
  const Step expected = step_of(plain);
  const Step found = step_of(stored);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.evaluated, expected.evaluated);
  EXPECT_EQ(found.gradients, expected.gradients);
  EXPECT_NE(found.loss, of_files.loss) << "4 bits lose something";
  EXPECT_NEAR(found.loss, of_files.loss, 0.05);
}

TEST_P(QuantizedHead, TakesFewerBytes) {
  const auto bytes = [&](const std::string& head) {
    LoadedCase loaded = load(GetParam(), head, program::DType::f32);
    return loaded.executor().tensor(kHead).bytes();
  };
  EXPECT_EQ(bytes(""), 8 * bytes(kHead));
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizedHead, ::testing::ValuesIn(golden_backends()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace snug::test
