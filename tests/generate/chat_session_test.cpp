// A chat without a terminal and without a model: what is typed, what is asked, what is shown.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "generate/chat/chat_session.h"

namespace snug::testing {
namespace {

// "role: text | role: text"
std::string turns_of(const std::vector<text::Message>& messages) {
  std::string turns;
  for (const text::Message& message : messages)
    turns += (turns.empty() ? "" : " | ") + message.role() + ": " + message.content();
  return turns;
}

// Answers "A1", "A2", ..., and has room for so many messages.
class FakePartner : public generate::ChatPartner {
 public:
  bool takes_conversations() const override { return is_chat; }
  generate::ChatReply answer(const text::Conversation& conversation,
                             const OnText& on_text) override {
    asked.push_back(turns_of(conversation.messages));
    generate::ChatReply reply{.prompt_tokens = std::ssize(conversation.messages)};
    reply.fits = reply.prompt_tokens <= room;
    if (!reply.fits) return reply;
    if (conversation.messages.back().content() == "refused") {
      reply.problem = "the template refuses it";
      return reply;
    }
    reply.finish = finish;
    if (is_silent) return reply;
    reply.text = "A" + std::to_string(++answers);
    reply.new_tokens = 2;
    reply.read_tokens = 1;
    on_text(reply.text.substr(0, 1));
    on_text(reply.text.substr(1));
    return reply;
  }
  std::string why_no_system(const std::string& text) const override {
    return text == "unwritten" ? "the chat template does not write system messages" : "";
  }
  void use_adapter(const std::string& folder) override {
    if (folder == "missing") base::throw_user_error("there is no folder missing");
    used = folder;
  }
  std::string adapter() const override { return used; }
  int64_t context() const override { return room; }
  int64_t positions() const override { return most; }
  generate::ChatMemory memory() const override {
    return {.planned_bytes = 2 << 20, .measured_bytes = 1 << 20};
  }

  bool is_chat = true;
  bool is_silent = false;
  engine::Finish finish = engine::Finish::stop;
  int64_t room = 100;
  int64_t most = 150;
  int64_t answers = 0;
  std::string used;
  std::vector<std::string> asked;
};

// A session over these lines, run to its end.
class Talk {
 public:
  explicit Talk(FakePartner& partner, generate::ChatSettings settings = {})
      : session_(partner,
                 {.next = [this]() -> std::optional<std::string> {
                    if (typed_.empty()) return std::nullopt;
                    std::string line = typed_.front();
                    typed_.pop_front();
                    return line;
                  },
                  .answer_text = [this](const std::string& text) { shown += text; },
                  .answer_end = [this](const generate::ChatReply&) { shown += "\n"; },
                  .note = [this](const std::string& line) { notes += line + "\n"; },
                  .status = [this](const std::string& line) { status += line + "\n"; }},
                 std::move(settings)) {}

  // Types these lines; returns the turns that there are then.
  std::string type(std::deque<std::string> lines) {
    typed_ = std::move(lines);
    session_.run();
    return turns_of(session_.messages());
  }
  bool is_all_read() const { return typed_.empty(); }

  std::string shown;
  std::string notes;
  std::string status;

