// The list of records in a JSON file that is one object: {"version": "1", "data": [{...}, {...}]},
// as SQuAD and Natural Instructions are published. The object is read once as characters, by
// counting brackets outside of strings; nothing of it is held but the names of its fields.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace snug::text {

// Where something begins in a file.
struct FilePlace {
  int64_t offset = 0;
  int line = 1;
};

struct ListInObject {
  std::string name;
  FilePlace begin;                    // of the list's first bracket
  std::vector<std::string> others{};  // the object's other fields

  // "the records are its list 'data', not used are its other fields 'version', 'date'".
  std::string told() const;
};

// What is read: the next character, -1 at the end; and where it lies.
struct Characters {
  std::function<int()> get;
  std::function<FilePlace()> place;
};

// Reads on from the object's first bracket, as far as the file is one object. Nothing where it is
// none, where it is a record itself (of a form that Snug reads, or of messages), or where it holds
// no such list: one of the names that hold records (data, instances, train, rows, examples, ...),
// or, where lines break within the object, its only list of objects. `fail` is called, and throws,
// where several lists may be meant.
std::optional<ListInObject> find_list_in_object(
    const Characters& characters, const std::function<void(const std::string&)>& fail);

}  // namespace snug::text
