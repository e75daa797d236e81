// Thoughts and calls of tools as clients see them, on a small model with random weights and a
// template of the test's own.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "generate/golden_recipe.h"
#include "raw_client.h"
#include "serve/server.h"

namespace snug::testing {
namespace {

using nlohmann::json;

constexpr const char* kAsked = "/v1/chat/completions";
// What a template writes of thoughts goes in the places of the two words.
constexpr const char* kTemplate =
    "{% if tools %}{{ tools | tojson }} {% endif %}{% for m in messages %}[{{ m.role }}]THOUGHT"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{\"name\": \"{{ c.function.name }}"
    "\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %} {% endfor %}"
    "{% if add_generation_prompt %}[assistant]OPENED{% endif %}";

std::string template_text(const std::string& thought, const std::string& opened) {
  std::string text = kTemplate;
  text.replace(text.find("THOUGHT"), 7, thought);
  return text.replace(text.find("OPENED"), 6, opened);
}

class ToolsTest : public ::testing::Test {
 protected:
  explicit ToolsTest(const std::string& source = template_text("", ""))
      : server_(recipe_of({"model=examples/wordnet", "init=random",
                           "chat_template=" + folder_.write("tools.jinja", source).string(),
                           "max_length=512", "batch=2", "port=0", "threads=1", "temperature=1"}),
                "small") {}
  std::string post(const json& body, const char* path = kAsked) const {
    return answer_to(port_, post_text(path, body.dump()));
  }
  json answer(const json& body) const { return json::parse(body_of(post(body))); }
  // The deltas of a stream's first choice, and its finish_reason.
  std::vector<json> deltas(json body, std::string& finish) const {
    body["stream"] = true;
    std::vector<json> deltas;
    std::istringstream lines(body_of(post(body)));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("data: {")) continue;
      const json choice = json::parse(line.substr(6)).at("choices").at(0);
      deltas.push_back(choice.at("delta"));
      if (choice.at("finish_reason").is_string()) finish = choice.at("finish_reason");
    }
    return deltas;
  }
  std::string refused_field(const json& body) const {
    const std::string all = post(body);
    EXPECT_EQ(status_of(all), 400) << body;
    return json::parse(body_of(all)).at("error").value("param", "");
  }
  // What a conversation becomes for the model.
  std::string rendered(const json& body) const {
    const json tokens = json::parse(body_of(post(body, "/tokenize"))).at("tokens");
    return json::parse(body_of(post({{"tokens", tokens}}, "/detokenize"))).at("content");
  }
  static json question() {
    return json::array({{{"role", "user"}, {"content", "What is twine?"}}});
  }
  static json tools() {
    const json kinds = {{"type", "object"},
                        {"properties", {{"kind", {{"enum", {"rope", "twine"}}}}}},
                        {"required", {"kind"}}};
    return {{{"type", "function"},
             {"function", {{"name", "find"}, {"description", "Finds."}, {"parameters", kinds}}}},
            {{"type", "function"}, {"function", {{"name", "stop"}}}}};
  }

