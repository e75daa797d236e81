#include "generate/chat/chat_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/questions/prompt.h"
#include "engine/request_shape.h"
#include "generate/folder_sampling.h"
#include "generate/recipe_request.h"

namespace snug::generate {
namespace {

constexpr int64_t kUsualContext = 4096;

bool is_completion(const formats::Recipe& recipe) {
  return recipe.is_given("prompt_format") && recipe.prompt_format != formats::PromptFormat::chat;
}

text::ChatTemplate open_chat_template(const formats::Recipe& recipe,
                                      const text::Tokenizer& tokenizer) {
  try {
    return text::ChatTemplate(recipe.chat_template, tokenizer);
  } catch (const base::UserError& error) {
    if (!recipe.chat_template.empty()) throw;
    base::throw_user_error("{}; prompt_format=raw continues each text as it is, without turns",
                           error.what());
  }
}

int64_t context_of(const formats::Recipe& recipe, const models::ModelConfig& model) {
  if (!recipe.is_given("max_length")) return std::min(kUsualContext, model.max_position);
  if (recipe.max_length > model.max_position)
    recipe.fail("max_length", fmt::format("is {}, but the model has {} positions",
                                          recipe.max_length, model.max_position));
  return recipe.max_length > 0 ? recipe.max_length : model.max_position;
}

// One sequence that fills the context, with what all requests have.
plan::InferenceShape chat_shape(engine::Request largest, const formats::Recipe& recipe,
                                const models::ModelConfig& model, int64_t context) {
  largest.prompt.resize(static_cast<size_t>(context));
  largest.max_new_tokens = model.has_encoder() ? recipe.max_new_tokens : 1;
  check_guesses(recipe, largest);
  return with_guesses(recipe, engine::shape_for({&largest, 1}, 1, model));
}

}  // namespace

struct ChatModel::Opened {
  explicit Opened(const formats::Recipe& recipe)
      : model(runtime::open_model(recipe)),
        tokenizer(engine::open_tokenizer(recipe, model)),
        context(context_of(recipe, model.config)),
        sampling(recipe_sampling(with_folder_sampling(recipe, model))) {
    if (!is_completion(recipe)) {
      if (model.config.has_encoder())
        base::throw_user_error(
            "conversations are not built for encoder-decoders; prompt_format=raw answers each "
            "text alone");
      chat.emplace(open_chat_template(recipe, tokenizer));
    } else if (!recipe.system.empty()) {
      recipe.fail("system", "is a message of a conversation; leave it out, or prompt_format");
    }
    end = answer_end(engine::end_ids(recipe, tokenizer, chat.has_value()), recipe.stop, &tokenizer);
    form = recipe_form(recipe, &forms);
    engine::Request alike;
    alike.sampling = sampling;
    alike.form = form;
    inference.emplace(recipe, model, chat_shape(alike, recipe, model.config, context));
    engine.emplace(*inference, &tokenizer);
  }

  engine::Ids prompt(const formats::Recipe& recipe, const text::Conversation& conversation) const {
    if (chat) return engine::chat_prompt(tokenizer, *chat, conversation);
    formats::Recipe alone = recipe;
    alone.prompt = conversation.messages.back().content();
    return engine::recipe_prompt(alone, tokenizer, model.config.has_encoder());
  }

