#include "text/chat/chat_forms.h"

#include <algorithm>
#include <iterator>

#include "base/lower_case.h"
#include "text/chat/forms/forms.h"

namespace snug::text {
namespace {

const std::vector<ChatForm>& all_forms() {
  static const std::vector<ChatForm> kForms = [] {
    std::vector<ChatForm> all;
    for (const auto& make : {chatml_forms, llama_forms, mistral_forms, turn_forms, text_forms}) {
      std::vector<ChatForm> some = make();
      all.insert(all.end(), std::make_move_iterator(some.begin()),
                 std::make_move_iterator(some.end()));
    }
    return all;
  }();
  return kForms;
}

// A name without the marks between its parts.
std::string folded(std::string_view name) {
  std::string letters = base::lower_case(name);
  std::erase_if(letters, [](char c) { return c == '-' || c == '_' || c == '.'; });
  return letters;
}

}  // namespace

const std::string& chat_form_names() {
  static const std::string kNames = [] {
    std::string names;
    const std::vector<ChatForm>& forms = all_forms();
    for (const ChatForm& form : forms) {
      if (&form != &forms.front()) names += &form == &forms.back() ? " and " : ", ";
      names += form.name;
    }
    return names;
  }();
  return kNames;
}

const ChatForm* find_chat_form(std::string_view name) {
  const std::string wanted = folded(name);
  const auto is_it = [&](std::string_view one) { return folded(one) == wanted; };
  for (const ChatForm& form : all_forms())
    if (is_it(form.name) || std::ranges::any_of(form.aliases, is_it)) return &form;
  return nullptr;
}

}  // namespace snug::text
