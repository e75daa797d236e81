#include "text/chat/chat_template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../base/processor_time.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "golden_files.h"
#include "text/chat/answer_ends.h"
#include "text/chat/jinja/allowance.h"
#include "text/chat/jinja/values/json_values.h"
#include "text/record/document.h"
#include "text/record/record_form.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;

const Conversation kChat{.messages = {{"system", "Be brief."},
                                      {"user", " Hi "},
                                      {"assistant", "Hello"},
                                      {"user", "Bye"},
                                      {"assistant", "See you"}}};

Tokenizer with_tokens(const std::vector<std::string>& more, const std::string& source = "") {
  TinyTokenizer tiny;
  tiny.added.insert(tiny.added.end(), more.begin(), more.end());
  if (!source.empty()) tiny.config["chat_template"] = source;
  return tiny.make();
}

const std::vector<std::string> kChatml = {"<|im_start|>", "<|im_end|>"};
const std::vector<std::string> kLlama3 = {"<|begin_of_text|>", "<|start_header_id|>",
                                          "<|end_header_id|>", "<|eot_id|>"};
const std::vector<std::string> kPhi3 = {"<|user|>", "<|assistant|>", "<|system|>", "<|end|>"};

struct Rendered {
  std::string text;
  std::string learned;
};

std::string learned_of(const Tokenizer& tokenizer, const std::vector<Part>& parts) {
  const Document document = tokenize_parts(tokenizer, parts, SpecialTokens::none);
  std::vector<int32_t> learned;
  for (size_t i = 0; i < document.ids.size(); ++i)
    if (document.trained[i] != 0) learned.push_back(document.ids[i]);
  return tokenizer.decode(learned, false);
}

Rendered render(const Tokenizer& tokenizer, const std::string& name,
                const Conversation& conversation = kChat) {
  const std::vector<Part> parts = ChatTemplate(name, tokenizer).render(conversation);
  std::string text;
  for (const Part& part : parts) text += part.text;
  return {text, learned_of(tokenizer, parts)};
}

// What is learned of parts, each of which is encoded after all before it.
std::vector<uint8_t> trained_by_prefixes(const Tokenizer& tokenizer,
                                         const std::vector<Part>& parts) {
  std::string text;
  std::vector<size_t> ends;
  for (const Part& part : parts) ends.push_back((text += part.text).size());
  const std::vector<int32_t> ids = tokenizer.encode(text);
  std::vector<uint8_t> trained;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::vector<int32_t> alone = tokenizer.encode(text.substr(0, ends[i]));
    const auto shared = std::mismatch(ids.begin(), ids.end(), alone.begin(), alone.end()).first;
    const auto end = static_cast<size_t>(shared - ids.begin());
    if (end > trained.size()) trained.resize(end, parts[i].is_answer ? 1 : 0);
  }
  trained.resize(ids.size(), parts.back().is_answer ? 1 : 0);
  return trained;
}

// Texts without added tokens, whose words go on over the borders of parts.
TEST(ChatTemplate, ManyMarkedSpansTakeTheTimeOfOne) {
  constexpr int kSpans = 50'000;
  const auto seconds_of = [&](const std::string& body) {
    const Tokenizer tokenizer =
        with_tokens({}, fmt::format("{{% for i in range({}) %}}{}{{% endfor %}}", kSpans, body));
    const std::vector<Part> parts = ChatTemplate("", tokenizer).render(kChat);
    const double begin = testing::processor_seconds();
    const Document document = tokenize_parts(tokenizer, parts, SpecialTokens::none);
    EXPECT_EQ(std::ranges::count(document.trained, 1), kSpans) << body;
    return testing::processor_seconds() - begin;
  };
  EXPECT_LT(seconds_of("{% generation %}a{% endgeneration %}"), 2);
  EXPECT_LT(seconds_of("{% generation %}a{% endgeneration %} b"), 2);
}

