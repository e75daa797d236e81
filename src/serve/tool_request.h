// The tools of a request: the fields tools, tool_choice and parallel_tool_calls. Pure functions;
// any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "serve/request_fields.h"
#include "serve/served_model.h"
#include "text/answer/answer_grammar.h"

namespace snug::serve {

struct AskedTools {
  // As the client wrote them, for the chat template; empty: the model is told of none.
  nlohmann::ordered_json tools = nlohmann::ordered_json::array();
  text::HeldCalls calls{};  // without a format where there are no tools
  // Whether the answer is held to calls: where they are required, where a function is strict, and
  // where there may be only one.
  bool is_held = false;
};

// Throws ApiError, also where the model's template takes no tools.
AskedTools read_tools(RequestFields& fields, const ServedModel& model);

}  // namespace snug::serve
