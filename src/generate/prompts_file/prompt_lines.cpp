#include "generate/prompts_file/prompt_lines.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace snug::generate {

PromptLines::PromptLines(const std::string& path, LineReader& reader)
    : path_(path), reader_(reader), records_(path) {
  records_.separate_by("\n");
}

bool PromptLines::next_raw(text::RawRecord& raw) {
  if (!records_.next(raw)) return false;
  if (records_.format() != text::RecordReader::Format::plain_text) return true;
  for (text::RawRecord more; raw.is_open && records_.next(more);) {
    raw.is_open = more.is_open;
    if (raw.text.size() + more.text.size() > text::kMaxRecordBytes)
      raw.is_long = true;
    else
      raw.text += more.text;
  }
  if (raw.text.ends_with('\r')) raw.text.pop_back();
  raw.text = nlohmann::json{{"prompt", raw.text}}.dump();
  return true;
}

bool PromptLines::next(PromptLine& line) {
  text::RawRecord raw;
  if (!next_raw(raw)) return false;
  line = {.index = raw.number - 1};
  line.written = raw.is_long ? std::to_string(raw.end - raw.begin) : raw.text;
  try {
    reader_.read(raw, path_, line.asked);
  } catch (const text::RecordError& error) {
    line.error = error;
  }
  return true;
}

void PromptLines::skip(int64_t count) {
  text::RawRecord raw;
  while (count > 0 && next_raw(raw)) --count;
}

}  // namespace snug::generate