// Where tokens before a place can only be told from the whole text before it, work has a bound.
TEST(ChatTemplate, MarkedSpansThatCannotBeToldSoonAreRefused) {
  TinyTokenizer tiny;
  tiny.keys["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "x+"}}}, {"content", "y"}};
  const Tokenizer tokenizer = tiny.make();
  std::vector<Part> parts;
  for (int i = 0; i < 20'000; ++i) {
    parts.push_back({std::string(20, 'a'), -1, false});
    parts.push_back({std::string(20, 'b'), -1, true});
  }
  const double begin = testing::processor_seconds();
  EXPECT_TRUE(testing::contains(
      testing::user_error_of([&] { tokenize_parts(tokenizer, parts, SpecialTokens::none); }),
      "begin and end too often"));
  // What is to come is foreseen: the bound itself takes some seconds.
  EXPECT_LT(testing::processor_seconds() - begin, 2);
  // A few borders are told, however far the text before them reaches.
  std::vector<Part> few{{std::string(100'000, 'a'), -1, false}};
  for (int i = 0; i < 20; ++i) few.push_back({"b", -1, i % 2 == 0});
  EXPECT_EQ(std::ranges::count(tokenize_parts(tokenizer, few, SpecialTokens::none).trained, 1), 10);
}

TEST(ChatTemplate, ManyAnswersInOneTextAreToldApartSoon) {
  TinyTokenizer tiny;
  tiny.merges = {{"a", "b"}, {"ab", "ab"}, {" ", "a"}, {"b", " "}};
  const Tokenizer tokenizer = tiny.make();
  const auto parts_of = [](int count) {
    std::vector<Part> parts;
    for (int i = 0; i < count; ++i) {
      parts.push_back({i % 3 == 0 ? "ab a" : "\u00e9ab", -1, false});
      parts.push_back({i % 5 == 0 ? "bab\n" : "b ab", -1, true});
    }
    return parts;
  };
  const std::vector<Part> some = parts_of(600);
  EXPECT_EQ(tokenize_parts(tokenizer, some, SpecialTokens::none).trained,
            trained_by_prefixes(tokenizer, some));
  const std::vector<Part> many = parts_of(20000);
  const double begin = testing::processor_seconds();
  EXPECT_GT(tokenize_parts(tokenizer, many, SpecialTokens::none).ids.size(), 20000U);
  EXPECT_LT(testing::processor_seconds() - begin, 20);
}

TEST(ChatTemplate, Chatml) {
  const Rendered all = render(with_tokens(kChatml), "chatml");
  EXPECT_EQ(all.text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\nSee you<|im_end|>\n");
  EXPECT_EQ(all.learned, "Hello<|im_end|>See you<|im_end|>");
  const Tokenizer tokenizer = with_tokens(kChatml);
  EXPECT_TRUE(
      ChatTemplate("chatml", tokenizer).prompt(kChat).ends_with("\n<|im_start|>assistant\n"));
}

TEST(ChatTemplate, Llama3) {
  const Rendered all = render(with_tokens(kLlama3), "llama-3");
  EXPECT_EQ(all.text,
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nSee you<|eot_id|>");
  EXPECT_EQ(all.learned, "Hello<|eot_id|>See you<|eot_id|>");
}

TEST(ChatTemplate, Llama2) {
  const Rendered all = render(with_tokens({}), "llama-2");
  EXPECT_EQ(all.text,
            "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi [/INST] Hello </s>"
            "<s>[INST] Bye [/INST] See you </s>");
  EXPECT_EQ(all.learned, " Hello </s> See you </s>");
  const Tokenizer tokenizer = with_tokens({});
  const ChatTemplate chat("llama-2", tokenizer);
  const Conversation twice{.messages = {{"user", "a"}, {"user", "b"}}};
  EXPECT_NE(message_of<UserError>([&] { chat.render(twice); }).find("message 2"),
            std::string::npos);
}

TEST(ChatTemplate, Zephyr) {
  const Rendered all = render(with_tokens({}), "zephyr");
  EXPECT_EQ(all.text,
            "<|system|>\nBe brief.</s>\n<|user|>\n Hi </s>\n<|assistant|>\nHello</s>\n"
            "<|user|>\nBye</s>\n<|assistant|>\nSee you</s>\n");
  EXPECT_EQ(all.learned, "Hello</s>See you</s>");
}

TEST(ChatTemplate, Phi3) {
  const Rendered all = render(with_tokens(kPhi3), "phi-3");
  EXPECT_EQ(all.text,
            "<|system|>\nBe brief.<|end|>\n<|user|>\n Hi <|end|>\n<|assistant|>\nHello<|end|>\n"
            "<|user|>\nBye<|end|>\n<|assistant|>\nSee you<|end|>\n</s>");
  EXPECT_EQ(all.learned, "Hello<|end|>See you<|end|></s>");
}

// A template of the folder's own, or of a file, is run.
constexpr const char* kOwn =
    "{{ bos_token }}{% for m in messages %}{{ m.role + ':' + m.content }}"
    "{{ eos_token if m.role == 'assistant' else '|' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

TEST(ChatTemplate, RunsTheFoldersOwn) {
  const Tokenizer tokenizer = with_tokens({}, kOwn);
  const Rendered all = render(tokenizer, "");
  EXPECT_EQ(all.text,
            "<s>system:Be brief.|user: Hi |assistant:Hello</s>user:Bye|assistant:See you</s>");
  EXPECT_EQ(all.learned, "Hello</s>See you</s>");
  const ChatTemplate chat("", tokenizer);
  EXPECT_EQ(chat.name(), "the model's own");
  EXPECT_TRUE(chat.prompt(kChat).ends_with("See you</s>assistant:"));
}

// Tokens that a folder gives names of its own are variables too.
TEST(ChatTemplate, WritesExtraSpecialTokensByName) {
  TinyTokenizer tiny;
  tiny.config["chat_template"] = "{{ image_token }}{{ sound_token }}";
  tiny.config["extra_special_tokens"] = {{"image_token", "<img>"},
                                         {"sound_token", {{"content", "<snd>"}}}};
  EXPECT_EQ(ChatTemplate("", tiny.make()).prompt(kChat), "<img><snd>");
}

TEST(ChatTemplate, MayBeGivenAsAFile) {
  const testing::TemporaryFolder folder;
  const auto own = folder.write("a.jinja", kOwn);
  EXPECT_EQ(render(with_tokens({}, "{{ 'another' }}"), own.string()).learned,
            "Hello</s>See you</s>");
  check_chat_template("zephyr");
  check_chat_template("");
  check_chat_template(own.string());
  const auto broken = folder.write("b.jinja", "a\n{% include 'x' %}");
  const std::string error = testing::user_error_of([&] { check_chat_template(broken.string()); });
  EXPECT_TRUE(testing::contains(error, "b.jinja:2: chat template: the tag 'include' is not"));
}

// Of templates with names one is for conversations with tools, as transformers chooses.
TEST(ChatTemplate, IsChosenByName) {
  TinyTokenizer tiny;
  tiny.config["chat_template"] = {{{"name", "default"}, {"template", "{{ 'usual' }}"}},
                                  {{"name", "tool_use"}, {"template", "{{ tools | tojson }}"}}};
  const Tokenizer tokenizer = tiny.make();
  const ChatTemplate chat("", tokenizer);
  Conversation conversation = kChat;
  EXPECT_EQ(chat.prompt(conversation), "usual");
  conversation.tools = jinja::Value::list({jinja::Value::dict({})});
  EXPECT_EQ(chat.prompt(conversation), "[{}]");
  tiny.config["chat_template"] = {{{"name", "rag"}, {"template", "x"}}};
  const Tokenizer other = tiny.make();
  EXPECT_NE(message_of<UserError>([&] { ChatTemplate("", other); }).find("are named rag"),
            std::string::npos);
}

// What transformers hands to a template: no null fields, reasoning under both of its names.
TEST(ChatTemplate, SeesMessagesAsTransformersHandsThemOver) {
  const Tokenizer tokenizer = with_tokens({}, "{{ messages | tojson }}{{ tools }}{{ documents }}");
  const Message message(jinja::value_of_json(
      R"({"role": "assistant", "content": null, "reasoning": "r", "tool_calls": [{"b": 1, "a": 2}]})"));
  EXPECT_EQ(ChatTemplate("", tokenizer).prompt({.messages = {message}}),
            R"([{"thinking": "r", "role": "assistant", "reasoning": "r", "tool_calls": )"
            R"([{"b": 1, "a": 2}], "reasoning_content": "r"}]NoneNone)");
}

// A user's message whose content is null reaches the template without it.
TEST(ChatTemplate, LeavesANullContentToTheTemplate) {
  const Tokenizer tokenizer = with_tokens(
      {}, "{% for m in messages %}[{{ m.content if m.content is defined else '-' }}]{% endfor %}");
  RawRecord raw;
  raw.text = R"({"messages": [{"role": "user", "content": null},
                              {"role": "assistant", "content": "a"}]})";
  const Record record = parse_record(raw, "data.jsonl");
  EXPECT_EQ(ChatTemplate("", tokenizer).prompt(record.conversation), "[-][a]");
  EXPECT_NE(message_of<UserError>([&] {
              ChatTemplate("chatml", with_tokens(kChatml)).prompt(record.conversation);
            }).find("the dict has no attribute 'content'"),
            std::string::npos);
}

// Calls in place of a text, as OpenAI's data has them, next to a template that wants one.
TEST(ChatTemplate, NamesTheMessageWithoutContentThatTheTemplateRefuses) {
  const std::string source =
      "{% for m in messages %}{{ '<' + m.role + '>' + m.content + eos_token }}"
      "{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endfor %}";
  const Tokenizer tokenizer = with_tokens({}, source);
  for (const char* call :
       {R"("content": null, "tool_calls": [{"function": {"name": "f", "arguments": {}}}])",
        R"("content": null, "function_call": {"name": "f", "arguments": "{}"})",
        R"("tool_calls": [{"function": {"name": "f", "arguments": {}}}])"}) {
    RawRecord raw;
    raw.text = fmt::format(R"({{"messages": [{{"role": "user", "content": "q"}},
                               {{"role": "assistant", {}}}]}})",
                           call);
    const Conversation conversation = parse_record(raw, "data.jsonl").conversation;
    const ChatTemplate chat("", tokenizer);
    for (const std::string& error : {message_of<UserError>([&] { chat.render(conversation); }),
                                     message_of<UserError>([&] { chat.text(conversation); }),
                                     message_of<UserError>([&] { chat.prompt(conversation); }),
                                     message_of<UserError>([&] { chat.unwritten(conversation); })})
      EXPECT_TRUE(testing::contains(error, "Message 2 has no 'content'")) << error;
  }
}

