#include "generate/evaluation/task_question.h"

#include <fmt/format.h>

#include <algorithm>

#include "generate/evaluation/python_literal.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {
namespace {

using text::jinja::Side;
using text::jinja::Value;
using Kind = Value::Kind;

bool begins_with_space(std::string_view text) {
  return text::jinja::strip(text, Side::left).size() < text.size();
}
bool ends_with_space(std::string_view text) {
  return text::jinja::strip(text, Side::right).size() < text.size();
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() < 18 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Joins two texts; with a delimiter where neither has white space at the border.
std::string joined(const std::string& first, const std::string& second,
                   std::string_view delimiter) {
  if (first.empty() || second.empty()) return first + second;
  const bool has_space = ends_with_space(first) || begins_with_space(second);
  return first + (has_space ? "" : std::string(delimiter)) + second;
}

// One document, as the task's lines read it.
class DocumentReader {
 public:
  DocumentReader(const Task& task, const TaskDocument& document)
      : task_(task), document_(document) {}

  // doc_to_text and doc_to_target: digits that a template writes are a number where there are
  // choices, and a list that a template writes is one.
  Value asked() const { return numbered(task_.to_text, task_.to_text.of(document_)); }
  Value expected() const {
    Value value = numbered(task_.to_target, task_.to_target.of(document_));
    if (!value.is(Kind::text) || task_.to_target.is_field_of(document_)) return value;
    const std::string& text = value.as_text();
    if (!text.starts_with('[') || !text.ends_with(']')) return value;
    return python_literal(text).value_or(value);
  }

  std::vector<std::string> choices() const {
    Value value = task_.to_choice->of(document_);
    if (value.is(Kind::text)) value = python_literal(value.as_text()).value_or(value);
    if (!value.is_sequence() || value.items().empty())
      fail(fmt::format("doc_to_choice gives {}, and a list of texts is needed",
                       text::jinja::print(value)));
    std::vector<std::string> texts;
    for (const Value& item : value.items()) {
      if (!item.is(Kind::text) || item.as_text().empty())
        fail("doc_to_choice has a choice that is no text, or an empty one");
      texts.push_back(item.as_text());
    }
    return texts;
  }

  std::string beginning() const {
    return task_.answer_beginning ? task_.answer_beginning->text_of(document_) : "";
  }

  // The question before its answer, or before what an answer begins with.
  std::string open_turn(const std::string& question) const {
    const std::string begun = beginning();
    const bool is_delimited = !begun.empty() && !question.empty() && !ends_with_space(question) &&
                              !begins_with_space(begun);
    return question + (is_delimited ? task_.target_delimiter : "") + begun;
  }

  // The question with its answer, as an example.
  std::string whole_turn() const {
    std::string question = asked_text();
    const std::string answer = answer_text();
    if (answer.empty()) return open_turn(question);
    const std::string begun = beginning();
    const bool is_delimited = begun.empty() || (!question.empty() && !ends_with_space(question) &&
                                                !begins_with_space(begun));
    return question + (is_delimited ? task_.target_delimiter : "") + joined(begun, answer, " ") +
           task_.shot_delimiter;
  }

  [[noreturn]] void fail(const std::string& problem) const { fail_at(document_, problem); }

 private:
  Value numbered(const TaskText& text, Value value) const {
    const bool is_number = value.is(Kind::text) && task_.to_choice &&
                           !text.is_field_of(document_) && is_digits(value.as_text());
    return is_number ? Value::integer(std::stoll(value.as_text())) : value;
  }

  std::string choice_of(const Value& number) const {
    const std::vector<std::string> all = choices();
    if (number.as_integer() < 0 || number.as_integer() >= std::ssize(all))
      fail(
          fmt::format("asks for choice {} of {}, counted from 0", number.as_integer(), all.size()));
    return all[static_cast<size_t>(number.as_integer())];
  }

  std::string asked_text() const {
    const Value value = asked();
    if (value.is(Kind::text)) return value.as_text();
    if (value.is_whole() && task_.to_choice) return choice_of(value);
    fail(fmt::format("doc_to_text is {}, and a text is needed", value.type_name()));
  }

  std::string answer_text() const {
    Value value = expected();
    if (value.is_sequence() && !value.items().empty()) value = Value(value.items().front());
    if (value.is_whole() && task_.to_choice && !asked().is_whole()) return choice_of(value);
    if (!value.is(Kind::text))
      fail(
          fmt::format("doc_to_target is {}, and an example needs a text, or the number of a choice",
                      value.type_name()));
    return value.as_text();
  }

  const Task& task_;
  const TaskDocument& document_;
};

std::vector<int64_t> right_choices(const DocumentReader& reader, const Value& expected,
                                   const std::vector<std::string>& choices) {
  std::vector<int64_t> right;
  const auto add = [&](const Value& value) {
    int64_t number = -1;
    if (value.is_whole())
      number = value.as_integer();
    else if (value.is(Kind::text))
      number = std::ranges::find(choices, value.as_text()) - choices.begin();
    else
      reader.fail(
          fmt::format("the right choice is {}; expected its number, counted from 0, or "
                      "its text",
                      value.type_name()));
    if (number >= 0 && number < std::ssize(choices)) right.push_back(number);
  };
  if (expected.is_sequence())
    for (const Value& value : expected.items()) add(value);
  else
    add(expected);
  return right;
}

// Choices that follow one question, or, where doc_to_text is a number, questions that one answer
// follows.
void add_choices(const Task& task, const DocumentReader& reader, const std::string& before,
                 TaskQuestion& question) {
  question.choices = reader.choices();
  const Value asked = reader.asked();
  const Value expected = reader.expected();
  if (asked.is_whole()) {
    const std::string answer =
        task.target_delimiter +
        (expected.is(Kind::text) ? expected.as_text() : text::jinja::print(expected));
    for (const std::string& choice : question.choices)
      question.pairs.push_back({before + reader.open_turn(choice), answer});
    question.right = right_choices(reader, asked, question.choices);
    return;
  }
  if (!asked.is(Kind::text))
    reader.fail(fmt::format("doc_to_text is {}, and a text is needed", asked.type_name()));
  const std::string context = before + reader.open_turn(asked.as_text());
  for (const std::string& choice : question.choices)
    question.pairs.push_back({context, task.target_delimiter + choice});
  question.right = right_choices(reader, expected, question.choices);
}

std::vector<std::string> expected_texts(const Task& task, const DocumentReader& reader) {
  const Value expected = reader.expected();
  const auto text = [&](const Value& value) {
    if (value.is(Kind::text)) return value.as_text();
    if (value.is_whole() && task.to_choice) {
      const std::vector<std::string> choices = reader.choices();
      const int64_t number = value.as_integer();
      if (number >= 0 && number < std::ssize(choices)) return choices[static_cast<size_t>(number)];
      reader.fail(fmt::format("doc_to_target is {}, and there are {} choices, counted from 0",
                              number, choices.size()));
    }
    return text::jinja::print(value);
  };
  if (!expected.is_sequence()) return {text(expected)};
  std::vector<std::string> all;
  for (const Value& value : expected.items()) all.push_back(text(value));
  if (all.empty()) reader.fail("doc_to_target is an empty list, so no answer is right");
  return all;
}

std::string scored_text(const DocumentReader& reader) {
  const Value expected = reader.expected();
  if (!expected.is(Kind::text) || expected.as_text().empty())
    reader.fail("doc_to_target is no text, or an empty one, and it is what is scored");
  return expected.as_text();
}

}  // namespace

TaskQuestion task_question(const Task& task, const TaskDocument& document,
                           std::span<const TaskDocument> shown) {
  const DocumentReader reader(task, document);
  TaskQuestion question{.pairs = {}, .where = document.where};
  if (task.output == OutputType::loglikelihood_rolling) {
    question.text = scored_text(reader);
    question.pairs.push_back({"", question.text});
    return question;
  }
  std::string before = task.description ? task.description->text_of(document) : "";
  for (const TaskDocument& example : shown) before += DocumentReader(task, example).whole_turn();
  if (task.output == OutputType::multiple_choice) {
    add_choices(task, reader, before, question);
    return question;
  }
  const std::string context = before + reader.open_turn(task.to_text.text_of(document));
  if (task.output == OutputType::loglikelihood) {
    question.pairs.push_back({context, scored_text(reader)});
    return question;
  }
  question.pairs.push_back({context, ""});
  question.expected = expected_texts(task, reader);
  return question;
}

}  // namespace snug::generate