  TemporaryFolder folder_;
  serve::Server server_;
  const int64_t port_ = server_.start();
};

// The same with a model that thinks where it is asked to.
class ThoughtsTest : public ToolsTest {
 protected:
  ThoughtsTest()
      : ToolsTest(template_text(
            "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}",
            "{% if enable_thinking %}<think>\n{% endif %}")) {}
};

TEST_F(ToolsTest, CallsAreHeldToTheirSchemasAndStreamed) {
  json body = {{"messages", question()},
               {"tools", tools()},
               {"tool_choice", {{"type", "function"}, {"function", {{"name", "find"}}}}},
               {"seed", 1},
               {"logprobs", true}};
  const json whole = answer(body).at("choices").at(0);
  EXPECT_EQ(whole.at("finish_reason"), "tool_calls");
  const json& message = whole.at("message");
  EXPECT_EQ(message.at("content"), nullptr);
  ASSERT_EQ(message.at("tool_calls").size(), 1U);
  const json& call = message.at("tool_calls").at(0);
  EXPECT_EQ(call.at("type"), "function");
  EXPECT_EQ(call.at("id").get<std::string>().size(), 9U);
  EXPECT_EQ(call.at("function").at("name"), "find");
  const json arguments = json::parse(call.at("function").at("arguments").get<std::string>());
  EXPECT_TRUE(arguments.at("kind") == "rope" || arguments.at("kind") == "twine") << arguments;
  // All tokens have their log-probabilities, those of the call too.
  std::string tokens;
  for (const json& token : whole.at("logprobs").at("content")) tokens += token.at("token");
  EXPECT_TRUE(tokens.starts_with("<tool_call>")) << tokens;

  std::string finish;
  std::vector<json> calls;
  for (const json& delta : deltas(body, finish))
    if (delta.contains("tool_calls")) calls.push_back(delta.at("tool_calls").at(0));
  EXPECT_EQ(finish, "tool_calls");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].at("index"), 0);
  EXPECT_EQ(calls[0].at("function"), (json{{"name", "find"}, {"arguments", ""}}));
  EXPECT_EQ(calls[0].at("id").get<std::string>().size(), 9U);
  EXPECT_EQ(calls[1], (json{{"index", 0},
                            {"function", {{"arguments", call.at("function").at("arguments")}}}}));

  // Any of the tools, one call at most.
  body["tool_choice"] = "required";
  body["parallel_tool_calls"] = false;
  for (int seed = 0; seed < 4; ++seed) {
    body["seed"] = seed;
    const json other = answer(body).at("choices").at(0);
    EXPECT_EQ(other.at("finish_reason"), "tool_calls");
    EXPECT_EQ(other.at("message").at("tool_calls").size(), 1U);
  }
}

TEST_F(ThoughtsTest, TheTemplateIsToldOfToolsCallsAndThoughts) {
  const json arguments = {{"kind", "rope"}};
  const json messages = {{{"role", "user"}, {"content", "Q"}},
                         {{"role", "assistant"},
                          {"content", nullptr},
                          {"reasoning_content", "Hm"},
                          {"tool_calls",
                           {{{"id", "abc"},
                             {"type", "function"},
                             {"function", {{"name", "find"}, {"arguments", arguments.dump()}}}}}}},
                         {{"role", "tool"}, {"tool_call_id", "abc"}, {"content", "R"}}};
  const std::string text = rendered({{"messages", messages}, {"tools", tools()}});
  EXPECT_TRUE(text.starts_with("[{\"function\": {\"description\": \"Finds.\"")) << text;
  EXPECT_TRUE(
      text.ends_with("[user]Q [assistant]<think>Hm</think><tool_call>{\"name\": \"find\", "
                     "\"arguments\": {\"kind\": \"rope\"}}</tool_call> [tool]R [assistant]"))
      << text;
  // Of tools that may not be called nothing is said.
  EXPECT_EQ(rendered({{"messages", question()}, {"tools", tools()}, {"tool_choice", "none"}}),
            "[user]What is twine? [assistant]");
}

TEST_F(ThoughtsTest, AThoughtIsNoPartOfTheAnswer) {
  json body = {{"messages", question()},
               {"chat_template_kwargs", {{"enable_thinking", true}}},
               {"max_tokens", 12},
               {"ignore_eos", true},
               {"seed", 5}};
  const json whole = answer(body);
  const json& message = whole.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("content"), "");
  const std::string thought = message.at("reasoning_content");
  EXPECT_FALSE(thought.empty());
  EXPECT_EQ(whole.at("usage").at("completion_tokens_details").at("reasoning_tokens"), 12);
  std::string streamed;
  std::string finish;
  for (const json& delta : deltas(body, finish)) {
    EXPECT_EQ(delta.value("content", ""), "");
    streamed += delta.value("reasoning_content", "");
  }
  EXPECT_EQ(streamed, thought);
  EXPECT_EQ(finish, "length");
  // Without one, all is the answer.
  body.erase("chat_template_kwargs");
  const json plain = answer(body);
  EXPECT_FALSE(plain.at("choices").at(0).at("message").contains("reasoning_content"));
  EXPECT_EQ(plain.at("usage").at("completion_tokens_details").at("reasoning_tokens"), 0);
}

