// The server as clients see it, on a small model with random weights.
#include "serve/server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "engine/questions/prompt.h"
#include "generate/golden_recipe.h"
#include "generate/small_adapter.h"
#include "raw_client.h"

namespace snug::testing {
namespace {

using nlohmann::json;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";

formats::Recipe served_recipe(std::vector<std::string> words = {}) {
  words.insert(words.begin(),
               {"model=examples/wordnet", "init=random", "chat_template=plain", "max_length=400",
                "batch=1", "max_waiting=1", "port=0", "threads=1", "temperature=1"});
  return recipe_of(std::move(words));
}

// The events of a stream without "data: ".
std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("data: ")) events.push_back(line.substr(6));
  return events;
}

class ServerTest : public ::testing::Test {
 protected:
  std::string post(const char* path, const json& body, const std::string& headers = "") const {
    return answer_to(port_, post_text(path, body.dump(), headers + "Connection: close\r\n"));
  }
  // An answer that goes on for a while, and the part of it that says so.
  void begin_long(RawClient& client) const {
    client.send(post_text(kChat, long_request().dump()));
    EXPECT_NE(client.read_to("data: ").find("200 OK"), std::string::npos);
  }
  static json long_request() {
    return {{"messages", {{{"role", "user"}, {"content", "What is twine?"}}}},
            {"ignore_eos", true},
            {"stream", true}};
  }
  bool becomes_idle() const {
    for (int i = 0; i < 1000; ++i) {
      if (server_.state().open == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

  serve::Server server_{served_recipe(), "small"};
  const int64_t port_ = server_.start();
};

// What an engine alone answers, whole and as a stream.
TEST_F(ServerTest, AnswersAsTheEngineDoes) {
  engine::Inference& alone = server_.model().inference();
  json request = {{"model", "small"}, {"prompt", "A rope is"}, {"temperature", 0},
                  {"max_tokens", 12}, {"ignore_eos", true},    {"logprobs", 2}};
  const json whole = json::parse(body_of(post(kCompletions, request)));
  ASSERT_TRUE(becomes_idle());
  engine::Request same{.prompt = engine::text_prompt(server_.model().tokenizer(), "A rope is"),
                       .max_new_tokens = 12,
                       .log_probabilities = 2};
  engine::Engine engine(alone, &server_.model().tokenizer());
  const engine::Answer expected = engine.answers({&same, 1}).front();
  const json& choice = whole.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), expected.text);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("logprobs").at("token_logprobs").get<std::vector<double>>(),
            expected.log_probabilities);
  EXPECT_EQ(choice.at("logprobs").at("top_logprobs").at(0).size(), 2U);
  EXPECT_EQ(whole.at("usage").at("prompt_tokens"), same.prompt.size());
  EXPECT_EQ(whole.at("usage").at("completion_tokens"), 12);
  EXPECT_EQ(whole.at("object"), "text_completion");
}

TEST_F(ServerTest, StreamsInTheOrderThatClientsExpect) {
  json request = {{"messages", {{{"role", "user"}, {"content", "What is twine?"}}}},
                  {"max_tokens", 6},
                  {"seed", 3},
                  {"ignore_eos", true}};
  const json whole = json::parse(body_of(post(kChat, request)));
  const json& message = whole.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("role"), "assistant");
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const std::string answer = post(kChat, request);
  EXPECT_NE(answer.find("text/event-stream"), std::string::npos);
  const std::vector<std::string> events = events_of(body_of(answer));
  ASSERT_GE(events.size(), 4U);
  EXPECT_EQ(events.back(), "[DONE]");
  const json usage = json::parse(events[events.size() - 2]);
  EXPECT_TRUE(usage.at("choices").empty());
  EXPECT_EQ(usage.at("usage"), whole.at("usage"));
  EXPECT_EQ(json::parse(events.front()).at("choices").at(0).at("delta"),
            (json{{"role", "assistant"}, {"content", ""}}));
  std::string text;
  for (size_t i = 1; i + 3 < events.size(); ++i) {
    const json choice = json::parse(events[i]).at("choices").at(0);
    EXPECT_EQ(choice.at("finish_reason"), nullptr);
    text += choice.at("delta").at("content").get<std::string>();
  }
  EXPECT_EQ(text, message.at("content"));
  const json last = json::parse(events[events.size() - 3]).at("choices").at(0);
  EXPECT_EQ(last.at("finish_reason"), "length");
  EXPECT_EQ(last.at("delta"), json::object());
}

