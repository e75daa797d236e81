// Linears that files hold as (in, out): in 4 bits it is their transpose that is stored, as
// bitsandbytes does, byte for byte; otherwise they lie as the files have them. Files may leave out
// what stands in front of all names.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "convert/folder/quantize_folder.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/quantization/nf4.h"
#include "formats/quantization/quant_state.h"
#include "golden_tensors.h"
#include "plan/job/storage_programs.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/read_transposed.h"
#include "runtime/loading/stored_weight.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using base::DType;
using testing::contains;
using testing::golden;
using testing::golden_config;
using testing::stored;
using testing::TemporaryFolder;
using testing::TinyRun;
using testing::user_error_of;

constexpr const char* kLinears[] = {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"};

std::string linear_name(const char* module) {
  return fmt::format("transformer.h.0.{}.weight", module);
}

std::vector<float> transposed(const formats::TensorIndex& index, const std::string& name) {
  const std::string bytes = stored(index, name);
  const std::vector<int64_t>& shape = index.at(name).info->shape;
  std::vector<float> result(bytes.size() / sizeof(float));
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column)
      result[static_cast<size_t>(column * shape[0] + row)] = values[row * shape[1] + column];
  return result;
}

// Codes, then absmax, of the matrix's transpose.
std::string quantised_transpose(const formats::TensorIndex& index, const std::string& name) {
  const std::vector<float> values = transposed(index, name);
  const int64_t elements = std::ssize(values);
  std::string codes(static_cast<size_t>(formats::nf4_code_bytes(elements)), '\0');
  std::string absmax(static_cast<size_t>(formats::nf4_blocks(elements)) * sizeof(float), '\0');
  formats::quantize_nf4(DType::f32, values.data(), elements,
                        reinterpret_cast<uint8_t*>(codes.data()),
                        reinterpret_cast<float*>(absmax.data()));
  return codes + absmax;
}

// A model of one layer whose mlp is larger than a slot, and than what a row of it is read through.
void write_wide_model(const TemporaryFolder& folder, float one_value = 0.5F) {
  auto config = base::read_json_file(golden("gpt2") / "model/config.json");
  config["n_layer"] = 1;
  config["n_embd"] = 36;
  config["n_inner"] = 29129;
  folder.write("in/config.json", config.dump());
  const auto model = models::find_model((folder / "in").string());
  std::vector<formats::TensorSpec> specs;
  for (const auto& [name, spec] : testing::specs_of(model.config)) specs.push_back(spec);
  formats::SafetensorsWriter writer(folder / "in/model.safetensors", specs);
  for (const formats::TensorSpec& spec : specs) {
    std::vector<float> values(static_cast<size_t>(spec.bytes()) / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i % 99991));
    if (spec.name == linear_name("mlp.c_fc")) values[3 * 29129 + 29000] = one_value;
    writer.write(spec.name, values.data(), spec.bytes());
  }
  writer.finish();
}

TinyRun quantised_run(const models::ModelConfig& config) {
  return TinyRun({.model = config,
                  .method = formats::Method::lora,
                  .quantization = {{.nested = false, .kept = {}}}});
}

void expect_quantised_transposes(const fs::path& folder) {
  const formats::TensorIndex source(folder);
  const models::ModelConfig config = models::find_model(folder.string()).config;
  TinyRun run = quantised_run(config);
  load_weights(folder, config, run.executor());
  const TemporaryFolder result;
  const convert::FolderQuantizer quantizer(folder, {.double_quant = false, .keep_fp32 = true});
  quantizer.write(result / "out");
  const formats::TensorIndex in_folder(result / "out");
  const models::ModelConfig config_in_4_bits = models::find_model((result / "out").string()).config;
  TinyRun again = quantised_run(config_in_4_bits);
  load_weights(result / "out", config_in_4_bits, again.executor());
  for (const char* module : kLinears) {
    const std::string name = linear_name(module);
    SCOPED_TRACE(name);
    const std::string expected = quantised_transpose(source, name);
    const auto bytes_in = [&](const TinyRun& of, Executor& executor) {
      const StoredWeight weight = stored_weight(executor, name);
      return of.bytes(weight.codes) + of.bytes(weight.absmax);
    };
    EXPECT_TRUE(bytes_in(run, run.executor()) == expected);
    EXPECT_TRUE(stored(in_folder, name) + stored(in_folder, name + ".absmax") == expected);
    EXPECT_TRUE(bytes_in(again, again.executor()) == expected);
    std::vector<int64_t> shape = source.at(name).info->shape;
    std::reverse(shape.begin(), shape.end());
    EXPECT_EQ(formats::find_quant_state(in_folder, name)->shape, shape);
  }
}

TEST(TransposedWeights, AreQuantisedAsTheirTransposes) {
  expect_quantised_transposes(golden("gpt2") / "model");
}

TEST(TransposedWeights, AreQuantisedInPieces) {
  const TemporaryFolder folder;
  write_wide_model(folder);
  ASSERT_GT(36 * 29129 * int64_t{sizeof(float)}, plan::kSlotBytes);
  expect_quantised_transposes(folder / "in");
}

