#include "serve/page.h"

// The assembler looks for the file where headers are looked for. CMakeLists.txt has this source
// compiled again where the page changes.
asm(R"(
  .pushsection .rodata
  .global snug_page_begin
  .global snug_page_end
  snug_page_begin:
  .incbin "serve/page.html"
  snug_page_end:
  .byte 0
  .popsection
)");

extern "C" {
extern const char snug_page_begin[];  // NOLINT: arrays of the assembler
extern const char snug_page_end[];    // NOLINT
}

namespace snug::serve {

std::string_view page() {
  return {snug_page_begin, static_cast<size_t>(snug_page_end - snug_page_begin)};
}

}  // namespace snug::serve
