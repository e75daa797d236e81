// What loading finds out about the numbers it reads: that they are finite, and which they are.
#include <gtest/gtest.h>

#include <map>

#include "base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "golden_tensors.h"
#include "runtime/loading/load_weights.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::TensorSpec;
using testing::contains;
using testing::golden;
using testing::golden_config;
using testing::specs_of;
using testing::stored;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

// Overwrites bytes of a tensor where its file holds them.
void overwrite(const fs::path& folder, const std::string& name, int64_t at,
               const std::string& bytes) {
  const formats::TensorIndex index(folder);
  const formats::IndexedTensor& tensor = index.at(name);
  auto file = base::File::open_for_update(index.path_of(tensor));
  file.write_at(index.files()[tensor.file].header_bytes() + tensor.info->begin + at, bytes.data(),
                std::ssize(bytes));
}

// A copy of a golden model with its weights in one type.
void write_as(DType dtype, const models::ModelConfig& config, const fs::path& folder) {
  std::vector<TensorSpec> specs;
  for (auto& [name, spec] : specs_of(config)) {
    specs.push_back(spec);
    specs.back().dtype = dtype;
  }
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  for (const TensorSpec& spec : specs) {
    const std::string zeros(static_cast<size_t>(spec.bytes()), '\0');
    writer.write(spec.name, zeros.data(), spec.bytes());
  }
  writer.finish();
}

// In whatever type and however it is read: straight, through a slot, to a master, quantised.
TEST(LoadedNumbers, RefusesWhatIsNotFinite) {
  using namespace std::string_literals;
  models::ModelConfig config = testing::tiny_model();
  const std::string name = "model.layers.1.mlp.up_proj.weight";  // (20, 12)
  for (const auto& [dtype, infinity] : {std::pair{DType::f32, "\0\0\x80\x7f"s},
                                        {DType::bf16, "\x80\x7f"s},
                                        {DType::f16, "\0\x7e"s},  // NaN
                                        {DType::f64, "\0\0\0\0\0\0\xf0\xff"s}})
    for (TinyOptions options :
         {TinyOptions{.method = formats::Method::full, .compute = DType::f32},
          TinyOptions{.method = formats::Method::full, .compute = DType::bf16},
          TinyOptions{.method = formats::Method::lora, .compute = DType::bf16},
          TinyOptions{.method = formats::Method::lora, .quantization = {{}}}}) {
      const TemporaryFolder folder;
      write_as(dtype, config, folder.path());
      options.model.file_width = config.file_width = base::size_of(dtype);
      TinyRun run(options);
      EXPECT_NO_THROW(load_weights(folder.path(), config, run.executor()));
      overwrite(folder.path(), name, 29 * base::size_of(dtype), infinity);
      EXPECT_TRUE(
          contains(user_error_of([&] { load_weights(folder.path(), config, run.executor()); }),
                   "model.safetensors: tensor '" + name + "' holds an infinity or NaN at [2, 5]"));
    }
}

TEST(LoadedNumbers, RefusesWhatRoundingMakesInfinite) {
  const models::ModelConfig config = testing::tiny_model();
  const TemporaryFolder folder;
  write_as(DType::f32, config, folder.path());
  overwrite(folder.path(), "model.norm.weight", 4, std::string("\xff\xff\x7f\x7f"));
  TinyRun exact({.method = formats::Method::lora, .compute = DType::f32});
  EXPECT_NO_THROW(load_weights(folder.path(), config, exact.executor()));
  TinyRun rounded({.method = formats::Method::lora, .compute = DType::bf16});
  EXPECT_TRUE(
      contains(user_error_of([&] { load_weights(folder.path(), config, rounded.executor()); }),
               "'model.norm.weight' holds a number at [1] which is infinite when it is rounded"));
}

// Every byte that is read counts, wherever it lies; what is not read does not, nor where it lies.
TEST(LoadedNumbers, TheDigestIsOfEveryByteThatIsRead) {
  const models::ModelConfig config = golden_config("sharded_bf16");
  const TemporaryFolder folder;
  const fs::path copy = folder / "model";
  fs::copy(golden("sharded_bf16") / "model", copy, fs::copy_options::recursive);
  TinyRun run({.model = config, .method = formats::Method::lora, .compute = DType::bf16});
  const auto digest = [&] { return load_weights(copy, config, run.executor()).digest; };
  const uint64_t whole = digest();
  EXPECT_EQ(digest(), whole);
  const formats::TensorIndex index(copy);
  for (const models::Weight& weight : models::weights_of(config)) {
    const std::string before = stored(index, weight.name);
    for (const size_t at : {size_t{0}, before.size() / 2, before.size() - 2}) {
      overwrite(copy, weight.name, static_cast<int64_t>(at),
                std::string(1, static_cast<char>(before[at] ^ 1)));
      EXPECT_NE(digest(), whole) << weight.name << " " << at;
      overwrite(copy, weight.name, static_cast<int64_t>(at), std::string(1, before[at]));
    }
  }
  EXPECT_EQ(digest(), whole);
  // Two tensors of one shape that change places.
  const std::string one = "model.layers.0.mlp.up_proj.weight";
  const std::string other = "model.layers.0.mlp.gate_proj.weight";
  const std::string first = stored(index, one);
  overwrite(copy, one, 0, stored(index, other));
  overwrite(copy, other, 0, first);
  EXPECT_NE(digest(), whole);
}

// Of a folder in 4 bits the codes count, and all that they are read with.
TEST(LoadedNumbers, TheDigestIsOfStoredNf4Too) {
  for (const char* name : {"plain", "double"}) {
    const TemporaryFolder folder;
    const fs::path copy = folder / "model";
    fs::copy(golden("nf4") / name, copy, fs::copy_options::recursive);
    const models::ModelConfig config = models::find_model(copy.string()).config;
    TinyRun run({.model = config,
                 .method = formats::Method::lora,
                 .compute = DType::bf16,
                 .quantization = {{.nested = config.stored->double_quant, .kept = {}}}});
    const auto digest = [&] { return load_weights(copy, config, run.executor()).digest; };
    const uint64_t whole = digest();
    const std::string weight = "model.layers.1.mlp.up_proj.weight";
    std::vector<std::string> parts{weight, weight + ".absmax"};
    if (config.stored->double_quant) {
      parts.push_back(weight + ".nested_absmax");
      parts.push_back(weight + ".nested_quant_map");
    }
    for (const std::string& part : parts) {
      const std::string before = stored(formats::TensorIndex(copy), part);
      overwrite(copy, part, 0, std::string(1, static_cast<char>(before[0] ^ 1)));
      EXPECT_NE(digest(), whole) << part;
      overwrite(copy, part, 0, before.substr(0, 1));
    }
    EXPECT_EQ(digest(), whole);
  }
}

}  // namespace
}  // namespace snug::runtime
