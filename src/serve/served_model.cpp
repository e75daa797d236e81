#include "serve/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/questions/prompt.h"
#include "engine/request_shape.h"
#include "generate/folder_sampling.h"
#include "generate/recipe_request.h"
#include "models/families/families.h"
#include "plan/spec/adapter_slots.h"
#include "runtime/loading/load_weights.h"
#include "serve/api_error.h"
#include "text/chat/chat_settings.h"

namespace snug::serve {
namespace {

int64_t context_of(const formats::Recipe& recipe, const models::ModelConfig& model) {
  if (!recipe.is_given("max_length")) return std::min(kServedContext, model.max_position);
  if (recipe.max_length > model.max_position)
    recipe.fail("max_length", fmt::format("is {}, but the model has {} positions",
                                          recipe.max_length, model.max_position));
  return recipe.max_length > 0 ? recipe.max_length : model.max_position;
}

// Room for requests of any kind: some need whole rows of logits, so all have them.
plan::InferenceShape shape_of(const formats::Recipe& recipe, int64_t context) {
  plan::InferenceShape shape;
  shape.sequences = recipe.is_given("batch") ? recipe.batch : kServedSequences;
  shape.capacity = context;
  shape.prefill_tokens = std::clamp(context, plan::kMinPrefillTokens, plan::kPrefillTokens);
  shape.prefill_tokens -= shape.prefill_tokens % plan::kMinPrefillTokens;
  plan::add_served_sizes(shape);
  return shape;
}

}  // namespace

ServedModel::ServedModel(const formats::Recipe& recipe, std::string name)
    : recipe_(recipe), name_(std::move(name)) {
  const models::ModelSource model = runtime::open_model(recipe);
  if (model.config.has_encoder())
    recipe.fail("model",
                "is an encoder-decoder, which snug serve does not answer with; snug generate does");
  tokenizer_ = engine::open_tokenizer(recipe, model);
  try {
    chat_.emplace(recipe.chat_template, *tokenizer_);
    chat_ends_ = engine::end_ids(recipe, *tokenizer_, true);
    find_marks();
  } catch (const base::UserError& error) {
    if (!recipe.chat_template.empty()) throw;
    why_no_chat_ = error.what();
  }
  text_ends_ = engine::end_ids(recipe, *tokenizer_, false);
  sampling_ = generate::recipe_sampling(generate::with_folder_sampling(recipe, model));
  if (recipe.is_given("max_new_tokens")) new_tokens_ = recipe.max_new_tokens;
  context_ = context_of(recipe, model.config);
  for (const plan::NamedAdapter& adapter : plan::named_adapters(recipe))
    if (adapter.name == name_)
      recipe.fail("adapters", fmt::format("has the name '{}', which is the model's own, so that no "
                                          "request could ask for the adapter; give another",
                                          name_));
  inference_.emplace(recipe, model, shape_of(recipe, context_));
  for (const models::KeyPool& pool :
       plan::key_pools(inference_->shape(), models::stack_of(inference_->model())))
    pages_ += pool.pages;
}

ServedModel::~ServedModel() = default;

// Marks that are special tokens become a part of the text of answers, which is divided by them.
void ServedModel::find_marks() {
  const std::string source =
      chat_->source() ? *chat_->source() : *tokenizer_->chat_settings().find(true);
  thought_marks_ = text::find_thought_marks(source, *tokenizer_);
  calls_ = text::template_calls(*chat_, source);
  other_name_of_tools_ = text::other_name_of_tools(source);
  if (thought_marks_ != nullptr)
    for (const std::string_view mark : {thought_marks_->open, thought_marks_->close})
      tokenizer_->show_special(mark);
  if (calls_.format != nullptr)
    for (const std::string_view mark :
         {calls_.format->begin, calls_.format->end, calls_.format->after_name})
      tokenizer_->show_special(mark);
}

std::vector<std::string> ServedModel::adapters() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (plan::NamedAdapter& adapter : plan::named_adapters(recipe_))
    names.push_back(std::move(adapter.name));
  return names;
}

formats::Recipe ServedModel::with_adapter(const std::string& name,
                                          const std::string& folder) const {
  const std::vector<std::string> known = adapters();
  if (name == name_ || std::ranges::count(known, name) > 0)
    throw ApiError(kBadRequest, fmt::format("'{}' is the name of a model that is here", name),
                   "lora_name");
  if (name.empty() || name.find('=') != std::string::npos)
    throw ApiError(kBadRequest, "'lora_name' is no name", "lora_name");
  const std::lock_guard lock(mutex_);
  formats::Recipe recipe = recipe_;
  recipe.adapters.push_back(fmt::format("{}={}", name, folder));
  return recipe;
}

formats::Recipe ServedModel::without_adapter(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  formats::Recipe recipe = recipe_;
  const std::vector<plan::NamedAdapter> known = plan::named_adapters(recipe);
  const auto gone = std::ranges::find(known, name, &plan::NamedAdapter::name);
  if (gone == known.end())
    throw ApiError(kNotFound, fmt::format("there is no adapter '{}'", name), "lora_name");
  recipe.adapters.erase(recipe.adapters.begin() + (gone - known.begin()));
  return recipe;
}

void ServedModel::set_adapters(const formats::Recipe& recipe) {
  const std::lock_guard lock(mutex_);
  recipe_.adapters = recipe.adapters;
}

}  // namespace snug::serve