// What is rendered of one record is counted together.
TEST(ChatTemplate, RenderingsOfARecordShareOneAllowance) {
  const Tokenizer tokenizer = with_tokens({}, kOwn);
  const ChatTemplate chat("", tokenizer);
  Conversation conversation = kChat;
  for (int i = 0; i < 40; ++i)
    for (const char* role : {"user", "assistant"}) conversation.messages.emplace_back(role, "x");
  const auto error_of = [&](int64_t steps, const auto& action) {
    const jinja::Allowance allowance(steps);
    return message_of<UserError>(action);
  };
  const auto prompts = [&](int count) {
    return [&, count] {
      for (int i = 0; i < count; ++i) chat.prompt(conversation);
    };
  };
  EXPECT_EQ(error_of(10'000, prompts(1)), "");
  EXPECT_TRUE(testing::contains(error_of(10'000, prompts(20)), "of this record"));
  // Renderings that may fail elsewhere do not hide that it is spent.
  EXPECT_TRUE(testing::contains(error_of(10'000, [&] { chat.render(conversation); }), "mark the"));
  conversation.messages.emplace_back("user", "");
  conversation.variables.emplace_back("a", jinja::Value::integer(1));
  for (char name = 'b'; name < 'z'; ++name)
    conversation.variables.emplace_back(std::string(1, name), jinja::Value::none());
  EXPECT_TRUE(
      testing::contains(error_of(10'000, [&] { chat.unwritten(conversation); }), "of this record"));
  EXPECT_EQ(message_of<UserError>([&] { chat.unwritten(conversation); }), "");
  EXPECT_FALSE(jinja::Allowance::is_spent());
}

// A template that ends the last turn with a token of its own, and shows a thought in it alone, as
// gpt-oss has it.
TEST(ChatTemplate, LearnsTheEndThatGenerationEndsOn) {
  constexpr const char* kSource =
      "{% for m in messages %}{% if m.role == 'assistant' %}"
      "{% if m.thinking is defined and loop.last %}<|start|>assistant<|channel|>analysis<|message|>"
      "{{ m.thinking }}<|end|>{% endif %}"
      "{% if m.tool_calls %}<|start|>assistant to={{ m.tool_calls[0].function.name }}<|message|>"
      "{{ m.tool_calls[0].function.arguments | tojson }}<|call|>{% else %}"
      "<|start|>assistant<|channel|>final<|message|>{{ m.content }}"
      "{{ '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' }}{% endif %}"
      "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<|start|>assistant{% endif %}";
  TinyTokenizer tiny;
  tiny.added = {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"};
  tiny.config = {{"eos_token", "<|return|>"}, {"chat_template", kSource}};
  const Tokenizer tokenizer = tiny.make();
  const auto ends_of = [&](const Conversation& conversation) {
    AnswerEnds ends;
    const auto parts = ChatTemplate("", tokenizer).render(conversation);
    ends.add(tokenize_parts(tokenizer, parts, SpecialTokens::none), tokenizer);
    return ends.ids();
  };
  using Ids = std::vector<int32_t>;
  const Ids only_return{*tokenizer.id_of("<|return|>")};
  EXPECT_EQ(render(tokenizer, "").learned,
            "<|channel|>final<|message|>Hello<|channel|>final<|message|>See you<|return|>");
  EXPECT_EQ(ends_of(kChat), only_return);
  EXPECT_EQ(ChatTemplate("", tokenizer).turn_ends(), only_return);
  RawRecord raw;
  raw.text = R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
      {"role": "tool", "content": "r"}, {"role": "assistant", "thinking": "t", "content": "a"}]})";
  const Conversation calls = parse_record(raw, "data.jsonl").conversation;
  EXPECT_EQ(render(tokenizer, "", calls).learned,
            " to=f<|message|>{}<|call|><|channel|>analysis<|message|>t<|end|><|start|>assistant"
            "<|channel|>final<|message|>a<|return|>");
  EXPECT_EQ(ends_of(calls), (Ids{*tokenizer.id_of("<|return|>"), *tokenizer.id_of("<|call|>")}));
}

std::string learned_by(const std::string& source, const Conversation& conversation = kChat) {
  return render(with_tokens({"<think>", "<|im_start|>", "<|im_end|>"}, source), "", conversation)
      .learned;
}

TEST(ChatTemplate, LearnsWhatIsMarked) {
  EXPECT_EQ(learned_by("{% for m in messages %}{% if m.role == 'assistant' %}A:{% generation %}"
                       "{{ m.content }}!{% endgeneration %};{% else %}{{ m.content }}{% endif %}"
                       "{% endfor %}"),
            "Hello!See you!");
}

TEST(ChatTemplate, LearnsUpToTheEndOfTurn) {
  EXPECT_EQ(learned_by("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>"
                       "\n{{ '\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>"
                       "assistant\n{{ '' }}{% endif %}"),
            "Hello<|im_end|>See you<|im_end|>");
  // More is written after a prompt than before an answer.
  EXPECT_EQ(learned_by("{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}<|im_end|>"
                       "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:<think>"
                       "{% endif %}"),
            "Hello<|im_end|>See you<|im_end|>");
  // The end of the last message differs.
  EXPECT_EQ(learned_by("{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}<|im_end|>"
                       "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:{% else %}"
                       "{{ eos_token }}{% endif %}"),
            "Hello<|im_end|>See you<|im_end|></s>");
  // The prompt for generation is always there.
  EXPECT_EQ(learned_by("{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}</s>"
                       "{% endfor %}<|im_start|>assistant:"),
            "Hello</s>See you</s>");
}

TEST(ChatTemplate, LearnsWhereHistoryIsWrittenOtherwise) {
  // The system's text stands in the last question, as long as that is the last message.
  EXPECT_EQ(learned_by("{% for m in messages if m.role != 'system' %}{% if m.role == 'user' %}"
                       "[{{ messages[0].content if loop.last }}{{ m.content }}]{% else %}"
                       "{{ m.content + eos_token }}{% endif %}{% endfor %}"),
            "Hello</s>See you</s>");
  // A thought stands before the last answer only.
  EXPECT_EQ(learned_by("{% for m in messages %}<|im_start|>{{ m.role }}:{% if loop.last and m.role "
                       "== 'assistant' %}<think>so{% endif %}{{ m.content }}<|im_end|>{% endfor %}"
                       "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"),
            "Hello<|im_end|><think>soSee you<|im_end|>");
}

// Thoughts stand in answers after the last question only, and the prompt opens one: with a question
// after a tool round all messages before it are written otherwise than in the prompts.
TEST(ChatTemplate, LearnsWhereThoughtsLeaveTheHistory) {
  const std::string source =
      "{% set last = namespace(question=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
      "{% set last.question = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
      "<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}:"
      "{% if m.role == 'assistant' and loop.index0 > last.question %}<think></think>{% endif %}"
      "{{ m.content }}<|im_end|>{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant:<think>{% endif %}";
  const auto messages = [](const std::vector<std::pair<std::string, std::string>>& all) {
    Conversation conversation;
    for (const auto& [role, text] : all) conversation.messages.emplace_back(role, text);
    return conversation;
  };
  EXPECT_EQ(
      learned_by(
          source,
          messages({{"user", "q"}, {"assistant", "call"}, {"tool", "5"}, {"assistant", "five"}})),
      "</think>call<|im_end|></think>five<|im_end|>");
  EXPECT_EQ(learned_by(source, messages({{"user", "q"},
                                         {"assistant", "call"},
                                         {"tool", "5"},
                                         {"assistant", "five"},
                                         {"user", "r"},
                                         {"assistant", "six"}})),
            "call<|im_end|>five<|im_end|></think>six<|im_end|>");
  // Several results of one call, equal ones among them, and several rounds.
  EXPECT_EQ(learned_by(source, messages({{"user", "q"},
                                         {"assistant", "call"},
                                         {"tool", "5"},
                                         {"tool", "5"},
                                         {"assistant", "call"},
                                         {"tool", "5"},
                                         {"assistant", "5"},
                                         {"user", "5"},
                                         {"assistant", "5"}})),
            "call<|im_end|>call<|im_end|>5<|im_end|></think>5<|im_end|>");
}

// A template that writes a call in place of a text, and ends a message otherwise where it is the
// last: rounds that are alike are told apart by their calls.
TEST(ChatTemplate, LearnsCallsThatAreAlike) {
  const auto call = [](const std::string& name) {
    return Message(jinja::value_of_json(
        R"({"role": "assistant", "content": "", "tool_calls": [{"name": ")" + name + R"("}]})"));
  };
  const Conversation conversation{
      .messages = {
          {"user", "q"}, call("f"), {"tool", "5"}, call("f"), {"tool", "5"}, {"assistant", "so"}}};
  EXPECT_EQ(learned_by("{% for m in messages %}<|im_start|>{{ m.role }}:{% if m.tool_calls %}"
                       "[{{ m.tool_calls[0].name }}]{% else %}{{ m.content }}{% endif %}"
                       "{% if m.role != 'tool' or not loop.last %}<|im_end|>{% endif %}{% endfor %}"
                       "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}",
                       conversation),
            "[f]<|im_end|>[f]<|im_end|>so<|im_end|>");
}

TEST(ChatTemplate, SaysWhereAnswersCannotBeTold) {
  const std::string error = message_of<UserError>([] {
    learned_by("{% for m in messages | sort(attribute='content') %}{{ m.content }}{% endfor %}");
  });
  EXPECT_NE(error.find("mark it in the template"), std::string::npos) << error;
  EXPECT_NE(error.find("message "), std::string::npos) << error;
}

// What a folder is given as its template writes what a built-in one has written, whatever the
// folder says of its tokens.
TEST(ChatTemplate, ASavedFormWritesTheSame) {
  TinyTokenizer tiny;
  for (const auto* more : {&kChatml, &kLlama3, &kPhi3})
    tiny.added.insert(tiny.added.end(), more->begin(), more->end());
  tiny.keys["post_processor"] = TinyTokenizer::bos_template(256);
  const Tokenizer tokenizer = tiny.make();
  for (const char* name : {"chatml", "llama-3", "llama-2", "zephyr", "phi-3", "plain"}) {
    const ChatTemplate form(name, tokenizer);
    tiny.config["chat_template"] = form.source().value();
    const Tokenizer saved = tiny.make();
    const ChatTemplate own("", saved);
    EXPECT_EQ(own.text(kChat), form.text(kChat)) << name;
    EXPECT_EQ(own.prompt(kChat), form.prompt(kChat)) << name;
    EXPECT_EQ(render(saved, "").learned, render(tokenizer, name).learned) << name;
    EXPECT_FALSE(own.source()) << name;
  }
  EXPECT_TRUE(ChatTemplate("plain", tokenizer).text(kChat).starts_with("<s>Be brief."));
  EXPECT_TRUE(ChatTemplate("plain", tokenizer).prompt(kChat).ends_with("\nAssistant:"));
}

// Whatever EOS is: here </s>, 257.
TEST(ChatTemplate, KnowsWhatEndsATurn) {
  const Tokenizer tokenizer = with_tokens(kChatml);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(ChatTemplate("chatml", tokenizer).turn_ends(), Ids{*tokenizer.id_of("<|im_end|>")});
  EXPECT_EQ(ChatTemplate("zephyr", tokenizer).turn_ends(), Ids{257});
  const Tokenizer other = with_tokens({}, "{{ tools[0] }}{{ raise_exception('no') }}");
  EXPECT_EQ(ChatTemplate("", other).turn_ends(), Ids{});
}

// axolotl's words for it.
TEST(ChatTemplate, ABuiltInOneMayStandInForAMissingOne) {
  constexpr const char* kFallback = "tokenizer_default_fallback_chatml";
  EXPECT_TRUE(is_chat_template_name(kFallback));
  EXPECT_FALSE(is_chat_template_name("tokenizer_default_fallback_nobody"));
  EXPECT_EQ(ChatTemplate(kFallback, with_tokens(kChatml)).name(), "chatml");
  const Tokenizer own = with_tokens(kChatml, "{{ messages[0].content }}");
  EXPECT_EQ(ChatTemplate(kFallback, own).name(), "the model's own");
}

TEST(ChatTemplate, SaysWhatItNeeds) {
  const auto message = [](const std::string& name, const Tokenizer& tokenizer) {
    return message_of<UserError>([&] { ChatTemplate(name, tokenizer); });
  };
  // Tokens that happen to be there choose no template.
  EXPECT_NE(message("", with_tokens(kChatml)).find("the model folder has no chat template"),
            std::string::npos);
  EXPECT_NE(message("jinja", with_tokens({})).find("'jinja' is not known; the choices are chatml"),
            std::string::npos);
  EXPECT_NE(message("chatml", with_tokens({})).find("needs the tokens <|im_start|>, <|im_end|>"),
            std::string::npos);
  TinyTokenizer bare;
  bare.config = nlohmann::json::object();
  EXPECT_NE(message("plain", bare.make()).find("needs an EOS token"), std::string::npos);
  EXPECT_NE(message("llama-2", bare.make()).find("needs a BOS token"), std::string::npos);
}

// Published templates, next to what jinja2 writes as transformers sets it up.
TEST(ChatTemplate, RunsPublishedTemplates) {
  const std::string folder = kSharedData + "chat-templates/llama.cpp-2025-02/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const std::vector<std::pair<std::string, std::string>> learned = {
      {"Qwen-Qwen2.5-7B-Instruct", "Hello<|im_end|>See you<|im_end|>"},
      {"meta-llama-Llama-3.1-8B-Instruct", "Hello<|eot_id|>See you<|eot_id|>"},
      {"meta-llama-Llama-3.3-70B-Instruct", "Hello<|eot_id|>See you<|eot_id|>"},
      {"microsoft-Phi-3.5-mini-instruct", "Hello<|end|>See you<|end|>\n</s>"},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
       "Hello<｜end▁of▁sentence｜>See you<｜end▁of▁sentence｜>"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "Hello</s>See you</s>"}};
  std::vector<std::string> tokens = kChatml;
  tokens.insert(tokens.end(), kLlama3.begin(), kLlama3.end());
  tokens.insert(tokens.end(), kPhi3.begin(), kPhi3.end());
  for (const char* token : {"<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<think>"})
    tokens.emplace_back(token);
  for (const auto& [file, expected] : learned) {
    const Tokenizer tokenizer = with_tokens(tokens, contents_of(folder + file + ".jinja"));
    EXPECT_EQ(render(tokenizer, "").learned, expected) << file;
  }
  const Tokenizer qwen = with_tokens(tokens, contents_of(folder + learned[0].first + ".jinja"));
  EXPECT_EQ(ChatTemplate("", qwen).prompt({.messages = {{"user", "Hi"}}}),
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
            "assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace snug::text
