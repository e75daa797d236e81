#include "formats/foreign/axolotl_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "formats/foreign/field_words.h"

namespace snug::formats {
namespace {

// How an instruction is written as text: with an input and without one, each after a system text
// where there is one. {instruction}, {input} and {system} stand for fields.
struct PromptStyle {
  std::string system;
  std::string with_input;
  std::string alone;
  // A system text for records that have none of their own, in both cases.
  std::string own_system_with_input = "";
  std::string own_system_alone = "";
};

struct PromptFields {
  std::string system;  // empty: none is read
  std::string instruction;
  std::string input;  // empty: none is read
  std::string output;
};

// The sentences that a prompt of Stanford Alpaca begins with (text/record/record_form.h).
constexpr std::string_view kWithInput =
    "Below is an instruction that describes a task, paired with an input that provides further "
    "context. Write a response that appropriately completes the request.";
constexpr std::string_view kAlone =
    "Below is an instruction that describes a task. Write a response that appropriately completes "
    "the request.";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string with_fields(const std::string& format, const PromptFields& fields) {
  std::string text = replaced(format, "{instruction}", field_in_template(fields.instruction));
  if (!fields.input.empty()) text = replaced(text, "{input}", field_in_template(fields.input));
  return text;
}

std::string system_text(const PromptStyle& style, const std::string& system) {
  return system.empty() ? "" : replaced(style.system, "{system}", system);
}

// The prompts that a record may have, of which the first is taken whose fields all say something.
std::vector<std::string> prompts_of(const PromptStyle& style, const PromptFields& fields) {
  std::vector<std::string> prompts;
  const auto add = [&](const std::string& of_record, bool has_input) {
    const std::string& own = has_input ? style.own_system_with_input : style.own_system_alone;
    const std::string system = of_record.empty() ? system_text(style, in_template(own)) : of_record;
    prompts.push_back(system + with_fields(has_input ? style.with_input : style.alone, fields));
  };
  std::vector<std::string> systems{""};
  if (!fields.system.empty() && !style.system.empty())
    systems.insert(systems.begin(), system_text(style, field_in_template(fields.system)));
  for (const std::string& system : systems) {
    if (!fields.input.empty()) add(system, true);
    add(system, false);
  }
  return prompts;
}

void take_prompt(DataEntry& entry, const PromptStyle& style, const PromptFields& fields) {
  take_first_of(entry, "prompt", prompts_of(style, fields));
  take_field(entry, "completion", fields.output);
}

// The styles that axolotl has words for, which follow a colon: alpaca:chat.
std::optional<PromptStyle> style_named(std::string_view word) {
  if (word == "instruct")
    return PromptStyle{"{system}\n\n",
                       "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n",
                       "### Instruction:\n{instruction}\n\n### Response:\n"};
  if (word == "chat")
    return PromptStyle{"SYSTEM: {system}\n", "USER: {instruction}\n{input}\nASSISTANT:",
                       "USER: {instruction}\nASSISTANT:"};
  if (word == "chatml")
    return PromptStyle{
        "<|im_start|>system\n{system}<|im_end|>\n",
        "<|im_start|>user\n{instruction}\n{input}<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>user\n{instruction}<|im_end|>\n<|im_start|>assistant\n"};
  if (word == "phi")
    return PromptStyle{"<|system|>\n{system}<|end|>\n",
                       "<|user|>\n{instruction}<|end|>{input}<|assistant|>",
                       "<|user|>\n{instruction}<|end|>\n<|assistant|>\n"};
  return std::nullopt;
}

// Alpaca in a style: with its own sentences for a system text, or without any.
PromptStyle alpaca_style(std::string_view word, bool has_sentences) {
  PromptStyle style = *style_named(word);
  if (has_sentences) {
    style.own_system_with_input = kWithInput;
    style.own_system_alone = kAlone;
  }
  return style;
}

// A type that is no chat type. Without a style its records are of a form as they are, or once its
// fields have Snug's names.
struct TypeWord {
  std::string_view word;
  DataFormat form = DataFormat::automatic;
  PromptFields fields = {};
  std::optional<PromptStyle> style = {};
};

TypeWord of_form(std::string_view word, DataFormat form, PromptFields fields = {}) {
  return {.word = word, .form = form, .fields = std::move(fields)};
}

TypeWord of_style(std::string_view word, PromptStyle style, PromptFields fields) {
  return {.word = word, .fields = std::move(fields), .style = std::move(style)};
}

// Alpaca's types: those in its own words are of the form of that name.
void add_alpaca_types(std::vector<TypeWord>& words) {
  const PromptFields plain{"", "instruction", "input", "output"};
  const PromptFields answered{"", "instruction", "input", "response"};
  const PromptFields asked{"", "INSTRUCTION", "", "RESPONSE"};
  for (const char* word : {"alpaca", "alpaca:instruct", "alpaca_instruct", "alpaca_instruct.load"})
    words.push_back(of_form(word, DataFormat::alpaca));
  for (const char* word : {"gpteacher", "gpteacher:instruct"})
    words.push_back(of_form(word, DataFormat::alpaca, answered));
  for (const char* word : {"oasst", "oasst:instruct"})
    words.push_back(of_form(word, DataFormat::alpaca, asked));
  for (const char* word : {"alpaca:chat", "alpaca_chat", "alpaca_chat.load"})
    words.push_back(of_style(word, alpaca_style("chat", true), plain));
  words.push_back(of_style("alpaca:chatml", alpaca_style("chatml", true), plain));
  words.push_back(of_style("alpaca:phi", alpaca_style("phi", true), plain));
  words.push_back(of_style("gpteacher:chat", alpaca_style("chat", true), answered));
  words.push_back(of_style("oasst:chat", alpaca_style("chat", true), asked));
  words.push_back(of_style("alpaca_chat.load_no_prompt", alpaca_style("chat", false), plain));
  words.push_back(
      of_style("alpaca_instruct.load_no_prompt", alpaca_style("instruct", false), plain));
}

void add_system_types(std::vector<TypeWord>& words) {
  const PromptFields own{"system", "instruction", "input", "output"};
  const PromptFields orca{"system_prompt", "question", "", "response"};
  for (const char* word : {"alpaca_w_system", "alpaca_w_system.load", "alpaca_w_system.load_chat"})
    words.push_back(of_style(word, *style_named("chat"), own));
  words.push_back(of_style("alpaca_w_system.load_instruct", *style_named("instruct"), own));
  words.push_back(of_style(
      "alpaca_w_system.load_open_orca",
      {"### System:\n{system}\n", "", "### Human:\n{instruction}\n### Assistant:\n"}, orca));
  words.push_back(of_style("alpaca_w_system.load_open_orca_chatml", *style_named("chatml"), orca));
  words.push_back(of_style(
      "orcamini",
      {"", "", "### System:\n{system_prompt}\n\n### User:\n{instruction}\n\n### Response:\n"},
      {"", "question", "", "response"}));
}

void add_question_types(std::vector<TypeWord>& words) {
  for (const char* word : {"context_qa", "context_qa.load"})
    words.push_back(
        of_style(word,
                 {"", "",
                  "SYSTEM: Use the following contextual information to concisely answer the "
                  "question.\n\nUSER: {article}\n===\n{instruction}\nASSISTANT:"},
                 {"", "question", "", "answer"}));
  words.push_back(of_style("context_qa.load_v2",
                           {"", "", "Context: {context}\nQuestion: {instruction}\n"},
                           {"", "question", "", "Answer: {answer}"}));
  words.push_back(of_style(
      "summarizetldr",
      {"", "", "USER: Summarize the following article as a TL;DR.\n{instruction}\nASSISTANT:"},
      {"", "article", "", "summary"}));
  words.push_back(
      of_form("jeopardy", DataFormat::alpaca, {"", "question", "category", "what is {answer}"}));
}

const std::vector<TypeWord>& type_words() {
  static const std::vector<TypeWord> all = [] {
    std::vector<TypeWord> words;
    add_alpaca_types(words);
    add_system_types(words);
    add_question_types(words);
    return words;
  }();
  return all;
}

// Why a type is refused that axolotl has. The first whose word the type begins with applies.
struct RefusedType {
  std::string_view word;
  std::string_view why;
};
constexpr std::string_view kOtherObjective =
    "it is of an objective that is not built; objective: dpo, orpo, kto and simpo are";
constexpr std::string_view kOwnWords =
    "its words around a prompt are not built: write them as type: {field_instruction: NAME, "
    "field_output: NAME, format: TEXT, no_input_format: TEXT}, or leave type out where the fields "
    "show the form";
constexpr auto kRefusedTypes = std::to_array<RefusedType>({
    {"input_output",
     "segments say which parts of a text are learned: give them as messages, with \"weight\": 0 "
     "in those that are not"},
    {"bradley_terry", kOtherObjective},
    {"stepwise_supervised", kOtherObjective},
    {"rwd", kOtherObjective},
    {"ebft", kOtherObjective},
    {"_synthetic", "data are not made up: say path: FILE"},
    {"zephyr.nectar",
     "answers with ranks are no pairs: give each pair as prompt, chosen and rejected"},
    {"alpaca_chat.", kOwnWords},
    {"context_qa.", kOwnWords},
    {"creative_acr", kOwnWords},
    {"reflection", kOwnWords},
    {"explainchoice", kOwnWords},
    {"concisechoice", kOwnWords},
    {"pygmalion", kOwnWords},
    {"metharme", kOwnWords},
    {"llama2_chat",
     "say type: chat_template, field_messages: conversations and chat_template: llama-2"},
    {"user_defined", "say type: {field_prompt: NAME, field_chosen: NAME, field_rejected: NAME}"},
});

[[noreturn]] void refuse_type(const ToolEntry& tool, const std::string& type) {
  const base::Location& where = tool.find("type")->where;
  for (const RefusedType& each : kRefusedTypes)
    if (type.starts_with(each.word))
      throw base::UserError(fmt::format("is '{}': {}", type, each.why), where);
  std::vector<std::string_view> words{"chat_template", "completion", "sharegpt", "input_output"};
  for (const TypeWord& each : type_words()) words.push_back(each.word);
  const auto nearest = base::nearest_slip(type, words);
  throw base::UserError(
      fmt::format("is '{}', which Snug does not know{}; code of other tools is not run: leave type "
                  "out where the fields show the form of the records, or name them with fields",
                  type, nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : ""),
      where);
}

// Pairs and answers with labels, in the turns of a template: chatml.intel, llama3.ultra. Returns
// the template; empty for other types.
std::string apply_compared_type(const std::string& type, std::string_view rl, DataEntry& entry) {
  const size_t dot = type.find('.');
  const std::string_view family = std::string_view(type).substr(0, dot);
  if (family != "chatml" && family != "llama3") return "";
  const std::string of = dot == std::string::npos ? "default" : type.substr(dot + 1);
  const bool is_pair = rl != "kto";
  if (of == "default") {
    take_first_of(entry, "question", {"prompt", "input", "question", "instruction"});
    if (is_pair) take_first_of(entry, "chosen", {"chosen", "chosen_response"});
    if (is_pair) take_first_of(entry, "rejected", {"rejected", "rejected_response"});
  } else if (of == "argilla") {
    take_field(entry, "question", "instruction");
    if (is_pair) take_field(entry, "chosen", "chosen_response");
    if (is_pair) take_field(entry, "rejected", "rejected_response");
  } else if (of == "icr") {
    take_field(entry, "question", "input");
  } else if (of == "prompt_pairs" || of == "ultra") {
    take_field(entry, "question", "prompt");
  } else if (of != "intel" && of != "argilla_chat") {
    return "";
  }
  return family == "llama3" ? "llama-3" : "chatml";
}

constexpr auto kMapKeys = std::to_array<std::string_view>(
    {"system_prompt", "system_format", "field_system", "field_instruction", "field_input",
     "field_output", "format", "no_input_format", "field_prompt", "field_chosen", "field_rejected",
     "field_completion", "field_label", "prompt_format", "chosen_format", "rejected_format",
     "completion_format"});

// The keys of a type that is a map, each with the default that axolotl has for it.
class TypeMap {
 public:
  explicit TypeMap(std::vector<Written> keys) : keys_(std::move(keys)) {
    for (const Written& each : keys_) {
      if (std::ranges::find(kMapKeys, each.name) != kMapKeys.end()) continue;
      const std::vector<std::string_view> names(kMapKeys.begin(), kMapKeys.end());
      const auto nearest = base::nearest_slip(each.name, names);
      throw base::UserError(
          fmt::format("is a key that Snug does not know{}",
                      nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""),
          each.where);
    }
  }

