#include "plan/choice/chosen.h"

#include <cstddef>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_parser.h"
#include "base/words.h"

namespace snug::plan {
namespace {

using nlohmann::json;
using passes::RecomputeMode;
using passes::RecomputeModes;

RecomputeModes modes_of(const json& words) {
  std::vector<RecomputeMode> layers;
  for (const json& word : words)
    layers.push_back(base::from_word<RecomputeMode>(word.get<std::string>()).value());
  return layers.size() > 1 ? RecomputeModes(std::move(layers)) : RecomputeModes(layers.at(0));
}

}  // namespace

Chosen chosen_of(const TrainingSpec& spec, int64_t nothing_again_bytes) {
  return {spec.recompute,
          spec.activation_offloading,
          spec.streaming.window_bytes,
          spec.streaming.update_on_host,
          spec.gathers_once(),
          nothing_again_bytes};
}

TrainingSpec with_chosen(TrainingSpec spec, const Chosen& chosen) {
  spec.recompute = chosen.recompute;
  spec.activation_offloading = chosen.activation_offloading;
  spec.streaming.window_bytes = chosen.window_bytes;
  spec.streaming.update_on_host = chosen.update_on_host;
  if (spec.rollouts) spec.rollouts->gathers_once = chosen.gathers_once;
  return spec;
}

std::string chosen_text(const Chosen& chosen) {
  json modes = json::array();
  for (const RecomputeMode mode : chosen.recompute.layers()) modes.push_back(base::word_of(mode));
  if (modes.empty()) modes.push_back(base::word_of(chosen.recompute.of_layer(-1)));
  return json{{"recompute", std::move(modes)},
              {"activation_offloading", chosen.activation_offloading},
              {"window_bytes", chosen.window_bytes},
              {"update_on_host", chosen.update_on_host},
              {"gathers_once", chosen.gathers_once},
              {"nothing_again_bytes", chosen.nothing_again_bytes}}
      .dump();
}

Chosen chosen_from_text(std::string_view text) {
  try {
    const json values = base::parse_json_value(
        text, [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); });
    return {
        modes_of(values.at("recompute")),         values.at("activation_offloading").get<bool>(),
        values.at("window_bytes").get<int64_t>(), values.at("update_on_host").get<bool>(),
        values.at("gathers_once").get<bool>(),    values.at("nothing_again_bytes").get<int64_t>()};
  } catch (const std::exception&) {
    base::throw_user_error("what the first rank chose cannot be read: {}", text);
  }
}

}  // namespace snug::plan
