// A key of offloading that moves nothing is told to the user, and only then.
#include "plan/job/offloaded.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"

namespace snug::plan {
namespace {

using Words = std::vector<std::string>;

Words notices(const Words& more) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("rtx-4090"), 0);
  Words words{"model=smollm2-135m", "max_length=256", "recompute=layer"};
  words.insert(words.end(), more.begin(), more.end());
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  return assemble_training({recipe, model, card}).notices();
}

TEST(Offloaded, SaysNothingWhereEveryKeyMovesSomething) {
  EXPECT_EQ(notices({"method=full"}), Words{});
  EXPECT_EQ(notices({"method=full", "offload_params=true", "offload_optimizer=stream",
                     "offload_window=100MiB", "activation_offloading=true"}),
            Words{});
  EXPECT_EQ(notices({"method=qlora", "offload_params=true", "offload_window=100MiB"}), Words{});
}

// The largest of a module's tensors is 1536 x 8 numbers, of 4 bytes in the master weights.
TEST(Offloaded, NamesTheKeyOfAnOptimizerThatIsTooSmallToMove) {
  EXPECT_EQ(notices({"method=lora", "lora_r=8", "offload_optimizer=stream"}),
            Words{"offload_optimizer=stream moves nothing: tensors smaller than "
                  "offload_threshold=64KiB stay on the device, and the largest of the master "
                  "weights, moments and gradients has 48.00 KiB"});
  EXPECT_EQ(notices({"method=lora", "lora_r=16", "offload_optimizer=stream"}), Words{});
}

TEST(Offloaded, NamesTheKeyOfWeightsThatAreTooSmallToMove) {
  const Words told = notices({"method=full", "offload_params=true", "offload_threshold=1GiB"});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told.front().starts_with("offload_params=true moves nothing: ")) << told.front();
  EXPECT_NE(told.front().find("offload_threshold=1GiB"), std::string::npos) << told.front();
}

// Under FSDP's names all that lasts lies on the host, except what is smaller than the threshold. Of
// weights the device has places for copies: of two whole layers, and of a rank's part of the
// embedding, the largest tensor there is.
TEST(Offloaded, FsdpLeavesNoStateOnTheDevice) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("rtx-4090"), 0);
  const auto planned = [&](const Words& more) {
    Words words{"model=smollm2-135m", "method=full", "max_length=256", "recompute=layer",
                "devices=2"};
    words.insert(words.end(), more.begin(), more.end());
    const formats::Recipe recipe = formats::load_recipe("", words);
    const models::ModelSource model = models::find_model(recipe.model);
    return assemble_training({recipe, model, card}).document;
  };
  const auto bytes_of = [](const SpaceFigures& space, const char* role) {
    const auto found = space.report.by_role.find(role);
    return found == space.report.by_role.end() ? 0 : found->second;
  };
  const Words fsdp{"strategy=full_shard", "fsdp_offload_params=true"};
  for (const Words& words : {fsdp, Words{"fsdp=full_shard offload"}}) {
    const PlanDocument document = planned(words);
    EXPECT_NE(document.offload_optimizer, "none");
    for (const char* role : {"weight", "master", "moment"})
      EXPECT_GT(bytes_of(document.host, role), int64_t{100} << 20) << role;
    for (const char* role : {"master", "moment"})
      EXPECT_LT(bytes_of(document.device, role), int64_t{1} << 20) << role;
    constexpr int64_t kEmbedding = int64_t{49152} * 576 * 2;
    constexpr int64_t kLayer = int64_t{576} * (576 * 2 + 192 * 2 + 1536 * 3) * 2;
    EXPECT_LE(bytes_of(document.device, "weight"), kEmbedding / 2 + 2 * kLayer + (1 << 20));
  }
  const PlanDocument weights = planned({"strategy=full_shard", "offload_params=true"});
  EXPECT_GT(bytes_of(weights.device, "moment"), int64_t{100} << 20);
  EXPECT_EQ(bytes_of(weights.host, "moment"), 0);
}

TEST(Offloaded, NamesActivationsOfAModelOfOneLayer) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("rtx-4090"), 0);
  const formats::Recipe recipe =
      formats::load_recipe("", Words{"model=smollm2-135m", "method=lora", "recompute=layer",
                                     "max_length=256", "activation_offloading=true"});
  models::ModelSource model = models::find_model(recipe.model);
  model.config.num_layers = 1;
  const Words told = assemble_training({recipe, model, card}).notices();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told.front().starts_with("activation_offloading=true moves nothing: "))
      << told.front();
}

}  // namespace
}  // namespace snug::plan
