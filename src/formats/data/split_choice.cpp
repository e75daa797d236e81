#include "formats/data/split_choice.h"

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace snug::formats {
namespace {

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The N of [:N]; 0 for any other part.
int64_t first_records(std::string_view part) {
  int64_t count = 0;
  if (!part.starts_with("[:") || !part.ends_with(']')) return 0;
  const std::string_view number = part.substr(2, part.size() - 3);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  return error == std::errc{} && end == number.data() + number.size() && count > 0 ? count : 0;
}

[[noreturn]] void refuse_part(const std::string& split, std::string_view name) {
  base::throw_user_error(
      "split \"{}\" asks for a part of the records. Give split: {} with limit: N for its first N "
      "records, or with repeats: 0.1 for a tenth of them; val_set_size=0.1 keeps a tenth of the "
      "data for evaluation",
      split, name);
}

}  // namespace

SplitChoice read_split_choice(const std::string& split) {
  SplitChoice choice;
  std::string_view rest = without_blanks(split);
  while (!rest.empty()) {
    const size_t end = rest.find('+');
    std::string_view name = without_blanks(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (const size_t bracket = name.find('['); bracket != std::string_view::npos) {
      choice.limit = first_records(name.substr(bracket));
      name = without_blanks(name.substr(0, bracket));
      if (choice.limit == 0 || end != std::string_view::npos || !choice.names.empty())
        refuse_part(split, name);
    }
    if (name.empty()) base::throw_user_error("split \"{}\" names a split that is empty", split);
    choice.names.emplace_back(name);
  }
  return choice;
}

}  // namespace snug::formats