 private:
  std::deque<std::string> typed_;
  generate::ChatSession session_;
};

TEST(ChatSession, TurnsFollowOneAnother) {
  FakePartner partner;
  Talk talk(partner, {.system = "Be brief."});
  EXPECT_EQ(talk.type({"one", "", "two"}),
            "system: Be brief. | user: one | assistant: A1 | user: two | assistant: A2");
  EXPECT_EQ(talk.shown, "A1\nA2\n");
  EXPECT_EQ(partner.asked[1], "system: Be brief. | user: one | assistant: A1 | user: two");
  EXPECT_TRUE(contains(talk.status, "2 tokens; 1 of 4 read; context 6 of 100; memory 2.00 MiB"))
      << talk.status;
}

TEST(ChatSession, EditAndRegenerateChangeTheLastTurnAlone) {
  FakePartner partner;
  Talk talk(partner);
  EXPECT_EQ(talk.type({"one", "two", "/edit three"}),
            "user: one | assistant: A1 | user: three | assistant: A3");
  EXPECT_EQ(talk.type({"/regenerate"}), "user: one | assistant: A1 | user: three | assistant: A4");
  EXPECT_EQ(talk.type({"/retry"}), "user: one | assistant: A1 | user: three | assistant: A5");
  talk.type({"/edit"});
  EXPECT_TRUE(contains(talk.notes, "takes the place of: three")) << talk.notes;
}

TEST(ChatSession, SystemClearAndDrop) {
  FakePartner partner;
  Talk talk(partner);
  EXPECT_EQ(talk.type({"one", "two", "/system Be kind."}),
            "system: Be kind. | user: one | assistant: A1 | user: two | assistant: A2");
  EXPECT_EQ(talk.type({"/system unwritten", "/drop"}),
            "system: Be kind. | user: two | assistant: A2");
  EXPECT_TRUE(contains(talk.notes, "stays as it was: the chat template")) << talk.notes;
  EXPECT_EQ(talk.type({"/system none"}), "user: two | assistant: A2");
  EXPECT_EQ(talk.type({"/system Be kind.", "/clear"}), "system: Be kind.");
  EXPECT_EQ(talk.type({"/drop 3"}), "system: Be kind.");
  EXPECT_TRUE(contains(talk.notes, "0 turns are forgotten")) << talk.notes;
}

TEST(ChatSession, AFullContextDropsNothingByItself) {
  FakePartner partner;
  partner.room = 4;
  Talk talk(partner);
  EXPECT_EQ(talk.type({"one", "two", "three"}),
            "user: one | assistant: A1 | user: two | assistant: A2 | user: three");
  EXPECT_TRUE(contains(talk.notes, "has 5 tokens, and the context 4")) << talk.notes;
  EXPECT_EQ(talk.type({"/drop", "/retry"}),
            "user: two | assistant: A2 | user: three | assistant: A3");
  // Without commands nobody can drop anything.
  FakePartner narrow;
  narrow.room = 2;
  Talk pipe(narrow, {.is_interactive = false});
  EXPECT_THROW(pipe.type({"one", "two"}), base::UserError);
}

TEST(ChatSession, WhatHasNoAnswerIsReplacedAloud) {
  FakePartner partner;
  Talk talk(partner);
  EXPECT_EQ(talk.type({"refused"}), "user: refused");
  EXPECT_TRUE(contains(talk.notes, "the template refuses it"));
  EXPECT_EQ(talk.type({"one"}), "user: one | assistant: A1");
  EXPECT_TRUE(contains(talk.notes, "takes its place"));
}

TEST(ChatSession, AStoppedAnswerStaysAsFarAsItCame) {
  FakePartner partner;
  partner.finish = engine::Finish::cancelled;
  Talk talk(partner);
  EXPECT_EQ(talk.type({"one"}), "user: one | assistant: A1");
  EXPECT_TRUE(contains(talk.notes, "stopped; what is there")) << talk.notes;
  partner.is_silent = true;
  EXPECT_EQ(talk.type({"two"}), "user: one | assistant: A1 | user: two");
}

TEST(ChatSession, AdaptersAreExchanged) {
  FakePartner partner;
  Talk talk(partner);
  talk.type({"/adapter a", "/adapter missing", "/adapter"});
  EXPECT_EQ(partner.used, "a");
  EXPECT_TRUE(contains(talk.notes, "no folder missing; the model goes on with the adapter a"))
      << talk.notes;
  talk.type({"/adapter none"});
  EXPECT_EQ(partner.used, "");
}

TEST(ChatSession, CommandsEndAndExplain) {
  FakePartner partner;
  Talk talk(partner);
  talk.type({"/regenrate", "/help", " /a path", "/exit", "one"});
  EXPECT_FALSE(talk.is_all_read());
  EXPECT_TRUE(contains(talk.notes, "did you mean /regenerate?")) << talk.notes;
  EXPECT_TRUE(contains(talk.notes, "/adapter DIR|NAME|none")) << talk.notes;
  EXPECT_EQ(partner.asked, std::vector<std::string>{"user:  /a path"});
}

TEST(ChatSession, AnEmptyAnswerIsSaid) {
  FakePartner partner;
  partner.is_silent = true;
  Talk talk(partner);
  EXPECT_EQ(talk.type({"one"}), "user: one");
  EXPECT_TRUE(contains(talk.notes, "the answer is empty")) << talk.notes;
}

// In a pipe a line is a message, whatever it begins with.
TEST(ChatSession, PipesHaveNoCommands) {
  FakePartner partner;
  Talk talk(partner, {.is_interactive = false});
  talk.type({"/exit", "two"});
  EXPECT_EQ(partner.asked.size(), 2U);
  EXPECT_EQ(talk.shown, "A1\nA2\n");
}

// The next message belongs to another turn, whatever the answer was.
TEST(ChatSession, APipeKeepsAnEmptyAnswer) {
  FakePartner partner;
  partner.is_silent = true;
  Talk talk(partner, {.is_interactive = false});
  EXPECT_EQ(talk.type({"one", "two"}), "user: one | assistant:  | user: two | assistant: ");
}

// What can be done depends on where the chat runs, and on the model.
TEST(ChatSession, AFullContextIsAdvisedOn) {
  FakePartner partner;
  partner.room = 2;
  const auto advice = [&](int64_t most) {
    partner.most = most;
    Talk pipe(partner, {.is_interactive = false});
    return user_error_of([&] { pipe.type({"one", "two"}); });
  };
  EXPECT_TRUE(contains(advice(100), "max_length=4 at the start")) << advice(100);
  EXPECT_TRUE(contains(advice(3), "max_length=3 at the start")) << advice(3);
  EXPECT_FALSE(contains(advice(2), "max_length")) << advice(2);
  EXPECT_FALSE(contains(advice(100), "/drop")) << advice(100);
}

TEST(ChatSession, AHistoryThatWouldLoseSomethingIsRefused) {
  const TemporaryFolder folder;
  FakePartner partner;
  const auto refusal = [&](const std::string& text) {
    const auto history = folder.write("history.jsonl", text);
    return user_error_of([&] { Talk(partner, {.history = history}); });
  };
  const std::string call =
      refusal(R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": 1}]}]})");
  EXPECT_TRUE(contains(call, "a message has the field 'tool_calls'")) << call;
  const std::string tools = refusal(R"({"messages": [], "tools": []})");
  EXPECT_TRUE(contains(tools, "the conversation has the field 'tools'")) << tools;
  partner.is_chat = false;
  const std::string raw = refusal(R"({"messages": [{"role": "user", "content": "one"}]})");
  EXPECT_TRUE(contains(raw, "each text is completed alone")) << raw;
}

TEST(ChatSession, AHistoryThatCannotBeWrittenIsSaid) {
  const TemporaryFolder folder;
  folder.write("file", "");
  FakePartner partner;
  EXPECT_THROW(Talk(partner, {.history = folder / "file/history.jsonl"}), base::UserError);
  EXPECT_EQ(partner.asked.size(), 0U);
  // A folder that vanishes ends no chat in a terminal.
  const auto history = folder.write("later/history.jsonl", "");
  Talk talk(partner, {.history = history});
  std::filesystem::remove_all(folder / "later");
  folder.write("later", "");
  EXPECT_EQ(talk.type({"one"}), "user: one | assistant: A1");
  EXPECT_TRUE(contains(talk.notes, "the history is not kept")) << talk.notes;
}

TEST(ChatSession, WithoutATemplateEachTextIsAlone) {
  FakePartner partner;
  partner.is_chat = false;
  Talk talk(partner);
  talk.type({"one", "two"});
  EXPECT_EQ(partner.asked, (std::vector<std::string>{"user: one", "user: two"}));
}

TEST(ChatSession, AConversationIsSavedAndGoesOn) {
  const TemporaryFolder folder;
  const std::filesystem::path history = folder / "history.jsonl";
  const std::filesystem::path saved = folder / "saved.jsonl";
  FakePartner partner;
  {
    Talk talk(partner, {.history = history});
    talk.type({"one", "/save " + saved.string(), "two", "/save " + saved.string()});
  }
  std::ifstream stream(saved);
  std::string line;
  std::getline(stream, line);
  EXPECT_EQ(line,
            "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"},{\"role\":\"assistant\","
            "\"content\":\"A1\"}]}");
  Talk talk(partner, {.history = history});
  EXPECT_EQ(talk.type({"three"}),
            "user: one | assistant: A1 | user: two | assistant: A2 | user: three | assistant: A3");
  EXPECT_THROW(Talk(partner, {.history = saved}), base::UserError);
  EXPECT_THROW(Talk(partner, {.system = "unwritten"}), base::UserError);
}

}  // namespace
}  // namespace snug::testing
