// Prints what Snug makes of conversations, for scripts/oracles/check_chat_templates: for each
// record of a file of JSON lines one line with the ids and what is learned of them, what is learned
// of the other roles, and the ids of the prompt for the message that would follow; or the error.
//   dump_chats FOLDER DATA [CHAT_TEMPLATE]
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "text/chat/chat_template.h"
#include "text/record/document.h"
#include "text/record/record_form.h"

namespace {

using namespace snug;

nlohmann::json ids_and_mask(const text::Tokenizer& tokenizer, std::span<const text::Part> parts) {
  const text::Document document = text::tokenize_parts(tokenizer, parts, text::SpecialTokens::none);
  return {{"ids", document.ids}, {"mask", document.trained}};
}

template <typename Make>
nlohmann::json result_of(const Make& make) {
  try {
    return make();
  } catch (const base::UserError& error) {
    return {{"error", error.what()}};
  }
}

nlohmann::json describe(const text::ChatTemplate& chat, const text::Tokenizer& tokenizer,
                        const text::Conversation& conversation) {
  return {{"whole", result_of([&] {
             const auto parts = chat.render(conversation);
             nlohmann::json result = ids_and_mask(tokenizer, parts);
             std::string text;
             for (const text::Part& part : parts) text += part.text;
             result["text"] = text;
             return result;
           })},
          {"others", result_of([&] {
             text::Conversation others = conversation;
             for (text::Message& message : others.messages)
               message.set_learned(!message.is_assistant());
             return ids_and_mask(tokenizer, chat.render(others));
           })},
          {"prompt", result_of([&] {
             const text::Part part{chat.prompt(conversation), -1, false};
             nlohmann::json result = ids_and_mask(tokenizer, std::span(&part, 1));
             result["text"] = part.text;
             return result;
           })},
          {"unwritten", result_of([&] {
             nlohmann::json names = nlohmann::json::array();
             for (const text::Unwritten& one : chat.unwritten(conversation))
               names.push_back(std::to_string(one.message) + " " + one.field);
             return names;
           })}};
}

int run(const std::string& folder, const std::string& data, const std::string& word) {
  const auto tokenizer = text::Tokenizer::from_folder(folder);
  const text::ChatTemplate chat(word, tokenizer);
  std::ifstream lines(data);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    text::RawRecord raw;
    raw.text = line;
    raw.number = ++number;
    raw.line = static_cast<int>(number);
    const nlohmann::json result = result_of([&] {
      const text::Record record =
          text::parse_record(raw, data, {.form = text::RecordForm::messages});
      return describe(chat, tokenizer, record.conversation);
    });
    std::cout << result.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: dump_chats FOLDER DATA [CHAT_TEMPLATE]\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc > 3 ? argv[3] : "");
  } catch (const base::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
