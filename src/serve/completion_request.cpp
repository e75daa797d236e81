#include "serve/completion_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/questions/prompt.h"
#include "generate/recipe_request.h"
#include "serve/api_error.h"

namespace snug::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostAnswers = 128;
constexpr int64_t kMostLikeliest = 20;
constexpr size_t kMostStops = 16;
constexpr double kMostPenalty = 2;
constexpr double kMostTemperature = 100;
// Of a completion whose length nobody gives, as OpenAI defines it.
constexpr int64_t kUsualNewTokens = 16;

void read_sampling(RequestFields& fields, engine::SamplingOptions& sampling) {
  const auto take = [](auto& value, const auto& given) {
    if (given) value = *given;
  };
  take(sampling.temperature, fields.number("temperature", 0, kMostTemperature));
  take(sampling.top_p, fields.number("top_p", 0, 1));
  if (sampling.top_p == 0) fields.refuse("top_p", "must be above 0");
  // Other servers write "all" as -1.
  const auto top_k = fields.integer("top_k", -1, std::numeric_limits<int32_t>::max());
  if (top_k) sampling.top_k = std::max<int64_t>(*top_k, 0);
  take(sampling.min_p, fields.number("min_p", 0, 1));
  take(sampling.repetition_penalty, fields.number("repetition_penalty", 1e-3, 1e3));
  take(sampling.presence_penalty, fields.number("presence_penalty", -kMostPenalty, kMostPenalty));
  take(sampling.frequency_penalty, fields.number("frequency_penalty", -kMostPenalty, kMostPenalty));
}

void read_log_probabilities(RequestFields& fields, CompletionRequest& request) {
  if (!request.is_chat) {
    request.common.log_probabilities = fields.integer("logprobs", 0, kMostLikeliest);
    return;
  }
  const bool is_asked = fields.boolean("logprobs").value_or(false);
  const auto likeliest = fields.integer("top_logprobs", 0, kMostLikeliest);
  if (likeliest && !is_asked && *likeliest > 0)
    fields.refuse("top_logprobs", "needs logprobs: true");
  if (is_asked) request.common.log_probabilities = likeliest.value_or(0);
}

// The schema that response_format asks for; null: none.
ordered_json read_response_format(RequestFields& fields) {
  std::optional<RequestFields> format = fields.object("response_format");
  if (!format) return nullptr;
  const std::string type = format->text("type").value_or("");
  ordered_json document;
  if (type == "json_object") {
    document = {{"type", "object"}};
  } else if (type == "json_schema") {
    std::optional<RequestFields> schema = format->object("json_schema");
    if (!schema) format->refuse("json_schema", "is missing");
    for (const char* name : {"name", "description", "strict"}) schema->pass_over(name);
    const ordered_json* given = schema->find("schema");
    if (given == nullptr) schema->refuse("schema", "is missing");
    document = *given;
    schema->refuse_others();
  } else if (type != "text") {
    format->refuse("type", "must be text, json_object or json_schema");
  }
  format->refuse_others();
  return document;
}

// The name of what stands before a form, for that of the whole.
std::string name_of(const text::AnswerBeginning& beginning) {
  if (beginning.thought == nullptr) return "";
  return fmt::format("{} {} ", beginning.thought->open, beginning.begins_in_thought);
}

AskedForm calls_form(const text::AnswerBeginning& beginning, const text::HeldCalls& calls) {
  ordered_json functions = ordered_json::array();
  for (const text::CalledFunction& one : calls.functions)
    functions.push_back({one.name, one.parameters});
  return {.name = fmt::format("{}calls {} {} {} {}", name_of(beginning), calls.format->name,
                              calls.is_optional, calls.is_single, one_line(functions)),
          .grammar = [=] { return text::answer_calls_grammar(beginning, calls); }};
}

// What the answers are held to: one of a schema, an expression and calls of tools.
AskedForm read_form(RequestFields& fields, const text::AnswerBeginning& beginning,
                    const AskedTools& tools) {
  const ordered_json schema = read_response_format(fields);
  const auto regex = fields.text("guided_regex");
  if (regex && !schema.is_null())
    fields.refuse("guided_regex", "is given next to response_format; an answer follows one");
  if (tools.calls.format != nullptr && (regex || !schema.is_null()))
    fields.refuse(regex ? "guided_regex" : "response_format",
                  "is given next to tools; an answer follows one of them. With tool_choice: none "
                  "no tool is called");
  if (tools.is_held) return calls_form(beginning, tools.calls);
  if (regex)
    return {.name = fmt::format("{}regex {}", name_of(beginning), *regex),
            .grammar = [=] { return text::answer_regex_grammar(beginning, *regex); }};
  if (!schema.is_null())
    return {.name = fmt::format("{}json_schema {}", name_of(beginning), one_line(schema)),
            .grammar = [=] { return text::answer_schema_grammar(beginning, schema); }};
  return {};
}

