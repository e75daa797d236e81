// What a field of a record or of a message means by its name alone, where the form of the record
// has no use for it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text {

// Names and origins of a record, which change nothing that could be learned.
bool is_label_of_record(std::string_view field);

// Whether a field would change what is learned, such as a weight or a mask: by a word of its name
// (loss, mask, train, weight), where its value could say so: a number, true or false, or a list
// that is not of texts. A weight of 1, or to train on it, changes nothing.
bool says_what_is_learned(std::string_view field, const nlohmann::json& value);
bool says_what_is_learned(std::string_view field, const jinja::Value& value);
// By its name alone, where the value is not known.
bool may_say_what_is_learned(std::string_view field);

// Pictures, sounds and films next to a text, which a text model cannot see.
bool is_of_other_media(std::string_view field);

// Lists that tell documents apart which were packed into one.
bool tells_packed_documents(std::string_view field);

}  // namespace snug::text