  bool has(std::string_view key) const {
    return std::ranges::find(keys_, key, &Written::name) != keys_.end();
  }
  std::string text(std::string_view key, std::string_view usual) const {
    const auto found = std::ranges::find(keys_, key, &Written::name);
    const bool is_usual = found == keys_.end() || found->items.empty();
    return is_usual ? std::string(usual) : one_text(*found);
  }
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const {
    throw base::UserError(problem, std::ranges::find(keys_, key, &Written::name)->where);
  }

 private:
  std::vector<Written> keys_;
};

// A template of axolotl, in which the field is called {word}.
std::string format_of(const TypeMap& map, std::string_view word) {
  const std::string field = field_in_template(map.text(fmt::format("field_{}", word), word));
  return replaced(map.text(fmt::format("{}_format", word), field_in_template(word)),
                  field_in_template(word), field);
}

void apply_compared_map(const TypeMap& map, DataEntry& entry) {
  const std::string system = map.text("field_system", "system");
  std::string prompt = format_of(map, "prompt");
  if (prompt.find("{system}") == std::string::npos) {
    take_field(entry, "prompt", prompt);
  } else {
    take_first_of(entry, "prompt",
                  {replaced(prompt, "{system}", field_in_template(system)),
                   replaced(prompt, "{system}", "")});
  }
  if (map.has("field_completion") || map.has("field_label") || map.has("completion_format")) {
    take_field(entry, "completion", format_of(map, "completion"));
    take_field(entry, "label", map.text("field_label", "label"));
    return;
  }
  take_field(entry, "chosen", format_of(map, "chosen"));
  take_field(entry, "rejected", format_of(map, "rejected"));
}

}  // namespace

bool is_chat_type(std::string_view type) {
  const std::string_view word = type.substr(0, type.find_first_of(".:"));
  return word == "chat_template" || word == "sharegpt" || word == "messages" ||
         word == "sharegpt_simple";
}

std::string apply_axolotl_type(const ToolEntry& tool, std::string_view rl, DataEntry& entry) {
  const std::string type = tool.text("type");
  if (type.empty() || type == "passthrough") return "";
  if (type == "completion" || type == "pretrain") {
    entry.data_format = DataFormat::text;
    const std::string field = tool.text("field");
    take_field(entry, "text", field.empty() ? tool.text("text_column") : field);
    return "";
  }
  if (const std::string chat = apply_compared_type(type, rl, entry); !chat.empty()) return chat;
  const auto known = std::ranges::find(type_words(), type, &TypeWord::word);
  if (known == type_words().end()) refuse_type(tool, type);
  entry.data_format = known->form;
  if (known->style) {
    take_prompt(entry, *known->style, known->fields);
  } else {
    take_field(entry, "instruction", known->fields.instruction);
    take_field(entry, "input", known->fields.input);
    take_field(entry, "output", known->fields.output);
  }
  return "";
}

void apply_axolotl_map(std::vector<Written> keys, DataEntry& entry) {
  const TypeMap map(std::move(keys));
  for (const char* key : {"field_prompt", "field_chosen", "field_completion", "prompt_format"})
    if (map.has(key)) return apply_compared_map(map, entry);
  for (const char* key : {"field_instruction", "field_output"})
    if (map.text(key, key).empty()) map.fail(key, "is empty; expected the name of a field");
  const PromptFields fields{map.text("field_system", "system"),
                            map.text("field_instruction", "instruction"),
                            map.text("field_input", "input"), map.text("field_output", "output")};
  const std::string own = map.text("system_prompt", "");
  const PromptStyle style{map.text("system_format", "{system}"),
                          map.text("format", "{instruction} {input} "),
                          map.text("no_input_format", "{instruction} "), own, own};
  const bool reads_input = style.with_input.find("{input}") != std::string::npos;
  if (!reads_input && style.with_input != style.alone)
    map.fail("format",
             "does not have {input}, so it is meant for records without one, too: say the same as "
             "no_input_format");
  PromptFields read = fields;
  if (!reads_input) read.input.clear();
  take_prompt(entry, style, read);
}

}  // namespace snug::formats
