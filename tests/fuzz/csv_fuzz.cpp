// Tables of cells: a byte that says whether commas or tabs separate them, and the table.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz_input.h"
#include "text/record/record_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  fuzz::FuzzInput input(data, size);
  const std::string path =
      fuzz::fuzzed_file(input.byte() % 2 == 0 ? "data.csv" : "data.tsv", input.rest());
  const auto lines =
      1 + std::ranges::count(input.rest(), '\n') + std::ranges::count(input.rest(), '\r');
  fuzz::read_or_refuse(path, [&] {
    text::RecordReader reader(path);
    int64_t number = 0;
    int line = 1;
    for (text::RawRecord record; reader.next(record);) {
      fuzz::require(record.number == ++number, "records are numbered one after the other");
      fuzz::require(record.line > line && record.line <= lines, "a record has its row's line");
      line = record.line;
      if (!record.problem.empty()) continue;
      const auto row = nlohmann::json::parse(record.text);
      fuzz::require(row.is_object() && !row.empty(), "a row is an object");
      for (const auto& cell : row) fuzz::require(cell.is_string(), "a cell is a text");
    }
  });
  return 0;
}
