#include "convert/gguf/general_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

namespace snug::convert {
namespace {

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

}  // namespace

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

void add_general_keys(const GgufModel& model, const std::string& name,
                      const std::filesystem::path& /*folder*/, formats::Metadata& metadata) {
  metadata.set("general.architecture", model.architecture);
  metadata.set("general.type", std::string("model"));
  metadata.set("general.name", title_of(name));
  metadata.set("general.size_label", size_label(model));
}

}  // namespace snug::convert
