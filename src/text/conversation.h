// What a record says, whatever its form: a list of parts, of which some are the answer that the
// model is to learn. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace snug::text {

struct Message {
  enum class Role { system, user, assistant };
  Role role = Role::user;
  std::string content;
};

// A stretch of a document before it is tokenized: a token by its id, or text.
struct Part {
  std::string text;
  int32_t id = -1;  // -1: text
  bool is_answer = false;
};

}  // namespace snug::text
