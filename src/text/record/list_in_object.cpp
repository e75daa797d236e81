#include "text/record/list_in_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json_parser.h"
#include "base/lower_case.h"
#include "base/shown_text.h"
#include "text/record/record_form.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

constexpr size_t kNameBytes = 64;

template <size_t kCount>
bool is_among_names(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::ranges::find(names, base::lower_case(name)) != names.end();
}

bool is_named_as_records(std::string_view name) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"data", "dataset", "instances", "train", "training", "rows",
                                       "records", "examples", "samples", "items", "entries"});
  return is_among_names(kNames, name);
}

// A field of the object, and of a list of objects what its first item has.
struct FieldOfObject {
  std::string name;
  bool is_list_of_objects = false;
  bool holds_messages = false;
  FilePlace begin{};
};

// Walks through one object.
class ObjectWalk {
 public:
  explicit ObjectWalk(const Characters& characters) : characters_(characters) {}

  // Whether the file is one object and no more.
  bool run() {
    if (next_token() != '{') return false;
    do {
      if (!take(token_)) return false;
      if (!open_.empty()) next_token();
    } while (!open_.empty());
    return next_token() < 0;
  }

  const std::vector<FieldOfObject>& fields() const { return fields_; }
  bool breaks_lines() const { return end_line_ > first_line_; }

 private:
  int next_token() {
    do {
      place_ = characters_.place();
      token_ = characters_.get();
    } while (is_space(token_));
    return token_;
  }

  bool take(int c) {
    if (c == '{' || c == '[') return open(static_cast<char>(c));
    if (c == '}' || c == ']') return close(c == '}' ? '{' : '[');
    if (c == '"') return take_string();
    if (c == ',' || c == ':') {
      follows_value_ = false;
      is_value_ = c == ':' || open_.back() == '[';
      return true;
    }
    return take_literal(c);
  }

  bool open(char bracket) {
    const bool may_open = open_.empty() || (is_value_ && !follows_value_);
    if (!may_open || open_.size() >= static_cast<size_t>(base::kMaxJsonDepth)) return false;
    if (open_.empty()) first_line_ = place_.line;
    if (open_.size() == 1) fields_.back().begin = place_;
    if (open_.size() == 2 && open_[1] == '[' && items_++ == 0 && bracket == '{')
      fields_.back().is_list_of_objects = true;
    if (open_.size() == 1) items_ = 0;
    open_.push_back(bracket);
    is_value_ = bracket == '[';
    return true;
  }

  bool close(char bracket) {
    if (open_.empty() || open_.back() != bracket) return false;
    open_.pop_back();
    end_line_ = place_.line;
    follows_value_ = true;
    return true;
  }

  // A line never breaks within a string, so that a broken file is not read to its end.
  bool take_string() {
    if (follows_value_) return false;
    std::string text;
    for (int c = characters_.get(); c != '"'; c = characters_.get()) {
      if (c < ' ') return false;
      if (text.size() < kNameBytes) text += static_cast<char>(c);
      if (c == '\\' && characters_.get() < 0) return false;
    }
    if (open_.back() == '{' && !is_value_) return note_name(text);
    note_item();
    follows_value_ = true;
    return true;
  }

  // An object of very many fields has names of its own for its records.
  bool note_name(const std::string& name) {
    constexpr size_t kMostFields = 64;
    constexpr auto kOfMessages = std::to_array<std::string_view>({"role", "from", "speaker"});
    if (open_.size() == 1) fields_.push_back({.name = name});
    if (open_.size() == 3 && items_ == 1 && is_among_names(kOfMessages, name))
      fields_.back().holds_messages = true;
    return fields_.size() <= kMostFields;
  }

  bool take_literal(int c) {
    constexpr std::string_view kOfLiterals = "+-.0123456789aeEflnrstu";
    if (c < 0 || !is_value_ || follows_value_ ||
        kOfLiterals.find(static_cast<char>(c)) == std::string_view::npos)
      return false;
    note_item();
    // Its other characters are taken one by one, as if each were a value of its own.
    return true;
  }

  void note_item() {
    if (open_.size() == 2 && open_[1] == '[') ++items_;
  }

  const Characters& characters_;
  std::vector<char> open_;  // brackets
  std::vector<FieldOfObject> fields_;
  FilePlace place_;
  int token_ = 0;
  int first_line_ = 0;
  int end_line_ = 0;
  int64_t items_ = 0;  // of the list in the object's last field
  bool follows_value_ = false;
  bool is_value_ = false;  // what comes next in an object is no name
};

}  // namespace

std::string ListInObject::told() const {
  std::string text = fmt::format("the records are its list '{}'", base::shown_text(name));
  for (size_t i = 0; i < others.size(); ++i)
    text += fmt::format("{}'{}'", i == 0 ? ", not used are its other fields " : ", ",
                        base::shown_text(others[i]));
  return text;
}

std::optional<ListInObject> find_list_in_object(
    const Characters& characters, const std::function<void(const std::string&)>& fail) {
  ObjectWalk walk(characters);
  if (!walk.run()) return std::nullopt;
  const std::vector<FieldOfObject>& fields = walk.fields();
  const auto has = [&](const char* key) {
    return std::ranges::find(fields, key, &FieldOfObject::name) != fields.end();
  };
  if (form_of(has, std::nullopt)) return std::nullopt;
  std::vector<const FieldOfObject*> lists;
  std::vector<const FieldOfObject*> named;
  for (const FieldOfObject& field : fields) {
    if (!field.is_list_of_objects || field.holds_messages) continue;
    lists.push_back(&field);
    if (is_named_as_records(field.name)) named.push_back(&field);
  }
  if (named.empty() && walk.breaks_lines()) named = lists;
  if (named.empty()) return std::nullopt;
  if (named.size() > 1) {
    std::vector<std::string> names;
    names.reserve(named.size());
    for (const FieldOfObject* field : named) names.push_back(base::shown_text(field->name));
    fail(
        fmt::format("it is one JSON object, of which several lists may be the records: '{}'; "
                    "write the one that is meant into a file of its own",
                    fmt::join(names, "', '")));
  }
  ListInObject found{.name = named[0]->name, .begin = named[0]->begin};
  for (const FieldOfObject& field : fields)
    if (&field != named[0]) found.others.push_back(field.name);
  return found;
}

}  // namespace snug::text