TEST_F(ServerTest, NamesWhatItDoesNotTake) {
  const json message = {{"role", "user"}, {"content", "Hi"}};
  struct Case {
    json body;
    const char* field;
  };
  const std::vector<Case> cases = {
      {{{"messages", json::array()}}, "messages"},
      {{{"messages", {message}}, {"temperatur", 1}}, "temperatur"},
      {{{"messages", {message}}, {"temperature", -1}}, "temperature"},
      {{{"messages", {message}}, {"temperature", "1"}}, "temperature"},
      {{{"messages", {message}}, {"n", 0}}, "n"},
      {{{"messages", {message}}, {"n", 1.5}}, "n"},
      {{{"messages", {message}}, {"max_tokens", 5}, {"max_completion_tokens", 6}}, "max_tokens"},
      {{{"messages", {message}}, {"top_logprobs", 2}}, "top_logprobs"},
      {{{"messages", {message}}, {"stream_options", {{"include_usage", true}}}}, "stream_options"},
      {{{"messages", {message}},
        {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}},
       "tools"},  // the template takes none
      {{{"messages", {message}}, {"logit_bias", {{"5", 1}}}}, "logit_bias"},
      {{{"messages", {message}}, {"response_format", {{"type", "xml"}}}}, "response_format.type"},
      {{{"messages", {message}}, {"stop", {""}}}, "stop"},
      {{{"messages", {{{"role", "user"}}}}}, "messages[0]"},
      {{{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}}, "messages[0]"},
      {{{"messages", {{{"role", "user"}, {"content", std::string(9000, 'x')}}}}}, "messages"}};
  for (const Case& one : cases) {
    const std::string answer = post(kChat, one.body);
    EXPECT_EQ(status_of(answer), 400) << one.body;
    EXPECT_EQ(json::parse(body_of(answer)).at("error").at("param"), one.field) << one.body;
  }
  EXPECT_EQ(status_of(post(kChat, {{"model", "other"}, {"messages", {message}}})), 404);
  EXPECT_EQ(status_of(post("/v1/embeddings", json::object())), 404);
  EXPECT_EQ(status_of(post("/v1/load_lora_adapter", {{"lora_name", "a"}})), 403);
  EXPECT_EQ(status_of(answer_to(port_, get_text(kChat))), 405);
  EXPECT_EQ(status_of(answer_to(port_, post_text(kChat, "{\"messages\": [\xff]}"))), 400);
  EXPECT_EQ(status_of(post("/health", json::object(), "Origin: http://elsewhere\r\n")), 403);
  // Nothing of this was left behind.
  EXPECT_EQ(server_.state().open, 0);
}

TEST_F(ServerTest, TokensOfATextGiveItBack) {
  const json tokens = json::parse(body_of(post("/tokenize", {{"content", "a rope"}})));
  EXPECT_EQ(tokens.at("count"), tokens.at("tokens").size());
  const json text = json::parse(body_of(post("/detokenize", {{"tokens", tokens.at("tokens")}})));
  EXPECT_EQ(text.at("content"), "a rope");
}