  models::ModelSource model;
  text::Tokenizer tokenizer;
  int64_t context;
  engine::SamplingOptions sampling;          // of each answer
  std::optional<text::ChatTemplate> chat{};  // none: each text is completed alone
  engine::AnswerEnd end{};
  engine::AnswerForms forms{tokenizer};
  engine::AnswerForms::Form form{};  // of each answer
  std::optional<engine::Inference> inference{};
  std::optional<engine::Engine> engine{};
};

ChatModel::ChatModel(const formats::Recipe& recipe, std::function<bool()> is_stopped)
    : recipe_(recipe),
      is_stopped_(std::move(is_stopped)),
      opened_(std::make_unique<Opened>(recipe_)) {}

ChatModel::~ChatModel() = default;

bool ChatModel::takes_conversations() const { return opened_->chat.has_value(); }
int64_t ChatModel::context() const { return opened_->context; }
int64_t ChatModel::positions() const { return opened_->model.config.max_position; }

ChatMemory ChatModel::memory() const {
  const nlohmann::json measured = opened_->inference->device_json().at("peak_bytes");
  return {.planned_bytes = opened_->inference->arena_bytes(),
          .measured_bytes = measured.is_null() ? 0 : measured.get<int64_t>()};
}

std::string ChatModel::why_no_system(const std::string& text) const {
  if (!opened_->chat) return "without a chat template each text is completed alone";
  const text::Conversation conversation{.messages = {{"system", text}, {"user", "Q"}}};
  try {
    for (const text::Unwritten& one : opened_->chat->unwritten(conversation, true))
      if (one.role == "system") return "the chat template does not write system messages";
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

// A chat cannot go on where this fails, which is no matter of what the user typed last.
void ChatModel::open_again() {
  try {
    opened_ = std::make_unique<Opened>(recipe_);
  } catch (const base::UserError& error) {
    throw std::runtime_error(error.what());
  }
}

const std::vector<std::string>& ChatModel::adapters() const {
  return opened_->inference->adapters();
}

void ChatModel::use_adapter(const std::string& folder) {
  if (!adapters().empty()) {
    engine::check_adapter(folder, adapters());
    chosen_ = folder;
    return;
  }
  formats::Recipe other = recipe_;
  other.adapter = folder;
  opened_.reset();  // so that memory holds one model at a time
  try {
    opened_ = std::make_unique<Opened>(other);
  } catch (const base::UserError&) {
    open_again();
    throw;
  }
  recipe_ = std::move(other);
}

engine::Request ChatModel::request_for(engine::Ids prompt) {
  const bool has_encoder = opened_->model.config.has_encoder();
  const int64_t room = has_encoder ? recipe_.max_new_tokens : opened_->context - std::ssize(prompt);
  const bool is_bounded = has_encoder || recipe_.is_given("max_new_tokens");
  return {.prompt = std::move(prompt),
          .max_new_tokens = is_bounded ? std::min(recipe_.max_new_tokens, room) : room,
          .sampling = opened_->sampling,
          .end = opened_->end,
          .adapter = chosen_,
          .log_probabilities = {},
          .deadline = {},
          .form = opened_->form,
          .sample = asked_++};
}

ChatReply ChatModel::answer(const text::Conversation& conversation, const OnText& on_text) {
  ChatReply reply;
  engine::Ids prompt;
  try {
    prompt = opened_->prompt(recipe_, conversation);
  } catch (const base::UserError& error) {
    reply.problem = error.what();
    return reply;
  }
  reply.prompt_tokens = std::ssize(prompt);
  const int64_t most = opened_->context - (opened_->model.config.has_encoder() ? 0 : 1);
  reply.fits = reply.prompt_tokens <= most;
  if (prompt.empty()) reply.problem = "the text has no token to continue from";
  if (!reply.fits || prompt.empty()) return reply;
  engine::Engine& engine = *opened_->engine;
  const engine::EngineTimes before = engine.times();
  const engine::RequestId request =
      engine.submit(request_for(std::move(prompt)), [&](const engine::AnswerEvent& event) {
        reply.new_tokens += event.id ? 1 : 0;
        reply.text += event.text;
        if (event.finish) reply.finish = *event.finish;
        if (!event.text.empty()) on_text(event.text);
      });
  while (engine.step())
    if (is_stopped_()) engine.cancel(request);
  reply.read_tokens = engine.times().prefill_tokens - before.prefill_tokens;
  const double seconds = engine.times().decode_seconds - before.decode_seconds;
  const int64_t decoded = engine.times().decode_tokens - before.decode_tokens;
  if (seconds > 0) reply.tokens_per_second = static_cast<double>(decoded) / seconds;
  return reply;
}

}  // namespace snug::generate
