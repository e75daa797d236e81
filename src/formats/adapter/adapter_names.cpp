#include "formats/adapter/adapter_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace snug::formats {
namespace {

using Parts = std::vector<std::string_view>;

// Names that wrappers add: torch's (DDP, compile, FSDP, checkpointing), and those of multimodal
// models around their text part.
constexpr std::array<std::string_view, 8> kWrappers{"module",
                                                    "_orig_mod",
                                                    "_fsdp_wrapped_module",
                                                    "_checkpoint_wrapped_module",
                                                    "language_model",
                                                    "text_model",
                                                    "llm",
                                                    "thinker"};

bool is_wrapper(std::string_view part) { return std::ranges::count(kWrappers, part) > 0; }

Parts split_name(std::string_view name) {
  Parts parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string joined(const Parts& parts) { return fmt::format("{}", fmt::join(parts, ".")); }

// Removing wrappers can leave "model" twice, as in "language_model.model" inside "model"; one of
// the two is kept.
Parts without_wrappers(const Parts& parts) {
  Parts plain;
  for (const std::string_view part : parts) {
    const bool repeats = part == "model" && !plain.empty() && plain.back() == "model";
    if (!is_wrapper(part) && !repeats) plain.push_back(part);
  }
  return plain;
}

// Whether the part holds one tensor for each adapter, under the adapter's name.
bool holds_adapters(std::string_view part) {
  constexpr std::array<std::string_view, 7> kHolders{"lora_A",
                                                     "lora_B",
                                                     "lora_embedding_A",
                                                     "lora_embedding_B",
                                                     "modules_to_save",
                                                     "lora_magnitude_vector",
                                                     "trainable_tokens_delta"};
  return std::ranges::count(kHolders, part) > 0;
}

// Removes the adapter's name: "default" in "lora_A.default.weight" and "lora_embedding_A.default".
Parts without_adapter(Parts parts) {
  const auto holder = std::ranges::find_if(parts, holds_adapters);
  if (holder == parts.end()) return parts;
  const bool has_weight = parts.back() == "weight" || parts.back() == "bias";
  auto after = holder + 1;
  const bool is_named = after != parts.end() - (has_weight ? 1 : 0);
  if (is_named) after = parts.erase(after);
  const bool is_parameter = holder->ends_with("_vector");
  if (is_parameter && after != parts.end()) parts.erase(after);
  if (is_named && *holder == "modules_to_save") parts.erase(holder);
  return parts;
}

}  // namespace

std::string plain_module(std::string_view module) {
  return joined(without_wrappers(split_name(module)));
}

bool is_of_other_part(std::string_view tensor) {
  // mtp: layers that predict further tokens (Qwen 3.5).
  constexpr std::array<std::string_view, 9> kStarts{"vision",       "visual",       "audio",
                                                    "image",        "mm_",          "mtp",
                                                    "multi_modal_", "embed_vision", "embed_audio"};
  const Parts parts = split_name(tensor);
  return std::ranges::any_of(parts, [&](std::string_view part) {
    return std::ranges::any_of(kStarts,
                               [&](std::string_view start) { return part.starts_with(start); });
  });
}

std::optional<std::string> adapted_module(std::string_view stored) {
  const size_t begin = stored.find(kAdapterPrefix);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view name = stored.substr(begin + kAdapterPrefix.size());
  for (const std::string_view part : {".lora_A.", ".lora_embedding_A"})
    if (const size_t end = name.find(part); end != std::string_view::npos && end > 0)
      return std::string(name.substr(0, end));
  return std::nullopt;
}

std::string plain_adapter_tensor(std::string_view stored) {
  Parts parts = split_name(stored);
  const auto begin = std::ranges::find_if_not(parts, is_wrapper);
  parts.erase(parts.begin(), begin);
  if (parts.size() < 3 || parts[0] != "base_model" || parts[1] != "model")
    return std::string(stored);
  parts.erase(parts.begin(), parts.begin() + 2);
  return std::string(kAdapterPrefix) + joined(without_adapter(without_wrappers(parts)));
}

}  // namespace snug::formats
