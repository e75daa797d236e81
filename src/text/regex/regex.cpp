#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex/regex.h"

#include <pcre2.h>

#include <array>
#include <stdexcept>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

// One block per thread, since only the whole match is ever needed.
pcre2_match_data* match_block() {
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatch> block(
      pcre2_match_data_create(1, nullptr));
  return block.get();
}

std::string escape(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool is_plain = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
                          (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (c == '\0') {
      pattern += "\\x00";
      continue;
    }
    if (!is_plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// Whether an expression that matches at line starts contains a ^ outside of classes, which PCRE2
// does not count as looking back.
bool asks_for_line_start(std::string_view pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '^' && (i == 0 || pattern[i - 1] != '[')) {
      return true;
    }
  }
  return false;
}

// The beginning of a pattern, short enough for a message.
std::string_view beginning_of(std::string_view pattern) { return pattern.substr(0, 100); }

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex::Regex(const std::string& pattern) : Regex(translate_regex(pattern), Compiled{}) {}

Regex Regex::literal(std::string_view text) { return {escape(text), Compiled{}}; }

Regex::Regex(const std::string& translated, Compiled) {
  struct FreeContext {
    void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  };
  const std::unique_ptr<pcre2_compile_context, FreeContext> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // In Ruby, ^ and $ match at every line, hence MULTILINE.
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset,
                            context.get()));
  if (!code_)
    throw std::invalid_argument(
        fmt::format("the regular expression does not compile: {} (at "
                    "byte {} of what begins with '{}')",
                    message_of(error), offset, beginning_of(translated)));
  // If PCRE2 has no just-in-time compiler for this CPU, its interpreter runs the pattern.
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
  uint32_t before = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_MAXLOOKBEHIND, &before);
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  may_match_nothing_ = matches_empty != 0;
  looks_back_ = before > 0 || matches_empty != 0 || asks_for_line_start(translated);
}

void Regex::find_all(std::string_view text, std::vector<Range>& matches) const {
  find(text, 0, matches);
}

size_t Regex::find_certain(std::string_view text, std::vector<Range>& matches) const {
  return find(text, PCRE2_PARTIAL_HARD, matches);
}

// With PCRE2_PARTIAL_HARD the engine reports every match that reached the end of the text as
// partial, so matches that it reports as complete do not depend on what follows.
size_t Regex::find(std::string_view text, uint32_t partial, std::vector<Range>& matches) const {
  matches.clear();
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* block = match_block();
  const uint32_t options = PCRE2_NO_UTF_CHECK | partial;
  size_t position = 0;
  size_t matched_end = std::string_view::npos;
  while (!text.empty() && position <= text.size()) {
    int found = pcre2_match(code_.get(), subject, text.size(), position, options, block, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code_.get(), subject, text.size(), position, options | PCRE2_NO_JIT,
                          block, nullptr);
    if (found == PCRE2_ERROR_NOMATCH) return text.size();
    if (found == PCRE2_ERROR_PARTIAL) return pcre2_get_ovector_pointer(block)[0];
    if (found < 0)
      base::throw_user_error(
          "the tokenizer's regular expression gave up on a text of {} bytes: {}; split the text "
          "into shorter lines or records",
          text.size(), message_of(found));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(block);
    const Range match{ends[0], ends[1]};
    if (match.end > match.begin || match.end != matched_end) {
      matches.push_back(match);
      position = matched_end = match.end;
      continue;
    }
    // An empty match directly after another match does not count, so the search goes on at the next
    // character.
    if (position >= text.size()) return text.size();
    position += sequence_length(static_cast<unsigned char>(text[position]));
  }
  return text.size();
}

}  // namespace snug::text
