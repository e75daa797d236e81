#include "formats/json_lines.h"

#include "base/error.h"
#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace snug::formats {
namespace {

// A line with its end, at most; a longer one takes a second write.
constexpr size_t kLineBytes = 4096;

// The number of bytes of `text` to keep: whole lines, up to the first one past last_step.
int64_t kept_bytes(std::string_view text, int64_t last_step, const std::string& file) {
  size_t start = 0;
  for (int number = 1; start < text.size(); ++number) {
    const size_t end = text.find('\n', start);
    if (end == std::string_view::npos) break;  // a torn last line
    const std::string_view line = text.substr(start, end - start);
    if (!nlohmann::json::accept(line)) {
      if (end + 1 == text.size()) break;
      throw base::UserError("the line is not a JSON object; repair or remove the file",
                            {file, number});
    }
    const nlohmann::json object = base::parse_json(line, file);
    if (base::JsonObject(object, file).integer_or("step", 0) > last_step) break;
    start = end + 1;
  }
  return static_cast<int64_t>(start);
}

}  // namespace

JsonLines JsonLines::create(const std::filesystem::path& path) {
  return {base::File::create(path), 0};
}

JsonLines JsonLines::resume(const std::filesystem::path& path, int64_t last_step) {
  base::File file = base::File::open_for_update(path);
  const int64_t kept = kept_bytes(base::read_text_file(path), last_step, path.string());
  file.truncate(kept);
  return {std::move(file), kept};
}

void JsonLines::append(std::string_view object) {
  SNUG_CHECK(object.find('\n') == std::string_view::npos, "a record of several lines: {}", object);
  char line[kLineBytes];
  if (object.size() < kLineBytes) {
    *std::copy(object.begin(), object.end(), line) = '\n';
    file_.write_at(end_, line, static_cast<int64_t>(object.size()) + 1);
  } else {
    file_.write_at(end_, object.data(), static_cast<int64_t>(object.size()));
    file_.write_at(end_ + static_cast<int64_t>(object.size()), "\n", 1);
  }
  end_ += static_cast<int64_t>(object.size()) + 1;
}

}  // namespace snug::formats
