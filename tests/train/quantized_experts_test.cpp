// Experts in 4 bits, which files hold in a tensor for each matrix or in one for all: what is
// stored, and that LoRA on all experts and on attention trains over them as it does over a model in
// 32 bits that has the same values, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "../base/temporary_folder.h"
#include "base/json.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/nf4.h"
#include "golden_case.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"
#include "passes/lowering/quantize.h"

namespace snug::test {
namespace {

using testing::TemporaryFolder;

// The golden's model with matrices of experts of whole blocks, several to a block of 256 scales.
void write_model(const std::string& golden, const TemporaryFolder& folder) {
  auto config = base::read_json_file(golden_folder(golden) + "/model/config.json");
  const bool has_own_size = config.contains("moe_intermediate_size");
  config[has_own_size ? "moe_intermediate_size" : "intermediate_size"] = 32;  // times 6, 8 or 12
  config["vocab_size"] = 23;
  folder.write("config.json", config.dump());
  const auto model = models::find_model(folder.path().string());
  std::vector<formats::TensorSpec> specs;
  for (const models::Weight& weight : models::file_weights_of(models::stack_of(model.config))) {
    std::vector<int64_t> shape(static_cast<size_t>(weight.shape.rank()));
    for (size_t axis = 0; axis < shape.size(); ++axis)
      shape[axis] = weight.shape[static_cast<int>(axis)];
    specs.push_back({weight.name, base::DType::f32, shape});
  }
  int64_t number = 0;
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  for (const formats::TensorSpec& spec : specs) {
    std::vector<float> values(static_cast<size_t>(spec.bytes()) / sizeof(float));
    for (float& value : values) value = std::sin(static_cast<float>(++number % 9973));
    writer.write(spec.name, values.data(), spec.bytes());
  }
  writer.finish();
}

// How a job stores the model's linears, and where `experts` is set its experts.
LoadedCase load(const std::string& backend, const TemporaryFolder& folder, bool experts,
                bool nested) {
  const models::Stack stack = models::stack_of(models::find_model(folder.path().string()).config);
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::lora;
  spec.compute = program::DType::f32;
  spec.deterministic = true;
  spec.rows = 2;
  spec.row_tokens = 17;
  spec.lora.row_tokens = 17;
  spec.lora.r = 3;
  spec.lora.alpha = 4;
  spec.lora.target_modules = {"q_proj", "o_proj"};
  spec.lora.target_parameters = {"experts.gate_up_proj", "experts.down_proj"};
  spec.quantization =
      passes::QuantizeOptions{.nested = nested, .kept = models::matrices_in_16_bits(stack)};
  for (const models::Weight& weight : models::weights_of(stack)) {
    const bool is_stored = experts && weight.is_of_matrices();
    if (is_stored) spec.quantization->experts.push_back(weight.name);
  }
  return {backend, folder.path().string(), "", spec};
}

template <typename T>
std::vector<T> held(runtime::Executor& executor, const std::string& name) {
  const backends::Buffer& buffer = executor.tensor(name);
  std::vector<T> values(static_cast<size_t>(buffer.bytes()) / sizeof(T));
  executor.backend().copy(values.data(), buffer.data, buffer.bytes());
  executor.backend().synchronise();
  return values;
}

// What the codes stand for, by the definition in docs/nf4.md.
std::vector<float> values_in(runtime::Executor& executor, const std::string& name, bool nested) {
  const auto codes = held<uint8_t>(executor, name);
  std::vector<float> scales;
  if (nested) {
    const auto nested_absmax = held<float>(executor, passes::nested_absmax_name(name));
    const auto map = held<float>(executor, passes::nested_map_name(name));
    const auto offset = held<float>(executor, passes::nested_offset_name(name));
    for (const uint8_t code : held<uint8_t>(executor, passes::absmax_name(name))) {
      const float scaled = map[code] * nested_absmax[scales.size() / formats::kNestedBlockSize];
      scales.push_back(scaled + offset[0]);
    }
  } else {
    scales = held<float>(executor, passes::absmax_name(name));
  }
  std::vector<float> values(codes.size() * 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
    values[i] = formats::kNf4Codes[static_cast<size_t>(code)] *
                scales[i / static_cast<size_t>(formats::kNf4BlockSize)];
  }
  return values;
}

// The elements of the files' tensors that make up a weight, one after the other.
std::vector<float> values_in_files(const TemporaryFolder& folder, const models::Weight& weight) {
  const formats::TensorIndex index(folder.path());
  std::vector<float> values(static_cast<size_t>(weight.shape.elements()));
  for (const models::FilePiece& piece : models::file_pieces(weight.name, weight.shape))
    index.read(index.at(piece.name), reinterpret_cast<std::byte*>(values.data() + piece.first));
  return values;
}

std::vector<float> trained(LoadedCase& loaded) {
  runtime::Executor& executor = loaded.executor();
  // Both factors of each adapter are other than zero.
  for (const program::Tensor& trainable : executor.job().trainables) {
    const backends::Buffer& buffer = executor.tensor(trainable.name);
    std::vector<float> values(static_cast<size_t>(buffer.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.3F * std::cos(static_cast<float>(i));
    executor.backend().copy(buffer.data, values.data(), buffer.bytes());
    executor.backend().synchronise();
  }
  std::vector<int32_t> ids(34);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((7 * i + 3) % 23);
  loaded.put_batch(program::ProgramName::micro_first, ids, ids);
  executor.set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(ids)));
  executor.run(program::ProgramName::micro_first);
  std::vector<float> result = values_of(executor, "loss");
  for (const program::Tensor& trainable : executor.job().trainables) {
    const std::vector<float> gradient = values_of(executor, "gradient." + trainable.name);
    result.insert(result.end(), gradient.begin(), gradient.end());
  }
  return result;
}

struct Stored {
  std::string backend;
  std::string golden;
  bool nested;
};
void PrintTo(const Stored& stored, std::ostream* stream) { *stream << stored.golden; }

class QuantizedExperts : public ::testing::TestWithParam<Stored> {
 protected:
  void SetUp() override {
    if (!has_device(GetParam().backend)) GTEST_SKIP() << "skipped: no CUDA device";
  }
};

TEST_P(QuantizedExperts, TrainAsExpertsOfTheirValuesDo) {
  const auto& [backend, golden, nested] = GetParam();
  const TemporaryFolder folder;
  write_model(golden, folder);
  LoadedCase stored = load(backend, folder, true, nested);
  LoadedCase plain = load(backend, folder, false, nested);
  const std::vector<float> of_files = trained(plain);
  int64_t weights = 0;
  for (const models::Weight& weight : models::weights_of(plain.spec().model)) {
    if (!weight.is_of_matrices()) continue;
    SCOPED_TRACE(weight.name);
    ++weights;
    const std::vector<float> given = values_in_files(folder, weight);
    std::vector<uint8_t> codes(given.size() / 2);
    std::vector<float> absmax(given.size() / formats::kNf4BlockSize);
    formats::quantize_nf4(base::DType::f32, given.data(), std::ssize(given), codes.data(),
                          absmax.data());
    EXPECT_EQ(held<uint8_t>(stored.executor(), weight.name), codes);
    if (!nested) {
      EXPECT_EQ(held<float>(stored.executor(), passes::absmax_name(weight.name)), absmax);
    }
    const std::vector<float> values = values_in(stored.executor(), weight.name, nested);
    EXPECT_LT(relative_error(values, given), 0.15);
    const backends::Buffer& buffer = plain.executor().tensor(weight.name);
    ASSERT_EQ(buffer.elements(), std::ssize(values));
    plain.executor().backend().copy(buffer.data, values.data(), buffer.bytes());
    plain.executor().backend().synchronise();
  }
  EXPECT_GE(weights, 2);
  const std::vector<float> expected = trained(plain);
  EXPECT_EQ(trained(stored), expected);
  EXPECT_NE(of_files.front(), expected.front()) << "4 bits lose something";
}

std::vector<Stored> stored_cases() {
  std::vector<Stored> cases;
  for (const std::string& backend : golden_backends())
    for (const auto& [golden, nested] : {std::pair{"qwen3_moe", false},
                                         {"qwen3_moe", true},
                                         {"granitemoe", true},
                                         {"qwen3_5_moe", true},
                                         {"gemma4_moe", true},
                                         {"gpt_oss", false}})
      cases.push_back({backend, golden, nested});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizedExperts, ::testing::ValuesIn(stored_cases()),
                         [](const auto& each) {
                           return each.param.golden + (each.param.nested ? "_nested_" : "_") +
                                  each.param.backend;
                         });

}  // namespace
}  // namespace snug::test
