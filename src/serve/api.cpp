#include "serve/api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/seconds_since.h"
#include "engine/questions/prompt.h"
#include "runtime/process/process_memory.h"
#include "serve/api_error.h"
#include "serve/page.h"
#include "serve/request_fields.h"
#include "serve/run_folders.h"
#include "serve/running_completion.h"

namespace snug::serve {
namespace {

using nlohmann::ordered_json;

// What nobody gets any more: the other side has gone.
constexpr int kClosed = 499;

HttpAnswer json_answer(const ordered_json& json) { return {.body = one_line(json)}; }

HttpAnswer error_answer(const ApiError& error) {
  HttpAnswer answer{.status = error.status(), .body = one_line(error.json())};
  if (error.status() == kTooMany || error.status() == kUnavailable)
    answer.headers.emplace_back("Retry-After", "1");
  if (error.status() == kUnauthorized) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

// Takes as long for a wrong key as for the right one, whichever byte differs.
bool is_same_key(std::string_view given, std::string_view key) {
  size_t differences = given.size() ^ key.size();
  for (size_t i = 0; i < given.size(); ++i)
    differences |= static_cast<unsigned char>(given[i] ^ key[i % key.size()]);
  return differences == 0;
}

void check_adapter_loading(bool is_allowed) {
  if (!is_allowed)
    throw ApiError(kForbidden,
                   "requests cannot load or drop adapters here; start the server with "
                   "adapter_loading=true, max_adapters and max_adapter_rank");
}

int64_t now_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

struct Api::Route {
  std::string_view path;
  std::string_view method;
  HttpAnswer (Api::*answer)(const HttpRequest&);
  bool is_open = false;   // needs no key
  bool has_name = false;  // goes on with a slash and a name
};

const Api::Route* Api::find_route(const std::string& path) {
  static const auto routes = std::to_array<Route>({
      {"/", "GET", &Api::page_answer, true},
      {"/health", "GET", &Api::health, true},
      {"/metrics", "GET", &Api::metrics},
      {"/v1/models", "GET", &Api::models, false, true},
      {"/v1/chat/completions", "POST", &Api::chat},
      {"/v1/completions", "POST", &Api::completion},
      {"/v1/load_lora_adapter", "POST", &Api::load_adapter},
      {"/v1/unload_lora_adapter", "POST", &Api::drop_adapter},
      {"/tokenize", "POST", &Api::tokenize},
      {"/detokenize", "POST", &Api::detokenize},
      {"/snug/server", "GET", &Api::server},
      {"/snug/runs", "GET", &Api::runs, false, true},
      {"/snug/planner", "GET", &Api::planner},
      {"/snug/plan", "POST", &Api::plan},
  });
  const auto at = std::ranges::find_if(routes, [&](const Route& route) {
    return path == route.path ||
           (route.has_name && path.starts_with(fmt::format("{}/", route.path)));
  });
  if (at != routes.end()) return &*at;
  std::vector<std::string_view> paths;
  paths.reserve(routes.size());
  for (const Route& route : routes) paths.push_back(route.path);
  throw ApiError(kNotFound, fmt::format("there is nothing at this path; there are {}",
                                        fmt::join(paths, ", ")));
}

Api::Api(ServedModel& model, InferenceLoop& loop, ApiOptions options)
    : model_(model),
      loop_(loop),
      options_(std::move(options)),
      begun_(now_since_1970()),
      planner_(options_.planner, options_.planner_room) {}

void Api::check(const HttpRequest& request, bool is_open) const {
  if (request.is_crowd)
    throw ApiError(kTooMany, "there are as many connections as there may be; try again later");
  // A page of another site that a browser shows has no business here.
  if (!request.origin.empty() && !request.origin.ends_with("://" + request.host))
    throw ApiError(kForbidden, "pages of other sites cannot use this server");
  if (is_open || options_.api_key.empty()) return;
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = request.authorization;
  if (!given.starts_with(kBearer))
    throw ApiError(kUnauthorized,
                   "this server wants a key: send the header Authorization: Bearer KEY", "",
                   "invalid_api_key");
  given.remove_prefix(kBearer.size());
  if (!is_same_key(given, options_.api_key))
    throw ApiError(kUnauthorized, "the key is not the one that this server wants", "",
                   "invalid_api_key");
}

HttpAnswer Api::handle(const HttpRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  std::string_view path = "other";
  HttpAnswer answer;
  try {
    const Route* route = find_route(request.path);
    path = route->path;
    check(request, route->is_open);
    const bool is_head = request.method == "HEAD" && route->method == "GET";
    if (request.method != route->method && !is_head)
      throw ApiError(kWrongMethod, fmt::format("{} takes {}", route->path, route->method));
    answer = (this->*route->answer)(request);
  } catch (const ApiError& error) {
    answer = error_answer(error);
  } catch (const base::UserError& error) {
    answer = error_answer(ApiError(kBadRequest, error.what()));
  } catch (const std::exception& error) {
    base::say("a request to {} failed: {}", path, error.what());
    answer = error_answer(ApiError(kInternal, "the request failed inside the server"));
  }
  if (!answer.stream) metrics_.count(path, answer.status, base::seconds_since(begin));
  return answer;
}

HttpAnswer Api::page_answer(const HttpRequest& /*request*/) {
  HttpAnswer answer{.type = "text/html; charset=utf-8", .body = std::string(page())};
  answer.headers.emplace_back("Content-Security-Policy",
                              "default-src 'none'; style-src 'unsafe-inline'; script-src "
                              "'unsafe-inline'; connect-src 'self'; img-src data:");
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return answer;
}

HttpAnswer Api::health(const HttpRequest& /*request*/) {
  if (const std::string failure = loop_.failure(); !failure.empty())
    throw ApiError(kUnavailable, failure);
  if (is_stopping_) throw ApiError(kUnavailable, "the server is stopping");
  return json_answer({{"status", "ok"}});
}

HttpAnswer Api::metrics(const HttpRequest& /*request*/) {
  return {.type = "text/plain; version=0.0.4; charset=utf-8",
          .body = metrics_.text({.loop = loop_.state(),
                                 .connections = options_.connections(),
                                 .pages = model_.pages(),
                                 .planned_bytes = options_.planned_bytes,
                                 .resident_bytes = runtime::process_memory().resident_bytes})};
}

HttpAnswer Api::models(const HttpRequest& request) {
  constexpr std::string_view kList = "/v1/models";
  const auto one = [&](const std::string& name) {
    ordered_json json = {{"id", name},
                         {"object", "model"},
                         {"created", begun_},
                         {"owned_by", "snug"},
                         {"max_model_len", model_.context()}};
    if (name != model_.name()) json["parent"] = model_.name();
    return json;
  };
  if (request.path.size() > kList.size() + 1) {
    const std::string name = request.path.substr(kList.size() + 1);
    adapter_named(name, model_);
    return json_answer(one(name));
  }
  ordered_json list = ordered_json::array({one(model_.name())});
  for (const std::string& adapter : model_.adapters()) list.push_back(one(adapter));
  return json_answer({{"object", "list"}, {"data", list}});
}

HttpAnswer Api::server(const HttpRequest& /*request*/) {
  const engine::SamplingOptions& sampling = model_.sampling();
  return json_answer({{"model", model_.name()},
                      {"adapters", model_.adapters()},
                      {"has_chat", model_.chat() != nullptr},
                      {"max_length", model_.context()},
                      {"has_runs", !options_.runs.empty()},
                      {"has_planner", !options_.planner.empty()},
                      {"sampling",
                       {{"temperature", sampling.temperature},
                        {"top_p", sampling.top_p},
                        {"top_k", sampling.top_k},
                        {"min_p", sampling.min_p}}},
                      {"planned_bytes", options_.planned_bytes},
                      {"resident_bytes", runtime::process_memory().resident_bytes}});
}

HttpAnswer Api::runs(const HttpRequest& request) {
  constexpr std::string_view kList = "/snug/runs";
  if (options_.runs.empty())
    throw ApiError(kNotFound, "no runs are shown; start the server with runs=FOLDER");
  if (request.path.size() > kList.size() + 1)
    return json_answer(run_in(options_.runs, request.path.substr(kList.size() + 1)));
  return json_answer(runs_in(options_.runs));
}

HttpAnswer Api::planner(const HttpRequest& /*request*/) { return json_answer(planner_.choices()); }

HttpAnswer Api::plan(const HttpRequest& request) {
  RequestFields fields(request.body);
  return json_answer(planner_.plan(fields));
}

HttpAnswer Api::load_adapter(const HttpRequest& request) {
  check_adapter_loading(options_.adapter_loading);
  RequestFields fields(request.body);
  const std::string name = fields.text("lora_name").value_or("");
  const auto folder = fields.text("lora_path");
  if (!folder || folder->empty()) fields.refuse("lora_path", "must be an adapter's folder");
  fields.refuse_others();
  const std::lock_guard lock(adapters_);
  const formats::Recipe recipe = model_.with_adapter(name, *folder);
  loop_.replace_adapters(recipe);
  model_.set_adapters(recipe);
  return json_answer({{"loaded", name}});
}

HttpAnswer Api::drop_adapter(const HttpRequest& request) {
  check_adapter_loading(options_.adapter_loading);
  RequestFields fields(request.body);
  const std::string name = fields.text("lora_name").value_or("");
  fields.refuse_others();
  const std::lock_guard lock(adapters_);
  const formats::Recipe recipe = model_.without_adapter(name);
  loop_.replace_adapters(recipe);
  model_.set_adapters(recipe);
  return json_answer({{"dropped", name}});
}

HttpAnswer Api::tokenize(const HttpRequest& request) {
  RequestFields fields(request.body);
  adapter_named(fields.text("model").value_or(""), model_);
  engine::Ids ids;
  if (fields.find("messages") != nullptr) {
    ids = read_conversation(fields, model_).ids;
  } else {
    // llama.cpp's name of the field, and vLLM's.
    const auto content = fields.text("content");
    const auto prompt = fields.text("prompt");
    if (content.has_value() == prompt.has_value())
      fields.refuse("content", "is the text to make tokens of; give it, or prompt, or messages");
    const auto special = fields.boolean("add_special_tokens");
    const bool has_special = fields.boolean("add_special").value_or(special.value_or(false));
    ids = model_.tokenizer().encode(content ? *content : *prompt, has_special);
  }
  fields.refuse_others();
  return json_answer({{"tokens", ids}, {"count", ids.size()}, {"max_model_len", model_.context()}});
}

HttpAnswer Api::detokenize(const HttpRequest& request) {
  RequestFields fields(request.body);
  adapter_named(fields.text("model").value_or(""), model_);
  constexpr const char* kIds = "tokens";
  const ordered_json* tokens = fields.find(kIds);
  if (tokens == nullptr || !tokens->is_array())
    fields.refuse(kIds, "must be a list of ids of tokens");
  engine::Ids ids;
  ids.reserve(tokens->size());
  for (const ordered_json& id : *tokens) {
    if (!id.is_number_integer() || id < 0 || id >= model_.tokenizer().vocabulary_size())
      fields.refuse(kIds, "has what is no id of a token");
    ids.push_back(id.get<int32_t>());
  }
  fields.refuse_others();
  const std::string text = model_.tokenizer().decode(ids, false);
  return json_answer({{"content", text}, {"prompt", text}});
}

HttpAnswer Api::complete(const HttpRequest& request, bool is_chat) {
  const std::string_view path = is_chat ? "/v1/chat/completions" : "/v1/completions";
  if (is_stopping_) throw ApiError(kUnavailable, "the server is stopping");
  readers_.acquire();
  CompletionRequest asked;
  try {
    asked = read_completion_request(request.body, is_chat, model_);
  } catch (...) {
    readers_.release();
    throw;
  }
  readers_.release();
  const auto answers = std::ssize(asked.prompts) * asked.answers;
  const int64_t first_sample = asked_.fetch_add(answers);
  auto running = std::make_shared<RunningCompletion>(std::move(asked), model_, loop_, first_sample);
  HttpAnswer answer;
  if (!running->wait_for_first(request.is_cut)) return {.status = kClosed};
  metrics_.first_token(running->seconds());
  if (!running->is_streamed()) {
    if (!running->wait_for_all(request.is_cut)) return {.status = kClosed};
    answer.body = running->whole();
    return answer;
  }
  answer.type = "text/event-stream";
  answer.stream = [this, running, path, is_cut = request.is_cut](const SendPiece& send) {
    const bool is_whole = running->stream(send, is_cut);
    metrics_.count(path, is_whole ? 200 : kClosed, running->seconds());
  };
  return answer;
}

}  // namespace snug::serve
