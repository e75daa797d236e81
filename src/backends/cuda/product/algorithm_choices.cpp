#include "backends/cuda/product/algorithm_choices.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/cuda/product/thin_product.h"
#include "base/error.h"
#include "base/json.h"

namespace snug::backends::cuda {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "snug algorithms 1";
constexpr double kMicroseconds = 1e6;

std::string text_of(const StoredMatrix& matrix) {
  return fmt::format("{} {} x {} / {} @ {}", base::name_of(matrix.dtype), matrix.rows,
                     matrix.columns, matrix.stride, matrix.alignment_bytes);
}

std::string text_of(const ProductShape& shape) {
  return fmt::format("{}{} times {}{} plus {} by {} to {}, alpha {}", text_of(shape.a),
                     shape.transpose_a ? " transposed" : "", text_of(shape.b),
                     shape.transpose_b ? " transposed" : "", text_of(shape.addend), shape.beta,
                     text_of(shape.c), shape.alpha);
}

std::string name_of(const Algorithm& algorithm) {
  if (algorithm.is_own) return kThinName;
  unsigned char bytes[sizeof algorithm.of_library];
  std::memcpy(bytes, &algorithm.of_library, sizeof bytes);
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Algorithm algorithm_of(const base::JsonObject& product) {
  const std::string name = product.text("algorithm");
  if (name == kThinName) return {.is_own = true};
  Algorithm algorithm;
  unsigned char bytes[sizeof algorithm.of_library];
  if (name.size() != 2 * sizeof bytes)
    product.fail("algorithm", fmt::format("is \"{}\": neither \"{}\" nor {} hex digits", name,
                                          kThinName, 2 * sizeof bytes));
  for (size_t i = 0; i < sizeof bytes; ++i) {
    const char* const digits = name.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, bytes[i], 16);
    if (error != std::errc() || end != digits + 2)
      product.fail("algorithm", "has something else than hex digits");
  }
  std::memcpy(&algorithm.of_library, bytes, sizeof bytes);
  return algorithm;
}

}  // namespace

const Algorithm* AlgorithmChoices::find(const ProductShape& shape) const {
  const auto found = choices_.find(text_of(shape));
  return found == choices_.end() ? nullptr : &found->second.algorithm;
}

void AlgorithmChoices::keep(const ProductShape& shape, const Algorithm& algorithm, double seconds) {
  choices_[text_of(shape)] = {algorithm, seconds};
}

std::string AlgorithmChoices::text() const {
  if (choices_.empty()) return {};
  Json products = Json::array();
  for (const auto& [shape, choice] : choices_)
    products.push_back({{"shape", shape},
                        {"algorithm", name_of(choice.algorithm)},
                        {"microseconds", choice.seconds * kMicroseconds}});
  const Json document{{"format", kFormat},
                      {"chosen_on", chosen_on_},
                      {"workspace_bytes", workspace_bytes_},
                      {"products", std::move(products)}};
  return document.dump(1) + "\n";
}

std::string AlgorithmChoices::take(std::string_view text, const std::string& file) {
  std::map<std::string, Choice> taken;
  try {
    const nlohmann::json json = base::parse_json(text, file);
    const base::JsonObject document(json, file);
    if (document.text("format") != kFormat)
      document.fail("format", fmt::format("is not \"{}\"", kFormat));
    if (const std::string made_on = document.text("chosen_on"); made_on != chosen_on_)
      return fmt::format("{} was chosen on {}, and this is {}", file, made_on, chosen_on_);
    if (const int64_t bytes = document.integer("workspace_bytes"); bytes != workspace_bytes_)
      return fmt::format("{} was chosen for a workspace of {} bytes, and this one has {}", file,
                         bytes, workspace_bytes_);
    const auto products = json.find("products");
    if (products == json.end() || !products->is_array()) document.fail("products", "is no array");
    for (const nlohmann::json& item : *products) {
      const base::JsonObject product(item, file, "products");
      taken[product.text("shape")] = {algorithm_of(product),
                                      product.number("microseconds") / kMicroseconds};
    }
  } catch (const base::UserError& damage) {
    return damage.what();
  }
  for (const auto& [shape, choice] : taken) choices_[shape] = choice;
  return {};
}

}  // namespace snug::backends::cuda
