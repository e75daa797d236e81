// Stages: the tensors in the order in which llama.cpp's quantiser counts them; each tensor's role,
// from its name; the type by role and place; another type where a row is no whole number of blocks.
#include "convert/gguf/gguf_mix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/lower_case.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::convert {
namespace {

using formats::GgmlType;
using models::GgufModel;
using models::GgufTensor;

enum class TensorRole : uint8_t { embedding, head, values, fused, keys, output, down, other };

TensorRole role_of(const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (name == "output.weight") return TensorRole::head;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight")
    return TensorRole::embedding;
  if (has("attn_qkv.weight")) return TensorRole::fused;
  if (has("attn_v.weight")) return TensorRole::values;
  if (has("attn_k.weight")) return TensorRole::keys;
  if (has("attn_output.weight")) return TensorRole::output;
  if (has("ffn_down")) return TensorRole::down;
  return TensorRole::other;
}

// The type of most tensors.
GgmlType main_type(GgufMix mix) {
  switch (mix) {
    case GgufMix::f32:
      return GgmlType::f32;
    case GgufMix::f16:
      return GgmlType::f16;
    case GgufMix::bf16:
      return GgmlType::bf16;
    case GgufMix::q8_0:
    case GgufMix::mxfp4:
      return GgmlType::q8_0;
    case GgufMix::q6_k:
      return GgmlType::q6_k;
    case GgufMix::q5_k_m:
    case GgufMix::q5_k_s:
      return GgmlType::q5_k;
    case GgufMix::q5_1:
      return GgmlType::q5_1;
    case GgufMix::q5_0:
      return GgmlType::q5_0;
    case GgufMix::q4_k_m:
    case GgufMix::q4_k_s:
      return GgmlType::q4_k;
    case GgufMix::q4_1:
      return GgmlType::q4_1;
    case GgufMix::q4_0:
      return GgmlType::q4_0;
    case GgufMix::q3_k_m:
      return GgmlType::q3_k;
  }
  return GgmlType::f32;
}

bool is_plain_float(GgufMix mix) {
  return mix == GgufMix::f32 || mix == GgufMix::f16 || mix == GgufMix::bf16;
}

// The first and the last eighth of the layers, and every third between them.
bool gets_more_bits(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// The number in "blk.3.", or -1.
int64_t layer_in(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  int64_t layer = -1;
  if (name.starts_with(kBlock))
    std::from_chars(name.data() + kBlock.size(), name.data() + name.size(), layer);
  return layer;
}

GgmlType fitting_type(GgmlType type, int64_t row) {
  const auto fits = [&](GgmlType candidate) {
    return row % formats::block_size(candidate).elements == 0;
  };
  if (fits(type)) return type;
  constexpr std::array kSmaller{
      std::pair(GgmlType::q3_k, GgmlType::q4_0), std::pair(GgmlType::q4_k, GgmlType::q5_0),
      std::pair(GgmlType::q5_k, GgmlType::q5_1), std::pair(GgmlType::q6_k, GgmlType::q8_0)};
  for (const auto& [large, small] : kSmaller)
    if (type == large && fits(small)) return small;
  return GgmlType::f16;
}

class GgufTypeChoice {
 public:
  GgufTypeChoice(GgufMix mix, const GgufModel& model, const models::ModelConfig& config)
      : mix_(mix),
        config_(config),
        is_falcon_(model.architecture == "falcon"),
        is_70b_(model.architecture == "llama" && config.num_layers == 80 &&
                config.num_heads != config.num_kv_heads),
        layers_(config.has_encoder() ? config.encoder_layers : config.num_layers) {
    for (const GgufTensor& tensor : model.tensors) {
      const TensorRole role = role_of(tensor.name);
      is_tied_ &= role != TensorRole::head;
      if (role == TensorRole::values || role == TensorRole::fused) ++value_tensors_;
    }
  }

  // Called for all tensors in llama.cpp's order.
  GgmlType type(const GgufTensor& tensor) {
    if (tensor.keeps_fp32) return GgmlType::f32;
    if (is_plain_float(mix_)) return main_type(mix_);
    const int64_t row = tensor.shape.back();
    return fitting_type(by_role(tensor, role_of(tensor.name), row), row);
  }

 private:
  GgmlType by_role(const GgufTensor& tensor, TensorRole role, int64_t row) {
    if (role == TensorRole::head || (is_tied_ && role == TensorRole::embedding))
      return of_head(row);
    if (mix_ == GgufMix::mxfp4) return tensor.shape.size() == 3 ? GgmlType::mxfp4 : GgmlType::q8_0;
    switch (role) {
      case TensorRole::values:
      case TensorRole::fused:
        return of_values();
      case TensorRole::keys:
        return config_.num_experts == 8 ? GgmlType::q8_0 : main_type(mix_);
      case TensorRole::down:
        return of_down(tensor.name);
      case TensorRole::output:
        return of_output();
      default:
        return main_type(mix_);
    }
  }

  GgmlType of_head(int64_t row) const {
    const bool is_whole = row % formats::block_size(main_type(mix_)).elements == 0;
    if (mix_ == GgufMix::mxfp4 || mix_ == GgufMix::q8_0 || is_falcon_ || !is_whole)
      return GgmlType::q8_0;
    return GgmlType::q6_k;
  }

  GgmlType of_values() {
    const int64_t place = values_seen_++;
    GgmlType type = main_type(mix_);
    if (mix_ == GgufMix::q3_k_m) type = place < 2 ? GgmlType::q5_k : GgmlType::q4_k;
    if ((mix_ == GgufMix::q4_k_m || mix_ == GgufMix::q5_k_m) &&
        gets_more_bits(place, value_tensors_))
      type = GgmlType::q6_k;
    if (mix_ == GgufMix::q4_k_s && place < 4) type = GgmlType::q5_k;
    if (is_70b_ && (type == GgmlType::q3_k || type == GgmlType::q4_k)) type = GgmlType::q5_k;
    return config_.num_experts == 8 ? GgmlType::q8_0 : type;
  }

  GgmlType of_down(const std::string& name) {
    const int64_t place = downs_seen_++;
    const int64_t layer = config_.num_experts > 1 ? layer_in(name) : place;
    const bool more = gets_more_bits(layer, layers_);
    if (mix_ == GgufMix::q3_k_m)
      return layer < layers_ / 16  ? GgmlType::q5_k
             : !is_falcon_ || more ? GgmlType::q4_k
                                   : GgmlType::q3_k;
    if (mix_ == GgufMix::q4_k_m && is_falcon_)
      return layer < layers_ / 16 ? GgmlType::q6_k : more ? GgmlType::q5_k : GgmlType::q4_k;
    if (mix_ == GgufMix::q4_k_m || mix_ == GgufMix::q5_k_m)
      return more ? GgmlType::q6_k : main_type(mix_);
    if (mix_ == GgufMix::q4_k_s && !is_falcon_ && layer < layers_ / 8) return GgmlType::q5_k;
    return main_type(mix_);
  }

  GgmlType of_output() const {
    if (is_falcon_) return main_type(mix_);
    if (config_.num_experts == 8) {
      const bool rises =
          mix_ == GgufMix::q3_k_m || mix_ == GgufMix::q4_k_s || mix_ == GgufMix::q4_k_m;
      return rises ? GgmlType::q5_k : main_type(mix_);
    }
    return mix_ == GgufMix::q3_k_m ? GgmlType::q4_k : main_type(mix_);
  }

  GgufMix mix_;
  const models::ModelConfig& config_;
  bool is_falcon_;
  bool is_70b_;
  int64_t layers_;
  bool is_tied_ = true;  // there is no head of its own
  int64_t value_tensors_ = 0;
  int64_t values_seen_ = 0;
  int64_t downs_seen_ = 0;
};

}  // namespace

std::vector<GgufMix> parse_mixes(std::string_view text) {
  std::vector<GgufMix> mixes;
  const auto fail = [&](const std::string& what) {
    base::throw_user_error("types={}: {}. Kinds of GGUF files are: {}", text, what,
                           fmt::join(base::all_words<GgufMix>(), ", "));
  };
  const auto words = formats::items_in_text(text);
  if (!words) fail("a quote is not closed");
  if (words->empty()) fail("no kind is named");
  for (const std::string& item : *words) {
    std::string word = base::lower_case(item);
    if (word.ends_with("_k") && word != "q6_k") word += "_m";
    const auto mix = base::from_word<GgufMix>(word);
    if (!mix) fail(fmt::format("there is no kind \"{}\"", word));
    if (std::ranges::find(mixes, *mix) != mixes.end()) fail(fmt::format("{} stands twice", word));
    mixes.push_back(*mix);
  }
  return mixes;
}

std::vector<GgmlType> mixed_types(GgufMix mix, const GgufModel& model,
                                  const models::ModelConfig& config) {
  if (mix == GgufMix::mxfp4 && config.num_experts == 0)
    base::throw_user_error(
        "types=mxfp4 is for models with experts, and this one has none; use q4_k_m or q4_0");
  std::vector<size_t> order(model.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) {
    const std::string& name = model.tensors[i].name;
    return std::tuple(layer_in(name), std::string_view(name));
  });
  GgufTypeChoice choice(mix, model, config);
  std::vector<GgmlType> types(model.tensors.size());
  for (const size_t i : order) types[i] = choice.type(model.tensors[i]);
  return types;
}

}  // namespace snug::convert
