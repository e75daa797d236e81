#include "cli/open_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/device/planned_card.h"
#include "backends/open_cuda.h"
#include "backends/recipe_backend.h"

namespace snug::cli {
namespace {

void require_plannable(const formats::Recipe& recipe, const backends::cuda::HardwareRow& row) {
  if (!backends::cuda::is_supported(row) || row.rates.bf16_flops_per_second == 0)
    recipe.fail(
        "device",
        fmt::format("is {}, a card of compute capability {}.{}, which has no bf16 products; "
                    "snug has kernels for 8.0 and later",
                    recipe.device, row.compute_capability / 10, row.compute_capability % 10));
  if (recipe.rank_count() > 1 && row.rates.interconnect_bytes_per_second == 0) {
    const bool on_one_node = recipe.devices_per_node() > 1;
    recipe.fail(
        on_one_node ? "devices" : "nodes",
        fmt::format("is {}, but the hardware table does not say how fast cards of {} reach each "
                    "other (interconnect_bytes_per_second)",
                    on_one_node ? recipe.devices : recipe.nodes, recipe.device));
  }
}

std::unique_ptr<program::Target> planned_card(const formats::Recipe& recipe) {
  if (recipe.is_given("backend") && recipe.backend != formats::BackendName::cuda)
    recipe.fail("device", fmt::format("is {}, a card, but backend is {}; leave one of them out",
                                      recipe.device, base::word_of(recipe.backend)));
  const auto table = backends::cuda::HardwareTable::with_file(recipe.hardware);
  const backends::cuda::HardwareRow& row = require_row(recipe.device, recipe, table);
  require_plannable(recipe, row);
  return std::make_unique<backends::cuda::PlannedCard>(row, recipe.device_memory);
}

}  // namespace

const backends::cuda::HardwareRow& require_row(const std::string& device,
                                               const formats::Recipe& recipe,
                                               const backends::cuda::HardwareTable& table) {
  if (const backends::cuda::HardwareRow* row = table.find(device)) return *row;
  const auto nearest = table.nearest(device);
  recipe.fail(
      "device",
      fmt::format("is {}, which the hardware table does not have{} It has {}", device,
                  nearest ? fmt::format("; did you mean {}?", *nearest) : ".", table.names()));
}

std::unique_ptr<program::Target> open_target(const formats::Recipe& recipe) {
  if (!recipe.device.empty()) return planned_card(recipe);
  if (!recipe.hardware.empty())
    recipe.fail("hardware",
                fmt::format("is {}, a table of cards to plan for, but none of them is named; give "
                            "its name as device, or leave hardware out",
                            recipe.hardware));
  if (recipe.backend == formats::BackendName::cuda && !backends::has_cuda_device())
    recipe.fail("backend",
                fmt::format("is cuda, and there is no card here that this build can open; name the "
                            "one to plan for, as in device=h100. The hardware table has {}",
                            backends::cuda::HardwareTable::built_in().names()));
  return backends::open_backend(recipe);
}

}  // namespace snug::cli
