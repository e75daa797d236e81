// Fields that show that a record is not what its form says: a text that is one message of a
// conversation, two answers in an order that another field gives, or an answer that is only the
// letter of one of several. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "text/record/record_mapping.h"

namespace snug::text {

// Why a text is not learned next to such a field, "the field 'x' ...": it says who says the text.
// Empty where it does not.
std::string why_no_text(std::string_view field, const nlohmann::json& value);

// Why an answer is not learned next to such a field: it holds the answers to choose from, and the
// answer is the letter or number of one, which means nothing without them. Empty where that is not
// so.
std::string why_no_choice(std::string_view field, const nlohmann::json& value,
                          std::string_view answer);

// Whether a mapping alone says which of two answers is chosen: neither of the fields that it takes
// for them has a name that says so, such as chosen_answer.
bool orders_answers(const RecordMapping& mapping);

// Whether a field may say by its name which of two answers is better.
bool is_named_as_order(std::string_view field);

// Why two answers that `mapping` orders are not learned next to such a field: a number or a word of
// its own says which of them is better. Empty where it does not.
std::string why_no_order(std::string_view field, const nlohmann::json& value,
                         const RecordMapping& mapping);

}  // namespace snug::text