// Reads the conversation of a chat, and how its answers are divided.
void read_chat(RequestFields& fields, CompletionRequest& request, const ServedModel& model) {
  AskedConversation asked = read_conversation(fields, model);
  request.prompts = {std::move(asked.ids)};
  const bool is_open = asked.thought == text::ThoughtPlace::within;
  request.marks = {.thought = model.thought_marks(),
                   .begins_in_thought = is_open,
                   .calls = asked.tools.calls.format};
  request.marks.names.reserve(asked.tools.calls.functions.size());
  for (const text::CalledFunction& one : asked.tools.calls.functions)
    request.marks.names.push_back(one.name);
  // What is held begins at once where the template has closed the thought.
  const bool may_think = asked.thought != text::ThoughtPlace::after;
  request.form =
      read_form(fields, {may_think ? model.thought_marks() : nullptr, is_open}, asked.tools);
}

void read_stream(RequestFields& fields, CompletionRequest& request) {
  request.is_streamed = fields.boolean("stream").value_or(false);
  std::optional<RequestFields> options = fields.object("stream_options");
  if (!options) return;
  if (!request.is_streamed) fields.refuse("stream_options", "needs stream: true");
  request.has_usage = options->boolean("include_usage").value_or(false);
  options->not_built("include_obfuscation", false, "pieces are sent as they are");
  options->refuse_others();
}

void read_end(RequestFields& fields, CompletionRequest& request, const ServedModel& model) {
  const bool goes_on = fields.boolean("ignore_eos").value_or(false);
  std::vector<int32_t> ids = goes_on ? std::vector<int32_t>() : model.end_ids(request.is_chat);
  if (const ordered_json* more = fields.find("stop_token_ids")) {
    if (!more->is_array()) fields.refuse("stop_token_ids", "must be a list of token ids");
    for (const ordered_json& id : *more) {
      if (!id.is_number_integer() || id < 0 || id >= model.tokenizer().vocabulary_size())
        fields.refuse("stop_token_ids", "has what is no id of a token");
      ids.push_back(id.get<int32_t>());
    }
  }
  const std::vector<std::string> texts = fields.texts("stop", kMostStops);
  if (std::ranges::count(texts, "") > 0) fields.refuse("stop", "has an empty text");
  request.common.end = generate::answer_end(std::move(ids), texts, &model.tokenizer());
}

// What other servers have, or OpenAI itself, and this one does not.
void refuse_not_built(RequestFields& fields, bool is_chat) {
  for (const char* name : {"user", "metadata", "safety_identifier", "prompt_cache_key"})
    fields.pass_over(name);
  fields.not_built("logit_bias", ordered_json::object(),
                   "penalties and response_format change what is likely");
  fields.not_built("min_tokens", 0, "leave it out");
  if (is_chat) {
    fields.not_built("store", false, "nothing is kept");
    fields.not_built("service_tier", "auto", "all requests are served in their order");
    fields.not_built("modalities", ordered_json::array({"text"}), "answers are text");
    fields.not_built("functions", ordered_json::array(), "the field tools is its newer name");
    fields.not_built("function_call", "none", "the field tool_choice is its newer name");
    fields.not_built("reasoning_effort", "none",
                     "templates that can think less take a word in chat_template_kwargs");
    fields.not_built("add_generation_prompt", true, "the assistant's turn always follows");
    fields.not_built("continue_final_message", false, "the assistant's turn always follows");
  } else {
    fields.not_built("echo", false, "the prompt is known to the client");
    fields.not_built("suffix", "", "a text is continued at its end alone");
    fields.not_built("best_of", 1, "ask for n answers with logprobs");
  }
}