// A template that tells of tools and leaves earlier calls out.
class LeftOutTest : public ToolsTest {
 protected:
  LeftOutTest()
      : ToolsTest(
            "{{ xml_tools | tojson if xml_tools else '' }}<tool_call>{% for m in messages %}["
            "{{ m.role }}]{{ m.content }} {% endfor %}") {}
};

TEST_F(LeftOutTest, CallsAreWrittenIntoTheirMessages) {
  const json call = {{"id", "a"},
                     {"type", "function"},
                     {"function", {{"name", "find"}, {"arguments", "{\"kind\": \"rope\"}"}}}};
  const json messages = {{{"role", "user"}, {"content", "Q"}},
                         {{"role", "assistant"}, {"content", "A"}, {"tool_calls", {call}}}};
  const std::string text = rendered({{"messages", messages}, {"tools", tools()}});
  EXPECT_TRUE(text.starts_with("[{\"function\"")) << text;
  EXPECT_NE(text.find("[assistant]A\n<tool_call>\n{\"name\": \"find\", \"arguments\": {\"kind\": "
                      "\"rope\"}}\n</tool_call> "),
            std::string::npos)
      << text;
}

TEST_F(ToolsTest, WhatIsWrongWithToolsIsNamed) {
  const auto with = [&](const char* field, const json& value) {
    json body = {{"messages", question()}, {"tools", tools()}, {"max_tokens", 1}};
    body[field] = value;
    return refused_field(body);
  };
  EXPECT_EQ(with("tools", "find"), "tools");
  EXPECT_EQ(with("tools", {{{"type", "browser"}}}), "tools[0].type");
  EXPECT_EQ(with("tools", {{{"type", "function"}, {"function", {{"name", "a b"}}}}}),
            "tools[0].function.name");
  EXPECT_EQ(with("tools", {tools()[0], tools()[0]}), "tools");
  EXPECT_EQ(with("tool_choice", "any"), "tool_choice");
  EXPECT_EQ(with("tool_choice", {{"type", "function"}, {"function", {{"name", "other"}}}}),
            "tool_choice");
}

// The page's planner, with a program in the place of snug.
TEST(ServerPlanner, TellsWhatAPlanSays) {
  const TemporaryFolder folder;
  const std::filesystem::path program = folder.write(
      "planner",
      "#!/bin/sh\nfor word in \"$@\"; do case $word in picture=*) echo '<!doctype html>P' > "
      "\"${word#picture=}\";; esac; done\necho '{\"fits\": false,'\necho \"\\\"asked\\\": "
      "\\\"$1 $3 $4 $5 $6\\\"}\"\necho 'snug: error: the job does not fit' >&2\nexit 3\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  serve::Server server(recipe_of({"model=examples/wordnet", "init=random", "max_length=64",
                                  "batch=1", "port=0", "threads=1"}),
                       "small", program.string());
  const int64_t port = server.start();
  const json choices = json::parse(body_of(answer_to(port, get_text("/snug/planner"))));
  EXPECT_GT(choices.at("models").size(), 50U);
  const auto plan = [&](json body) {
    return answer_to(port, post_text("/snug/plan", body.dump()));
  };
  json body = {
      {"model", "llama-3.1-8b"}, {"method", "lora"}, {"device", "h100"}, {"max_length", 8}};
  const json said = json::parse(body_of(plan(body)));
  EXPECT_EQ(said.at("fits"), false);
  EXPECT_EQ(said.at("message"), "the job does not fit");
  EXPECT_EQ(said.at("plan").at("asked"),
            "plan model=llama-3.1-8b method=lora device=h100 max_length=8");
  EXPECT_EQ(said.at("picture"), "<!doctype html>P\n");
  body["model"] = "/etc";
  EXPECT_EQ(status_of(plan(body)), 400);
}

}  // namespace
}  // namespace snug::testing
