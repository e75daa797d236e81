#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include <array>
#include <stdexcept>

#include "base/error.h"
#include "text/utf8.h"

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

// One block a thread: only the whole match is ever asked for.
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
  // Ruby's ^ and $ are those of every line, hence MULTILINE.
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset,
                            context.get()));
  if (!code_)
    throw std::invalid_argument(
        fmt::format("the regular expression does not compile: {} (at "
                    "byte {} of '{}')",
                    message_of(error), offset, translated));
  // Without a just-in-time compiler for this processor the interpreter runs the pattern.
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

void Regex::find_all(std::string_view text, std::vector<Range>& matches) const {
  matches.clear();
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* block = match_block();
  uint32_t options = PCRE2_NO_UTF_CHECK;
  size_t position = 0;
  while (position <= text.size()) {
    int found = pcre2_match(code_.get(), subject, text.size(), position, options, block, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code_.get(), subject, text.size(), position, options | PCRE2_NO_JIT,
                          block, nullptr);
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0)
      base::throw_user_error(
          "the tokenizer's regular expression gave up on a text of {} bytes: {}; split the text "
          "into shorter lines or records",
          text.size(), message_of(found));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(block);
    const Range match{ends[0], ends[1]};
    if (match.end > match.begin) {
      matches.push_back(match);
      position = match.end;
      continue;
    }
    // An empty match splits nothing off; go on with the next character.
    if (match.end >= text.size()) return;
    position = match.end + sequence_length(static_cast<unsigned char>(text[match.end]));
  }
}

}  // namespace snug::text
