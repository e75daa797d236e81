// Inference runs in exactly the planned memory, and within the budget.
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "golden_recipe.h"
#include "models/families/families.h"
#include "plan/job/assembly.h"
#include "runtime/execution/rehearsal.h"

namespace snug::testing {
namespace {

using plan::InferenceShape;
using program::Space;

const InferenceShape kShape{.sequences = 8, .capacity = 64, .prefill_tokens = 128};

int64_t device_bytes(const plan::PlannedInference& plan) {
  return plan.job.layout.spaces[static_cast<size_t>(Space::device)].arena_bytes;
}

plan::PlannedInference plan_with(int64_t budget, const InferenceShape& shape = kShape,
                                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"device_memory=" + std::to_string(budget)};
  words.insert(words.end(), more.begin(), more.end());
  const formats::Recipe recipe = golden_recipe("basic", words);
  const auto backend = backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = budget});
  const models::ModelSource model = runtime::open_model(recipe);
  return plan::assemble_inference(
      {recipe, model.config, *backend, shape},
      [&](const plan::Job& job) { return runtime::rehearse(job, *backend); });
}

TEST(InferencePlan, TheArenaIsWhatWasPlanned) {
  const formats::Recipe recipe = golden_recipe("basic");
  engine::Inference inference(recipe, runtime::open_model(recipe), kShape);
  EXPECT_EQ(inference.device_json().at("peak_bytes"), device_bytes(plan_with(0)));
  EXPECT_EQ(inference.shape().prefill_tokens, kShape.prefill_tokens);
}

TEST(InferencePlan, TakesSmallerChunksInLessMemory) {
  const int64_t whole = device_bytes(plan_with(0));
  EXPECT_EQ(plan_with(whole).spec.shape.prefill_tokens, kShape.prefill_tokens);
  const plan::PlannedInference less = plan_with(whole - 1);
  EXPECT_EQ(less.spec.shape.prefill_tokens, kShape.prefill_tokens / 2);
  EXPECT_LE(device_bytes(less), whole - 1);
}

// In all groups together: one sequence more would not fit.
TEST(InferencePlan, PoolsOfServingTakeTheMemoryThatIsLeft) {
  for (const std::string name : {"basic", "gemma3", "gemma4_sharing"})
    for (const std::string dtype : {"auto", "int8"}) {
      const formats::Recipe recipe = golden_recipe(name, {"kv_cache_dtype=" + dtype});
      const models::ModelSource model = runtime::open_model(recipe);
      const auto served = [&](int64_t budget, const InferenceShape& shape) {
        const auto backend =
            backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = budget});
        return plan::assemble_serving({recipe, model.config, *backend, shape}, {});
      };
      const InferenceShape shape{
          .sequences = 4, .capacity = 90, .prefill_tokens = 16, .page_tokens = 16};
      const models::Stack stack = models::stack_of(model.config);
      InferenceShape of_one = shape;
      of_one.pages = plan::pages_of_sequences(shape, stack, 1);
      const plan::PlannedServing most = served(int64_t{1} << 24, shape);
      EXPECT_GT(most.held_sequences, 10);
      EXPECT_LE(device_bytes(most), int64_t{1} << 24);
      const plan::PlannedServing exactly = served(device_bytes(most), shape);
      EXPECT_EQ(exactly.held_sequences, most.held_sequences);
      const plan::PlannedServing fewer = served(device_bytes(most) - 1, shape);
      EXPECT_EQ(fewer.held_sequences, most.held_sequences - 1);
      int64_t bytes = 0;
      for (const models::KeyPool& pool : most.job.key_pools) {
        EXPECT_EQ(pool.pages, most.held_sequences * plan::pages_of_sequence(shape, pool.group));
        bytes += pool.pages * 16 *
                 plan::token_bytes(stack, pool.group, most.spec.shape, base::DType::f32);
      }
      int64_t caches = 0;
      const program::Program& prefill = *most.job.find(program::ProgramName::prefill);
      for (const program::Tensor& tensor : prefill.tensors)
        if (tensor.role == program::Role::kv_cache) caches += tensor.bytes();
      EXPECT_EQ(bytes, caches) << name << ", " << dtype;
    }
}

TEST(InferencePlan, RefusesWhatDoesNotFitAndNamesAChangeThatDoes) {
  InferenceShape least = kShape;
  least.prefill_tokens = plan::kMinPrefillTokens;
  const int64_t bytes = device_bytes(plan_with(0, least));
  try {
    plan_with(bytes - 1);
    FAIL() << "it planned more than the budget";
  } catch (const base::UserError& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_TRUE(contains(error.what(), "1 bytes (1 B) too little")) << error.what();
    EXPECT_TRUE(contains(error.what(), "batch=4"));
  }
  InferenceShape fewer = kShape;
  fewer.sequences = 4;
  EXPECT_LE(device_bytes(plan_with(bytes - 1, fewer)), bytes - 1);

  InferenceShape one = least;
  one.sequences = 1;
  const int64_t needed = device_bytes(plan_with(0, one));
  const std::string message = user_error_of([&] { plan_with(needed - 1, one); });
  EXPECT_TRUE(contains(message, "The cheapest change that fits: load_in_4bit=true")) << message;
  const std::vector<std::string> in_4_bits{"load_in_4bit=true"};
  EXPECT_LE(device_bytes(plan_with(needed - 1, one, in_4_bits)), needed - 1);

  const int64_t least_needed = device_bytes(plan_with(0, one, in_4_bits));
  const std::string last = user_error_of([&] { plan_with(least_needed - 1, one, in_4_bits); });
  EXPECT_TRUE(contains(
      last, "No change that snug knows makes it fit: the least device memory it found is " +
                std::to_string(least_needed) + " bytes"))
      << last;
  EXPECT_FALSE(contains(last, ", with")) << last;
  EXPECT_EQ(device_bytes(plan_with(least_needed, one, in_4_bits)), least_needed);
  // What is named is all that has to be said for it to fit.
  const std::string wide = user_error_of([&] { plan_with(least_needed - 1, fewer); });
  EXPECT_TRUE(contains(wide, std::to_string(least_needed) + " bytes")) << wide;
  EXPECT_TRUE(contains(wide, ", with load_in_4bit=true batch=1.")) << wide;
}

}  // namespace
}  // namespace snug::testing
