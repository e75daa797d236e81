#include "plan/job/offloaded.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/byte_size.h"

namespace snug::plan {
namespace {

using formats::OffloadOptimizer;
using program::Role;
using program::Tensor;

constexpr Role kWeights[] = {Role::weight, Role::quant_state, Role::adapter};
constexpr Role kOptimizer[] = {Role::master, Role::moment, Role::gradient};
constexpr Role kCheckpoints[] = {Role::checkpoint};

template <typename F>
void for_each_tensor(const Job& job, std::span<const Role> roles, F&& f) {
  for (const program::Program& program : job.programs)
    for (const Tensor& tensor : program.tensors)
      if (std::ranges::find(roles, tensor.role) != roles.end()) f(tensor);
}

bool is_lasting(const Tensor& tensor) { return tensor.lifetime != program::Lifetime::program; }

bool has_on_host(const Job& job, std::span<const Role> roles) {
  bool found = false;
  for_each_tensor(job, roles, [&](const Tensor& tensor) {
    found |= is_lasting(tensor) && tensor.space == program::Space::pinned_host;
  });
  return found;
}

// Tensors below the threshold stay on the device.
std::string too_small(const formats::Recipe& recipe, std::string_view key, std::string_view what,
                      const Job& job, std::span<const Role> roles) {
  int64_t largest = 0;
  for_each_tensor(job, roles, [&](const Tensor& tensor) {
    if (is_lasting(tensor)) largest = std::max(largest, tensor.bytes());
  });
  return fmt::format(
      "{} moves nothing: tensors smaller than offload_threshold={} stay on the device, and the "
      "largest of {} has {}",
      key, base::exact_byte_size(recipe.offload_threshold), what,
      base::readable_byte_size(largest));
}

}  // namespace

bool has_weights_on_host(const Job& job) { return has_on_host(job, kWeights); }

bool has_optimizer_on_host(const Job& job) { return has_on_host(job, kOptimizer); }

std::vector<std::string> keys_that_move_nothing(const formats::Recipe& recipe, const Job& job) {
  std::vector<std::string> notices;
  if (recipe.offload_params && !has_weights_on_host(job))
    notices.push_back(too_small(recipe, "offload_params=true", "the weights", job, kWeights));
  if (recipe.offload_optimizer != OffloadOptimizer::none && !has_optimizer_on_host(job))
    notices.push_back(too_small(
        recipe, fmt::format("offload_optimizer={}", base::word_of(recipe.offload_optimizer)),
        "the master weights, moments and gradients", job, kOptimizer));
  if (recipe.activation_offloading) {
    bool moves = false;
    for_each_tensor(job, kCheckpoints, [&](const Tensor& tensor) {
      moves |= tensor.space == program::Space::pinned_host;
    });
    if (!moves && recipe.recompute == formats::Recompute::automatic)
      notices.emplace_back(
          "activation_offloading=true moves nothing: recompute=auto finds room on the device for "
          "what would wait on the host");
    else if (!moves)
      notices.emplace_back(
          "activation_offloading=true moves nothing: what is kept of the last layer is needed at "
          "once and stays on the device, and there is no other layer of which something is kept");
  }
  return notices;
}

}  // namespace snug::plan
