// What a request to /v1/chat/completions or /v1/completions asks for. Every field that it may have
// is obeyed or refused by name; none is ignored. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "serve/inference_loop.h"
#include "serve/request_fields.h"
#include "serve/served_model.h"
#include "serve/tool_request.h"
#include "text/answer/answer_reader.h"

namespace snug::serve {

struct CompletionRequest {
  bool is_chat = false;
  std::string model{};  // as the client named it, or the model's own name
  std::vector<engine::Ids> prompts{};
  engine::Request common{};  // of all answers, without prompt and sample
  AskedForm form{};
  text::AnswerMarks marks{};  // by which the answers of a chat are divided
  int64_t answers = 1;        // to each prompt
  bool has_seed = false;
  bool is_streamed = false;
  bool has_usage = false;  // at the end of a stream

  int64_t prompt_tokens() const;  // of all prompts, each once
};

// Throws ApiError that names the field.
CompletionRequest read_completion_request(std::string_view body, bool is_chat,
                                          const ServedModel& model);

// The name of the adapter that answers for `named`: empty for the model itself. Throws ApiError for
// a name that there is not.
std::string adapter_named(const std::string& named, const ServedModel& model);

// A conversation up to where the assistant's answer begins, and the tools that it may call.
struct AskedConversation {
  engine::Ids ids{};
  text::ThoughtPlace thought = text::ThoughtPlace::before;  // where the answer begins
  AskedTools tools{};
};

// The fields messages, chat_template_kwargs, and those of tools.
AskedConversation read_conversation(RequestFields& fields, const ServedModel& model);

}  // namespace snug::serve
