// What a field of a record or of a message means by its name alone, where the form of the record
// has no use for it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/jinja/values/value.h"

namespace snug::text {

// The words of loss_mask and lossMask, in lower case.
std::vector<std::string> words_of(std::string_view field);

// Names and origins of a record, which change nothing that could be learned: no list of numbers,
// unless it is one that tokenizers write for other models.
bool is_label_of_record(std::string_view field, const nlohmann::json& value);
bool is_label_of_record(std::string_view field, const jinja::Value& value);

// Null, and what is empty or blank.
bool says_nothing(const nlohmann::json& value);

// Whether a field would change what is learned, such as a weight or a mask: by its name, which is
// of the words loss, mask, train, weight and those that tools put next to them (sample_weight,
// train_on_turn, my_loss_mask; not train_id), where its value could say so: a number, true or
// false, also as text, or a list that is not of texts. A weight of 1, or to train on it, changes
// nothing. `has_tokens`: whether it stands next to input_ids, where any name with such a word is
// one.
bool says_what_is_learned(std::string_view field, const nlohmann::json& value, bool has_tokens);
bool says_what_is_learned(std::string_view field, const jinja::Value& value);

// Pictures, sounds and films next to a text, which a text model cannot see.
bool is_of_other_media(std::string_view field);

// Why a record is not read that has a field of which nothing is taken, "the field 'x' ...": it may
// change what is learned, goes with other media, or tells documents apart that were packed into
// one. Empty where nothing is wrong with it. `has_tokens`: whether it stands next to input_ids.
std::string why_refused(std::string_view field, const nlohmann::json& value, bool has_tokens);

}  // namespace snug::text