TEST_F(ServerTest, FollowsASchemaOfTheRequest) {
  const json schema = {{"type", "object"},
                       {"properties", {{"is", {{"enum", {"rope", "twine"}}}}}},
                       {"required", {"is"}},
                       {"additionalProperties", false}};
  const json answer = json::parse(body_of(post(
      kCompletions,
      {{"prompt", "It is"},
       {"max_tokens", 40},
       {"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}}}})));
  const json said = json::parse(answer.at("choices").at(0).at("text").get<std::string>());
  EXPECT_TRUE(said.at("is") == "rope" || said.at("is") == "twine") << said;
}

TEST_F(ServerTest, TooManyAreToldAndACutConnectionGivesUpItsAnswer) {
  // There is one place, and one may wait for it. On a fast machine the first may end too soon.
  std::string third;
  for (int attempt = 0; attempt < 20 && status_of(third) != 429; ++attempt) {
    RawClient runs(port_);
    begin_long(runs);
    RawClient waits(port_);
    waits.send(post_text(kChat, long_request().dump()));
    while (server_.state().open < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    third = post(kChat, long_request());
  }
  EXPECT_EQ(status_of(third), 429);
  EXPECT_NE(third.find("Retry-After: "), std::string::npos);
  EXPECT_TRUE(becomes_idle());
  EXPECT_EQ(server_.state().used_pages, 0);
}

// Tokens come all the while, so that nobody waits long for one.
TEST(ServerCut, AnAnswerThatIsNotStreamedEndsWithItsConnection) {
  serve::Server server(served_recipe({"max_waiting=64"}), "small");
  const int64_t port = server.start();
  {
    RawClient client(port);
    const json request = {
        {"prompt", "A rope is"}, {"n", 64}, {"max_tokens", 380}, {"ignore_eos", true}};
    client.send(post_text(kCompletions, request.dump()));
    while (server.state().open == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto gone = std::chrono::steady_clock::now();
  while (server.state().open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LT(std::chrono::steady_clock::now() - gone, std::chrono::seconds(2)) << "of 24320 tokens";
}

TEST_F(ServerTest, AStreamIsToldThatTheServerStops) {
  RawClient client(port_);
  begin_long(client);
  server_.stop(0);
  const std::vector<std::string> events = events_of(body_of(client.read_all()));
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_NE(events[events.size() - 2].find("stopping"), std::string::npos);
}

TEST(ServerKey, IsNeededForAllButThePageAndTheHealth) {
  serve::Server server(served_recipe({"api_key=secret"}), "small");
  const int64_t port = server.start();
  const auto status = [&](const char* path, const std::string& header) {
    return status_of(answer_to(port, get_text(path, header + "Connection: close\r\n")));
  };
  EXPECT_EQ(status("/", ""), 200);
  EXPECT_EQ(status("/health", ""), 200);
  for (const char* path : {"/v1/models", "/metrics", "/snug/server"}) {
    EXPECT_EQ(status(path, ""), 401);
    EXPECT_EQ(status(path, "Authorization: Bearer secre\r\n"), 401);
    EXPECT_EQ(status(path, "Authorization: Bearer secretsecret\r\n"), 401);
    EXPECT_EQ(status(path, "Authorization: Bearer \r\n"), 401);
    EXPECT_EQ(status(path, "Authorization: Bearer secret\r\n"), 200);
  }
}

// While it serves: a name comes, answers, and goes, and the model's own answers stay what they are.
TEST(ServerAdapters, AreLoadedAndDropped) {
  const TemporaryFolder folder;
  const std::string law = (folder / "law").string();
  write_adapter(law);
  serve::Server server(served_recipe({"adapter_loading=true", "max_adapters=2",
                                      "max_adapter_rank=2", "temperature=0", "max_waiting=8"}),
                       "small");
  const int64_t port = server.start();
  const auto post = [&](const char* path, const json& body) {
    return answer_to(port, post_text(path, body.dump()));
  };
  const auto answer = [&](const char* model) {
    const json request = {
        {"model", model}, {"prompt", "A rope is"}, {"max_tokens", 8}, {"ignore_eos", true}};
    const std::string all = post(kCompletions, request);
    return status_of(all) == 200
               ? json::parse(body_of(all)).at("choices").at(0).at("text").get<std::string>()
               : std::to_string(status_of(all));
  };
  const std::string own = answer("small");
  EXPECT_EQ(answer("law"), "404");
  EXPECT_EQ(status_of(post("/v1/load_lora_adapter", {{"lora_name", "law"}, {"lora_path", law}})),
            200);
  const std::string of_law = answer("law");
  EXPECT_NE(of_law, own);
  EXPECT_EQ(answer("small"), own);
  EXPECT_NE(answer_to(port, get_text("/v1/models")).find("\"law\""), std::string::npos);
  // What is refused leaves all as it is.
  EXPECT_EQ(status_of(post("/v1/load_lora_adapter", {{"lora_name", "law"}, {"lora_path", law}})),
            400);
  EXPECT_EQ(status_of(post("/v1/load_lora_adapter",
                           {{"lora_name", "code"}, {"lora_path", law + "/missing"}})),
            400);
  EXPECT_EQ(answer("code"), "404");
  EXPECT_EQ(answer("law"), of_law);
  EXPECT_EQ(status_of(post("/v1/unload_lora_adapter", {{"lora_name", "law"}})), 200);
  EXPECT_EQ(answer("law"), "404");
  EXPECT_EQ(answer("small"), own);
  EXPECT_EQ(status_of(post("/v1/unload_lora_adapter", {{"lora_name", "law"}})), 404);
}

}  // namespace
}  // namespace snug::testing