// Where the file has it, not where its transpose does.
TEST(TransposedWeights, AreNamedWithThePositionInTheFile) {
  const TemporaryFolder folder;
  write_wide_model(folder, std::numeric_limits<float>::quiet_NaN());
  const models::ModelConfig config = models::find_model((folder / "in").string()).config;
  TinyRun run = quantised_run(config);
  const std::string expected = "holds an infinity or NaN at [3, 29000]";
  EXPECT_TRUE(contains(user_error_of([&] { load_weights(folder / "in", config, run.executor()); }),
                       expected));
  const convert::FolderQuantizer quantizer(folder / "in", {});
  EXPECT_TRUE(contains(user_error_of([&] { quantizer.write(folder / "out"); }), expected));
}

TEST(ReadTransposed, GivesEveryRange) {
  const TemporaryFolder folder;
  constexpr int64_t kRows = 7;
  constexpr int64_t kColumns = 9001;  // more than are read at once
  const formats::TensorSpec spec{"w", DType::f32, {kRows, kColumns}};
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  formats::SafetensorsWriter writer(folder / "model.safetensors", std::vector{spec});
  writer.write(spec.name, values.data(), spec.bytes());
  writer.finish();
  const formats::TensorIndex index(folder.path());
  const std::vector<float> expected = transposed(index, "w");
  for (const int64_t first : {0, 1, 6, 7, 20, 62999, 63006})
    for (const int64_t count : {0, 1, 5, 7, 8, 15, 40000, 63007}) {
      if (first + count > std::ssize(expected)) continue;
      std::vector<float> found(static_cast<size_t>(count));
      read_transposed(index, index.at("w"), first, count,
                      reinterpret_cast<std::byte*>(found.data()));
      EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin() + first))
          << count << " from " << first;
    }
  EXPECT_EQ(element_in_file(*index.at("w").info, 7 * 12 + 3), 3 * kColumns + 12);
}

// A copy of a golden folder as its publishers wrote it: without the prefix, and with what is no
// weight.
void write_without_prefix(const TemporaryFolder& folder, const std::string& name) {
  const formats::TensorIndex source(golden(name) / "model");
  fs::create_directories(folder / "in");
  fs::copy(golden(name) / "model/config.json", folder / "in/config.json");
  const std::string prefix = "transformer.";
  std::vector<formats::TensorSpec> specs;
  for (const formats::IndexedTensor& tensor : source.tensors())
    specs.push_back(
        {tensor.info->name.substr(prefix.size()), *tensor.info->dtype, tensor.info->shape});
  if (name == "gpt2") specs.push_back({"h.0.attn.bias", DType::u8, {1, 1, 4, 4}});
  formats::SafetensorsWriter writer(folder / "in/model.safetensors", specs);
  for (const formats::TensorSpec& spec : specs) {
    const formats::IndexedTensor* tensor = source.find(prefix + spec.name);
    const std::string bytes =
        tensor == nullptr ? std::string(16, '\1') : stored(source, prefix + spec.name);
    writer.write(spec.name, bytes.data(), spec.bytes());
  }
  writer.finish();
}

TEST(OptionalPrefix, IsAddedWhereFilesLeaveItOut) {
  for (const char* name : {"gpt2", "bloom", "falcon"}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    write_without_prefix(folder, name);
    const models::ModelSource source = models::find_model((folder / "in").string());
    EXPECT_TRUE(source.config.tied_embeddings);
    TinyRun run({.model = source.config});
    load_weights(source.folder, source.config, run.executor());
    const formats::TensorIndex index(golden(name) / "model");
    for (const models::Weight& weight : models::weights_of(source.config))
      EXPECT_TRUE(run.bytes(weight.name) == stored(index, weight.name)) << weight.name;
    convert::FolderQuantizer(folder / "in", {}).write(folder / "out");
    EXPECT_NO_THROW(models::find_model((folder / "out").string()));
  }
}

TEST(OptionalPrefix, IsNotAddedToSomeNamesOnly) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  fs::copy(golden("gpt2") / "model/config.json", folder / "in/config.json");
  const formats::TensorSpec specs[] = {{"wte.weight", DType::f32, {23, 9}},
                                       {"transformer.wpe.weight", DType::f32, {67, 9}}};
  formats::SafetensorsWriter writer(folder / "in/model.safetensors",
                                    std::vector(std::begin(specs), std::end(specs)));
  const std::vector<float> zeros(67 * 9);
  for (const formats::TensorSpec& spec : specs) writer.write(spec.name, zeros.data(), spec.bytes());
  writer.finish();
  const models::ModelConfig config = models::find_model((folder / "in").string()).config;
  TinyRun run({.model = config});
  EXPECT_TRUE(contains(user_error_of([&] { load_weights(folder / "in", config, run.executor()); }),
                       "'wte.weight' is not part of the model"));
}

}  // namespace
}  // namespace snug::runtime
