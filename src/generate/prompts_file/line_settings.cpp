#include "generate/prompts_file/line_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::generate {
namespace {

using Json = nlohmann::json;
using text::RecordFields;

// A field of a line, and the recipe's key that it stands for. Of two for one key the later counts.
struct SettingName {
  const char* field;
  const char* key;
};
constexpr std::array kSettingNames{SettingName{"max_tokens", "max_new_tokens"},
                                   SettingName{"max_completion_tokens", "max_new_tokens"},
                                   SettingName{"max_new_tokens", "max_new_tokens"},
                                   SettingName{"temperature", "temperature"},
                                   SettingName{"top_k", "top_k"},
                                   SettingName{"top_p", "top_p"},
                                   SettingName{"min_p", "min_p"},
                                   SettingName{"repetition_penalty", "repetition_penalty"},
                                   SettingName{"presence_penalty", "presence_penalty"},
                                   SettingName{"frequency_penalty", "frequency_penalty"},
                                   SettingName{"seed", "seed"},
                                   SettingName{"stop", "stop"},
                                   SettingName{"stop_sequences", "stop"},
                                   SettingName{"stop_strings", "stop"},
                                   SettingName{"regex", "regex"},
                                   SettingName{"guided_regex", "regex"},
                                   SettingName{"logprobs", "logprobs"},
                                   SettingName{"top_logprobs", "logprobs"}};

// Objects in which other tools put settings together.
constexpr std::array kSettingGroups{"sampling_params", "parameters"};

// Names of the adapter that answers: Snug's, that of TGI and LoRAX, and vLLM's.
constexpr std::array kAdapterFields{"adapter", "adapter_id", "lora_name"};

// What is not built, unless it has a value that asks for nothing.
constexpr std::array kNotBuiltSettings{"n",
                                       "best_of",
                                       "num_return_sequences",
                                       "echo",
                                       "logit_bias",
                                       "response_format",
                                       "structured_outputs",
                                       "guided_json",
                                       "guided_choice",
                                       "guided_grammar",
                                       "json_schema",
                                       "suffix",
                                       "min_tokens",
                                       "use_beam_search",
                                       "num_beams",
                                       "tool_choice",
                                       "continue_final_message"};

// Fields of OpenAI's requests that change no answer.
constexpr std::array kHarmlessFields{"model",
                                     "user",
                                     "metadata",
                                     "store",
                                     "stream",
                                     "stream_options",
                                     "service_tier",
                                     "safety_identifier",
                                     "prompt_cache_key",
                                     "add_generation_prompt",
                                     "parallel_tool_calls"};

bool asks_for_nothing(std::string_view field, const Json& value) {
  if (value.is_null() || value == false || value == 0) return true;
  if ((value.is_structured() || value.is_string()) && (value.empty() || value == "")) return true;
  if (field == "n" || field == "best_of" || field == "num_return_sequences" || field == "num_beams")
    return value == 1;
  if (field == "response_format") return value == Json{{"type", "text"}} || value == "text";
  return field == "tool_choice" && (value == "auto" || value == "none");
}

std::string setting_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

formats::Written written_setting(const RecordFields& fields, const SettingName& name,
                                 const Json& value) {
  formats::Written written{.name = name.key,
                           .items = {},
                           .is_list = value.is_array(),
                           .where = {},
                           .is_default = false,
                           .is_blank = false,
                           .said_as = name.field};
  if (value.is_object())
    fields.fail(fmt::format("'{}' is an object; expected a value", name.field));
  if (!value.is_array()) {
    written.items.push_back(setting_text(value));
    return written;
  }
  for (const Json& item : value) {
    if (!item.is_string() && !item.is_number())
      fields.fail(fmt::format("'{}' is a list of other than texts", name.field));
    written.items.push_back(setting_text(item));
  }
  return written;
}

void apply_setting(const RecordFields& fields, const SettingName& name, const Json& value,
                   LineSettings& settings) {
  const std::string_view key_name = name.key;
  if (value.is_null() || value == "") return;  // an empty cell of a table
  if (key_name == "stop" && value.is_array() && value.empty()) return settings.recipe.stop.clear();
  // vLLM's word for all tokens.
  const Json meant = key_name == "top_k" && value == -1 ? Json(0) : value;
  const formats::RecipeKey& key = *formats::find_recipe_key(key_name);
  try {
    key.field.set(settings.recipe, formats::parse_value(key, written_setting(fields, name, meant)));
  } catch (const text::RecordError&) {
    throw;
  } catch (const base::UserError& error) {
    fields.fail(fmt::format("{}; ignore_fields={} answers without it", error.what(), name.field));
  }
  settings.recipe.given.insert_or_assign(std::string(key_name), base::Location{});
  settings.has_own_seed = settings.has_own_seed || key_name == "seed";
}

bool is_known(std::string_view adapter, std::span<const std::string> adapters) {
  return std::ranges::find(adapters, adapter) != adapters.end();
}

// One of the adapters that the recipe names; empty or "none": none.
void choose_adapter(const RecordFields& fields, std::string_view field, const Json& value,
                    std::span<const std::string> adapters, LineSettings& settings) {
  if (value.is_null() || value == "" || value == "none") return;
  if (value.is_string() && is_known(value.get<std::string>(), adapters)) {
    settings.adapter = value.get<std::string>();
    return;
  }
  const std::string asked = setting_text(value);
  const std::string what =
      adapters.empty() ? fmt::format("no adapters are given; adapters={}=FOLDER gives it", asked)
                       : fmt::format("the adapters are {}", fmt::join(adapters, ", "));
  fields.fail(
      fmt::format("'{0}' asks for the adapter '{1}', and {2}; ignore_fields={0} answers "
                  "without it",
                  field, asked, what));
}

// By its own field, or, as vLLM has it, by the name of a model that is an adapter's.
void choose_adapter(const RecordFields& fields, std::span<const std::string> adapters,
                    LineSettings& settings) {
  if (fields.has("model") && fields.document().at("model").is_string() &&
      is_known(fields.document().at("model").get<std::string>(), adapters))
    settings.adapter = fields.at("model").get<std::string>();
  for (const char* field : kAdapterFields)
    if (fields.has(field)) choose_adapter(fields, field, fields.at(field), adapters, settings);
}

void apply_group(const RecordFields& fields, const char* group,
                 std::span<const std::string> adapters, LineSettings& settings) {
  if (!fields.holds(group) || !fields.document().at(group).is_object()) return;
  const Json& values = fields.at(group);
  for (const auto& [field, value] : values.items()) {
    const auto known = std::ranges::find(kSettingNames, field, &SettingName::field);
    if (known != kSettingNames.end())
      apply_setting(fields, *known, value, settings);
    else if (std::ranges::find(kAdapterFields, field) != kAdapterFields.end())
      choose_adapter(fields, field, value, adapters, settings);
    else if (!asks_for_nothing(field, value))
      fields.fail(
          fmt::format("'{}' has the setting '{}', which is not built; ignore_fields={} "
                      "answers without all of it",
                      group, field, group));
  }
}

bool is_true(const RecordFields& fields, const char* field) {
  if (!fields.holds(field)) return false;
  const Json& value = fields.at(field);
  if (!value.is_boolean()) fields.fail(fmt::format("expected '{}' to be true or false", field));
  return value.get<bool>();
}

std::vector<int32_t> stop_ids_of(const RecordFields& fields) {
  std::vector<int32_t> ids;
  if (!fields.holds("stop_token_ids")) return ids;
  const Json& value = fields.at("stop_token_ids");
  const bool is_list =
      value.is_array() && std::ranges::all_of(value, [](const Json& id) {
        return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int32_t>::max();
      });
  if (!is_list) fields.fail("expected 'stop_token_ids' to be a list of token ids");
  for (const Json& id : value) ids.push_back(id.get<int32_t>());
  return ids;
}

void refuse_not_built(const RecordFields& fields) {
  for (const char* field : kNotBuiltSettings) {
    if (!fields.has(field)) continue;
    const Json& value = fields.at(field);
    if (!asks_for_nothing(field, value))
      fields.fail(
          fmt::format("'{0}' asks for what is not built (it is {1}); ignore_fields={0} "
                      "answers without it",
                      field, value.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
}

}  // namespace

LineSettings read_line_settings(const formats::Recipe& recipe, const RecordFields& fields,
                                std::span<const std::string> adapters) {
  LineSettings settings{.recipe = recipe};
  refuse_not_built(fields);
  for (const char* group : kSettingGroups) apply_group(fields, group, adapters, settings);
  choose_adapter(fields, adapters, settings);
  for (const SettingName& name : kSettingNames) {
    if (!fields.has(name.field)) continue;
    const bool is_off = std::string_view(name.field) == "top_logprobs" && fields.has("logprobs") &&
                        fields.document().at("logprobs") == false;
    const Json& value = fields.at(name.field);
    if (!is_off) apply_setting(fields, name, value, settings);
  }
  settings.wants_ids = is_true(fields, "return_token_ids");
  settings.ignores_ends = is_true(fields, "ignore_eos");
  settings.stop_ids = stop_ids_of(fields);
  return settings;
}

void refuse_unknown_settings(const RecordFields& fields) {
  for (const auto& [field, value] : fields.document().items()) {
    if (fields.is_used(field) || asks_for_nothing(field, value)) continue;
    if (std::ranges::find(kHarmlessFields, std::string_view(field)) != kHarmlessFields.end())
      continue;
    fields.fail(
        fmt::format("the request has the field '{0}', which is not built and may change the "
                    "answer; ignore_fields={0} answers without it",
                    field));
  }
}

}  // namespace snug::generate
