// A head that transformers has renamed, in the folder of an adapter.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/safetensors_writer.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using base::DType;
using testing::contains;
using testing::golden_config;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

constexpr const char* kOwnHead = "base_model.model.embed_out.weight";
constexpr const char* kRenamedHead = "base_model.model.lm_head.weight";

// Writes the adapter's file again without one of its tensors, or with another value in it.
void rewrite_adapter(const std::filesystem::path& folder, const std::string& name, bool drop) {
  const std::filesystem::path path = folder / formats::kAdapterWeightsName;
  std::vector<formats::TensorSpec> specs;
  std::vector<std::vector<float>> values;
  {
    const formats::SafetensorsFile file(path);
    for (const formats::TensorInfo& tensor : file.tensors()) {
      if (drop && tensor.name == name) continue;
      specs.push_back({tensor.name, DType::f32, tensor.shape});
      file.read(tensor, values.emplace_back(static_cast<size_t>(tensor.elements())).data());
      if (tensor.name == name) values.back().back() += 1.0F;
    }
  }
  formats::SafetensorsWriter writer(path, specs);
  for (size_t i = 0; i < specs.size(); ++i)
    writer.write(specs[i].name, values[i].data(), specs[i].bytes());
  writer.finish();
}

// GPT-NeoX's head is lm_head in transformers since 5 and embed_out before: PEFT passes over a
// tensor whose name the model does not have.
TEST(RenamedHead, IsThereUnderBothNamesAndReadFromEither) {
  for (const char* given : {"lm_head", "embed_out"}) {
    const TemporaryFolder folder;
    TinyOptions options;
    options.model = golden_config("gpt_neox_in_turn");
    options.method = formats::Method::lora;
    options.adapter_seed = 1;
    options.target_modules = {"query_key_value"};
    options.modules_to_save = {given};
    TinyRun run(options);
    initialise_adapter(run.executor());
    fill_normal({run.executor().tensor("embed_out.weight"), "embed_out.weight"}, 2, 0.02F,
                run.executor());
    const formats::LoraConfig config{.r = options.lora_r,
                                     .alpha = run.spec().lora.alpha,
                                     .target_modules = options.target_modules,
                                     .base_model = "base",
                                     .modules_to_save = {"lm_head", "embed_out"}};
    save_adapter(folder / "adapter", config, {}, run.executor());
    const formats::PeftAdapter adapter(folder / "adapter");
    EXPECT_NE(adapter.file().find(kOwnHead), nullptr);
    EXPECT_NE(adapter.file().find(kRenamedHead), nullptr);
    for (const char* dropped : {"", kOwnHead, kRenamedHead}) {
      std::filesystem::copy(folder / "adapter", folder / "copy");
      rewrite_adapter(folder / "copy", dropped, true);
      TinyOptions from_files = options;
      from_files.adapter_in_files = true;
      TinyRun again(from_files);
      load_adapter(folder / "copy", again.spec().method_options(), again.executor());
      EXPECT_TRUE(run.bytes("embed_out.weight") == again.bytes("embed_out.weight")) << dropped;
      std::filesystem::remove_all(folder / "copy");
    }
    rewrite_adapter(folder / "adapter", kRenamedHead, false);
    const std::string text = user_error_of(
        [&] { check_adapter(folder / "adapter", run.spec().method_options(), run.job()); });
    EXPECT_TRUE(contains(text, "are two names of one tensor of this model, and their values"));
  }
}

}  // namespace
}  // namespace snug::runtime
