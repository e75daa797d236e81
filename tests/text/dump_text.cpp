// Writes the text that records of a data file are read from to standard output: for
// scripts/oracles/check_parquet.
#include <cstdio>
#include <string>

#include "base/error.h"
#include "text/source/record_file.h"

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) {
      snug::text::RecordFile file(argv[i]);
      std::string block(1 << 16, '\0');
      int64_t at = 0;
      while (const int64_t bytes = file.read_at(at, block.data(), std::ssize(block))) {
        std::fwrite(block.data(), 1, static_cast<size_t>(bytes), stdout);
        at += bytes;
      }
    }
  } catch (const snug::base::UserError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
