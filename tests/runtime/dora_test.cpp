// Adapters with magnitudes (DoRA) in the executor's arenas: what they begin as, whatever the
// weights are stored as, and folders in and out.
#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_folder.h"
#include "formats/adapter/peft_adapter.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using base::DType;
using testing::contains;
using testing::golden;
using testing::golden_config;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

TinyOptions dora(const std::string& model) {
  TinyOptions options;
  options.model = golden_config(model);
  options.method = formats::Method::lora;
  options.lora_r = 2;
  options.dora = true;
  return options;
}

// The norms of the rows of a matrix (out, in), or (in, out).
std::vector<float> row_norms(const std::vector<float>& values, const program::Shape& shape,
                             bool transposed) {
  std::vector<double> squares(static_cast<size_t>(shape[transposed ? 1 : 0]), 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto columns = static_cast<size_t>(shape[1]);
    squares[transposed ? i % columns : i / columns] += std::pow(values[i], 2);
  }
  std::vector<float> norms;
  for (const double square : squares) norms.push_back(static_cast<float>(std::sqrt(square)));
  return norms;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance * expected[i]) << i;
}

TEST(Dora, MagnitudesBeginAsNormsOfTheWeights) {
  for (const auto& [model, module, compute] :
       {std::tuple{"grouped_tied", "model.layers.1.mlp.down_proj", DType::f32},
        std::tuple{"grouped_tied", "model.layers.2.self_attn.k_proj", DType::bf16},
        std::tuple{"gpt2", "transformer.h.1.mlp.c_fc", DType::f32}}) {
    SCOPED_TRACE(module);
    TinyOptions options = dora(model);
    options.compute = compute;
    TinyRun run(options);
    load_weights(golden(model) / "model", run.spec().model, run.executor());
    initialise_adapter(run.executor());
    const std::string weight = std::string(module) + ".weight";
    const std::string magnitude = std::string(module) + ".lora_magnitude_vector";
    EXPECT_EQ(run.executor().tensor(magnitude).dtype, DType::f32);
    expect_near(run.floats(magnitude),
                row_norms(run.floats(weight), run.executor().tensor(weight).shape,
                          model == std::string("gpt2")),
                1e-6);
  }
}

// Of values that are decoded, which are those of the weight within what four bits leave of them.
TEST(Dora, MagnitudesOfWeightsIn4BitsAreThoseOfTheirValues) {
  for (const std::string model : {"grouped_tied", "gpt2"})
    for (const bool nested : {false, true}) {
      SCOPED_TRACE(model);
      TinyRun plain(dora(model));
      load_weights(golden(model) / "model", plain.spec().model, plain.executor());
      initialise_adapter(plain.executor());
      TinyOptions options = dora(model);
      options.quantization.emplace();
      options.quantization->nested = nested;
      TinyRun run(options);
      load_weights(golden(model) / "model", run.spec().model, run.executor());
      initialise_adapter(run.executor());
      int compared = 0;
      for (const program::Tensor& tensor : run.job().trainables) {
        if (!tensor.name.ends_with(".lora_magnitude_vector")) continue;
        expect_near(run.floats(tensor.name), plain.floats(tensor.name), 0.12);
        EXPECT_NE(run.floats(tensor.name), plain.floats(tensor.name));
        ++compared;
      }
      EXPECT_GT(compared, 7);
    }
}

TEST(Dora, ReadsPeftsMagnitudesAndWritesThemBack) {
  const auto folder = golden("dora_gpt2") / "adapter";
  TinyOptions options = dora("gpt2");
  options.adapter_in_files = true;
  TinyRun run(options);
  methods::MethodOptions same = run.spec().method_options();
  same.lora.alpha = 8;
  load_adapter(folder, same, run.executor());
  const formats::PeftAdapter adapter(folder);
  for (const formats::LoraModule& module : adapter.modules()) {
    const std::string key = formats::lora_magnitude_key(module.module);
    std::vector<float> expected(static_cast<size_t>(module.out_features));
    adapter.file().read(adapter.file().at(key), expected.data());
    EXPECT_EQ(run.floats(module.module + ".lora_magnitude_vector"), expected) << key;
  }
  const TemporaryFolder copy;
  formats::LoraConfig config = adapter.config();
  save_adapter(copy / "adapter", config, {}, run.executor());
  const formats::PeftAdapter saved(copy / "adapter");
  EXPECT_TRUE(saved.config().use_dora);
  ASSERT_EQ(saved.file().tensors().size(), adapter.file().tensors().size());
  for (const formats::TensorInfo& tensor : adapter.file().tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.bytes()) / sizeof(float));
    std::vector<float> again = values;
    adapter.file().read(tensor, values.data());
    saved.file().read(saved.file().at(tensor.name), again.data());
    EXPECT_EQ(again, values) << tensor.name;
  }
}

TEST(Dora, AJobAndAFolderAreOfOneForm) {
  TinyOptions plain = dora("gpt2");
  plain.dora = false;
  plain.adapter_in_files = true;
  const TinyRun without(plain);
  methods::MethodOptions options = without.spec().method_options();
  options.lora.alpha = 8;
  EXPECT_TRUE(contains(user_error_of([&] {
                         check_adapter(golden("dora_gpt2") / "adapter", options, without.job());
                       }),
                       "trained with use_dora true, and this job has use_dora false"));
  TinyOptions with = plain;
  with.dora = true;
  const TinyRun run(with);
  options.lora.dora = true;
  EXPECT_TRUE(contains(
      user_error_of([&] { check_adapter(golden("lora_gpt2") / "adapter", options, run.job()); }),
      "trained with use_dora false, and this job has use_dora true"));
}

}  // namespace
}  // namespace snug::runtime
