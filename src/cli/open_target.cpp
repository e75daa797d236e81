#include "cli/open_target.h"

#include <fmt/format.h>

#include "backends/cuda/planned_card.h"
#include "backends/open_cuda.h"
#include "backends/recipe_backend.h"

namespace snug::cli {
namespace {

std::unique_ptr<program::Target> planned_card(const formats::Recipe& recipe) {
  if (recipe.is_given("backend") && recipe.backend != formats::BackendName::cuda)
    recipe.fail("device", fmt::format("is {}, a card, but backend is {}; leave one of them out",
                                      recipe.device, base::word_of(recipe.backend)));
  const backends::cuda::HardwareRow* row = backends::cuda::find_hardware(recipe.device);
  const auto nearest = backends::cuda::nearest_hardware(recipe.device);
  if (row == nullptr)
    recipe.fail("device", fmt::format("is {}, which the hardware table does not have{} It has {}",
                                      recipe.device,
                                      nearest ? fmt::format("; did you mean {}?", *nearest) : ".",
                                      backends::cuda::hardware_names()));
  return std::make_unique<backends::cuda::PlannedCard>(*row, recipe.device_memory);
}

}  // namespace

std::unique_ptr<program::Target> open_target(const formats::Recipe& recipe) {
  if (!recipe.device.empty()) return planned_card(recipe);
  if (recipe.backend == formats::BackendName::cuda && !backends::has_cuda_device())
    recipe.fail("backend",
                fmt::format("is cuda, and there is no card here that this build can open; name the "
                            "one to plan for, as in device=h100. The hardware table has {}",
                            backends::cuda::hardware_names()));
  return backends::open_backend(recipe);
}

}  // namespace snug::cli