engine::Ids ids_in(RequestFields& fields, const ordered_json& list, const ServedModel& model) {
  const int64_t rows = model.tokenizer().vocabulary_size();
  engine::Ids ids;
  ids.reserve(list.size());
  for (const ordered_json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= rows)
      fields.refuse("prompt", fmt::format("has what is no id of a token, 0 to {}", rows - 1));
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// A text, a list of texts, ids, or a list of lists of ids.
std::vector<engine::Ids> read_prompts(RequestFields& fields, const ServedModel& model) {
  const ordered_json* prompt = fields.find("prompt");
  if (prompt == nullptr) fields.refuse("prompt", "is missing");
  const auto one = [&](const ordered_json& given) {
    if (given.is_string()) return engine::text_prompt(model.tokenizer(), given.get<std::string>());
    if (given.is_array()) return ids_in(fields, given, model);
    fields.refuse("prompt", "must be a text, a list of texts, or ids of tokens");
  };
  const bool is_list = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (!is_list) return {one(*prompt)};
  std::vector<engine::Ids> prompts;
  prompts.reserve(prompt->size());
  for (const ordered_json& given : *prompt) prompts.push_back(one(given));
  return prompts;
}

// How long answers may be: what is asked for, where there is room for that.
int64_t read_new_tokens(RequestFields& fields, const CompletionRequest& request,
                        const ServedModel& model) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto asked = fields.integer("max_tokens", 1, kMost);
  const auto also = request.is_chat ? fields.integer("max_completion_tokens", 1, kMost)
                                    : std::optional<int64_t>();
  if (asked && also && *asked != *also)
    fields.refuse("max_tokens", "and max_completion_tokens differ; give one of them");
  int64_t longest = 0;
  for (const engine::Ids& prompt : request.prompts) {
    if (prompt.empty()) fields.refuse("prompt", "has no token to continue from");
    longest = std::max(longest, std::ssize(prompt));
  }
  const int64_t room = model.context() - longest;
  if (room < 1)
    throw ApiError(kBadRequest,
                   fmt::format("the prompt has {} tokens, and a sequence may have {}, its answer "
                               "included; shorten it, or start the server with a larger max_length",
                               longest, model.context()),
                   request.is_chat ? "messages" : "prompt", "context_length_exceeded");
  const int64_t usual = request.is_chat ? room : kUsualNewTokens;
  return std::min(room, asked.value_or(also.value_or(model.new_tokens().value_or(usual))));
}

}  // namespace

int64_t CompletionRequest::prompt_tokens() const {
  int64_t tokens = 0;
  for (const engine::Ids& prompt : prompts) tokens += std::ssize(prompt);
  return tokens;
}

std::string adapter_named(const std::string& named, const ServedModel& model) {
  const std::vector<std::string> adapters = model.adapters();
  if (named.empty() || named == model.name()) return "";
  if (std::ranges::count(adapters, named) > 0) return named;
  throw ApiError(kNotFound,
                 fmt::format("there is no model '{}' here; there {} {}{}{}", named,
                             adapters.empty() ? "is" : "are", model.name(),
                             adapters.empty() ? "" : ", ", fmt::join(adapters, ", ")),
                 "model", "model_not_found");
}

CompletionRequest read_completion_request(std::string_view body, bool is_chat,
                                          const ServedModel& model) {
  RequestFields fields(body);
  CompletionRequest request;
  request.is_chat = is_chat;
  request.model = fields.text("model").value_or("");
  request.common.adapter = adapter_named(request.model, model);
  if (request.model.empty()) request.model = model.name();
  request.common.sampling = model.sampling();
  read_sampling(fields, request.common.sampling);
  read_log_probabilities(fields, request);
  read_stream(fields, request);
  read_end(fields, request, model);
  refuse_not_built(fields, is_chat);
  request.answers = fields.integer("n", 1, kMostAnswers).value_or(1);
  if (const auto seed = fields.integer("seed", std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max())) {
    request.has_seed = true;
    request.common.sampling.seed = *seed;
  }
  try {
    if (is_chat) {
      read_chat(fields, request, model);
    } else {
      request.prompts = read_prompts(fields, model);
      request.form = read_form(fields, {}, {});
    }
  } catch (const base::UserError& error) {
    throw ApiError(kBadRequest, error.what(), is_chat ? "messages" : "prompt");
  }
  if (std::ssize(request.prompts) * request.answers > kMostAnswers)
    fields.refuse("n", fmt::format("asks for {} answers to {} prompts; {} at most in one request",
                                   request.answers, request.prompts.size(), kMostAnswers));
  request.common.max_new_tokens = read_new_tokens(fields, request, model);
  fields.refuse_others();
  return request;
}

}  // namespace snug::serve
