#include "convert/gguf/general_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "formats/folder/base_card.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using models::GgufModel;
using models::GgufTensor;

int64_t elements_of(const GgufTensor& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  return count;
}

// Two digits at least: 1.1B, 22M, 135M.
std::string readable_count(double count) {
  constexpr std::array kUnits{std::pair(1e12, 'T'), std::pair(1e9, 'B'), std::pair(1e6, 'M')};
  double scaled = count * 1e-3;
  char unit = 'K';
  for (const auto& [size, letter] : kUnits)
    if (count > size) {
      scaled = count / size;
      unit = letter;
      break;
    }
  const double whole = std::nearbyint(scaled);
  const int digits = whole == 0 ? 0 : whole < 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", scaled, std::max(2 - digits, 0), unit);
}

void add_licence(const fs::path& folder, formats::Metadata& metadata) {
  const formats::BaseCard card = formats::base_card(folder);
  const auto set = [&](const char* key, std::string text) {
    if (!text.empty()) metadata.set(key, std::move(text));
  };
  set("general.license", fmt::format("{}", fmt::join(card.licences, ",")));
  set("general.license.name", card.licence_name);
  set("general.license.link", card.licence_link);
  if (!card.languages.empty()) metadata.set("general.languages", card.languages);
}

// Settings of sampling, by their names in generation_config.json and in GGUF.
constexpr const char* kTopKSetting = "top_k";
constexpr const char* kTopKKey = "general.sampling.top_k";
constexpr std::array kSamplingNumbers{
    std::pair("top_p", "general.sampling.top_p"), std::pair("min_p", "general.sampling.min_p"),
    std::pair("temperature", "general.sampling.temp"),
    std::pair("repetition_penalty", "general.sampling.penalty_repeat")};

// How the model's makers draw tokens, which llama.cpp takes for its defaults.
void add_sampling(const fs::path& folder, formats::Metadata& metadata) {
  std::error_code error;
  if (!fs::exists(folder / "generation_config.json", error)) return;
  const nlohmann::json config = base::read_json_file(folder / "generation_config.json");
  const auto number = [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_number() ? &*found : nullptr;
  };
  if (const auto* top_k = number(kTopKSetting)) metadata.set(kTopKKey, top_k->get<int32_t>());
  for (const auto& [key, name] : kSamplingNumbers)
    if (const auto* value = number(key)) metadata.set(name, value->get<float>());
}

}  // namespace

// A float becomes the number that it is written as: 0.6, and not 0.60000002.
nlohmann::json sampling_settings(const formats::Metadata& metadata) {
  nlohmann::json settings = nlohmann::json::object();
  if (const auto* value = metadata.find(kTopKKey))
    if (const auto* top_k = std::get_if<int32_t>(value)) settings[kTopKSetting] = *top_k;
  for (const auto& [key, name] : kSamplingNumbers)
    if (const auto* value = metadata.find(name))
      if (const auto* number = std::get_if<float>(value))
        settings[key] = std::stod(fmt::format("{}", *number));
  const bool has_penalty = settings.contains("repetition_penalty");
  const bool is_drawn = settings.size() > (has_penalty ? 1U : 0U);
  if (is_drawn) settings["do_sample"] = true;
  return settings;
}

std::string size_label(const GgufModel& model) {
  double shared = 0;
  double of_an_expert = 0;
  int64_t experts = 0;
  for (const GgufTensor& tensor : model.tensors) {
    const auto count = static_cast<double>(elements_of(tensor));
    if (tensor.name.find("_exps.") == std::string::npos) {
      shared += count;
      continue;
    }
    experts = tensor.shape.front();
    of_an_expert += count / static_cast<double>(experts);
  }
  const std::string label = readable_count(shared + of_an_expert);
  return experts == 0 ? label : fmt::format("{}x{}", experts, label);
}

std::string title_of(const std::string& name) {
  std::string title;
  std::string word;
  const auto end_word = [&] {
    const bool is_lower =
        std::ranges::none_of(word, [](unsigned char c) { return std::isupper(c); });
    const bool is_version =
        !word.empty() &&
        (std::isdigit(static_cast<unsigned char>(word[0])) ||
         (word.size() > 1 && word[0] == 'v' && std::isdigit(static_cast<unsigned char>(word[1]))));
    bool begins = is_lower && !is_version;
    for (char& letter : word) {
      const auto byte = static_cast<unsigned char>(letter);
      if (begins && is_lower && !is_version) letter = static_cast<char>(std::toupper(byte));
      begins = !std::isalpha(byte);
    }
    if (!word.empty()) title += (title.empty() ? "" : " ") + word;
    word.clear();
  };
  for (const char letter : name) {
    if (letter == '-' || letter == ' ')
      end_word();
    else
      word += letter;
  }
  end_word();
  return title;
}

void add_general_keys(const GgufModel& model, const std::string& name, const fs::path& folder,
                      formats::Metadata& metadata) {
  metadata.set("general.architecture", model.architecture);
  metadata.set("general.type", std::string("model"));
  metadata.set("general.name", title_of(name));
  metadata.set("general.size_label", size_label(model));
  if (folder.empty()) return;
  add_licence(folder, metadata);
  add_sampling(folder, metadata);
}

}  // namespace snug::convert
