// Records in forms of public data sets that Snug has no form for, and what is proposed for each.
// What is proposed must read the record, too.
#include "text/audit/proposed_mapping.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "text/record/record_form.h"

namespace snug::text {
namespace {

struct Proposal {
  const char* record;
  const char* expected;
};

const std::vector<Proposal> kProposals{
    {R"({"frage": "Was?", "antwort": "Das."})", "fields={prompt: frage, completion: antwort}"},
    {R"({"id": "7", "Customer Question": "Why so?", "Agent Answer": "Because it is."})",
     "fields={prompt: \"Customer Question\", completion: \"Agent Answer\"}"},
    {R"({"问题": "为什么?", "答案": "因为。"})", "fields={prompt: 问题, completion: 答案}"},
    {R"({"problem": "1+1", "solution": "It is 2.", "level": "Level 1", "type": "Algebra"})",
     "fields={prompt: problem, completion: solution}"},
    {R"({"article": "Much happened today.", "highlights": "Much."})",
     "fields={prompt: article, completion: highlights}"},
    {R"({"context": "The sky is blue.", "problem": "What colour?", "answers": {"text": ["blue"], "answer_start": [11]}})",
     "fields={prompt: \"{context}\\n\\n{problem}\", completion: answers.text.0}"},
    {R"({"data": {"user_query": "Hi there", "bot_reply": "Hello you"}})",
     "fields={prompt: data.user_query, completion: data.bot_reply}"},
    {R"({"premise": "It rains a lot.", "conclusion": "The ground is wet."})",
     "fields={prompt: premise, completion: conclusion}"},
    {R"({"system_prompt": "Be kind.", "ask": "Who are you?", "reply": "A friend."})",
     "fields={system: system_prompt, prompt: ask, completion: reply}"},
    {R"({"dialog": [{"speaker": "customer", "text": "Hi"}, {"speaker": "agent", "text": "Hello"}]})",
     "fields={messages: dialog, messages.role: speaker, messages.content: text} "
     "roles={customer: user, agent: assistant}"},
    {R"({"conversation": {"turns": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}})",
     "fields={messages: conversation.turns}"},
    {R"({"chat": [{"from": "Anna", "value": "Hi"}, {"from": "Ben", "value": "Hello"}]})",
     "fields={messages: chat} roles={Anna: user, Ben: assistant}"},
    {R"({"input": {"messages": [{"role": "user", "content": "a"}]}, "preferred_output": [{"role": "assistant", "content": "b"}], "non_preferred_output": [{"role": "assistant", "content": "c"}]})",
     "fields={prompt: input.messages, chosen: preferred_output, rejected: non_preferred_output}"},
    {R"({"ask": "Say.", "better_answer": "yes", "worse_answer": "no"})",
     "fields={prompt: ask, chosen: better_answer, rejected: worse_answer}"},
    {R"({"url": "https://example.org", "body": "A page with words."})", "fields={text: body}"},
    {R"({"id": "t0", "name": "breakfast", "instruction": "What to eat?", "instances": [{"input": "", "output": "A shake."}]})",
     "fields={prompt: instruction, completion: instances.0.output}"},
    {R"({"story": "Once upon a time."})", "fields={text: story}"}};

TEST(ProposedMapping, OfFormsThatSnugDoesNotKnow) {
  for (const Proposal& each : kProposals) {
    const auto mapping = propose_mapping(std::string(each.record));
    ASSERT_TRUE(mapping) << each.record;
    EXPECT_EQ(mapping->text(), each.expected) << each.record;
  }
}

TEST(ProposedMapping, ReadsTheRecord) {
  const auto items = [](const std::vector<ProposedMapping::Pair>& pairs) {
    std::vector<std::string> list;
    for (const auto& [name, value] : pairs) list.push_back(name + "=" + value);
    return list;
  };
  for (const Proposal& each : kProposals) {
    RawRecord raw;
    raw.text = each.record;
    const auto proposed = propose_mapping(raw.text);
    const RecordMapping mapping(items(proposed->fields), items(proposed->roles));
    EXPECT_NO_THROW(parse_record(raw, "data.jsonl", {.mapping = &mapping})) << each.record;
  }
}

TEST(ProposedMapping, NothingWhereNothingIsText) {
  for (const char* record : {"{}", "[]", "no JSON", R"({"id": "x7", "n": 3})", R"({"a": " "})"})
    EXPECT_FALSE(propose_mapping(std::string(record))) << record;
}

TEST(ProposedMapping, StandsInTheErrorOfARecordOfNoForm) {
  RawRecord raw;
  raw.number = 1;
  raw.text = kProposals[0].record;
  const auto message = [&](const RecordRules& rules) -> std::string {
    try {
      parse_record(raw, "data.jsonl", rules);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({}).find("perhaps fields={prompt: frage, completion: antwort}"),
            std::string::npos)
      << message({});
  // One that asks for pairs is not told of something else.
  EXPECT_EQ(message({.form = RecordForm::preference}).find("perhaps"), std::string::npos);
}

}  // namespace
}  // namespace snug::text
