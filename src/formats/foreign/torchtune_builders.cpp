#include "formats/foreign/torchtune_builders.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace snug::formats {
namespace {

constexpr std::string_view kModelBuilders = "torchtune.models.";

Written* find_one(std::vector<Written>& all, std::string_view name) {
  const auto found = std::ranges::find_if(
      all, [&](const Written& written) { return written.name == name && !written.items.empty(); });
  return found == all.end() ? nullptr : &*found;
}

// The builder's own name has it: torchtune.models.llama3.qlora_llama3_8b.
Method method_of_builder(std::string_view builder) {
  const std::string_view name = builder.substr(builder.rfind('.') + 1);
  if (name.starts_with("qlora_")) return Method::qlora;
  return name.starts_with("lora_") ? Method::lora : Method::full;
}

void set_name(Written& written, const char* key) {
  written.said_as = std::exchange(written.name, key);
}

// torchtune's name of the matrix after attention is its own; the others are those of the files.
void name_targets(Written& targets, bool has_mlp) {
  set_name(targets, "target_modules");
  targets.is_list = true;
  std::ranges::replace(targets.items, std::string("output_proj"), std::string("o_proj"));
  if (!has_mlp) return;
  targets.items.insert(targets.items.end(), {"gate_proj", "up_proj", "down_proj"});
}

}  // namespace

std::vector<Written> without_builders(std::vector<Written> all) {
  for (Written& written : all)
    if (written.name == "clip_grad_norm" && written.items.empty()) written.items = {"0"};
  Written* builder = find_one(all, "model._component_");
  if (builder == nullptr || !builder->items.front().starts_with(kModelBuilders)) return all;
  builder->items = {std::string(base::word_of(method_of_builder(builder->items.front())))};
  set_name(*builder, "method");
  const Written* mlp = find_one(all, "model.apply_lora_to_mlp");
  const bool has_mlp = mlp != nullptr && parse_boolean(mlp->items.front()).value_or(false);
  if (Written* targets = find_one(all, "model.lora_attn_modules")) name_targets(*targets, has_mlp);
  return all;
}

}  // namespace snug::formats
